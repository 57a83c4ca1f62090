//===- RequestOptions.cpp - The options of a request, by name -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/RequestOptions.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/io/JsonText.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace llamac {

template <auto field> static OptionField ofRequest(Request &to) {
  return &(to.*field);
}

template <auto field> static OptionField ofAnswer(Request &to) {
  return &(to.options.*field);
}

template <auto field> static OptionField ofSampling(Request &to) {
  return &(to.options.sampling.*field);
}

template <GrammarSource::Kind kind> static OptionField ofGrammar(Request &to) {
  return GrammarField{&to.grammar, kind};
}

template <auto field> static OptionField ofEncoding(Request &to) {
  return &(to.encoding.*field);
}

template <auto field> static OptionField ofInverse(Request &to) {
  return Inverse{&(to.options.*field)};
}

static constexpr NamedOption<Request>
row(const char *name, OptionField (*field)(Request &), const char *help,
    OptionRange range = {}, const char *flag = "",
    const char *byDefault = nullptr) {
  return {name, field, help, range, flag, byDefault};
}

static constexpr NamedOption<Request> options[] = {
    row("max_tokens", ofAnswer<&GenerateOptions::maxTokens>,
        "tokens to generate at most; -1: as many as the context holds",
        {.least = -1}, "-n,--predict N"),
    row("temperature", ofSampling<&SamplingOptions::temperature>,
        "temperature that divides the logits; 0 takes the argmax", {.least = 0},
        "--temp T", "the model's advice, else 0"),
    row("top_k", ofSampling<&SamplingOptions::topK>,
        "samples from the K most probable tokens; 0 or -1: from all",
        {.least = -1}, "--top-k K", "the model's advice, else 0"),
    row("top_p", ofSampling<&SamplingOptions::topP>,
        "samples from the fewest most probable tokens whose probabilities "
        "reach this sum; 1: from all",
        {.least = 0, .most = 1, .isAbove = true}, "--top-p P",
        "the model's advice, else 1"),
    row("min_p", ofSampling<&SamplingOptions::minP>,
        "samples from the tokens of at least this share of the largest "
        "probability",
        {.least = 0, .most = 1}, "--min-p P"),
    row("repetition_penalty", ofSampling<&SamplingOptions::repetitionPenalty>,
        "divides positive logits of the tokens of prompt and answer, and "
        "multiplies others",
        {.least = 0.01, .most = 100}, "--repeat-penalty X"),
    row("frequency_penalty", ofSampling<&SamplingOptions::frequencyPenalty>,
        "number taken off the logit of a token for each time it is in the "
        "answer",
        {.least = -2, .most = 2}, "--frequency-penalty X"),
    row("presence_penalty", ofSampling<&SamplingOptions::presencePenalty>,
        "number taken off the logits of the tokens of the answer",
        {.least = -2, .most = 2}, "--presence-penalty X"),
    row("logit_bias", ofSampling<&SamplingOptions::logitBias>,
        "numbers that are added to the logits of these ids",
        {.least = -100, .most = 100}, "--logit-bias ID=VALUE"),
    row("min_tokens", ofSampling<&SamplingOptions::minTokens>,
        "tokens before which no stop id is chosen", {.least = 0},
        "--min-tokens N"),
    row("logprobs", ofSampling<&SamplingOptions::logprobs>,
        "reports each token's log probability and rank, and so many of the "
        "most likely ones; -1: nothing",
        {.least = -1, .most = mostLogprobs}, "--logprobs N"),
    row("seed", ofSampling<&SamplingOptions::seed>,
        "seed of the samples, of 64 bits: -1 is the seed 2^64 - 1", {},
        "-s,--seed SEED", "a random one"),
    row("stop", ofAnswer<&GenerateOptions::stopStrings>,
        "text that ends the answer and does not belong to it", {},
        "--stop TEXT"),
    row("stop_token_ids", ofAnswer<&GenerateOptions::stopIds>,
        "ids that end the answer beside the model's"),
    row("ignore_eos", ofInverse<&GenerateOptions::stopAtStopIds>,
        "does not let the model's stop ids end the answer", {}, "--ignore-eos"),
    row("add_special_tokens", ofEncoding<&EncodeOptions::addBos>,
        "whether a prompt of text gets the begin-of-sequence token, where the "
        "model is used to one"),
    row("parse_special", ofEncoding<&EncodeOptions::special>,
        "whether names of special tokens in a prompt of text stand for them"),
    row("n", ofRequest<&Request::answers>,
        "answers; number i has the seed plus i",
        {.least = 1, .most = mostAnswers}),
    row("priority", ofRequest<&Request::priority>,
        "requests of higher ones go first"),
    row("time_limit", ofRequest<&Request::timeLimit>,
        "seconds after which answers end as they are; 0: none", {.least = 0}),
    row("detokenize", ofRequest<&Request::wantsText>,
        "whether answers have text"),
    row("json_object", ofGrammar<GrammarSource::JsonObject>,
        "the answer is any JSON object", {}, "--json-object"),
    row("json_schema", ofGrammar<GrammarSource::JsonSchema>,
        "the answer is JSON by this schema", {}, "--json-schema SCHEMA"),
    row("regex", ofGrammar<GrammarSource::Regex>,
        "the answer as a whole matches this, in ECMAScript's syntax", {},
        "--regex REGEX"),
    row("grammar", ofGrammar<GrammarSource::Ebnf>,
        "the answer follows these rules, name ::= ..., of which root is the "
        "first",
        {}, "--grammar FILE"),
};

absl::Span<const NamedOption<Request>> requestOptions() { return options; }

static std::string textOf(const bool *value) {
  return *value ? "true" : "false";
}
static std::string textOf(Inverse inverse) {
  return *inverse.value ? "false" : "true";
}
template <typename Number>
  requires std::is_arithmetic_v<Number>
static std::string textOf(const Number *value) {
  return absl::StrCat(*value);
}
static std::string textOf(const std::string *value) { return *value; }
static std::string textOf(const std::optional<uint64_t> *value) {
  return *value ? absl::StrCat(**value) : "random";
}
template <typename Value>
static std::string textOf(const std::vector<Value> *values) {
  return jsonText(nlohmann::json(*values));
}
static std::string textOf(GrammarField field) {
  const bool isSet = *field.source && (*field.source)->kind == field.kind;
  if (field.kind == GrammarSource::JsonObject)
    return isSet ? "true" : "false";
  return isSet ? (*field.source)->text : "none";
}

std::string valueText(const OptionField &field) {
  return std::visit([](auto of) { return textOf(of); }, field);
}

/// A bound as people write it: 1048576, 0.01.
static std::string textOfBound(double bound) {
  return bound == std::floor(bound) ? absl::StrCat(static_cast<int64_t>(bound))
                                    : absl::StrCat(bound);
}

std::string rangeText(const OptionField &field, const OptionRange &range) {
  if (!std::isfinite(range.least))
    return "";
  const std::string least = textOfBound(range.least);
  const bool isReal = std::holds_alternative<double *>(field);
  if (!std::isfinite(range.most))
    return isReal ? "a number of at least " + least : least + " or more";
  const std::string most = textOfBound(range.most);
  return range.isAbove
             ? absl::StrCat("a number above ", least, " and at most ", most)
             : absl::StrCat(least, " to ", most);
}

absl::Status checkNumbers(Request &request) {
  for (const NamedOption<Request> &option : options) {
    const auto &[least, most, isAbove] = option.range;
    const OptionField field = option.field(request);
    const auto check = [&](auto number,
                           absl::string_view of = "") -> absl::Status {
      const auto value = static_cast<double>(number);
      if (value >= least && value <= most && !(isAbove && value == least) &&
          std::isfinite(value))
        return absl::OkStatus();
      return fieldError(
          option.name, absl::StrCat("expected ", rangeText(field, option.range),
                                    of, ", got ", number));
    };
    if (auto *whole = std::get_if<int *>(&field))
      LLAMAC_RETURN_IF_ERROR(check(**whole));
    if (auto *longer = std::get_if<int64_t *>(&field))
      LLAMAC_RETURN_IF_ERROR(check(**longer));
    if (auto *real = std::get_if<double *>(&field))
      LLAMAC_RETURN_IF_ERROR(check(**real));
    if (auto *weights = std::get_if<TokenWeights *>(&field))
      for (const auto &[id, weight] : **weights)
        LLAMAC_RETURN_IF_ERROR(
            check(weight, absl::StrCat(" for token id ", id)));
  }
  return absl::OkStatus();
}

void copyOption(const NamedOption<Request> &option, Request &from,
                Request &to) {
  std::visit(
      [](auto given, auto target) {
        if constexpr (std::is_same_v<decltype(given), decltype(target)>) {
          if constexpr (std::is_same_v<decltype(given), Inverse>)
            *target.value = *given.value;
          else if constexpr (std::is_same_v<decltype(given), GrammarField>)
            *target.source = *given.source;
          else
            *target = *given;
        }
      },
      option.field(from), option.field(to));
}

} // namespace llamac
