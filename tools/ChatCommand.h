//===- ChatCommand.h - A conversation with a model --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_CHATCOMMAND_H
#define LLAMAC_TOOLS_CHATCOMMAND_H

#include "engine/step/Model.h"
#include "tools/AnswerOptions.h"
#include "tools/ChatOptions.h"

#include "absl/status/status.h"

#include <cstdio>
#include <memory>
#include <string>

namespace llamac {

/// An answer has mostChatTokens where nobody asks for another number.
struct ChatCommandOptions : AnswerOptions {
  ChatOptions chat = {};
  std::string load;         ///< A conversation to go on with; empty: none.
  bool keepsHistory = true; ///< Saves what is typed at a terminal.
  bool quiet = false;       ///< Nothing goes to `log` but errors.
};

/// Before a model is loaded: reads files with grammars and templates. Errors:
/// those of prepareAnswer() and prepareChat().
absl::Status prepareChatCommand(ChatCommandOptions &options);

/// Answers the messages of `in`, as docs/chat.md has it, until its end: answers
/// go to `out` as they come, all else to `log`. Edits lines where `in` and
/// `out` are terminals. A wrong message or command is a line on `log`. Errors:
/// usage for a model without a tokenizer or chat template; those of `load`, of
/// the device and of writing.
absl::Status chatCommand(const std::shared_ptr<const Model> &model,
                         const ChatCommandOptions &options, std::FILE *in,
                         std::FILE *out, std::FILE *log);

} // namespace llamac

#endif // LLAMAC_TOOLS_CHATCOMMAND_H
