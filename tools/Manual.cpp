//===- Manual.cpp - Manual pages ------------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/Manual.h"

#include "runtime/base/Status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace llamac {

/// `text` as roff prints it: an escape, a control character at the beginning of
/// a line and a hyphen mean something else.
static std::string roff(absl::string_view text) {
  std::string result;
  for (const absl::string_view line : absl::StrSplit(text, '\n'))
    absl::StrAppend(
        &result, result.empty() ? "" : "\n",
        absl::StartsWith(line, ".") || absl::StartsWith(line, "'") ? "\\&" : "",
        absl::StrReplaceAll(line, {{"\\", "\\e"}, {"-", "\\-"}}));
  return result;
}

static std::string bold(absl::string_view text) {
  return absl::StrCat("\\fB", roff(text), "\\fR");
}

static std::string italic(absl::string_view text) {
  return absl::StrCat("\\fI", roff(text), "\\fR");
}

/// roff() in lines of less than 80 bytes.
static std::string filled(absl::string_view text) {
  std::string result;
  size_t column = 0;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    const std::string next = roff(word);
    const bool isNewLine = column + 1 + next.size() >= 80;
    absl::StrAppend(&result, column == 0 ? "" : isNewLine ? "\n" : " ", next);
    column = (isNewLine ? 0 : column + 1) + next.size();
  }
  return result;
}

/// A paragraph with `tag` in front; both are roff.
static std::string tagged(absl::string_view tag, absl::string_view text) {
  return absl::StrCat(".TP\n", tag, "\n", text, "\n");
}

/// Lines as they stand.
static std::string verbatim(absl::string_view lines) {
  return absl::StrCat(".EX\n", roff(absl::StripSuffix(lines, "\n")), "\n.EE\n");
}

/// A verb's footer, whose parts an empty line separates: "Examples:", lines to
/// type, or words.
static std::string footerText(absl::string_view footer) {
  std::string result;
  for (absl::string_view part : absl::StrSplit(footer, "\n\n")) {
    absl::string_view lines = absl::StripSuffix(part, "\n");
    const bool isExamples = absl::ConsumePrefix(&lines, "Examples:\n");
    if (lines.empty())
      continue;
    absl::StrAppend(&result, ".PP\n", isExamples ? "Examples:\n.PP\n" : "",
                    isExamples ? verbatim(lines)
                               : absl::StrCat(filled(lines), "\n"));
  }
  return result;
}

static std::string optionText(const OptionEntry &option) {
  const std::string names = absl::StrJoin(
      option.names, ", ", [](std::string *out, const std::string &name) {
        out->append(bold(name));
      });
  return tagged(option.isFlag() ? names
                                : absl::StrCat(names, " ", italic(option.type)),
                filled(option.text));
}

/// The arguments and options of `verb`, under the headings of its help.
static std::string optionsText(const VerbEntry &verb) {
  std::string result;
  for (const OptionEntry &argument : verb.arguments)
    result += tagged(italic(argument.type), filled(argument.text));
  std::vector<std::string> headings;
  for (const OptionEntry &option : verb.options)
    if (!option.heading.empty() &&
        std::ranges::count(headings, option.heading) == 0)
      headings.push_back(option.heading);
  for (const std::string &heading : headings) {
    if (heading != "Options")
      absl::StrAppend(&result, ".PP\n", bold(heading), "\n");
    for (const OptionEntry &option : verb.options)
      if (option.heading == heading)
        result += optionText(option);
  }
  return result;
}

/// "llamac run [OPTIONS] MODEL".
static std::string synopsis(const std::string &path, const VerbEntry &verb) {
  std::string result = absl::StrCat(bold(path), " [", italic("OPTIONS"), "]");
  for (const OptionEntry &argument : verb.arguments)
    absl::StrAppend(&result, " ", argument.required ? "" : "[",
                    italic(argument.type), argument.repeats ? "..." : "",
                    argument.required ? "" : "]");
  return result;
}

static std::string exitCodes() {
  // The index is the ExitCode.
  static constexpr const char *meanings[] = {
      "Done.",
      "A bug in llamac.",
      "A wrong flag, prompt or request.",
      "A missing, truncated or malformed model file.",
      "An architecture or format that is not supported.",
      "A corrupt or stale plan.",
      "Not enough memory, disk or open files.",
      "The device failed or is missing.",
      "A result exceeds its tolerance.",
  };
  static_assert(std::size(meanings) ==
                static_cast<int>(ExitCode::Accuracy) + 1);
  std::string result;
  for (size_t code = 0; code < std::size(meanings); ++code)
    result += tagged(bold(absl::StrCat(code)), meanings[code]);
  return result;
}

static std::string environment() {
  static constexpr std::pair<const char *, const char *> variables[] = {
      {"LLAMAC_ISA", "Highest instruction-set level to use, as --isa."},
      {"LLAMAC_TUNE_CPU", "CPU to tune plans for, as --tune-cpu."},
      {"LLAMAC_CACHE_SIZE", "Bytes that all caches together may take, such as "
                            "500M; goes before llamac cache limit."},
      {"LLAMAC_OBJECT_CACHE", "Folder whose subfolder objects caches compiled "
                              "kernels; set to nothing, none are cached."},
      {"LLAMAC_NCCL_PATH", "Folder of libnccl, where the loader finds none."},
      {"LLAMAC_NVRTC_PATH", "Folder of libnvrtc, where the loader finds none."},
      {"XDG_CACHE_HOME", "Folder of caches in place of ~/.cache."},
      {"TMPDIR", "Folder of plans that cannot be cached."},
  };
  std::string result;
  for (const auto &[name, text] : variables)
    result += tagged(bold(name), filled(text));
  return result;
}

std::string manualPage(const VerbEntry &tool) {
  std::string what = tool.text;
  what.front() = absl::ascii_tolower(what.front());
  std::string usages, verbs;
  forEachVerb(tool, [&](const std::string &path, const VerbEntry &verb) {
    // A verb that has verbs does nothing by itself.
    if (verb.verbs.empty() || !verb.arguments.empty())
      absl::StrAppend(&usages, usages.empty() ? "" : ".br\n",
                      synopsis(path, verb), "\n");
    if (&verb == &tool)
      return;
    absl::StrAppend(&verbs, ".SS \"", roff(path), "\"\n", filled(verb.text),
                    ".\n", optionsText(verb), footerText(verb.footer));
  });
  return absl::StrCat(
      ".\\\" Printed by `", tool.name, " manual`.\n.TH ",
      absl::AsciiStrToUpper(tool.name), " 1 \"\" \"llamac ", LLAMAC_VERSION,
      "\"\n.SH NAME\n", roff(tool.name), " \\- ",
      roff(absl::StripSuffix(what, ".")), "\n.SH SYNOPSIS\n.nh\n.ad l\n",
      usages, ".hy\n.ad\n.SH DESCRIPTION\n", filled(tool.text), "\n",
      "Results go to the standard output, messages for people to the\n"
      "standard error.\n",
      footerText(tool.footer), ".SH OPTIONS\n", optionsText(tool),
      ".SH VERBS\n", verbs, ".SH \"EXIT STATUS\"\n", exitCodes(),
      ".SH ENVIRONMENT\n", environment(), ".SH FILES\n",
      tagged(italic("~/.cache/llamac"),
             "Plans, compiled kernels and tuned configs."));
}

} // namespace llamac
