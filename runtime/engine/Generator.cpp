//===- Generator.cpp - From a prompt to an answer -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Generator.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"
#include "runtime/engine/TextStream.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <optional>

namespace llamac {

absl::string_view stopReasonName(StopReason reason) {
  static constexpr absl::string_view names[] = {"length", "context", "stop id",
                                                "stop string", "cancelled"};
  return names[static_cast<size_t>(reason)];
}

namespace {

/// Passes chosen tokens on to the callbacks and finds out when to stop.
class Output {
public:
  Output(const Tokenizer *tokenizer,
         const std::vector<std::string> &stopStrings,
         const GenerateCallbacks &callbacks)
      : tokenizer(tokenizer), callbacks(callbacks), text(stopStrings),
        needsText(callbacks.onText || !stopStrings.empty()) {}

  /// Takes a token; the reason to stop after it, if there is one.
  absl::StatusOr<std::optional<StopReason>> add(int32_t id);

  /// Gives the text that was held back, unless a stop string ended it.
  void finish();

private:
  bool give(const std::string &piece) const {
    return piece.empty() || !callbacks.onText || callbacks.onText(piece);
  }

  const Tokenizer *tokenizer; ///< Not null where text is needed.
  const GenerateCallbacks &callbacks;
  TextStream text;
  bool needsText;
};

} // namespace

absl::StatusOr<std::optional<StopReason>> Output::add(int32_t id) {
  if (callbacks.onToken && !callbacks.onToken(id))
    return StopReason::Cancelled;
  // A vocabulary may have more rows than the tokenizer has tokens.
  if (!needsText || id >= tokenizer->vocabSize() || tokenizer->isControl(id))
    return std::nullopt;
  LLAMAC_ASSIGN_OR_RETURN(const absl::string_view bytes,
                          tokenizer->tokenBytes(id));
  if (!give(text.add(bytes)))
    return StopReason::Cancelled;
  if (text.stopped())
    return StopReason::StopString;
  return std::nullopt;
}

void Output::finish() { give(text.finish()); }

static absl::Status checkRequest(const Tokenizer *tokenizer,
                                 absl::Span<const int32_t> prompt,
                                 const GenerateOptions &options,
                                 const GenerateCallbacks &callbacks) {
  if (prompt.empty())
    return usageError("prompt: expected at least one token, got none");
  if (options.maxTokens < -1)
    return usageError(absl::StrCat("tokens to generate: expected -1 or more, "
                                   "got ",
                                   options.maxTokens));
  if (!tokenizer && (callbacks.onText || !options.stopStrings.empty()))
    return usageError("text: the plan has no tokenizer; give and ask for ids");
  return absl::OkStatus();
}

absl::StatusOr<GenerateResult> generate(Decoder &decoder,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions &options,
                                        const GenerateCallbacks &callbacks) {
  LLAMAC_RETURN_IF_ERROR(
      checkRequest(decoder.tokenizer(), prompt, options, callbacks));
  LLAMAC_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create(options.sampling));

  GenerateResult result;
  result.seed = sampler.seed();
  result.times.promptTokens = static_cast<int64_t>(prompt.size());
  if (options.maxTokens == 0)
    return result;

  const double start = steadySeconds();
  LLAMAC_ASSIGN_OR_RETURN(const int32_t first, decoder.next(prompt, sampler));
  const double decodeStart = steadySeconds();
  result.times.prefillSeconds = decodeStart - start;

  Output output(decoder.tokenizer(), options.stopStrings, callbacks);
  // Takes the next token; whether to go on.
  auto take = [&](int32_t id) -> absl::StatusOr<bool> {
    if (options.stopAtStopIds && decoder.isStopId(id)) {
      result.reason = StopReason::StopId;
      return false;
    }
    result.ids.push_back(id);
    LLAMAC_ASSIGN_OR_RETURN(std::optional<StopReason> stop, output.add(id));
    if (!stop && static_cast<int64_t>(result.ids.size()) == options.maxTokens)
      stop = StopReason::Length;
    if (!stop && decoder.length() == decoder.context())
      stop = StopReason::Context;
    if (stop)
      result.reason = *stop;
    return !stop;
  };
  LLAMAC_ASSIGN_OR_RETURN(const bool goesOn, take(first));
  if (goesOn) {
    int64_t steps = decoder.context() - decoder.length();
    if (options.maxTokens > 0)
      steps = std::min(steps, options.maxTokens - 1);
    LLAMAC_RETURN_IF_ERROR(
        decoder.decode(first, steps, sampler, [&](int32_t id) {
          ++result.times.decodeSteps;
          return take(id);
        }));
  }
  result.times.decodeSeconds = steadySeconds() - decodeStart;
  if (result.reason != StopReason::Cancelled)
    output.finish();
  return result;
}

} // namespace llamac
