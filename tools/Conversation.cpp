//===- Conversation.cpp - Messages of a chat ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Conversation.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonReader.h"
#include "runtime/io/JsonText.h"
#include "runtime/io/MappedFile.h"
#include "text/request/ChatMessages.h"

#include <cstdint>
#include <utility>

namespace llamac {

using nlohmann::ordered_json;

std::optional<std::string> Conversation::system() const {
  return !all.empty() && all.front()["role"] == "system"
             ? std::optional(all.front()["content"].get<std::string>())
             : std::nullopt;
}

void Conversation::setSystem(const std::optional<std::string> &content) {
  if (system())
    all.erase(0);
  if (content)
    all.insert(all.begin(), message("system", *content));
}

void Conversation::clear() {
  const std::optional<std::string> content = system();
  all.clear();
  setSystem(content);
}

std::string Conversation::json() const {
  // A model may write bytes that are not UTF-8.
  return jsonText(all);
}

absl::Status Conversation::save(const std::string &path) const {
  return writeFileAtomically(
      path, jsonText(ordered_json{{"messages", all}}, 2) + "\n");
}

absl::StatusOr<Conversation> Conversation::load(const std::string &path,
                                                const ChatFormat &format) {
  constexpr JsonLimits limits = {.maxBytes = uint64_t{32} << 20};
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          parseJson(path, file->text(), limits));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  Conversation conversation;
  LLAMAC_ASSIGN_OR_RETURN(conversation.all,
                          readMessages(root, file->text(), format));
  return conversation;
}

} // namespace llamac
