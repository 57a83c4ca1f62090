//===- ChatTemplate.cpp - Messages to the text of a prompt ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/ChatTemplate.h"

#include "runtime/base/Status.h"
#include "text/templates/Interpreter.h"
#include "text/templates/Json.h"
#include "text/templates/Lexer.h"
#include "text/templates/Parser.h"
#include "text/templates/Scopes.h"
#include "text/templates/Text.h"

#include "absl/strings/str_cat.h"

namespace llamac {

using namespace chat;

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program,
                           const ChatTemplateLimits &limits)
    : program(std::move(program)), limits(limits) {}
ChatTemplate::ChatTemplate(ChatTemplate &&) noexcept = default;
ChatTemplate &ChatTemplate::operator=(ChatTemplate &&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

absl::StatusOr<ChatTemplate>
ChatTemplate::parse(absl::string_view text, const ChatTemplateLimits &limits) {
  if (text.size() > limits.templateBytes)
    return badFileError(absl::StrCat("chat template: expected at most ",
                                     limits.templateBytes, " bytes, got ",
                                     text.size()));
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(text));
  auto program = std::make_unique<Program>();
  LLAMAC_RETURN_IF_ERROR(
      Parser(std::move(tokens), limits.nesting, *program).parse());
  LLAMAC_RETURN_IF_ERROR(resolveScopes(*program));
  return ChatTemplate(std::move(program), limits);
}

// The variables that the template sees, as a dictionary.
static absl::StatusOr<Value> makeVariables(Heap &heap,
                                           const ChatTemplateInputs &inputs) {
  LLAMAC_ASSIGN_OR_RETURN(const Value variables, heap.dict());
  const auto set = [&](absl::string_view name, const Value &value) {
    LLAMAC_ASSIGN_OR_RETURN(const Value key, heap.string(std::string(name)));
    return heap.set(variables, key, value);
  };
  for (const auto &[name, token] : {std::pair("bos_token", &inputs.bosToken),
                                    std::pair("eos_token", &inputs.eosToken)}) {
    if (!token->has_value())
      continue;
    if (!isUtf8(**token))
      return usageError(absl::StrCat(name, ": expected UTF-8"));
    LLAMAC_ASSIGN_OR_RETURN(const Value text, heap.string(**token));
    LLAMAC_RETURN_IF_ERROR(set(name, text));
  }
  LLAMAC_RETURN_IF_ERROR(
      set("add_generation_prompt", Value::boolean(inputs.addGenerationPrompt)));
  const auto setJson = [&](absl::string_view name, absl::string_view text) {
    LLAMAC_ASSIGN_OR_RETURN(const Value value,
                            parseJsonValue(heap, name, text));
    return set(name, value);
  };
  LLAMAC_RETURN_IF_ERROR(setJson("messages", inputs.messages));
  LLAMAC_RETURN_IF_ERROR(setJson("tools", inputs.tools));
  LLAMAC_RETURN_IF_ERROR(setJson("documents", inputs.documents));
  for (const auto &[name, text] : inputs.variables)
    LLAMAC_RETURN_IF_ERROR(setJson(name, text));
  // In Jinja `self` has the blocks of a template, of which there are none.
  LLAMAC_ASSIGN_OR_RETURN(const Value self, heap.dict(Kind::Namespace));
  LLAMAC_RETURN_IF_ERROR(set("self", self));
  return variables;
}

absl::StatusOr<std::string>
ChatTemplate::render(const ChatTemplateInputs &inputs) const {
  Heap heap(limits);
  LLAMAC_ASSIGN_OR_RETURN(const Value variables, makeVariables(heap, inputs));
  Interpreter interpreter(*program, heap, variables, inputs.now);
  absl::StatusOr<std::string> text = interpreter.run();
  if (!text.ok())
    return withContext(text.status(), absl::StrCat("chat template, line ",
                                                   interpreter.line()));
  return text;
}

} // namespace llamac
