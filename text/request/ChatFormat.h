//===- ChatFormat.h - Conversations as a model reads them -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The chat templates that a model brings with it, and the ids of what they
// write. It is Hugging Face's apply_chat_template: a special token's name that
// someone types in a message is that token, as in the template's own text. Who
// serves strangers and minds looks for such names beforehand.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_CHATFORMAT_H
#define LLAMAC_TEXT_REQUEST_CHATFORMAT_H

#include "text/request/MessageForms.h"
#include "text/templates/ChatTemplate.h"
#include "text/tokenizer/Tokenizer.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// The chat templates of a model. Any number of threads may use one.
class ChatFormat {
public:
  /// Makes a format of the templates in `tokenizer`, which outlives it:
  /// "default", and "tool_use" where there is one. Usage error when it has no
  /// "default"; those of ChatTemplate::parse().
  static absl::StatusOr<std::unique_ptr<const ChatFormat>>
  create(const Tokenizer &tokenizer);

  /// Makes a format of the template text `source`, called `name` in messages.
  static absl::StatusOr<std::unique_ptr<const ChatFormat>>
  create(const Tokenizer &tokenizer, absl::string_view source,
         absl::string_view name);

  /// The text of a conversation. `inputs` needs no bosToken and no eosToken.
  /// One with tools is written by the template "tool_use" where there is one.
  /// Errors: those of ChatTemplate::render().
  absl::StatusOr<std::string> text(ChatTemplateInputs inputs) const;

  /// The ids of text(): names of special tokens stand for them, and nothing is
  /// put before it, as templates write the begin-of-sequence token themselves.
  absl::StatusOr<std::vector<int32_t>> prompt(ChatTemplateInputs inputs) const;

  /// Whether the template that conversations (with tools) are written by
  /// contains `word`: says what it knows of.
  bool mentions(absl::string_view word, bool withTools = false) const;

  /// The form in which the template that conversations (with tools) are written
  /// by takes an assistant's message that was sent as `sent`.
  AssistantForm formFor(AssistantForm sent, bool withTools) const {
    return forms.formFor(sent, withTools, [this](ChatTemplateInputs inputs) {
      return text(std::move(inputs));
    });
  }

private:
  struct Template {
    std::string source;
    ChatTemplate parsed;
  };

  explicit ChatFormat(const Tokenizer &tokenizer, Template plain)
      : tokenizer(tokenizer), plain(std::move(plain)) {}
  static absl::StatusOr<Template> parse(absl::string_view source,
                                        absl::string_view name);
  const Template &chosen(bool withTools) const {
    return withTools && toolUse ? *toolUse : plain;
  }

  const Tokenizer &tokenizer;
  Template plain;
  std::optional<Template> toolUse;
  MessageForms forms;
};

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_CHATFORMAT_H
