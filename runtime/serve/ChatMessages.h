//===- ChatMessages.h - Conversations of OpenAI's interface -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_SERVE_CHATMESSAGES_H
#define LLAMAC_RUNTIME_SERVE_CHATMESSAGES_H

#include "runtime/engine/ChatFormat.h"
#include "runtime/io/JsonReader.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <optional>
#include <string>
#include <vector>

namespace llamac::serve {

/// A tool that may be called, by its name and the JSON schema of its
/// arguments.
struct Tool {
  std::string name, parameters;
};

struct ToolChoice {
  enum Kind { None, Auto, Required } kind = Auto;
  std::vector<Tool> tools = {}; ///< Those that may be called.
};

/// The field `messages` of `object`, which was parsed from `text`, as templates
/// know it: texts in parts are joined, and arguments of calls are objects.
/// Usage error for what has another form, or is no text.
absl::StatusOr<std::string> readMessages(const JsonObject &object,
                                         absl::string_view text,
                                         const ChatFormat &format);

/// The fields `tools` and `tool_choice`.
absl::StatusOr<ToolChoice> readTools(const JsonObject &object,
                                     absl::string_view text);

/// The JSON schema of a call of one of `tools`, whose arguments are the member
/// `arguments`.
std::string callSchema(const std::vector<Tool> &tools,
                       absl::string_view arguments);

/// What a template is given for `object`, but the tools.
absl::StatusOr<ChatTemplateInputs> readChatInputs(const JsonObject &object,
                                                  absl::string_view text,
                                                  const ChatFormat &format);

} // namespace llamac::serve

#endif // LLAMAC_RUNTIME_SERVE_CHATMESSAGES_H
