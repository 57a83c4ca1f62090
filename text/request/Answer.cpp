//===- Answer.cpp - An answer as it grows ---------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/Answer.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace llamac {

absl::string_view stopReasonName(StopReason reason) {
  static constexpr absl::string_view names[] = {
      "length", "context", "stop id", "stop string", "cancelled", "deadline"};
  return names[static_cast<size_t>(reason)];
}

std::vector<int32_t> stopIdsOf(const GenerateOptions &options,
                               absl::Span<const int32_t> stopIds) {
  std::vector<int32_t> ids = options.stopIds;
  if (options.stopAtStopIds)
    ids.insert(ids.end(), stopIds.begin(), stopIds.end());
  return ids;
}

absl::string_view bytesInAnswer(const Tokenizer &tokenizer, int32_t id,
                                absl::Span<const int32_t> namedControls) {
  if (id >= tokenizer.vocabSize() ||
      (tokenizer.isControl(id) &&
       std::ranges::find(namedControls, id) == namedControls.end()))
    return "";
  return tokenizer.tokenBytes(id).value_or("");
}

absl::Status checkGenerateOptions(const GenerateOptions &options,
                                  bool wantsText, const Tokenizer *tokenizer) {
  if (std::ranges::find(options.stopStrings, "") != options.stopStrings.end())
    return fieldError("stop", "expected texts that are not empty, got an empty "
                              "one");
  if (!tokenizer && (wantsText || !options.stopStrings.empty()))
    return usageError("text: the plan has no tokenizer; give and ask for ids");
  return absl::OkStatus();
}

Answer::Answer(const GenerateOptions &options, std::vector<int32_t> stopIds,
               int64_t most, bool wantsText, const Tokenizer *tokenizer)
    : tokenizer(wantsText || !options.stopStrings.empty() ? tokenizer
                                                          : nullptr),
      wantsText(wantsText), endIds(std::move(stopIds)),
      namedControls(options.namedControls), maxTokens(options.maxTokens),
      most(most), text(options.stopStrings) {
  if (maxTokens == 0)
    reason = StopReason::Length;
}

std::string Answer::add(int32_t id) {
  if (std::ranges::find(endIds, id) != endIds.end())
    return end(StopReason::StopId);
  tokens.push_back(id);
  std::string piece;
  if (tokenizer) {
    piece = text.add(bytesInAnswer(*tokenizer, id, namedControls));
    if (!wantsText)
      piece.clear();
  }
  const auto count = static_cast<int64_t>(tokens.size());
  if (text.stopped())
    reason = StopReason::StopString;
  else if (count == maxTokens)
    piece += end(StopReason::Length);
  else if (count >= most)
    piece += end(StopReason::Context);
  return piece;
}

std::string Answer::end(StopReason why) {
  reason = why;
  std::string held = text.finish();
  return wantsText ? held : "";
}

} // namespace llamac
