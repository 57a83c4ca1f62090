//===- RequestOptions.cpp - The options of a request, by name -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/RequestOptions.h"

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

static constexpr NamedOption<Request> options[] = {
    {"max_tokens", ofAnswer<&GenerateOptions::maxTokens>,
     "tokens to generate at most; -1: as many as the context holds"},
    {"temperature", ofSampling<&SamplingOptions::temperature>, "0: the argmax"},
    {"top_k", ofSampling<&SamplingOptions::topK>,
     "samples from the k most probable tokens; 0 or -1: from all"},
    {"top_p", ofSampling<&SamplingOptions::topP>,
     "samples from the fewest most probable tokens whose probabilities reach "
     "this sum; 1: from all"},
    {"min_p", ofSampling<&SamplingOptions::minP>,
     "samples from the tokens of at least this share of the largest "
     "probability"},
    {"repetition_penalty", ofSampling<&SamplingOptions::repetitionPenalty>,
     "divides positive logits of the tokens of prompt and answer, and "
     "multiplies others"},
    {"frequency_penalty", ofSampling<&SamplingOptions::frequencyPenalty>,
     "taken off the logit of a token for each time it is in the answer"},
    {"presence_penalty", ofSampling<&SamplingOptions::presencePenalty>,
     "taken off the logits of the tokens of the answer"},
    {"logit_bias", ofSampling<&SamplingOptions::logitBias>,
     "added to the logits of these ids"},
    {"min_tokens", ofSampling<&SamplingOptions::minTokens>,
     "stop ids are not chosen before so many tokens"},
    {"logprobs", ofSampling<&SamplingOptions::logprobs>,
     "alternatives to report for each token; -1: no logprobs at all"},
    {"seed", ofSampling<&SamplingOptions::seed>,
     "of sampling; a random one by default"},
    {"stop", ofAnswer<&GenerateOptions::stopStrings>,
     "texts that end the answer and do not belong to it"},
    {"stop_token_ids", ofAnswer<&GenerateOptions::stopIds>,
     "ids that do so beside the model's"},
    {"ignore_eos",
     [](Request &to) -> OptionField {
       return Inverse{&to.options.stopAtStopIds};
     },
     "whether the model's stop ids do not end the answer"},
    {"add_special_tokens",
     [](Request &to) -> OptionField { return &to.encoding.addBos; },
     "whether a prompt of text gets the begin-of-sequence token, where the "
     "model is used to one"},
    {"parse_special",
     [](Request &to) -> OptionField { return &to.encoding.special; },
     "whether names of special tokens in a prompt of text stand for them"},
    {"n", ofRequest<&Request::answers>,
     "answers; number i has the seed plus i"},
    {"priority", ofRequest<&Request::priority>, "higher ones go first"},
    {"time_limit", ofRequest<&Request::timeLimit>,
     "seconds after which answers end as they are; 0: none"},
    {"detokenize", ofRequest<&Request::wantsText>, "whether answers have text"},
    {"json_object", ofGrammar<GrammarSource::JsonObject>,
     "whether the answer is a JSON object"},
    {"json_schema", ofGrammar<GrammarSource::JsonSchema>,
     "the answer is JSON by this schema"},
    {"regex", ofGrammar<GrammarSource::Regex>,
     "the answer matches this, in ECMAScript's syntax"},
    {"grammar", ofGrammar<GrammarSource::Ebnf>,
     "the answer follows these rules, of which \"root\" is the first"},
};

absl::Span<const NamedOption<Request>> requestOptions() { return options; }

} // namespace llamac
