//===- MessageForms.h - The forms of an assistant's message -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A message with calls of tools may be sent in several forms that mean the
// same: with content that is null, empty or absent, and with arguments as an
// object or as its text. Templates take some of them. In others they fail, put
// down "None" or a text within quotes, or leave the calls out without a word.
// Which ones a template takes is found out by rendering a probe in each.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_MESSAGEFORMS_H
#define LLAMAC_TEXT_REQUEST_MESSAGEFORMS_H

#include "text/templates/ChatTemplate.h"

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include <nlohmann/json.hpp>

#include <compare>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

struct AssistantForm {
  enum Content {
    Null,
    Absent,
    Empty,
    Text,
    Apart, ///< Text in a message of its own, before one with the calls.
  };
  enum Arguments {
    None, ///< There are no calls.
    Object,
    Written, ///< The JSON text of the object.
  };
  Content content = Text;
  Arguments arguments = None;

  auto operator<=>(const AssistantForm &) const = default;
};

/// A call as a template may get it.
struct AssistantCall {
  std::optional<std::string> id = {};
  std::string name = {};
  std::string text = {};              ///< The JSON of its arguments.
  nlohmann::ordered_json object = {}; ///< Null where the text is no object.
};

/// An assistant's message, but for its form.
struct AssistantMessage {
  std::string content = {};
  std::vector<AssistantCall> calls = {};
  nlohmann::ordered_json others = nlohmann::ordered_json::object(); ///< Fields.
};

/// Appends `message` to the array `list`, in one object or in two.
void appendMessage(const AssistantMessage &message, AssistantForm form,
                   nlohmann::ordered_json &list);

/// The forms that one template takes. Threads may share one.
class MessageForms {
public:
  using Render =
      absl::FunctionRef<absl::StatusOr<std::string>(ChatTemplateInputs inputs)>;

  /// The form for a message that is sent in form `sent`: that itself where the
  /// template, which `render` runs, takes it as well as any other. `withTools`:
  /// beside tools. Renders probes when it is first asked for a form.
  AssistantForm formFor(AssistantForm sent, bool withTools,
                        Render render) const;

private:
  mutable std::mutex mutex;
  mutable std::map<std::pair<AssistantForm, bool>, AssistantForm> known;
};

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_MESSAGEFORMS_H
