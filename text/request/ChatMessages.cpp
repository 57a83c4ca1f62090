//===- ChatMessages.cpp - Conversations of OpenAI's interface -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/ChatMessages.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/JsonText.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

#include <array>
#include <utility>

namespace llamac {

using nlohmann::json;
using nlohmann::ordered_json;

/// `status`, an error within field `field`, with the field.
static absl::Status inField(const absl::Status &status,
                            absl::string_view field) {
  return withField(withContext(status, field), field);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

static constexpr std::array<absl::string_view, 5> roles = {
    "system", "developer", "user", "assistant", "tool"};

/// The text of `content`: a string, or parts that are texts.
static absl::StatusOr<std::string> readContent(const JsonObject &message) {
  const json &content = message.raw()["content"];
  if (content.is_string())
    return content.get<std::string>();
  if (!content.is_array())
    return message.wrongType("content", "a string or an array of parts",
                             content);
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<JsonObject> parts,
                          message.objects("content"));
  std::vector<std::string> texts;
  for (const JsonObject &part : parts) {
    LLAMAC_ASSIGN_OR_RETURN(const auto type, part.optionalString("type"));
    if (type != "text")
      return part.fail("type", "text, as the model reads nothing else",
                       quoteForMessage(type.value_or("none")));
    LLAMAC_RETURN_IF_ERROR(part.checkMembers({{"type", "text"}}));
    LLAMAC_ASSIGN_OR_RETURN(const auto text, part.optionalString("text"));
    if (!text)
      return part.fail("text", "a string", "none");
    texts.push_back(*text);
  }
  return absl::StrJoin(texts, "\n");
}

/// The arguments of a call: an object, or its text.
static absl::Status readArguments(const JsonObject &function,
                                  absl::string_view text, AssistantCall &to) {
  to.text = "{}";
  if (function.has("arguments")) {
    const json &arguments = function.raw()["arguments"];
    if (arguments.is_string())
      to.text = arguments.get<std::string>();
    else if (arguments.is_object())
      to.text = function.textOf("arguments", text);
    else
      return function.wrongType("arguments", "an object or its text",
                                arguments);
  }
  if (checkJsonLimits("arguments", to.text, {}).ok())
    if (auto parsed = ordered_json::parse(to.text, nullptr, false);
        parsed.is_object())
      to.object = std::move(parsed);
  return absl::OkStatus();
}

/// The calls of an assistant's message.
static absl::StatusOr<std::vector<AssistantCall>>
readCalls(const JsonObject &message, absl::string_view text) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<JsonObject> calls,
                          message.objects("tool_calls"));
  std::vector<AssistantCall> list;
  for (const JsonObject &call : calls) {
    AssistantCall &to = list.emplace_back();
    LLAMAC_RETURN_IF_ERROR(
        call.checkMembers({{"id", "type", "function", "index"}}));
    LLAMAC_ASSIGN_OR_RETURN(to.id, call.optionalString("id"));
    LLAMAC_ASSIGN_OR_RETURN(const auto type, call.optionalString("type"));
    if (type.value_or("function") != "function")
      return call.fail("type", "function", quoteForMessage(*type));
    LLAMAC_ASSIGN_OR_RETURN(const auto function,
                            call.optionalObject("function"));
    if (!function)
      return call.fail("function", "an object", "none");
    LLAMAC_RETURN_IF_ERROR(function->checkMembers({{"name", "arguments"}}));
    LLAMAC_ASSIGN_OR_RETURN(const auto name, function->optionalString("name"));
    if (!name)
      return function->fail("name", "a string", "none");
    to.name = *name;
    LLAMAC_RETURN_IF_ERROR(readArguments(*function, text, to));
  }
  return list;
}

/// Appends an assistant's message in a form that the template takes.
static absl::Status readAssistant(const JsonObject &message,
                                  absl::string_view text,
                                  const ChatFormat &format, bool withTools,
                                  ordered_json others, ordered_json &list) {
  AssistantMessage to{.others = std::move(others)};
  AssistantForm sent{AssistantForm::Absent, AssistantForm::None};
  if (message.has("content")) {
    LLAMAC_ASSIGN_OR_RETURN(to.content, readContent(message));
    sent.content =
        to.content.empty() ? AssistantForm::Empty : AssistantForm::Text;
  } else if (message.raw().contains("content")) {
    sent.content = AssistantForm::Null;
  }
  LLAMAC_ASSIGN_OR_RETURN(to.calls, readCalls(message, text));
  if (!to.calls.empty()) {
    const json &first = message.raw()["tool_calls"][0]["function"];
    const bool isText =
        first.contains("arguments") && first["arguments"].is_string();
    sent.arguments = isText ? AssistantForm::Written : AssistantForm::Object;
  }
  appendMessage(to, format.formFor(sent, withTools), list);
  return absl::OkStatus();
}

/// Appends what templates are given for `message`.
static absl::Status readMessage(const JsonObject &message,
                                absl::string_view text,
                                const ChatFormat &format, bool withTools,
                                ordered_json &list) {
  LLAMAC_RETURN_IF_ERROR(message.checkMembers(
      {{"role", "content", "name", "tool_calls", "tool_call_id",
        "reasoning_content", "refusal", "annotations"}}));
  LLAMAC_ASSIGN_OR_RETURN(auto role, message.optionalString("role"));
  if (!role || !absl::c_linear_search(roles, *role))
    return message.fail("role",
                        absl::StrCat("one of ", absl::StrJoin(roles, ", ")),
                        role ? quoteForMessage(*role) : "none");
  // The newer name of it, which most templates do not know.
  if (role == "developer" && !format.mentions("developer"))
    role = "system";
  ordered_json others = ordered_json::object();
  for (const char *field : {"name", "tool_call_id", "reasoning_content"}) {
    LLAMAC_ASSIGN_OR_RETURN(const auto value, message.optionalString(field));
    if (value)
      others[field] = *value;
  }
  if (role == "assistant")
    return readAssistant(message, text, format, withTools, std::move(others),
                         list);
  if (message.has("tool_calls"))
    return message.fail("tool_calls", "in messages of the assistant alone",
                        *role);
  if (!message.has("content"))
    return message.fail("content", "a string or an array of parts", "none");
  ordered_json to = {{"role", *role}};
  LLAMAC_ASSIGN_OR_RETURN(to["content"], readContent(message));
  to.update(others);
  list.push_back(std::move(to));
  return absl::OkStatus();
}

absl::StatusOr<ordered_json> readMessages(const JsonObject &object,
                                          absl::string_view text,
                                          const ChatFormat &format,
                                          bool withTools) {
  if (!object.has("messages"))
    return object.fail("messages", "an array of messages", "none");
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<JsonObject> messages,
                          object.objects("messages"));
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const absl::Status read =
        readMessage(messages[i], text, format, withTools, list);
    if (!read.ok())
      return inField(read, absl::StrCat("messages[", i, "]"));
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Variables of templates
//===----------------------------------------------------------------------===//

/// Gives `inputs` what `object` says beside messages and tools.
static absl::Status readVariables(const JsonObject &object,
                                  absl::string_view text,
                                  const ChatFormat &format,
                                  ChatTemplateInputs &inputs) {
  LLAMAC_ASSIGN_OR_RETURN(const auto effort,
                          object.optionalString("reasoning_effort"));
  if (effort) {
    if (!format.mentions("reasoning_effort"))
      return object.fail("reasoning_effort",
                         "none, as the model's template knows nothing of it",
                         quoteForMessage(*effort));
    inputs.variables.emplace_back("reasoning_effort", json(*effort).dump());
  }
  LLAMAC_ASSIGN_OR_RETURN(const auto variables,
                          object.optionalObject("chat_template_kwargs"));
  if (variables)
    for (const auto &[name, value] : variables->raw().items()) {
      if (!format.mentions(name))
        return inField(variables->fail(name.substr(0, 80),
                                       "a variable of the model's template",
                                       "an unknown one"),
                       "chat_template_kwargs");
      inputs.variables.emplace_back(name, variables->textOf(name, text));
    }
  if (object.has("documents")) {
    LLAMAC_RETURN_IF_ERROR(object.objects("documents").status());
    inputs.documents = object.textOf("documents", text);
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Tools
//===----------------------------------------------------------------------===//

static bool isToolName(absl::string_view name) {
  return !name.empty() && name.size() <= 64 && absl::c_all_of(name, [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

static absl::StatusOr<Tool> readTool(const JsonObject &tool,
                                     absl::string_view text) {
  LLAMAC_RETURN_IF_ERROR(tool.checkMembers({{"type", "function"}}));
  LLAMAC_ASSIGN_OR_RETURN(const auto type, tool.optionalString("type"));
  if (type != "function")
    return tool.fail("type", "function",
                     quoteForMessage(type.value_or("none")));
  LLAMAC_ASSIGN_OR_RETURN(const auto function, tool.optionalObject("function"));
  if (!function)
    return tool.fail("function", "an object", "none");
  LLAMAC_RETURN_IF_ERROR(function->checkMembers(
      {{"name", "description", "parameters", "strict"}}));
  LLAMAC_ASSIGN_OR_RETURN(const auto name, function->optionalString("name"));
  if (!name || !isToolName(*name))
    return function->fail("name", "1 to 64 letters, digits, _, - and .",
                          quoteForMessage(name.value_or("none")));
  LLAMAC_RETURN_IF_ERROR(function->optionalString("description").status());
  LLAMAC_ASSIGN_OR_RETURN(const auto strict, function->optionalBool("strict"));
  LLAMAC_ASSIGN_OR_RETURN(const auto parameters,
                          function->optionalObject("parameters"));
  return Tool{*name,
              parameters ? function->textOf("parameters", text)
                         : R"({"type": "object", "properties": {}})",
              strict.value_or(false)};
}

/// The tool that `choice`, an object, names.
static absl::StatusOr<Tool> namedTool(const JsonObject &object,
                                      const std::vector<Tool> &tools) {
  LLAMAC_ASSIGN_OR_RETURN(const auto choice,
                          object.optionalObject("tool_choice"));
  LLAMAC_RETURN_IF_ERROR(choice->checkMembers({{"type", "function"}}));
  LLAMAC_ASSIGN_OR_RETURN(const auto type, choice->optionalString("type"));
  if (type != "function")
    return choice->fail("type", "function",
                        quoteForMessage(type.value_or("none")));
  LLAMAC_ASSIGN_OR_RETURN(const auto function,
                          choice->optionalObject("function"));
  if (!function)
    return choice->fail("function", "an object", "none");
  LLAMAC_ASSIGN_OR_RETURN(const auto name, function->optionalString("name"));
  const auto found = absl::c_find_if(
      tools, [&](const Tool &tool) { return tool.name == name; });
  if (found == tools.end())
    return function->fail("name", "one of the tools",
                          quoteForMessage(name.value_or("none")));
  return *found;
}

static absl::StatusOr<ToolChoice> readTools(const JsonObject &object,
                                            absl::string_view text) {
  ToolChoice result;
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<JsonObject> tools,
                          object.objects("tools"));
  for (size_t i = 0; i < tools.size(); ++i) {
    auto tool = readTool(tools[i], text);
    if (!tool.ok())
      return inField(tool.status(), absl::StrCat("tools[", i, "]"));
    result.tools.push_back(*std::move(tool));
  }
  if (!object.has("tool_choice"))
    return result;
  const json &choice = object.raw()["tool_choice"];
  if (choice == "none") {
    result.kind = ToolChoice::None;
    return result;
  }
  if (tools.empty())
    return object.fail("tool_choice", "tools beside it", "none");
  if (choice == "auto")
    return result;
  result.kind = ToolChoice::Required;
  if (choice == "required")
    return result;
  if (!choice.is_object())
    return object.wrongType("tool_choice", "none, auto, required or a function",
                            choice);
  auto named = namedTool(object, result.tools);
  if (!named.ok())
    return inField(named.status(), "tool_choice");
  result.tools = {*std::move(named)};
  return result;
}

absl::StatusOr<ChatRequest> readChatRequest(const JsonObject &object,
                                            absl::string_view text,
                                            const ChatFormat &format) {
  ChatRequest request;
  ChatTemplateInputs &inputs = request.inputs;
  inputs.addGenerationPrompt = true;
  LLAMAC_ASSIGN_OR_RETURN(request.tools, readTools(object, text));
  const bool withTools =
      request.tools.kind != ToolChoice::None && !request.tools.tools.empty();
  LLAMAC_ASSIGN_OR_RETURN(const ordered_json messages,
                          readMessages(object, text, format, withTools));
  if (messages.empty())
    return object.fail("messages", "at least one message", "none");
  inputs.messages = jsonText(messages);
  LLAMAC_RETURN_IF_ERROR(readVariables(object, text, format, inputs));
  if (!withTools)
    return request;
  if (!format.mentions("tools", /*withTools=*/true))
    return object.fail(
        "tools",
        "none, as the model's chat template knows no tools and no other one "
        "was given",
        "some");
  inputs.tools = object.textOf("tools", text);
  return request;
}

std::string callSchema(const std::vector<Tool> &tools,
                       absl::string_view arguments) {
  const auto one = [&](const Tool &tool) {
    // A document by itself, in which its references lead.
    ordered_json parameters = ordered_json::parse(tool.parameters, nullptr,
                                                  /*allow_exceptions=*/false);
    if (parameters.is_object() && !parameters.contains("$id"))
      parameters["$id"] = absl::StrCat("tool:", tool.name);
    return absl::StrCat(
        R"({"type": "object", "properties": {"name": {"const": ")", tool.name,
        R"("}, ")", arguments, R"(": )", jsonText(parameters),
        R"(}, "required": ["name", ")", arguments,
        R"("], "additionalProperties": false})");
  };
  if (tools.size() == 1)
    return one(tools.front());
  return absl::StrCat(R"({"anyOf": [)",
                      absl::StrJoin(tools, ", ",
                                    [&](std::string *out, const Tool &tool) {
                                      absl::StrAppend(out, one(tool));
                                    }),
                      "]}");
}

GrammarSource strictCalls(std::vector<Tool> tools,
                          const ToolCallSyntax &syntax) {
  for (Tool &tool : tools)
    if (!tool.isStrict)
      tool.parameters = R"({"type": "object"})";
  const ordered_json call = {
      {"type", "json_schema"},
      {"json_schema",
       ordered_json::parse(callSchema(tools, syntax.arguments), nullptr,
                           /*allow_exceptions=*/false)}};
  ordered_json format;
  if (*syntax.open) {
    const ordered_json tag = {{"type", "tag"},
                              {"begin", absl::StrCat(syntax.open, "\n")},
                              {"content", call},
                              {"end", absl::StrCat("\n", syntax.close)}};
    format = {{"type", "triggered_tags"},
              {"triggers", {syntax.open}},
              {"tags", ordered_json::array({tag})}};
  } else {
    // An answer that begins with a bracket is a call.
    const ordered_json text = {{"type", "regex"},
                               {"pattern", R"([^{\s][\s\S]*)"}};
    format = {{"type", "or"}, {"elements", ordered_json::array({call, text})}};
  }
  return GrammarSource{
      GrammarSource::Tags,
      jsonText(ordered_json{{"type", "structural_tag"}, {"format", format}})};
}

} // namespace llamac
