//===- Generator.h - From a prompt to an answer -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_STEP_GENERATOR_H
#define LLAMAC_ENGINE_STEP_GENERATOR_H

#include "engine/sampling/Sampler.h"
#include "engine/step/Decoder.h"
#include "engine/step/Engine.h"
#include "text/request/Answer.h"

#include <functional>
#include <string>
#include <vector>

namespace llamac {

struct GenerateTimes {
  int64_t promptTokens = 0;
  double prefillSeconds = 0; ///< Until the logits of the first token.
  int64_t decodeSteps = 0;   ///< Steps of one token after the prompt.
  double decodeSeconds = 0;  ///< Their time, sampling included.
};

struct GenerateResult {
  /// The tokens of the answer, without the stop id that ended it.
  std::vector<int32_t> ids;
  /// Of each of them, where they are asked for.
  std::vector<TokenLogprobs> logprobs;
  StopReason reason = StopReason::Length;
  uint64_t seed = 0;
  GenerateTimes times;
};

/// What generate() tells while it runs; either may be empty. False ends the
/// generation: neither is called again.
struct GenerateCallbacks {
  std::function<bool(int32_t id)> onToken = {};
  /// The next piece of the answer, of whole UTF-8 characters; never text that
  /// might turn out to begin a stop string. Needs a tokenizer.
  std::function<bool(absl::string_view text)> onText = {};
};

/// Runs `prompt` through `decoder`, which has seen nothing yet, and generates.
/// Errors: usage for an empty prompt, one that exceeds the context (with both
/// numbers), stop strings without a tokenizer, or wrong sampling options; those
/// of Decoder::next.
absl::StatusOr<GenerateResult> generate(Decoder &decoder,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions &options,
                                        const GenerateCallbacks &callbacks);

} // namespace llamac

#endif // LLAMAC_ENGINE_STEP_GENERATOR_H
