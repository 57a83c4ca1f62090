//===- ChatTemplate.h - Messages to the text of a prompt ------ -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chat template is a program in a subset of Jinja that a model brings with
// it. It is run as Hugging Face's apply_chat_template runs it: by the rules of
// Python's jinja2 in its immutable sandbox, with trim_blocks and lstrip_blocks,
// the tags break, continue and generation, the functions raise_exception and
// strftime_now, and a filter tojson that keeps text as it is.
// docs/chat-templates.md lists what is supported.
//
// Templates and messages may be hostile: every kind of work has a limit.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_CHATTEMPLATE_H
#define LLAMAC_TEXT_TEMPLATES_CHATTEMPLATE_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

namespace chat {
struct Program;
} // namespace chat

/// Limits of a template's size, time and memory. The defaults are far above
/// what the templates of models need for a context of 128 Ki tokens.
struct ChatTemplateLimits {
  /// Bytes of the template, and of the JSON of all variables together.
  uint64_t templateBytes = uint64_t{1} << 20;
  uint64_t jsonBytes = uint64_t{32} << 20;
  /// Levels of the syntax tree.
  int nesting = 200;
  /// Nodes evaluated, items visited and 16-byte pieces of text read or written.
  uint64_t steps = 50'000'000;
  /// Bytes of the text and of all values made in a rendering, which are kept to
  /// its end.
  uint64_t memoryBytes = uint64_t{256} << 20;
  /// Nested evaluations: levels of the tree, times those of calls.
  int depth = 600;
  /// Levels of lists and objects in a value.
  int valueDepth = 100;
};

/// The variables of a rendering. JSON values are texts, whose members keep
/// their order; an empty text is a null.
struct ChatTemplateInputs {
  std::string messages = {};  ///< A JSON array.
  std::string tools = {};     ///< A JSON array of functions.
  std::string documents = {}; ///< A JSON array.
  bool addGenerationPrompt = false;
  /// Undefined in the template where the model has none.
  std::optional<std::string> bosToken = {}, eosToken = {};
  /// Other variables, by name: values are JSON. They win over those above.
  std::vector<std::pair<std::string, std::string>> variables = {};
  /// The time that strftime_now formats; the machine's local time when unset.
  std::function<std::tm()> now = {};
};

class ChatTemplate {
public:
  /// Parses `text`. Errors: a bad file (`chat template, line N: ...`) where
  /// jinja2 would refuse it, or what goes beyond a limit; unsupported for what
  /// templates of models do not use, by name.
  static absl::StatusOr<ChatTemplate>
  parse(absl::string_view text, const ChatTemplateLimits &limits = {});

  ChatTemplate(ChatTemplate &&) noexcept;
  ChatTemplate &operator=(ChatTemplate &&) noexcept;
  ~ChatTemplate();

  /// The text for `inputs`. May be called by several threads at once. Usage
  /// error, `chat template, line N: ...`, where the template fails, calls
  /// raise_exception (whose text is then the end of the message) or goes beyond
  /// a limit; `messages: ...` and the like for a text that is no JSON.
  absl::StatusOr<std::string> render(const ChatTemplateInputs &inputs) const;

private:
  explicit ChatTemplate(std::unique_ptr<chat::Program> program,
                        const ChatTemplateLimits &limits);

  std::unique_ptr<chat::Program> program;
  ChatTemplateLimits limits;
};

} // namespace llamac

#endif // LLAMAC_TEXT_TEMPLATES_CHATTEMPLATE_H
