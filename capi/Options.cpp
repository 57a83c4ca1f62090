//===- Options.cpp - Options of C, by name --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "capi/Options.h"

#include "capi/Errors.h"
#include "capi/Handles.h"
#include "runtime/base/Suggestion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

namespace llamac {

//===----------------------------------------------------------------------===//
// From values to fields
//===----------------------------------------------------------------------===//

/// The kind of the option that sets `field`.
static llamac_option_kind kindOf(const OptionField &field) {
  if (const auto *grammar = std::get_if<GrammarField>(&field))
    return grammar->kind == GrammarSource::JsonObject ? LLAMAC_BOOLEAN
                                                      : LLAMAC_TEXT;
  static constexpr llamac_option_kind kinds[] = {
      LLAMAC_BOOLEAN, LLAMAC_BOOLEAN, LLAMAC_INTEGER, LLAMAC_INTEGER,
      LLAMAC_NUMBER,  LLAMAC_TEXT,    LLAMAC_SEED,    LLAMAC_TEXTS,
      LLAMAC_TOKENS,  LLAMAC_WEIGHTS};
  static_assert(std::size(kinds) + 1 == std::variant_size_v<OptionField>);
  return kinds[field.index()];
}

namespace {

/// Sets a field to a value. Usage error for one of another kind, or out of the
/// field's range.
class Assign {
public:
  Assign(const OptionValue &value, const OptionRange &range)
      : value(value), range(range) {}

  absl::Status operator()(bool *field) const {
    LLAMAC_ASSIGN_OR_RETURN(const auto number, held<int64_t>("0 or 1"));
    if (number != 0 && number != 1)
      return usageError(absl::StrCat("expected 0 or 1, got ", number));
    *field = number != 0;
    return absl::OkStatus();
  }

  absl::Status operator()(Inverse field) const {
    LLAMAC_RETURN_IF_ERROR((*this)(field.value));
    *field.value = !*field.value;
    return absl::OkStatus();
  }

  absl::Status operator()(int *field) const {
    return set(field, integer<int>());
  }

  absl::Status operator()(int64_t *field) const {
    return set(field, integer<int64_t>());
  }

  /// Seeds are 64 bits, whatever their sign.
  absl::Status operator()(std::optional<uint64_t> *field) const {
    return set(field, held<int64_t>("an integer"));
  }

  absl::Status operator()(double *field) const {
    double number = 0;
    if (const auto *integer = std::get_if<int64_t>(&value))
      number = static_cast<double>(*integer);
    else
      LLAMAC_RETURN_IF_ERROR(set(&number, held<double>("a number")));
    if (std::isfinite(range.least) &&
        !(number >= range.least && number <= range.most))
      return usageError(absl::StrCat("expected a number from ", range.least,
                                     " to ", range.most, ", got ", number));
    *field = number;
    return absl::OkStatus();
  }

  absl::Status operator()(std::string *field) const {
    return set(field, held<std::string>("a text"));
  }

  absl::Status operator()(std::vector<std::string> *field) const {
    return set(field,
               held<std::vector<std::string>>("texts, added one by one"));
  }

  absl::Status operator()(std::vector<int32_t> *field) const {
    return set(field, held<std::vector<int32_t>>("tokens"));
  }

  absl::Status operator()(TokenWeights *field) const {
    return set(field, held<TokenWeights>("tokens with weights"));
  }

  absl::Status operator()(GrammarField field) const {
    GrammarSource source{field.kind, ""};
    bool isAsked = true;
    if (field.kind == GrammarSource::JsonObject)
      LLAMAC_RETURN_IF_ERROR((*this)(&isAsked));
    else
      LLAMAC_RETURN_IF_ERROR((*this)(&source.text));
    if (!isAsked)
      return absl::OkStatus();
    if (field.source->has_value())
      return usageError(
          "expected the only grammar of a request, got another one beside it");
    *field.source = std::move(source);
    return absl::OkStatus();
  }

private:
  /// An integer that is in range, and fits a Field.
  template <typename Field> absl::StatusOr<int64_t> integer() const {
    LLAMAC_ASSIGN_OR_RETURN(const auto number, held<int64_t>("an integer"));
    using Limits = std::numeric_limits<Field>;
    const int64_t from = std::isfinite(range.least)
                             ? static_cast<int64_t>(range.least)
                             : Limits::min(),
                  to = std::isfinite(range.most)
                           ? static_cast<int64_t>(range.most)
                           : Limits::max();
    if (number < from || number > to)
      return usageError(absl::StrCat("expected an integer from ", from, " to ",
                                     to, ", got ", number));
    return number;
  }

  template <typename Held>
  absl::StatusOr<Held> held(absl::string_view expected) const {
    if (const Held *found = std::get_if<Held>(&value))
      return *found;
    static constexpr absl::string_view names[] = {
        "an integer",      "a number", "a text",
        "a list of texts", "tokens",   "tokens with weights"};
    return usageError(
        absl::StrCat("expected ", expected, ", got ", names[value.index()]));
  }

  template <typename Field, typename Held>
  static absl::Status set(Field *field, const absl::StatusOr<Held> &held) {
    if (held.ok())
      *field = static_cast<Field>(*held);
    return held.status();
  }

  const OptionValue &value;
  const OptionRange &range;
};

} // namespace

//===----------------------------------------------------------------------===//
// The lists
//===----------------------------------------------------------------------===//

/// The most that is counted in tokens or answers, as the tools have it.
static constexpr double mostTokens = 1 << 20;

static constexpr NamedOption<ModelOptions> modelOptions[] = {
#define ROW(NAME, FIELD, HELP, ...)                                            \
  {NAME, [](ModelOptions &to) -> OptionField { return &to.FIELD; }, HELP,      \
   ##__VA_ARGS__}
    ROW("threads", threads, "threads of kernels; 0: one on each physical core",
        {0, 1024}),
    ROW("sequences", sequences,
        "sequences at a time; 0: as many as the plan was compiled for",
        {0, mostTokens}),
    ROW("isa", isa, "instruction-set level, of those that the plan has", {}, "",
        "the best"),
    ROW("gpu_index", gpuIndex, "which GPU runs a plan for cuda", {0, 1023}),
    ROW("draft", draft,
        "plan of a smaller model of the same vocabulary, or of an EAGLE-3 "
        "head, which drafts answers",
        {}, "", "none"),
    ROW("verify", verify, "whether all checksums of the plan are verified"),
    ROW("tuned", tuned, "whether kernels have the configs that tuning found"),
    ROW("random_weights", randomWeights,
        "random weights by this seed, for a plan that has none", {}, "",
        "none"),
#undef ROW
};

static constexpr NamedOption<ChatEngineOptions> engineOptions[] = {
#define ROW(NAME, FIELD, HELP, ...)                                            \
  {NAME, [](ChatEngineOptions &to) -> OptionField { return &to.FIELD; }, HELP, \
   ##__VA_ARGS__}
    ROW("max_waiting", maxWaiting,
        "answers that may wait, beside those that run; 0: any number",
        {0, mostTokens}),
    ROW("prefix_cache", scheduler.cachesPrefixes,
        "whether beginnings that were seen before are computed once"),
    ROW("prefix_file", scheduler.prefixFile,
        "file that they are read from, where it is there, and saved to when "
        "the engine goes; empty: none"),
    ROW("kv_pages", scheduler.kvPages,
        "pages of the KV cache; 0: as many as kv_memory holds",
        {0, mostTokens}),
    ROW("kv_memory", scheduler.kvMemory,
        "on cuda: share of the memory that is free once the model is loaded, "
        "for pages of the KV cache; 0: 0.9",
        {0, 1}),
    ROW("prompt_rows", scheduler.promptRows,
        "tokens of prompts in a step beside answers that decode; 0: as many as "
        "the times of earlier steps allow",
        {0, mostTokens}),
    ROW("batch_invariant", scheduler.batchInvariant,
        "whether an answer is the same whatever runs beside it; on the cpu it "
        "always is"),
    ROW("chat_template", chatTemplate,
        "template, in Jinja, that conversations are written by", {}, "",
        "the model's"),
#undef ROW
};

/// A copy of `text` for as long as the library lives.
static const char *kept(const std::string &text) {
  return strdup(text.c_str());
}

template <typename Target>
static std::vector<OptionRow>
rowsOf(absl::Span<const NamedOption<Target>> options) {
  std::vector<OptionRow> rows;
  for (const NamedOption<Target> &option : options) {
    Target target;
    const OptionField field = option.field(target);
    const OptionRange &range = option.range;
    // A request is checked as it is prepared.
    const OptionRange checked =
        std::is_same_v<Target, Request> ? OptionRange() : range;
    rows.push_back(
        {{option.name, kindOf(field), option.help, kept(defaultText(option)),
          kept(rangeText(field, range)), range.least, range.most},
         [&option, checked](const OptionValue &value) {
           Target target;
           return std::visit(Assign(value, checked), option.field(target));
         },
         [&option, checked](const OptionValue &value, void *target) {
           return std::visit(Assign(value, checked),
                             option.field(*static_cast<Target *>(target)));
         }});
  }
  return rows;
}

absl::Span<const OptionRow> optionRows(llamac_scope scope) {
  // The index is the scope. Never destroyed: threads may outlive main().
  static const auto &rows = *new std::array<std::vector<OptionRow>, 3>{
      rowsOf<ModelOptions>(modelOptions),
      rowsOf<ChatEngineOptions>(engineOptions), rowsOf(requestOptions())};
  const auto index = static_cast<size_t>(scope);
  return index < std::size(rows) ? rows[index] : absl::Span<const OptionRow>();
}

static absl::string_view scopeName(llamac_scope scope) {
  static constexpr absl::string_view names[] = {"a model", "an engine",
                                                "a request"};
  return names[scope];
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

absl::StatusOr<const OptionRow *> OptionsObject::find(const char *name) const {
  LLAMAC_RETURN_IF_ERROR(checkNotNull(name, "name of the option"));
  const absl::Span<const OptionRow> rows = optionRows(scope);
  const auto nameOfRow = [](const OptionRow &row) {
    return absl::string_view(row.option.name);
  };
  const auto *row = std::ranges::find(rows, name, nameOfRow);
  if (row != rows.end())
    return row;
  std::vector<std::string> names;
  for (const OptionRow &each : rows)
    names.emplace_back(each.option.name);
  return usageError(
      absl::StrCat("option ", name, ": expected one of ", scopeName(scope),
                   ": ", absl::StrJoin(names, ", "), suggestion(name, names)));
}

absl::Status OptionsObject::setRow(const OptionRow &row, OptionValue value) {
  const absl::Status status = row.check(value);
  if (!status.ok())
    return withContext(status, absl::StrCat("option ", row.option.name));
  values.insert_or_assign(&row, std::move(value));
  return absl::OkStatus();
}

absl::Status OptionsObject::set(const char *name, OptionValue value) {
  LLAMAC_ASSIGN_OR_RETURN(const OptionRow *row, find(name));
  const std::lock_guard lock(mutex);
  return setRow(*row, std::move(value));
}

absl::Status OptionsObject::add(const char *name, const char *text) {
  LLAMAC_ASSIGN_OR_RETURN(const OptionRow *row, find(name));
  const std::lock_guard lock(mutex);
  std::vector<std::string> texts;
  const auto found = values.find(row);
  if (found != values.end())
    if (const auto *held =
            std::get_if<std::vector<std::string>>(&found->second))
      texts = *held;
  texts.emplace_back(text);
  return setRow(*row, std::move(texts));
}

std::vector<absl::string_view> OptionsObject::names() const {
  const std::lock_guard lock(mutex);
  std::vector<absl::string_view> names;
  for (const auto &[row, value] : values)
    names.emplace_back(row->option.name);
  return names;
}

absl::Status OptionsObject::applyTo(llamac_scope wanted, void *target) const {
  if (scope != wanted)
    return usageError(absl::StrCat("options: expected those of ",
                                   scopeName(wanted), ", got those of ",
                                   scopeName(scope)));
  const std::lock_guard lock(mutex);
  for (const auto &[row, value] : values)
    LLAMAC_RETURN_IF_ERROR(withContext(
        row->apply(value, target), absl::StrCat("option ", row->option.name)));
  return absl::OkStatus();
}

} // namespace llamac

using namespace llamac;

const llamac_option *llamac_option_at(llamac_scope scope, size_t index) {
  const absl::Span<const OptionRow> rows = optionRows(scope);
  return index < rows.size() ? &rows[index].option : nullptr;
}

llamac_code llamac_options_new(llamac_scope scope, llamac_options **options) {
  return callFromC([&] {
    LLAMAC_RETURN_IF_ERROR(clearOutput(options, "options"));
    if (optionRows(scope).empty())
      return usageError(absl::StrCat("scope: expected 0 to 2, got ",
                                     static_cast<int>(scope)));
    *options =
        openHandle<llamac_options>(std::make_shared<OptionsObject>(scope));
    return absl::OkStatus();
  });
}

llamac_code llamac_options_free(llamac_options *options) {
  return callFromC([&] { return closeHandle(options).status(); });
}

/// Sets option `name` to what `value` gives.
template <typename Value>
static llamac_code setOption(llamac_options *options, const char *name,
                             Value value) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(options));
    LLAMAC_ASSIGN_OR_RETURN(OptionValue given, value());
    return object->set(name, std::move(given));
  });
}

llamac_code llamac_options_set_integer(llamac_options *options,
                                       const char *name, int64_t value) {
  return setOption(options, name,
                   [&]() -> absl::StatusOr<OptionValue> { return value; });
}

llamac_code llamac_options_set_number(llamac_options *options, const char *name,
                                      double value) {
  return setOption(options, name,
                   [&]() -> absl::StatusOr<OptionValue> { return value; });
}

llamac_code llamac_options_set_text(llamac_options *options, const char *name,
                                    const char *text) {
  return setOption(options, name, [&]() -> absl::StatusOr<OptionValue> {
    LLAMAC_RETURN_IF_ERROR(checkNotNull(text, "text"));
    return std::string(text);
  });
}

llamac_code llamac_options_add_text(llamac_options *options, const char *name,
                                    const char *text) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(options));
    LLAMAC_RETURN_IF_ERROR(checkNotNull(text, "text"));
    return object->add(name, text);
  });
}

llamac_code llamac_options_set_tokens(llamac_options *options, const char *name,
                                      const int32_t *tokens, size_t count) {
  return setOption(options, name, [&]() -> absl::StatusOr<OptionValue> {
    LLAMAC_RETURN_IF_ERROR(checkArray(tokens, count, "tokens"));
    return std::vector<int32_t>(tokens, tokens + count);
  });
}

llamac_code llamac_options_set_weights(llamac_options *options,
                                       const char *name, const int32_t *tokens,
                                       const float *weights, size_t count) {
  return setOption(options, name, [&]() -> absl::StatusOr<OptionValue> {
    LLAMAC_RETURN_IF_ERROR(checkArray(tokens, count, "tokens"));
    LLAMAC_RETURN_IF_ERROR(checkArray(weights, count, "weights"));
    TokenWeights pairs(count);
    for (size_t i = 0; i < count; ++i)
      pairs[i] = {tokens[i], weights[i]};
    return pairs;
  });
}
