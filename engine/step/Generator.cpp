//===- Generator.cpp - From a prompt to an answer -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/step/Generator.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"

#include <algorithm>

namespace llamac {

absl::StatusOr<GenerateResult> generate(Decoder &decoder,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions &options,
                                        const GenerateCallbacks &callbacks) {
  if (prompt.empty())
    return usageError("prompt: expected at least one token, got none");
  const bool wantsText = callbacks.onText != nullptr;
  LLAMAC_RETURN_IF_ERROR(
      checkGenerateOptions(options, wantsText, decoder.tokenizer()));
  const std::vector<int32_t> stopIds = stopIdsOf(options, decoder.stopIds());
  LLAMAC_ASSIGN_OR_RETURN(
      Sampler sampler,
      Sampler::create(options.sampling, stopIds, decoder.vocabSize()));
  sampler.see(prompt);

  GenerateResult result;
  result.seed = sampler.seed();
  result.times.promptTokens = static_cast<int64_t>(prompt.size());
  // The token behind a full context is not run.
  const int64_t most =
      decoder.context() - result.times.promptTokens - decoder.length() + 1;
  Answer answer(options, stopIds, most, wantsText, decoder.tokenizer());
  if (answer.ended())
    return result;

  const double start = steadySeconds();
  LLAMAC_ASSIGN_OR_RETURN(const int32_t first, decoder.next(prompt, sampler));
  const double decodeStart = steadySeconds();
  result.times.prefillSeconds = decodeStart - start;

  bool isCancelled = false;
  // Takes the next token; whether to go on.
  auto take = [&](int32_t id) {
    const std::string piece = answer.add(id);
    if (answer.ended() != StopReason::StopId && sampler.logprobs())
      result.logprobs.push_back(*sampler.logprobs());
    if (answer.ended() != StopReason::StopId && callbacks.onToken)
      isCancelled = !callbacks.onToken(id);
    if (!isCancelled && !piece.empty())
      isCancelled = !callbacks.onText(piece);
    return !isCancelled && !answer.ended();
  };
  if (take(first)) {
    int64_t steps = most - 1;
    if (options.maxTokens > 0)
      steps = std::min(steps, options.maxTokens - 1);
    LLAMAC_RETURN_IF_ERROR(
        decoder.decode(first, steps, sampler, [&](int32_t id) {
          ++result.times.decodeSteps;
          return take(id);
        }));
  }
  result.times.decodeSeconds = steadySeconds() - decodeStart;
  result.ids = answer.ids();
  result.reason = isCancelled ? StopReason::Cancelled : *answer.ended();
  return result;
}

} // namespace llamac
