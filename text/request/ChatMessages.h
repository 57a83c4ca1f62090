//===- ChatMessages.h - Conversations of OpenAI's interface -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_CHATMESSAGES_H
#define LLAMAC_TEXT_REQUEST_CHATMESSAGES_H

#include "runtime/io/JsonReader.h"
#include "text/grammar/Grammar.h"
#include "text/request/ChatFormat.h"
#include "text/request/ToolCalls.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace llamac {

/// A tool that may be called, by its name and the JSON schema of its
/// arguments.
struct Tool {
  std::string name, parameters;
  bool isStrict = false; ///< Whether calls must match the schema.
};

struct ToolChoice {
  enum Kind { None, Auto, Required } kind = Auto;
  std::vector<Tool> tools = {}; ///< Tools that may be called.
};

/// A conversation to go on with, and the tools that its answer may call.
struct ChatRequest {
  ChatTemplateInputs inputs = {}; ///< With the tools that may be called.
  ToolChoice tools = {};
};

/// The fields that readChatRequest() reads, and `tool_choice`, which only some
/// callers can serve.
inline constexpr absl::string_view chatRequestFields[] = {
    "messages", "tools", "reasoning_effort", "chat_template_kwargs",
    "documents"};

/// Reads a conversation that `format` writes from `object`, which was parsed
/// from `text`. An error, with the place, for another form, for messages
/// that are no text, and for what the template knows nothing of.
absl::StatusOr<ChatRequest> readChatRequest(const JsonObject &object,
                                            absl::string_view text,
                                            const ChatFormat &format);

/// The field `messages` of `object`, as the template of a conversation (with
/// tools) takes it: texts in parts are joined, messages of the assistant are in
/// the form that ChatFormat::formFor() says. Errors as above.
absl::StatusOr<nlohmann::ordered_json> readMessages(const JsonObject &object,
                                                    absl::string_view text,
                                                    const ChatFormat &format,
                                                    bool withTools = false);

/// The JSON schema of a call of one of `tools`, whose arguments are the member
/// `arguments`.
std::string callSchema(const std::vector<Tool> &tools,
                       absl::string_view arguments);

/// A grammar of any text in which calls, written as `syntax` has them, are
/// calls of `tools` that match the schemas of those that are strict.
GrammarSource strictCalls(std::vector<Tool> tools,
                          const ToolCallSyntax &syntax);

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_CHATMESSAGES_H
