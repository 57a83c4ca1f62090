//===- CommandTree.cpp - The verbs and options of a tool ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/CommandTree.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <array>

namespace llamac {

/// "a,b,c" of "a, b or c".
static std::string commaSeparated(absl::string_view list) {
  return absl::StrReplaceAll(list, {{", ", ","}, {" or ", ","}});
}

CLI::Validator knownValues(absl::string_view list) {
  return CLI::IsMember(
      std::vector<std::string>(absl::StrSplit(commaSeparated(list), ',')),
      CLI::ignore_case);
}

CLI::Validator suggestedValues(absl::string_view list) {
  return {[](const std::string &) { return std::string(); },
          absl::StrCat("{", commaSeparated(list), "}")};
}

bool OptionEntry::takesFiles() const {
  return std::ranges::count(std::array{"FILE", "GRAMMAR", "MODEL", "PLAN",
                                       "NAME=FILE.cu", "SCHEMA"},
                            type) != 0;
}

OptionEntry describeOption(const CLI::Option &option, bool asArgument) {
  OptionEntry entry;
  if (asArgument) {
    entry.names.push_back(option.get_name(/*positional=*/true));
  } else {
    // Negated flags are "no-verify{false}".
    for (const std::string &name : option.get_snames())
      entry.names.push_back("-" + name.substr(0, name.find('{')));
    for (const std::string &name : option.get_lnames())
      entry.names.push_back("--" + name.substr(0, name.find('{')));
  }

  if (option.get_type_size() != 0) {
    // Behind a colon stands what a check says of itself: "FORMAT:{a,b}".
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(option.get_type_name(), absl::MaxSplits(':', 1));
    entry.type = asArgument ? entry.names.front() : parts.first;
    absl::string_view values = parts.second;
    if (absl::ConsumePrefix(&values, "{") && absl::ConsumeSuffix(&values, "}"))
      entry.values = absl::StrSplit(values, ',');
  }

  entry.required = option.get_required();
  entry.repeats =
      option.get_items_expected_max() > 1 ||
      option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (option.get_group() != unlistedHeading)
    entry.heading = option.get_group();
  entry.text = option.get_description();
  if (entry.required && !option.get_positional())
    entry.text += " (required)";
  if (const std::string value = option.get_default_str();
      !value.empty() && value != "[]")
    absl::StrAppend(&entry.text, " (default: ",
                    absl::StripSuffix(absl::StripPrefix(value, "["), "]"), ")");
  return entry;
}

VerbEntry describeVerb(const CLI::App &app) {
  VerbEntry entry;
  entry.name = app.get_name();
  entry.text = app.get_description();
  entry.heading = app.get_group();
  entry.footer = app.get_footer();
  for (const CLI::Option *option : app.get_options()) {
    if (option->get_positional())
      entry.arguments.push_back(describeOption(*option, /*asArgument=*/true));
    if (option->nonpositional())
      entry.options.push_back(describeOption(*option, /*asArgument=*/false));
  }
  for (const CLI::App *verb : app.get_subcommands({}))
    entry.verbs.push_back(describeVerb(*verb));
  return entry;
}

static void visitVerb(
    const std::string &above, const VerbEntry &verb,
    absl::FunctionRef<void(const std::string &path, const VerbEntry &)> visit) {
  const std::string path =
      above.empty() ? verb.name : absl::StrCat(above, " ", verb.name);
  visit(path, verb);
  for (const VerbEntry &next : verb.verbs)
    visitVerb(path, next, visit);
}

void forEachVerb(
    const VerbEntry &tool,
    absl::FunctionRef<void(const std::string &path, const VerbEntry &)> visit) {
  visitVerb("", tool, visit);
}

} // namespace llamac
