//===- CommandParsing.cpp - Help and errors of command lines --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/FatalEvents.h"
#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"
#include "runtime/base/Terminal.h"
#include "tools/CommandLine.h"
#include "tools/CommandTree.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <new>

namespace llamac {

//===----------------------------------------------------------------------===//
// Help
//===----------------------------------------------------------------------===//

/// `name` and, in a second column, `text`, wrapped at 80 columns.
static std::string helpRow(const std::string &name, absl::string_view text) {
  constexpr size_t first = 26, width = 80;
  std::string row = absl::StrCat("  ", name);
  size_t column = row.size();
  if (column + 2 > first) {
    row += '\n';
    column = 0;
  }
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column > first && column + 1 + word.size() >= width) {
      row += '\n';
      column = 0;
    }
    const size_t space = column < first ? first - column : 1;
    absl::StrAppend(&row, std::string(space, ' '), word);
    column += space + word.size();
  }
  return row + "\n";
}

namespace {

class HelpFormatter final : public CLI::Formatter {
public:
  std::string make_option(const CLI::Option *option,
                          bool isPositional) const override {
    const OptionEntry entry = describeOption(*option, isPositional);
    std::string name = absl::StrJoin(entry.names, ", ");
    if (!isPositional && !entry.isFlag())
      absl::StrAppend(&name, " ", entry.type);
    return helpRow(name, entry.text);
  }
  std::string
  make_group(std::string heading, bool isPositional,
             std::vector<const CLI::Option *> options) const override {
    return heading == unlistedHeading
               ? ""
               : CLI::Formatter::make_group(std::move(heading), isPositional,
                                            std::move(options));
  }
  std::string make_subcommand(const CLI::App *verb) const override {
    return helpRow(verb->get_name(), verb->get_description());
  }
  std::string make_help(const CLI::App *app, std::string name,
                        CLI::AppFormatMode mode) const override {
    // An empty line between parts, and never two.
    return absl::StrReplaceAll(
        CLI::Formatter::make_help(app, std::move(name), mode),
        {{"\nUsage:", "\n\nUsage:"}, {"\n\n\n", "\n\n"}, {"\n\n\n\n", "\n\n"}});
  }
  std::string make_usage(const CLI::App *app, std::string name) const override {
    // A verb stands in place of arguments.
    const std::string verbs = absl::StrCat("\n       ", name, " VERB ...");
    const std::string text = CLI::Formatter::make_usage(app, std::move(name));
    return app->get_options(isArgument).empty()
               ? text
               : absl::StrReplaceAll(text, {{" [VERB]", verbs}});
  }

private:
  static bool isArgument(const CLI::Option *option) {
    return option->get_positional();
  }
};

} // namespace

void formatHelp(CLI::App &app) {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("Positionals", "Arguments");
  formatter->label("SUBCOMMAND", "VERB");
  app.formatter(formatter);
  app.set_help_flag("-h,--help", "Print this help");
  // The last value of an option that is given twice counts.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

static std::vector<std::string> namesOfVerbs(const CLI::App &verb) {
  std::vector<std::string> names;
  for (const CLI::App *known : verb.get_subcommands({}))
    names.push_back(known->get_name());
  return names;
}

/// The error where the first argument of `verb` is a mistyped verb, which
/// llamac-run takes for a plan; empty where it is not.
static std::string describeMistyped(const CLI::App &verb) {
  const CLI::Option *plan = verb.get_option_no_throw("--model");
  std::error_code error;
  if (!plan || plan->empty() ||
      std::filesystem::exists(plan->results().front(), error))
    return "";
  const std::string taken = plan->results().front();
  const std::vector<std::string> names = namesOfVerbs(verb);
  const std::string meant = suggestion(taken, names);
  if (!meant.empty())
    return absl::StrCat("unknown verb ", taken, meant);
  return names.empty() || absl::StrContains(taken, '/')
             ? ""
             : absl::StrCat(taken, ": expected a plan or one of ",
                            absl::StrJoin(names, ", "),
                            ", got neither; llamac has more verbs");
}

/// The error for the option `flag`, which `verb` does not have.
static std::string describeUnknown(const CLI::App &verb,
                                   const std::string &flag) {
  const bool takesTarget = verb.get_option_no_throw("--target");
  if (takesTarget &&
      (flag == "-ngl" || flag == "--gpu-layers" || flag == "--n-gpu-layers"))
    return absl::StrCat("unknown option ", flag,
                        "; --target cuda runs all layers on a GPU");
  std::vector<std::string> names;
  for (const CLI::Option *known : verb.get_options())
    for (const std::string &name : known->get_lnames())
      names.push_back("--" + name);
  return absl::StrCat("unknown option ", flag, suggestion(flag, names));
}

/// The error for an argument that nothing takes, which `verb` ends at.
static std::string describeExtra(const CLI::App &verb,
                                 const std::string &argument) {
  std::vector<std::string> names;
  if (!absl::StartsWith(argument, "-")) {
    names = namesOfVerbs(verb);
    if (names.empty() || verb.get_option_no_throw("--model"))
      return absl::StrCat("unexpected argument ", argument,
                          verb.get_option_no_throw("PROMPT")
                              ? "; a prompt of several words is quoted"
                              : "");
    const std::string meant = suggestion(argument, names);
    std::error_code error;
    return absl::StrCat("unknown verb ", argument,
                        meant.empty() &&
                                std::filesystem::exists(argument, error)
                            ? absl::StrCat("; a model or plan runs by ",
                                           verb.get_name(), " run ", argument)
                            : meant);
  }
  return describeUnknown(verb, argument.substr(0, argument.find('=')));
}

/// The parser's message about `verb` as ours are: what, expected, got.
static std::string describeParseError(const CLI::App &verb,
                                      const CLI::ParseError &error) {
  std::string text = absl::StrReplaceAll(error.what(), {{"{false}", ""}});
  auto partsOf = [&text](absl::string_view separator) {
    return std::pair<std::string, std::string>(
        absl::StrSplit(text, absl::MaxSplits(separator, 1)));
  };
  if (text == "A subcommand is required")
    return absl::StrCat("expected a verb: ",
                        absl::StrJoin(namesOfVerbs(verb), ", "), "; got none");
  if (absl::EndsWith(text, " is required")) {
    const std::string name = partsOf(" is required").first;
    const CLI::Option *option = verb.get_option_no_throw(name);
    const bool isArgument = option && option->get_positional();
    return absl::StrCat(
        "expected ", isArgument ? option->get_name(/*positional=*/true) : name,
        ", got none");
  }
  if (absl::EndsWith(text, " missing")) // "--prompt: 1 required TEXT missing"
    return absl::StrCat(
        partsOf(": 1 required ").first, ": expected ",
        absl::StripSuffix(partsOf(": 1 required ").second, " missing"),
        ", got none");
  if (absl::StrContains(text, " At Most 1 required ")) // Two models.
    return absl::StrCat(partsOf(": ").first, ": expected one, got several");
  if (absl::StartsWith(text, "Could not convert: ")) {
    const auto [name, value] = partsOf(" = ");
    return absl::StrCat(absl::StripPrefix(name, "Could not convert: "),
                        ": expected a number, got ",
                        value.empty() ? "an empty value" : value);
  }
  if (absl::StrContains(text, " not in {")) { // "--to: x not in {a,b}"
    const auto [name, rest] = partsOf(": ");
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(rest, absl::MaxSplits(" not in ", 1));
    absl::string_view list = parts.second;
    list.remove_prefix(1);
    list.remove_suffix(1);
    // Another first letter is another word: gpu is no cpu.
    std::vector<std::string> values = absl::StrSplit(list, ',');
    std::erase_if(values, [&](const std::string &value) {
      return value.substr(0, 1) != parts.first.substr(0, 1);
    });
    return absl::StrCat(name, ": expected one of ", parts.second, ", got ",
                        parts.first, suggestion(parts.first, values));
  }
  if (absl::StrContains(text, " requires "))
    return absl::StrCat(partsOf(" requires ").first, ": expected ",
                        partsOf(" requires ").second, " as well");
  if (absl::StrContains(text, " excludes "))
    return absl::StrCat(partsOf(" excludes ").first, ": expected no ",
                        partsOf(" excludes ").second, " beside it");
  return absl::EndsWith(text, " got ") ? text + "an empty value" : text;
}

/// `text`, which is about an option of `verb`, with the name that it has in
/// `arguments`: "-n: ..." of "--predict: ...".
static std::string asGiven(const CLI::App &verb, const std::string &text,
                           const std::vector<std::string> &arguments) {
  const std::string name = text.substr(0, text.find(':'));
  const CLI::Option *option = verb.get_option_no_throw(name);
  if (option && !option->get_positional())
    for (const std::string &argument : arguments)
      if (const std::string given = argument.substr(0, argument.find('='));
          option->check_name(given))
        return given + text.substr(name.size());
  return text;
}

/// Whether `argument` is short options written together that `verb` does not
/// take so, such as -ngl, where -n takes a number.
static bool isUnknownCluster(const CLI::App &verb,
                             const std::string &argument) {
  if (argument.size() < 3 || argument[0] != '-' ||
      !absl::ascii_isalpha(argument[1]) || !absl::ascii_isalpha(argument[2]))
    return false;
  const CLI::Option *first = verb.get_option_no_throw(argument.substr(0, 2));
  return first && describeOption(*first, /*asArgument=*/false).type == "N";
}

/// The error about the places of options in `arguments`, which are reversed;
/// empty where nothing is. `extra` is the first that nothing takes.
static std::string describePlace(const CLI::App &app, const CLI::App &verb,
                                 const std::vector<std::string> &arguments,
                                 const std::optional<std::string> &extra) {
  if (&verb != &app && extra && *extra == arguments.back() &&
      absl::StartsWith(*extra, "-"))
    return absl::StrCat("unexpected option ", *extra, " before the verb ",
                        verb.get_name(), ", whose options stand behind it");
  const auto mark = std::ranges::find(arguments, "--");
  if (extra && absl::StartsWith(*extra, "-") && mark != arguments.end() &&
      std::find(arguments.begin(), mark, *extra) != mark)
    return absl::StrCat("unexpected argument ", *extra,
                        "; options stand before --");
  const std::reverse_iterator end(mark == arguments.end() ? arguments.begin()
                                                          : mark + 1);
  const auto cluster =
      std::find_if(arguments.rbegin(), end, [&](const auto &each) {
        return isUnknownCluster(verb, each);
      });
  return cluster == end ? "" : describeUnknown(verb, *cluster);
}

/// A message about what is wrong with the command line of `app`.
static std::string describeError(const CLI::App &app,
                                 const CLI::ParseError &error,
                                 const std::vector<std::string> &arguments) {
  const CLI::App *verb = &app;
  std::string name = app.get_name();
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    absl::StrAppend(&name, " ", verb->get_name());
  }
  // The parser gives all at once, and reversed. Of arguments that are alike it
  // takes the first ones.
  std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  std::optional<std::string> first;
  for (const std::string &argument : arguments)
    if (const auto extra = std::ranges::find(extras, argument);
        extra != extras.end() && argument != "--") {
      first = *extra;
      extras.erase(extra);
    }
  std::string text = describeMistyped(*verb);
  if (text.empty())
    text = describePlace(app, *verb, arguments, first);
  if (text.empty())
    text = first ? describeExtra(*verb, *first)
                 : asGiven(*verb, describeParseError(*verb, error), arguments);
  return absl::StrCat(text, "; see ", name, " --help");
}

/// Whether an option `name`, "--system", of `app` or of a verb takes a value.
static bool takesValue(const CLI::App &app, const std::string &name) {
  const CLI::Option *option = app.get_option_no_throw(name);
  return (option && option->get_items_expected_max() > 0) ||
         std::ranges::any_of(
             app.get_subcommands({}),
             [&](const CLI::App *verb) { return takesValue(*verb, name); });
}

std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv) {
  // Reversed, as the parser wants them.
  std::vector<std::string> arguments(std::reverse_iterator(argv + argc),
                                     std::reverse_iterator(argv + 1));
  // The parser takes the argument behind "--system=" for its value.
  for (size_t i = 0; i < arguments.size(); ++i)
    if (std::string name = arguments[i];
        absl::StartsWith(name, "--") && absl::EndsWith(name, "=")) {
      name.pop_back();
      if (takesValue(app, name)) {
        arguments[i] = name;
        arguments.insert(arguments.begin() + static_cast<ptrdiff_t>(i++), "");
      }
    }
  // "help run" is "run --help".
  if (!arguments.empty() && arguments.back() == "help") {
    arguments.pop_back();
    arguments.insert(arguments.begin(), "--help");
  }
  try {
    app.parse(std::vector(arguments));
    return std::nullopt;
  } catch (const CLI::ParseError &error) {
    // Help and version end well and go to stdout; there is none of a verb that
    // is unknown.
    if (error.get_exit_code() != 0 || !app.remaining().empty())
      return finishTool(app.get_name(),
                        usageError(describeError(app, error, arguments)));
    app.exit(error, std::cout, std::cerr);
    return finishTool(app.get_name(), absl::OkStatus());
  }
}

int runTool(const char *tool, absl::FunctionRef<int()> body) {
  claimStandardStreams();
  installFatalHandlers(tool);
  try {
    return body();
  } catch (const std::bad_alloc &) {
    endOutOfMemory();
  } catch (const std::exception &error) {
    return finishTool(tool, internalError(error.what()));
  }
}

int finishTool(absl::string_view tool, const absl::Status &status) {
  absl::Status outcome = status;
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (outcome.ok() && (!flushed || std::ferror(stdout)))
    outcome = memoryError(
        absl::StrCat("stdout: cannot be written",
                     errno ? absl::StrCat(": ", std::strerror(errno)) : ""));
  if (outcome.ok())
    return 0;
  absl::FPrintF(
      stderr, "%s: error: %s\n", tool,
      printable(absl::StrReplaceAll(outcome.message(), {{"\n", " "}})));
  return static_cast<int>(exitCode(outcome));
}

} // namespace llamac
