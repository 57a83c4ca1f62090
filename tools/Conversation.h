//===- Conversation.h - Messages of a chat ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_CONVERSATION_H
#define LLAMAC_TOOLS_CONVERSATION_H

#include "text/request/ChatFormat.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>

namespace llamac {

/// The messages of a user and a model, perhaps after a system message.
class Conversation {
public:
  /// An array, as readMessages() gives it.
  const nlohmann::ordered_json &messages() const { return all; }

  std::optional<std::string> system() const;
  void setSystem(const std::optional<std::string> &content);

  /// Whether nobody has said anything.
  bool isEmpty() const { return all.size() == (system() ? 1 : 0); }

  void add(std::string role, std::string content) {
    all.push_back(message(std::move(role), std::move(content)));
  }
  void removeLast() { all.erase(all.size() - 1); }
  /// Leaves the system message alone.
  void clear();

  /// The text of messages().
  std::string json() const;

  /// Writes {"messages": [...]} to `path`, whole or not at all. Errors: those
  /// of writeFileAtomically().
  absl::Status save(const std::string &path) const;

  /// Reads what save() wrote, or another client of OpenAI's interface, for
  /// `format` to write. Errors: those of readMessages(), and of reading the
  /// file, with the place.
  static absl::StatusOr<Conversation> load(const std::string &path,
                                           const ChatFormat &format);

private:
  static nlohmann::ordered_json message(std::string role, std::string content) {
    return {{"role", std::move(role)}, {"content", std::move(content)}};
  }

  nlohmann::ordered_json all = nlohmann::ordered_json::array();
};

} // namespace llamac

#endif // LLAMAC_TOOLS_CONVERSATION_H
