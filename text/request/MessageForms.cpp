//===- MessageForms.cpp - The forms of an assistant's message -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/MessageForms.h"

#include "runtime/io/JsonText.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

#include <tuple>
#include <utility>

namespace llamac {

using nlohmann::ordered_json;

void appendMessage(const AssistantMessage &message, AssistantForm form,
                   ordered_json &list) {
  ordered_json to = {{"role", "assistant"}};
  switch (form.content) {
  case AssistantForm::Apart:
    list.push_back({{"role", "assistant"}, {"content", message.content}});
    to["content"] = nullptr;
    break;
  case AssistantForm::Null:
    to["content"] = nullptr;
    break;
  case AssistantForm::Absent:
    break;
  case AssistantForm::Empty:
  case AssistantForm::Text:
    to["content"] = message.content;
    break;
  }
  to.update(message.others);
  for (const AssistantCall &call : message.calls) {
    ordered_json one = ordered_json::object();
    if (call.id)
      one["id"] = *call.id;
    one["type"] = "function";
    const bool isText =
        form.arguments == AssistantForm::Written || call.object.is_null();
    one["function"] = {
        {"name", call.name},
        {"arguments", isText ? ordered_json(call.text) : call.object}};
    to["tool_calls"].push_back(std::move(one));
  }
  list.push_back(std::move(to));
}

//===----------------------------------------------------------------------===//
// Probes
//===----------------------------------------------------------------------===//

namespace {

/// How well a template has taken a form; larger ones are better.
struct Outcome {
  bool isRendered = false;
  bool hasCall = false; ///< The call is there, with its arguments.
  bool isPlain = false; ///< They are neither quoted once more nor Python's.
  int64_t lessNone = 0; ///< Minus the times that it says "None".

  auto operator<=>(const Outcome &) const = default;
};

} // namespace

static constexpr char probeName[] = "probe_tool", probeKey[] = "probe_key",
                      probeValue[] = "probe_value";

/// A conversation with a message of `form`, and what may come after it.
static ChatTemplateInputs probeOf(AssistantForm form, bool withTools) {
  const bool hasCalls = form.arguments != AssistantForm::None;
  AssistantMessage message;
  if (form.content == AssistantForm::Text ||
      form.content == AssistantForm::Apart)
    message.content = "probe text";
  // Some templates want ids of nine letters and digits.
  const ordered_json arguments = {{probeKey, probeValue}};
  if (hasCalls)
    message.calls.push_back(
        {"call12345", probeName, jsonText(arguments), arguments});
  ordered_json messages = {{{"role", "user"}, {"content", "probe"}}};
  appendMessage(message, form, messages);
  if (hasCalls)
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", "call12345"},
                        {"name", probeName},
                        {"content", "result"}});
  else
    messages.push_back({{"role", "user"}, {"content", "more"}});
  ChatTemplateInputs inputs{.messages = jsonText(messages)};
  inputs.addGenerationPrompt = true;
  if (withTools)
    inputs.tools = jsonText(ordered_json{
        {{"type", "function"},
         {"function",
          {{"name", "other_tool"},
           {"description", "A tool."},
           {"parameters",
            {{"type", "object"}, {"properties", ordered_json::object()}}}}}}});
  return inputs;
}

static Outcome judge(const absl::StatusOr<std::string> &text) {
  Outcome outcome;
  if (!text.ok())
    return outcome;
  const absl::string_view shown = *text;
  outcome.isRendered = true;
  outcome.hasCall = absl::StrContains(shown, probeName) &&
                    absl::StrContains(shown, probeKey) &&
                    absl::StrContains(shown, probeValue);
  outcome.isPlain = !absl::StrContains(shown, R"(\"probe_key)") &&
                    !absl::StrContains(shown, "'probe_key'");
  for (size_t at = shown.find("None"); at != shown.npos;
       at = shown.find("None", at + 1))
    --outcome.lessNone;
  return outcome;
}

/// The forms that mean the same as `sent`, which is the first one.
static std::vector<AssistantForm> formsOf(AssistantForm sent) {
  using Form = AssistantForm;
  std::vector<Form::Content> contents = {sent.content};
  if (sent.content != Form::Text)
    contents.insert(contents.end(), {Form::Empty, Form::Absent, Form::Null});
  else if (sent.arguments != Form::None)
    contents.push_back(Form::Apart);
  std::vector<Form> forms;
  for (const Form::Content content : contents) {
    forms.push_back({content, sent.arguments});
    if (sent.arguments != Form::None)
      forms.push_back({content, sent.arguments == Form::Object ? Form::Written
                                                               : Form::Object});
  }
  return forms;
}

static AssistantForm findForm(AssistantForm sent, bool withTools,
                              MessageForms::Render render) {
  AssistantForm best = sent;
  Outcome most;
  for (const AssistantForm form : formsOf(sent)) {
    const Outcome outcome = judge(render(probeOf(form, withTools)));
    if (outcome > most) {
      most = outcome;
      best = form;
    }
  }
  if (most.isRendered)
    return best;
  // The template takes no probe. Most take this.
  if (best.content != AssistantForm::Text)
    best.content = AssistantForm::Empty;
  if (best.arguments != AssistantForm::None)
    best.arguments = AssistantForm::Object;
  return best;
}

AssistantForm MessageForms::formFor(AssistantForm sent, bool withTools,
                                    Render render) const {
  const std::lock_guard lock(mutex);
  const auto [place, isNew] = known.try_emplace({sent, withTools}, sent);
  if (isNew)
    place->second = findForm(sent, withTools, render);
  return place->second;
}

} // namespace llamac
