//===- ChatTurn.cpp - A turn of a chat: request and answer ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/ChatTurn.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "text/request/ChatMessages.h"
#include "text/request/RequestJson.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace llamac {

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

std::vector<absl::string_view> conversationFields() {
  std::vector<absl::string_view> fields = {"tool_choice", "parallel_tool_calls",
                                           "max_completion_tokens"};
  fields.insert(fields.end(), std::begin(chatRequestFields),
                std::end(chatRequestFields));
  return fields;
}

/// How a model that has `format` calls tools; null where its template says of
/// no known way.
static const ToolCallSyntax *syntaxOf(const ChatFormat &format) {
  for (const ToolCallSyntax &syntax : toolCallSyntaxes())
    if (format.mentions(syntax.templateMark, /*withTools=*/true))
      return &syntax;
  return nullptr;
}

/// The control tokens that the marks of calls are written by.
static absl::StatusOr<std::vector<int32_t>>
controlsOf(const ToolCallSyntax &syntax, const Tokenizer &tokenizer) {
  std::vector<int32_t> controls;
  for (const char *mark : {syntax.open, syntax.close}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                            tokenizer.encode(mark, {.special = true}));
    std::ranges::copy_if(ids, std::back_inserter(controls),
                         [&](int32_t id) { return tokenizer.isControl(id); });
  }
  return controls;
}

/// Sets what OpenAI's newer name of max_tokens says.
static absl::Status readLength(const JsonObject &object, Request &request) {
  LLAMAC_ASSIGN_OR_RETURN(const auto most,
                          object.optionalInt("max_completion_tokens"));
  if (!most)
    return absl::OkStatus();
  if (object.has("max_tokens") && request.options.maxTokens != *most)
    return object.fail("max_completion_tokens", "the same as max_tokens",
                       absl::StrCat(*most));
  request.options.maxTokens = *most;
  return absl::OkStatus();
}

absl::StatusOr<CallForm> readConversation(const JsonObject &object,
                                          absl::string_view text,
                                          const ChatFormat &format,
                                          const Tokenizer &tokenizer,
                                          Request &request) {
  LLAMAC_RETURN_IF_ERROR(readLength(object, request));
  LLAMAC_ASSIGN_OR_RETURN(const ChatRequest chat,
                          readChatRequest(object, text, format));
  LLAMAC_ASSIGN_OR_RETURN(const auto parallel,
                          object.optionalBool("parallel_tool_calls"));
  const bool usesTools = !chat.inputs.tools.empty();
  const ToolCallSyntax *syntax = usesTools ? syntaxOf(format) : nullptr;
  if (usesTools && !syntax)
    return object.fail("tools",
                       "none, as the model's chat template has them called in "
                       "a way that is not known",
                       "some");
  if (object.has("parse_special") || !request.encoding.special)
    return object.fail("parse_special", "a prompt of text beside it",
                       "a conversation");
  auto prompt = format.prompt(chat.inputs);
  if (!prompt.ok())
    return withField(std::move(prompt).status(), "messages");
  request.prompt = *std::move(prompt);
  if (!usesTools)
    return CallForm{};
  CallForm form{.syntax = syntax};
  if (!parallel.value_or(true))
    form.mostCalls = 1;
  LLAMAC_ASSIGN_OR_RETURN(request.options.namedControls,
                          controlsOf(*syntax, tokenizer));
  if (chat.tools.kind != ToolChoice::Required) {
    // A grammar is one of the whole answer.
    if (request.grammar ||
        std::ranges::none_of(chat.tools.tools, &Tool::isStrict))
      return form;
    request.grammar = strictCalls(chat.tools.tools, *syntax);
    request.grammar->namedControls = request.options.namedControls;
    return form;
  }
  if (request.grammar)
    return object.fail("tool_choice", "no grammar beside a call that must come",
                       "one");
  form.mustCome = true;
  request.grammar =
      GrammarSource{GrammarSource::JsonSchema,
                    callSchema(chat.tools.tools, syntax->arguments)};
  if (*syntax->open) {
    form.begun = absl::StrCat(syntax->open, "\n");
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<int32_t> begun,
                            tokenizer.encode(form.begun, {.special = true}));
    request.prompt.insert(request.prompt.end(), begun.begin(), begun.end());
  }
  return form;
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

AnswerReader::AnswerReader(const CallForm &form)
    : mostCalls(form.mostCalls), mustCome(form.mustCome) {
  if (!form.syntax)
    return;
  parser.emplace(*form.syntax);
  (void)parser->add(form.begun);
}

ToolCallPieces AnswerReader::take(const AnswerPart &part) {
  if (!parser)
    return {.content = part.text};
  ToolCallPieces pieces = parser->add(part.text);
  if (part.end) {
    ToolCallPieces last = parser->end();
    pieces.content += last.content;
    std::ranges::move(last.calls, std::back_inserter(pieces.calls));
  }
  if (mustCome)
    pieces.content.clear();
  std::erase_if(pieces.calls, [&](const ToolCallPart &call) {
    return call.call >= mostCalls;
  });
  return pieces;
}

absl::string_view AnswerReader::finishReason(StopReason reason) const {
  const int calls = parser ? parser->calls() : 0;
  const bool isCut = parser && parser->isInArguments() && calls <= mostCalls;
  if (isCut || (mustCome && calls == 0))
    return "length";
  const absl::string_view name = llamac::finishReason(reason);
  return name == "stop" && calls > 0 ? "tool_calls" : name;
}

} // namespace llamac
