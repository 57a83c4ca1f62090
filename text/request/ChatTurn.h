//===- ChatTurn.h - A turn of a chat: request and answer --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From messages and tools to a prompt, and from the answer to calls of tools:
// the server and the library have the same.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_CHATTURN_H
#define LLAMAC_TEXT_REQUEST_CHATTURN_H

#include "runtime/io/JsonReader.h"
#include "text/request/ChatFormat.h"
#include "text/request/Request.h"
#include "text/request/ToolCalls.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// How an answer calls tools.
struct CallForm {
  /// How calls are written; null where there are no tools.
  const ToolCallSyntax *syntax = nullptr;
  int mostCalls = std::numeric_limits<int>::max();
  bool mustCome = false;  ///< Whether the grammar allows no text but a call.
  std::string begun = {}; ///< The beginning of the answer that the prompt has.
};

/// The fields that readConversation() reads.
std::vector<absl::string_view> conversationFields();

/// Sets the prompt of `request`, its grammar where calls need one, and its
/// length, by what `object`, which was parsed from `text`, says of messages,
/// tools and the answer. `format` writes for `tokenizer`. Adds no token that
/// begins sequences. Errors: those of readChatRequest(), and usage, with the
/// place.
absl::StatusOr<CallForm> readConversation(const JsonObject &object,
                                          absl::string_view text,
                                          const ChatFormat &format,
                                          const Tokenizer &tokenizer,
                                          Request &request);

/// Reads one answer part by part, and tells calls of tools from content.
class AnswerReader {
public:
  explicit AnswerReader(const CallForm &form);

  /// The content and the calls that `part` brings.
  ToolCallPieces take(const AnswerPart &part);

  /// OpenAI's finish_reason of an answer that ended by `reason`: "tool_calls"
  /// promises that they are whole, and that the model wanted no more.
  absl::string_view finishReason(StopReason reason) const;

private:
  std::optional<ToolCallParser> parser; ///< None where there are no tools.
  int mostCalls;
  bool mustCome;
};

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_CHATTURN_H
