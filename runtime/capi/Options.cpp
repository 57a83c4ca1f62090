//===- Options.cpp - Options of C, by name --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/Options.h"

#include "runtime/capi/Errors.h"
#include "runtime/capi/Handles.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

namespace llamac {

//===----------------------------------------------------------------------===//
// From the type of a field to its kind, and from values to fields
//===----------------------------------------------------------------------===//

namespace {

/// A field that is set to what an option does not say.
struct Inverse {
  bool &value;
};

} // namespace

template <typename Field> static constexpr llamac_option_kind kindOf() {
  if constexpr (std::is_same_v<Field, bool> || std::is_same_v<Field, Inverse>)
    return LLAMAC_BOOLEAN;
  else if constexpr (std::is_integral_v<Field> ||
                     std::is_same_v<Field, std::optional<uint64_t>>)
    return LLAMAC_INTEGER;
  else if constexpr (std::is_floating_point_v<Field>)
    return LLAMAC_NUMBER;
  else if constexpr (std::is_same_v<Field, std::string>)
    return LLAMAC_TEXT;
  else if constexpr (std::is_same_v<Field, std::vector<std::string>>)
    return LLAMAC_TEXTS;
  else if constexpr (std::is_same_v<Field, std::vector<int32_t>>)
    return LLAMAC_TOKENS;
  else if constexpr (std::is_same_v<Field, TokenWeights>)
    return LLAMAC_WEIGHTS;
}

static absl::Status wrongKind(const OptionValue &value,
                              absl::string_view expected) {
  static constexpr absl::string_view names[] = {
      "an integer",      "a number", "a text",
      "a list of texts", "tokens",   "tokens with weights"};
  return usageError(
      absl::StrCat("expected ", expected, ", got ", names[value.index()]));
}

template <typename Held, typename Field>
static absl::Status assignHeld(const OptionValue &value,
                               absl::string_view expected, Field &field) {
  const Held *held = std::get_if<Held>(&value);
  if (!held)
    return wrongKind(value, expected);
  field = *held;
  return absl::OkStatus();
}

static absl::Status assign(const OptionValue &value, bool &field) {
  int64_t number = 0;
  LLAMAC_RETURN_IF_ERROR(assignHeld<int64_t>(value, "0 or 1", number));
  if (number != 0 && number != 1)
    return usageError(absl::StrCat("expected 0 or 1, got ", number));
  field = number != 0;
  return absl::OkStatus();
}

static absl::Status assign(const OptionValue &value, Inverse field) {
  LLAMAC_RETURN_IF_ERROR(assign(value, field.value));
  field.value = !field.value;
  return absl::OkStatus();
}

static absl::Status assign(const OptionValue &value, int64_t &field) {
  return assignHeld<int64_t>(value, "an integer", field);
}

static absl::Status assign(const OptionValue &value, int &field) {
  int64_t number = 0;
  LLAMAC_RETURN_IF_ERROR(assign(value, number));
  using Limits = std::numeric_limits<int>;
  if (number < Limits::min() || number > Limits::max())
    return usageError(absl::StrCat("expected an integer from ", Limits::min(),
                                   " to ", Limits::max(), ", got ", number));
  field = static_cast<int>(number);
  return absl::OkStatus();
}

/// Seeds are 64 bits, whatever their sign.
static absl::Status assign(const OptionValue &value,
                           std::optional<uint64_t> &field) {
  int64_t number = 0;
  LLAMAC_RETURN_IF_ERROR(assign(value, number));
  field = static_cast<uint64_t>(number);
  return absl::OkStatus();
}

static absl::Status assign(const OptionValue &value, double &field) {
  if (const auto *integer = std::get_if<int64_t>(&value)) {
    field = static_cast<double>(*integer);
    return absl::OkStatus();
  }
  return assignHeld<double>(value, "a number", field);
}

static absl::Status assign(const OptionValue &value, std::string &field) {
  return assignHeld<std::string>(value, "a text", field);
}

static absl::Status assign(const OptionValue &value,
                           std::vector<std::string> &field) {
  return assignHeld<std::vector<std::string>>(value, "texts, added one by one",
                                              field);
}

static absl::Status assign(const OptionValue &value,
                           std::vector<int32_t> &field) {
  return assignHeld<std::vector<int32_t>>(value, "tokens", field);
}

static absl::Status assign(const OptionValue &value, TokenWeights &field) {
  return assignHeld<TokenWeights>(value, "tokens with weights", field);
}

/// The option that sets `field`, a function from a target to its field.
template <typename Target, typename Field>
static constexpr OptionRow makeRow(const char *name, Field field,
                                   const char *help) {
  using Type =
      std::remove_reference_t<decltype(field(std::declval<Target &>()))>;
  return {{name, kindOf<Type>(), help},
          [](const OptionValue &value) {
            Target target;
            return assign(value, Field()(target));
          },
          [](const OptionValue &value, void *target) {
            return assign(value, Field()(*static_cast<Target *>(target)));
          }};
}

//===----------------------------------------------------------------------===//
// The lists: a row of NAME sets FIELD
//===----------------------------------------------------------------------===//

#define LLAMAC_OPTION(TARGET, NAME, FIELD, HELP)                               \
  makeRow<TARGET>(NAME, [](TARGET &to) -> auto & { return to.FIELD; }, HELP)

static constexpr OptionRow modelRows[] = {
#define ROW(NAME, FIELD, HELP) LLAMAC_OPTION(ModelOptions, NAME, FIELD, HELP)
    ROW("threads", threads, "threads of kernels; 0: one on each physical core"),
    ROW("sequences", sequences,
        "sequences at a time; 0: as many as the plan was compiled for"),
    ROW("isa", isa, "instruction-set level, of those that the plan has"),
    ROW("gpu_index", gpuIndex, "which GPU runs a plan for cuda"),
    ROW("verify", verify, "whether all checksums of the plan are verified"),
    ROW("tuned", tuned, "whether kernels have the configs that tuning found"),
    ROW("random_weights", randomWeights,
        "random weights by this seed, for a plan that has none"),
#undef ROW
};

static constexpr OptionRow engineRows[] = {
#define ROW(NAME, FIELD, HELP)                                                 \
  LLAMAC_OPTION(AsyncEngineOptions, NAME, FIELD, HELP)
    ROW("max_waiting", maxWaiting, "answers that may wait; 0: any number"),
    ROW("prefix_cache", scheduler.cachesPrefixes,
        "whether beginnings that were seen before are computed once"),
    ROW("kv_pages", scheduler.kvPages,
        "pages of the KV cache; 0: as many as all sequences can use"),
    ROW("prompt_rows", scheduler.promptRows,
        "tokens of prompts in a step beside answers that decode; 0: as many "
        "as the times of earlier steps allow"),
#undef ROW
};

static constexpr OptionRow requestRows[] = {
#define ROW(NAME, FIELD, HELP)                                                 \
  LLAMAC_OPTION(RequestDraft, NAME, request.FIELD, HELP)
#define GRAMMAR(NAME, FIELD, HELP)                                             \
  LLAMAC_OPTION(RequestDraft, NAME, FIELD, HELP)
    ROW("max_tokens", options.maxTokens,
        "tokens to generate at most; -1: as many as the context holds"),
    ROW("temperature", options.sampling.temperature, "0: the argmax"),
    ROW("top_k", options.sampling.topK,
        "samples from the k most probable tokens; 0: from all"),
    ROW("top_p", options.sampling.topP,
        "samples from the fewest most probable tokens whose probabilities "
        "reach this sum; 1: from all"),
    ROW("min_p", options.sampling.minP,
        "samples from the tokens of at least this share of the largest "
        "probability"),
    ROW("repetition_penalty", options.sampling.repetitionPenalty,
        "divides positive logits of the tokens of prompt and answer, and "
        "multiplies others"),
    ROW("frequency_penalty", options.sampling.frequencyPenalty,
        "taken off the logit of a token for each time it is in the answer"),
    ROW("presence_penalty", options.sampling.presencePenalty,
        "taken off the logits of the tokens of the answer"),
    ROW("logit_bias", options.sampling.logitBias,
        "added to the logits of these ids"),
    ROW("min_tokens", options.sampling.minTokens,
        "stop ids are not chosen before so many tokens"),
    ROW("logprobs", options.sampling.logprobs,
        "alternatives to report for each token; -1: no logprobs at all"),
    ROW("seed", options.sampling.seed, "of sampling; none: a random one"),
    ROW("stop", options.stopStrings,
        "texts that end the answer and do not belong to it"),
    ROW("stop_token_ids", options.stopIds, "ids that do so beside the model's"),
    makeRow<RequestDraft>(
        "ignore_eos",
        [](RequestDraft &to) {
          return Inverse{to.request.options.stopAtStopIds};
        },
        "whether the model's stop ids do not end the answer"),
    ROW("n", answers, "answers; number i has the seed plus i"),
    ROW("priority", priority, "higher ones go first"),
    ROW("time_limit", timeLimit,
        "seconds after which answers end as they are; 0: none"),
    ROW("detokenize", wantsText, "whether parts have text"),
    GRAMMAR("json_object", jsonObject, "whether the answer is a JSON object"),
    GRAMMAR("json_schema", jsonSchema, "the answer is JSON by this schema"),
    GRAMMAR("regex", regex, "the answer matches this, in ECMAScript's syntax"),
    GRAMMAR("grammar", grammar,
            "the answer follows these rules, of which \"root\" is the first"),
#undef GRAMMAR
#undef ROW
};

absl::Span<const OptionRow> optionRows(llamac_scope scope) {
  switch (scope) {
  case LLAMAC_FOR_MODEL:
    return modelRows;
  case LLAMAC_FOR_ENGINE:
    return engineRows;
  case LLAMAC_FOR_REQUEST:
    return requestRows;
  case LLAMAC_SCOPE_MAX:
    break;
  }
  return {};
}

static absl::string_view scopeName(llamac_scope scope) {
  static constexpr absl::string_view names[] = {"model", "engine", "request"};
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
  return usageError(absl::StrCat(
      "option ", name, ": expected one of a ", scopeName(scope), ": ",
      absl::StrJoin(rows, ", ", [](std::string *out, const OptionRow &row) {
        absl::StrAppend(out, row.option.name);
      })));
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

absl::Status OptionsObject::applyTo(llamac_scope wanted, void *target) const {
  if (scope != wanted)
    return usageError(absl::StrCat("options: expected those of a ",
                                   scopeName(wanted), ", got those of a ",
                                   scopeName(scope)));
  const std::lock_guard lock(mutex);
  for (const auto &[row, value] : values)
    LLAMAC_RETURN_IF_ERROR(row->apply(value, target));
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
