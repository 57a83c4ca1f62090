//===- ChatOptions.h - How conversations are written ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Options that the commands which apply a chat template share.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_CHATOPTIONS_H
#define LLAMAC_TOOLS_CHATOPTIONS_H

#include "text/request/ChatFormat.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace llamac {

/// Tokens of an answer at most, where nobody asks for another number: an answer
/// ends by itself long before, unless the model has lost the thread.
inline constexpr int64_t mostChatTokens = 2048;

struct ChatOptions {
  std::optional<std::string> system; ///< The first message, if any.
  /// A file with the template, in place of the model's; empty: none.
  std::string templateFile;
  std::string templateText; ///< The file's text, set by prepareChat().
};

/// Before a model is loaded: reads the file. Usage error for a system message
/// that is not UTF-8; those of reading the file.
absl::Status prepareChat(ChatOptions &options);

/// Whether there is a template to write conversations by: the options' or one
/// of the model.
bool hasChatTemplate(const Tokenizer &tokenizer, const ChatOptions &options);

/// Makes a format of that template, for the model at `path`; `tokenizer` is
/// null where it has none. Errors, with the path: usage without a tokenizer;
/// those of ChatFormat::create().
absl::StatusOr<std::unique_ptr<const ChatFormat>>
chatFormatOf(absl::string_view path, const Tokenizer *tokenizer,
             const ChatOptions &options);

/// `text` as standard input and the command line give it; usage error, with
/// `what`, where it is not UTF-8.
absl::Status checkUtf8(absl::string_view what, absl::string_view text);

} // namespace llamac

#endif // LLAMAC_TOOLS_CHATOPTIONS_H
