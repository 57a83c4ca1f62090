//===- Conversation.h - Messages of a chat ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TOOLS_CONVERSATION_H
#define LLAMAC_RUNTIME_TOOLS_CONVERSATION_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <optional>
#include <string>
#include <vector>

namespace llamac {

struct Message {
  std::string role; ///< system, user or assistant.
  std::string content;
};

/// What a user and a model have said, perhaps after a system message.
class Conversation {
public:
  const std::vector<Message> &messages() const { return all; }

  std::optional<std::string> system() const;
  void setSystem(const std::optional<std::string> &content);

  /// Whether nobody has said anything.
  bool isEmpty() const { return all.size() == (system() ? 1 : 0); }

  void add(std::string role, std::string content) {
    all.push_back({std::move(role), std::move(content)});
  }
  void removeLast() { all.pop_back(); }
  /// Leaves the system message alone.
  void clear() { all.resize(system() ? 1 : 0); }

  /// A JSON array of messages, as OpenAI's interface has them.
  std::string json() const;

  /// Writes {"messages": [...]} to `path`, whole or not at all. Errors: those
  /// of writeFileAtomically().
  absl::Status save(const std::string &path) const;

  /// Reads what save() wrote, or another client of OpenAI's interface. Usage
  /// error, with the place, for what is no conversation of texts; those of
  /// reading the file.
  static absl::StatusOr<Conversation> load(const std::string &path);

private:
  std::vector<Message> all;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_TOOLS_CONVERSATION_H
