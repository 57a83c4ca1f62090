//===- Conversation.cpp - Messages of a chat ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tools/Conversation.h"

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonReader.h"
#include "runtime/io/JsonText.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace llamac {

using nlohmann::ordered_json;

std::optional<std::string> Conversation::system() const {
  return !all.empty() && all.front().role == "system"
             ? std::optional(all.front().content)
             : std::nullopt;
}

void Conversation::setSystem(const std::optional<std::string> &content) {
  if (system())
    all.erase(all.begin());
  if (content)
    all.insert(all.begin(), {"system", *content});
}

static ordered_json toJson(const std::vector<Message> &messages) {
  auto list = ordered_json::array();
  for (const auto &[role, content] : messages)
    list.push_back(ordered_json{{"role", role}, {"content", content}});
  return list;
}

std::string Conversation::json() const {
  // A model may write bytes that are not UTF-8.
  return jsonText(toJson(all));
}

absl::Status Conversation::save(const std::string &path) const {
  return writeFileAtomically(
      path, jsonText(ordered_json{{"messages", toJson(all)}}, 2) + "\n");
}

/// The message that `object` is; `isFirst` of its conversation.
static absl::StatusOr<Message> readMessage(const JsonObject &object,
                                           bool isFirst) {
  for (const auto &[name, value] : object.raw().items())
    if (name != "role" && name != "content")
      return object.fail(name.substr(0, 80), "role and content alone",
                         "another member");
  LLAMAC_ASSIGN_OR_RETURN(const auto role, object.optionalString("role"));
  LLAMAC_ASSIGN_OR_RETURN(const auto content, object.optionalString("content"));
  if (role != "user" && role != "assistant" && !(isFirst && role == "system"))
    return object.fail("role",
                       "user or assistant, or system of the first message",
                       quoteForMessage(role.value_or("")));
  if (!content)
    return object.fail("content", "a text", "none");
  return Message{*role, *content};
}

absl::StatusOr<Conversation> Conversation::load(const std::string &path) {
  constexpr JsonLimits limits = {.maxBytes = uint64_t{32} << 20};
  const auto read = [&]() -> absl::StatusOr<Conversation> {
    LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                            parseJsonFile(path, limits));
    LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
    if (!root.has("messages"))
      return root.fail("messages", "an array of messages", "none");
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<JsonObject> list,
                            root.objects("messages"));
    Conversation conversation;
    for (const JsonObject &object : list) {
      LLAMAC_ASSIGN_OR_RETURN(Message message,
                              readMessage(object, conversation.all.empty()));
      conversation.all.push_back(std::move(message));
    }
    return conversation;
  };
  absl::StatusOr<Conversation> conversation = read();
  // It is no model's file.
  return conversation.ok() ? std::move(conversation)
                           : usageError(conversation.status().message());
}

} // namespace llamac
