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
        "most tokens to generate; -1: until the context is full", {.least = -1},
        "-n,--predict,--n-predict,--max-tokens N"),
    row("temperature", ofSampling<&SamplingOptions::temperature>,
        "temperature that the logits are divided by; 0: always the most "
        "probable token",
        {.least = 0}, "--temp,--temperature T",
        "the model's setting, else 1 where seed, top_k, top_p, min_p or n is "
        "set, else 0"),
    row("top_k", ofSampling<&SamplingOptions::topK>,
        "sample from the K most probable tokens; 0 or -1: from all",
        {.least = -1}, "--top-k K", "the model's setting, else 0"),
    row("top_p", ofSampling<&SamplingOptions::topP>,
        "sample from the fewest most probable tokens whose probabilities reach "
        "this sum; 1: from all",
        {.least = 0, .most = 1, .isAbove = true}, "--top-p P",
        "the model's setting, else 1"),
    row("min_p", ofSampling<&SamplingOptions::minP>,
        "sample from the tokens with at least this share of the largest "
        "probability",
        {.least = 0, .most = 1}, "--min-p P"),
    row("repetition_penalty", ofSampling<&SamplingOptions::repetitionPenalty>,
        "divide positive logits of tokens in the prompt and the answer by X, "
        "and multiply negative ones by it",
        {.least = 0.01, .most = 100},
        "--repeat-penalty,--repetition-penalty X"),
    row("frequency_penalty", ofSampling<&SamplingOptions::frequencyPenalty>,
        "subtract X from a token's logit for each time that the token is in "
        "the answer",
        {.least = -2, .most = 2}, "--frequency-penalty X"),
    row("presence_penalty", ofSampling<&SamplingOptions::presencePenalty>,
        "subtract X from the logit of each token that is in the answer",
        {.least = -2, .most = 2}, "--presence-penalty X"),
    row("logit_bias", ofSampling<&SamplingOptions::logitBias>,
        "add numbers to the logits of token ids", {.least = -100, .most = 100},
        "--logit-bias ID=VALUE"),
    row("min_tokens", ofSampling<&SamplingOptions::minTokens>,
        "tokens to generate before a stop id may be chosen", {.least = 0},
        "--min-tokens N"),
    row("logprobs", ofSampling<&SamplingOptions::logprobs>,
        "report each token's log probability and rank, and the N most probable "
        "tokens; -1: nothing",
        {.least = -1, .most = mostLogprobs}, "--logprobs N"),
    row("seed", ofSampling<&SamplingOptions::seed>,
        "seed of the sampler, of 64 bits; -1 is 2^64 - 1", {}, "-s,--seed SEED",
        "a random one"),
    row("stop", ofAnswer<&GenerateOptions::stopStrings>,
        "text that ends the answer and is left out of it", {}, "--stop TEXT"),
    row("stop_token_ids", ofAnswer<&GenerateOptions::stopIds>,
        "ids that end the answer besides the model's"),
    row("ignore_eos", ofInverse<&GenerateOptions::stopAtStopIds>,
        "do not end the answer at the model's stop ids", {}, "--ignore-eos"),
    row("add_special_tokens", ofEncoding<&EncodeOptions::addBos>,
        "whether a text prompt begins with the begin-of-sequence token, if the "
        "model has one"),
    row("parse_special", ofEncoding<&EncodeOptions::special>,
        "whether names of special tokens in a text prompt are read as those "
        "tokens"),
    row("n", ofRequest<&Request::answers>,
        "number of answers; answer i has the seed plus i",
        {.least = 1, .most = mostAnswers}),
    row("speculative", ofRequest<&Request::speculative>,
        "most tokens that a step verifies of a draft, which a draft model "
        "makes or what followed the same text before; 0: none; -1: as many as "
        "pay; -2: as many as pay with a draft model, else none",
        {.least = -2, .most = mostDrafts}, "--speculative N"),
    row("priority", ofRequest<&Request::priority>,
        "priority; requests with a higher one go first"),
    row("time_limit", ofRequest<&Request::timeLimit>,
        "seconds after which the answer is cut off; 0: no limit", {.least = 0}),
    row("detokenize", ofRequest<&Request::wantsText>,
        "whether answers are returned as text too"),
    row("json_object", ofGrammar<GrammarSource::JsonObject>,
        "make the answer a JSON object", {}, "--json-object"),
    row("json_schema", ofGrammar<GrammarSource::JsonSchema>,
        "make the answer JSON that matches this schema", {},
        "--json-schema,--guided-json SCHEMA"),
    row("regex", ofGrammar<GrammarSource::Regex>,
        "make the whole answer match this expression, in ECMAScript's syntax",
        {}, "--regex,--guided-regex REGEX"),
    row("grammar", ofGrammar<GrammarSource::Ebnf>,
        "make the answer follow these rules, name ::= ..., which start at root",
        {}, "--grammar,--guided-grammar GRAMMAR"),
};

absl::Span<const NamedOption<Request>> requestOptions() { return options; }

void drawWhereAsked(absl::Span<const absl::string_view> given,
                    Request &request) {
  SamplingOptions &sampling = request.options.sampling;
  if (sampling.temperature != 0)
    return;
  for (const absl::string_view name : given)
    if (name == "temperature")
      return;
  for (const absl::string_view name : given)
    if (name == "seed" || name == "top_k" || name == "top_p" ||
        name == "min_p" || (name == "n" && request.answers > 1))
      sampling.temperature = 1;
}

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
