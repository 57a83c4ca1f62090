//===- CommandTree.h - The verbs and options of a tool ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verbs and options that a tool's parser knows, for all that is made from
// them: help, completion of shells, the manual page.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_COMMANDTREE_H
#define LLAMAC_TOOLS_COMMANDTREE_H

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace llamac {

/// The heading of options that help does not list. Those of an empty one would
/// have no name in CLI11's messages.
inline constexpr const char *unlistedHeading = "unlisted";

/// Takes the values of `list`, "a, b or c", alone, in letters of either case.
CLI::Validator knownValues(absl::string_view list);

/// Takes anything, and shows the values of `list` to completion, as
/// knownValues() does: for options whose values are checked elsewhere.
CLI::Validator suggestedValues(absl::string_view list);

/// An option, or an argument without a name on the command line.
struct OptionEntry {
  std::vector<std::string> names;  ///< "-p", "--prompt"; "MODEL".
  std::string type;                ///< "FILE"; empty for a flag.
  std::vector<std::string> values; ///< Values it is known to take, if any.
  std::string text;    ///< Its effect, whether it is required, its default.
  std::string heading; ///< Its group in the verb's help; empty: not listed.
  bool required = false;
  bool repeats = false; ///< Whether it may be given more than once.

  bool isFlag() const { return type.empty(); }

  /// Whether files, folders alone, or names of pulled models are its values.
  bool takesFiles() const;
  bool takesFolders() const { return type == "DIR"; }
  bool takesModels() const { return type == "MODEL" || type == "NAME"; }
};

/// A tool or one of its verbs.
struct VerbEntry {
  std::string name; ///< "llamac", "run".
  std::string text; ///< Its description in help.
  std::string heading;
  std::string footer;
  std::vector<OptionEntry> arguments;
  std::vector<OptionEntry> options;
  std::vector<VerbEntry> verbs;
};

/// An argument may be an option as well: described `asArgument` or not.
OptionEntry describeOption(const CLI::Option &option, bool asArgument);
VerbEntry describeVerb(const CLI::App &app);

/// Calls `visit` for `tool` and every verb below it, with the words that lead
/// there: "llamac cache list".
void forEachVerb(
    const VerbEntry &tool,
    absl::FunctionRef<void(const std::string &path, const VerbEntry &)> visit);

} // namespace llamac

#endif // LLAMAC_TOOLS_COMMANDTREE_H
