//===- ChatFormat.cpp - Conversations as a model reads them ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/ChatFormat.h"

#include "runtime/base/Status.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <utility>

namespace llamac {

absl::StatusOr<ChatFormat::Template> ChatFormat::parse(absl::string_view source,
                                                       absl::string_view name) {
  absl::StatusOr<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed.ok())
    return withContext(parsed.status(), name);
  return Template{std::string(source), *std::move(parsed)};
}

absl::StatusOr<std::unique_ptr<const ChatFormat>>
ChatFormat::create(const Tokenizer &tokenizer) {
  const TokenizerBlob &vocabulary = tokenizer.vocabulary();
  const auto source = vocabulary.chatTemplate();
  if (!source) {
    const auto addName = [](std::string *out, const NamedChatTemplate &each) {
      absl::StrAppend(out, each.name);
    };
    return usageError(absl::StrCat(
        "chat template: expected one called ", defaultChatTemplate, ", got ",
        vocabulary.chatTemplates().empty()
            ? "none"
            : absl::StrJoin(vocabulary.chatTemplates(), ", ", addName),
        "; give a chat template, or prompts that need none"));
  }
  LLAMAC_ASSIGN_OR_RETURN(Template plain, parse(*source, defaultChatTemplate));
  std::unique_ptr<ChatFormat> format(
      new ChatFormat(tokenizer, std::move(plain)));
  if (const auto toolUse = vocabulary.chatTemplate("tool_use")) {
    LLAMAC_ASSIGN_OR_RETURN(format->toolUse, parse(*toolUse, "tool_use"));
  }
  return format;
}

absl::StatusOr<std::unique_ptr<const ChatFormat>>
ChatFormat::create(const Tokenizer &tokenizer, absl::string_view source,
                   absl::string_view name) {
  LLAMAC_ASSIGN_OR_RETURN(Template plain, parse(source, name));
  return std::unique_ptr<const ChatFormat>(
      new ChatFormat(tokenizer, std::move(plain)));
}

absl::StatusOr<std::string> ChatFormat::text(ChatTemplateInputs inputs) const {
  const TokenizerBlob &vocabulary = tokenizer.vocabulary();
  const auto name = [&](std::optional<int32_t> id) {
    return id ? std::optional(std::string(
                    vocabulary.tokenBytes(static_cast<uint32_t>(*id))))
              : std::nullopt;
  };
  inputs.bosToken = name(vocabulary.bosId());
  inputs.eosToken = name(vocabulary.eosId());
  return chosen(!inputs.tools.empty()).parsed.render(inputs);
}

absl::StatusOr<std::vector<int32_t>>
ChatFormat::prompt(ChatTemplateInputs inputs) const {
  LLAMAC_ASSIGN_OR_RETURN(const std::string written, text(std::move(inputs)));
  return tokenizer.encode(written, {.special = true});
}

bool ChatFormat::mentions(absl::string_view word, bool withTools) const {
  return absl::StrContains(chosen(withTools).source, word);
}

} // namespace llamac
