//===- Completion.cpp - Completion of command lines by shells -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A script is the tables of the tool's verbs and options in the shell's own
// words, behind a few lines that find out which verb the cursor is in: the one
// whose path ("llamac cache") the words before it spell.
//
//===----------------------------------------------------------------------===//

#include "tools/Completion.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/strings/substitute.h"

#include <algorithm>
#include <map>
#include <vector>

namespace llamac {

/// A name for functions of the shell, made of "llamac-run bench"; that of
/// "llamac-run" is not that of "llamac run".
static std::string identifier(absl::string_view path) {
  return absl::StrCat("_",
                      absl::StrReplaceAll(path, {{" ", "__"}, {"-", "_"}}));
}

/// `text` as one word of a shell. Fish alone takes a backslash within quotes
/// for more than itself, which no text here has.
static std::string shellWord(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

/// The paths of all verbs, quoted and with `separator` between them.
static std::string pathsOfVerbs(const VerbEntry &tool,
                                absl::string_view separator) {
  std::vector<std::string> paths;
  forEachVerb(tool, [&](const std::string &path, const VerbEntry &verb) {
    if (&verb != &tool)
      paths.push_back(shellWord(path));
  });
  return absl::StrJoin(paths, separator);
}

/// The words that may stand where an argument does: verbs, and known values.
static std::string wordsOf(const VerbEntry &verb) {
  std::vector<std::string> words;
  words.reserve(verb.verbs.size());
  for (const VerbEntry &next : verb.verbs)
    words.push_back(next.name);
  for (const OptionEntry &argument : verb.arguments)
    words.insert(words.end(), argument.values.begin(), argument.values.end());
  return absl::StrJoin(words, " ");
}

static bool takesFiles(const VerbEntry &verb) {
  return std::ranges::any_of(verb.arguments, &OptionEntry::takesFiles);
}

static bool takesModels(const VerbEntry &verb) {
  return std::ranges::any_of(verb.arguments, &OptionEntry::takesModels);
}

/// The command whose lines are the names of the pulled models.
static constexpr absl::string_view modelNames =
    "llamac list --quiet 2>/dev/null";

//===----------------------------------------------------------------------===//
// bash
//===----------------------------------------------------------------------===//

/// $0: tool, $1: function, $2: paths, $3: values of options, $4: verbs, $5:
/// names of models.
static constexpr absl::string_view bashScript =
    R"sh(# Completion of $0 for bash, as `$0 completion bash` prints it.
$1() {
  local current=$${COMP_WORDS[COMP_CWORD]} previous=$${COMP_WORDS[COMP_CWORD - 1]}
  local verb=$0 words='' files='' models='' i
  # --option=value is three words.
  if [[ $$current == = ]]; then
    current=''
  elif [[ $$previous == = ]]; then
    previous=$${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$$verb $${COMP_WORDS[i]}" in
    $2) verb="$$verb $${COMP_WORDS[i]}" ;;
    esac
  done
  case "$$verb $$previous" in
$3  *)
    case $$verb in
$4    esac
    ;;
  esac
  if [[ -n $$files ]]; then compopt -o filenames; fi
  mapfile -t COMPREPLY < <(
    compgen -W "$$words" -- "$$current"
    if [[ -n $$files ]]; then compgen -A "$$files" -- "$$current"; fi
    if [[ -n $$models ]]; then compgen -W "$$($5)" -- "$$current"; fi
  )
}
complete -F $1 $0
)sh";

/// The assignment by which bash completes the value of `option`.
static std::string bashValues(const OptionEntry &option) {
  if (!option.values.empty())
    return absl::StrCat("words=", shellWord(absl::StrJoin(option.values, " ")));
  return option.takesFolders()  ? "files='directory'"
         : option.takesModels() ? "files='file' models=1"
         : option.takesFiles()  ? "files='file'"
                                : ":";
}

std::string bashCompletion(const VerbEntry &tool) {
  std::string values, verbs;
  forEachVerb(tool, [&](const std::string &path, const VerbEntry &verb) {
    std::vector<std::string> names;
    // The words before a value, by what completes it.
    std::map<std::string, std::vector<std::string>> wordsBefore;
    for (const OptionEntry &option : verb.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (!option.isFlag())
        for (const std::string &name : option.names)
          wordsBefore[bashValues(option)].push_back(
              shellWord(absl::StrCat(path, " ", name)));
    }
    for (const auto &[completion, words] : wordsBefore)
      absl::StrAppend(&values, "  ", absl::StrJoin(words, " | "), ") ",
                      completion, " ;;\n");
    absl::StrAppend(&verbs, "    ", shellWord(path),
                    ")\n      if [[ $current == -* ]]; then words=",
                    shellWord(absl::StrJoin(names, " ")),
                    "\n      else words=", shellWord(wordsOf(verb)),
                    takesFiles(verb) ? " files='file'" : "",
                    takesModels(verb) ? " models=1" : "", "; fi\n      ;;\n");
  });
  return absl::Substitute(bashScript, tool.name, identifier(tool.name),
                          pathsOfVerbs(tool, " | "), values, verbs, modelNames);
}

//===----------------------------------------------------------------------===//
// zsh
//===----------------------------------------------------------------------===//

/// `text` within a specification of _arguments or _describe.
static std::string zshText(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

/// The action by which _arguments completes the value of `option`.
static std::string zshValues(const OptionEntry &option) {
  if (!option.values.empty())
    return absl::StrCat("(", absl::StrJoin(option.values, " "), ")");
  return option.takesFolders()  ? "_files -/"
         : option.takesModels() ? option.takesFiles()
                                      ? "_llamac_models_and_files"
                                      : "_llamac_models"
         : option.takesFiles()  ? "_files"
                                : " ";
}

/// The specifications of `option` for _arguments, one for each of its names,
/// which exclude one another.
static std::string zshOption(const OptionEntry &option) {
  std::string specs;
  for (const std::string &name : option.names) {
    const std::string others =
        option.repeats
            ? "*"
            : absl::StrCat("(", absl::StrJoin(option.names, " "), ")");
    const bool isLong = absl::StartsWith(name, "--");
    absl::StrAppend(
        &specs, "    ",
        shellWord(absl::StrCat(others, name,
                               option.isFlag() ? ""
                               : isLong        ? "="
                                               : "+",
                               "[", zshText(option.text), "]",
                               option.isFlag()
                                   ? ""
                                   : absl::StrCat(":", zshText(option.type),
                                                  ":", zshValues(option)))),
        "\n");
  }
  return specs;
}

/// The function that completes what follows `path`: $0: function, $1: cases of
/// verbs, $2: options, $3: arguments.
static constexpr absl::string_view zshFunction = R"($0() {
  if ((CURRENT > 2)); then
    case $$words[2] in
$1    esac
  fi
  local -a specs=(
$2$3  )
  _arguments -s -S $$specs
}

)";

/// The function that completes a verb or an argument: $0: function, $1: rows,
/// $2: whether files, too.
static constexpr absl::string_view zshVerbs = R"($0_verbs() {
  local -a verbs=(
$1  )
  local found=1
  _describe verb verbs && found=0$2
  return found
}

)";

/// $0: tool, $1: function, $2: functions, $3: names of models.
static constexpr absl::string_view zshScript = R"sh(#compdef $0
# Completion of $0 for zsh, as `$0 completion zsh` prints it.

_llamac_models() {
  local -a models=($${(f)"$$($3)"})
  compadd -a models
}

_llamac_models_and_files() {
  local found=1
  _llamac_models && found=0
  _files && found=0
  return found
}

$2if [[ $$funcstack[1] == _$0 ]]; then
  $1 "$$@"
else
  compdef $1 $0
fi
)sh";

std::string zshCompletion(const VerbEntry &tool) {
  std::string functions;
  forEachVerb(tool, [&](const std::string &path, const VerbEntry &verb) {
    const std::string function = identifier(path);
    std::string cases, rows, options, arguments;
    for (const VerbEntry &next : verb.verbs) {
      absl::StrAppend(
          &cases, "    ", next.name, ") shift words; ((CURRENT -= 1)); ",
          identifier(absl::StrCat(path, " ", next.name)), "; return ;;\n");
      absl::StrAppend(
          &rows, "    ",
          shellWord(absl::StrCat(next.name, ":", zshText(next.text))), "\n");
    }
    for (const OptionEntry &option : verb.options)
      options += zshOption(option);
    if (!verb.verbs.empty()) {
      absl::StrAppend(
          &functions,
          absl::Substitute(zshVerbs, function, rows,
                           takesFiles(verb) ? "\n  _files && found=0" : ""));
      absl::StrAppend(&arguments, "    ",
                      shellWord(absl::StrCat("1:verb:", function, "_verbs")),
                      "\n");
    } else {
      for (size_t i = 0; i < verb.arguments.size(); ++i)
        absl::StrAppend(
            &arguments, "    ",
            shellWord(absl::StrCat(
                verb.arguments[i].repeats ? "*" : absl::StrCat(i + 1), ":",
                verb.arguments[i].type, ":", zshValues(verb.arguments[i]))),
            "\n");
    }
    absl::StrAppend(&functions, absl::Substitute(zshFunction, function, cases,
                                                 options, arguments));
  });
  return absl::Substitute(zshScript, tool.name, identifier(tool.name),
                          functions, modelNames);
}

//===----------------------------------------------------------------------===//
// fish
//===----------------------------------------------------------------------===//

/// $0: tool, $1: function, $2: paths, $3: rows.
static constexpr absl::string_view fishScript =
    R"(# Completion of $0 for fish, as `$0 completion fish` prints it.

# Whether the words before the cursor lead to the verb $$argv.
function $1_at
    set -l verb $0
    for word in (commandline -opc)[2..-1]
        switch "$$verb $$word"
            case $2
                set verb "$$verb $$word"
        end
    end
    test "$$verb" = "$$argv"
end

complete -c $0 -e
complete -c $0 -f
$3)";

std::string fishCompletion(const VerbEntry &tool) {
  const std::string function = identifier(tool.name);
  std::string rows;
  forEachVerb(tool, [&](const std::string &path, const VerbEntry &verb) {
    const std::string start = absl::StrCat("complete -c ", tool.name, " -n '",
                                           function, "_at ", path, "'");
    for (const VerbEntry &next : verb.verbs)
      absl::StrAppend(&rows, start, " -a ", next.name, " -d ",
                      shellWord(next.text), "\n");
    for (const OptionEntry &argument : verb.arguments)
      if (!argument.values.empty())
        absl::StrAppend(&rows, start, " -a ",
                        shellWord(absl::StrJoin(argument.values, " ")), "\n");
    if (takesFiles(verb))
      absl::StrAppend(&rows, start, " -F\n");
    if (takesModels(verb))
      absl::StrAppend(&rows, start, " -a '(", modelNames, ")'\n");
    for (const OptionEntry &option : verb.options) {
      rows += start;
      for (const std::string &name : option.names)
        absl::StrAppend(&rows, absl::StartsWith(name, "--") ? " -l " : " -s ",
                        absl::StripPrefix(absl::StripPrefix(name, "-"), "-"));
      if (!option.values.empty())
        absl::StrAppend(&rows, " -x -a ",
                        shellWord(absl::StrJoin(option.values, " ")));
      else if (option.takesFolders())
        rows += " -x -a '(__fish_complete_directories)'";
      else if (option.takesModels())
        absl::StrAppend(&rows, " -r -F -a '(", modelNames, ")'");
      else if (option.takesFiles())
        rows += " -r -F";
      else if (!option.isFlag())
        rows += " -x";
      absl::StrAppend(&rows, " -d ", shellWord(option.text), "\n");
    }
  });
  return absl::Substitute(fishScript, tool.name, function,
                          pathsOfVerbs(tool, " "), rows);
}

} // namespace llamac
