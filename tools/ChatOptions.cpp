//===- ChatOptions.cpp - How conversations are written --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/ChatOptions.h"

#include "runtime/base/Status.h"
#include "runtime/io/MappedFile.h"
#include "text/templates/Text.h"

#include "absl/strings/str_cat.h"

#include <utility>

namespace llamac {

absl::Status checkUtf8(absl::string_view what, absl::string_view text) {
  return chat::isUtf8(text)
             ? absl::OkStatus()
             : usageError(absl::StrCat(
                   what, ": expected UTF-8 text, got other bytes"));
}

absl::Status prepareChat(ChatOptions &options) {
  if (options.system)
    LLAMAC_RETURN_IF_ERROR(checkUtf8("--system", *options.system));
  if (options.templateFile.empty())
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                          MappedFile::open(options.templateFile));
  // A larger one is refused by its first bytes as well.
  options.templateText = std::string(
      file->text().substr(0, ChatTemplateLimits().templateBytes + 1));
  return absl::OkStatus();
}

bool hasChatTemplate(const Tokenizer &tokenizer, const ChatOptions &options) {
  return !options.templateFile.empty() ||
         !tokenizer.vocabulary().chatTemplates().empty();
}

absl::StatusOr<std::unique_ptr<const ChatFormat>>
chatFormatOf(absl::string_view path, const Tokenizer *tokenizer,
             const ChatOptions &options) {
  if (!tokenizer)
    return usageError(absl::StrCat(
        path, ": expected a model with a tokenizer, got one without"));
  auto format = options.templateFile.empty()
                    ? ChatFormat::create(*tokenizer)
                    : ChatFormat::create(*tokenizer, options.templateText,
                                         options.templateFile);
  return format.ok() ? std::move(format) : withContext(format.status(), path);
}

} // namespace llamac
