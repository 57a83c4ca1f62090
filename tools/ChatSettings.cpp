//===- ChatSettings.cpp - Options that a chat can change ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/ChatSettings.h"

#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/JsonReader.h"
#include "runtime/io/JsonText.h"
#include "text/request/RequestJson.h"
#include "text/request/RequestOptions.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

namespace llamac {

using Option = NamedOption<Request>;

bool isOfChats(const Option &option) {
  static constexpr absl::string_view others[] = {
      "n",        "priority",           "detokenize",
      "logprobs", "add_special_tokens", "parse_special"};
  return std::ranges::find(others, option.name) == std::end(others);
}

static absl::StatusOr<const Option *> find(absl::string_view name) {
  std::vector<std::string> names;
  std::vector<const Option *> found;
  for (const Option &option : requestOptions()) {
    if (!isOfChats(option))
      continue;
    if (option.name == name)
      return &option;
    names.emplace_back(option.name);
    if (absl::StartsWith(option.name, name))
      found.push_back(&option);
  }
  if (found.size() == 1)
    return found.front();
  if (found.empty())
    return usageError(
        absl::StrCat("/set: expected an option, got ", quoteForMessage(name),
                     suggestion(name, names), "; /set lists them"));
  const auto addName = [](std::string *out, const Option *option) {
    absl::StrAppend(out, option->name);
  };
  return usageError(absl::StrCat("/set: expected one option, got ", name,
                                 ", which begins ",
                                 absl::StrJoin(found, ", ", addName)));
}

//===----------------------------------------------------------------------===//
// Showing
//===----------------------------------------------------------------------===//

static std::string valueOf(const Option &option, const Request &shown) {
  Request request = shown; // A field gives access to what it is of.
  return valueText(option.field(request));
}

absl::StatusOr<std::string> ChatSettings::show(absl::string_view name) const {
  LLAMAC_ASSIGN_OR_RETURN(const Option *option, find(name));
  return absl::StrCat(option->name, " ", valueOf(*option, current));
}

std::string ChatSettings::list() const {
  std::string lines;
  for (const Option &option : requestOptions())
    if (isOfChats(option))
      absl::StrAppendFormat(&lines, "  %-19s %-8s %s\n", option.name,
                            valueOf(option, current), option.help);
  return lines;
}

//===----------------------------------------------------------------------===//
// Setting
//===----------------------------------------------------------------------===//

static bool isGrammar(const Option &option) {
  Request request;
  return std::holds_alternative<GrammarField>(option.field(request));
}

/// Reads `value`, which is JSON.
static absl::Status readValue(const Option &option, const std::string &value,
                              Request &request) {
  const std::string text = absl::StrCat("{\"", option.name, "\":", value, "}");
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document, parseJson("/set", text));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::root(document));
  if (object.raw().size() != 1)
    return usageError("/set: expected one value, got several");
  return readRequestFields(object, text, {}, request);
}

absl::Status
ChatSettings::set(absl::string_view name, absl::string_view value,
                  absl::FunctionRef<absl::Status(Request &)> check) {
  LLAMAC_ASSIGN_OR_RETURN(const Option *option, find(name));
  Request changed = current;
  if (isGrammar(*option)) {
    changed.grammar.reset();
    changed.options.sampling.grammar.reset();
  }
  if (value == "default") {
    copyOption(*option, defaults, changed);
    if (isGrammar(*option))
      changed.options.sampling.grammar = defaults.options.sampling.grammar;
  } else if (Request plain = changed;
             readValue(*option, std::string(value), plain).ok()) {
    changed = std::move(plain);
  } else {
    // A text needs no quotes.
    const std::string quoted = jsonText(nlohmann::json(std::string(value)));
    if (!readValue(*option, quoted, changed).ok())
      return usageError(absl::StrCat(
          "/set ", option->name, ": expected a value such as ",
          valueOf(*option, defaults), ", got ", quoteForMessage(value)));
  }
  LLAMAC_RETURN_IF_ERROR(check(changed));
  current = std::move(changed);
  return absl::OkStatus();
}

} // namespace llamac
