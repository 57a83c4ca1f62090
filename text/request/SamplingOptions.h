//===- SamplingOptions.h - How tokens are chosen ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_SAMPLINGOPTIONS_H
#define LLAMAC_TEXT_REQUEST_SAMPLINGOPTIONS_H

#include "text/grammar/Grammar.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace llamac {

/// How tokens are chosen. The order is vLLM's, and so are the definitions,
/// which OpenAI's interface and transformers share where they have the option:
///
///   1. logprobs are taken of the raw logits;
///   2. tokens that the grammar does not allow are ruled out, and stop ids
///   while
///      there are fewer than minTokens tokens (but where the grammar allows
///      nothing else);
///   3. logitBias is added;
///   4. repetitionPenalty, then frequencyPenalty and presencePenalty;
///   5. temperature 0 takes the argmax, and the rest has no effect; else logits
///      are divided by it;
///   6. minP, then topK, then topP, each of what the one before it left;
///   7. one of the tokens left is sampled by its share of their probability.
struct SamplingOptions {
  /// At least 0.
  double temperature = 0;
  /// Samples from the k most probable tokens; 0 or -1: from all.
  int64_t topK = 0;
  /// Samples, after topK, from the fewest most probable tokens whose
  /// probabilities reach this sum; 1: from all.
  double topP = 1;
  /// Without one, a random seed is made.
  std::optional<uint64_t> seed = {};
  /// Samples from the tokens of at least this share of the largest probability,
  /// 0 to 1.
  double minP = 0;
  /// Divides the logit of each token in the prompt and the answer where it is
  /// positive, else multiplies it; 0.01 to 100 (Keskar et al. 2019, CTRL).
  double repetitionPenalty = 1;
  /// Taken off a token's logit for each time it is in the answer, and once if
  /// it is there at all; -2 to 2.
  double frequencyPenalty = 0, presencePenalty = 0;
  /// Added to the logits of these ids, each named once; -100 to 100.
  std::vector<std::pair<int32_t, float>> logitBias = {};
  /// Stop ids are not chosen before so many tokens.
  int64_t minTokens = 0;
  /// Alternatives to report for each token, at most mostLogprobs; -1: no
  /// logprobs at all.
  int64_t logprobs = -1;
  /// An answer that a stop id ends matches this grammar; null: none.
  std::shared_ptr<const Grammar> grammar = {};
};

inline constexpr int64_t mostLogprobs = 1024;

/// The natural logarithm of the probability that the model, at temperature 1,
/// gives a token.
struct TokenLogprob {
  int32_t id;
  float logprob;
};

struct TokenLogprobs {
  TokenLogprob chosen;
  /// Its place among all tokens, the most likely being number 1.
  int64_t rank;
  /// The most likely tokens in order; the chosen one may be among them.
  std::vector<TokenLogprob> alternatives;
};

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_SAMPLINGOPTIONS_H
