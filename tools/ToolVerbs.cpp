//===- ToolVerbs.cpp - Verbs about the tool itself ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/ToolVerbs.h"

#include "runtime/base/BuildId.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/Nvrtc.h"
#include "tools/Completion.h"
#include "tools/Manual.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <boost/version.hpp>
#include <cstdio>
#include <memory>
#include <openssl/crypto.h>

namespace llamac {

std::string toolBuildId() {
  return buildIdAt(reinterpret_cast<const void *>(&toolBuildId));
}

std::vector<LibraryVersion> libraryVersions(const ToolParts &parts) {
  std::vector<LibraryVersion> versions = parts.compiler;
  versions.emplace_back("XGrammar", LLAMAC_XGRAMMAR_VERSION);
  versions.emplace_back("Boost",
                        absl::StrReplaceAll(BOOST_LIB_VERSION, {{"_", "."}}));
  versions.emplace_back("OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING));
  const auto add = [&](const char *name, const auto *library) {
    versions.emplace_back(
        name, library ? absl::StrCat(library->version(), ", ", library->path())
                      : "not found");
  };
  const auto nvrtc = Nvrtc::open();
  add("NVRTC", nvrtc.ok() ? &*nvrtc : nullptr);
  add("NCCL", cuda::Nccl::open().value_or(nullptr).get());
  return versions;
}

/// The lines that --version prints.
static std::string versionText(const ToolParts &parts) {
  std::string text =
      absl::StrCat(parts.name, " ", LLAMAC_VERSION, "\nbuild ", toolBuildId());
  for (const auto &[library, version] : libraryVersions(parts))
    absl::StrAppend(&text, "\n", library, " ", version);
  return text;
}

static void addCompletionCommand(CLI::App &app, absl::Status &status) {
  auto shell = std::make_shared<std::string>();
  CLI::App *verb = app.add_subcommand(
      "completion", "Print a script that completes command lines");
  verb->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer(absl::StrCat("Examples:\n  source <(", app.get_name(),
                            " completion bash)\n  ", app.get_name(),
                            " completion fish | source"));
  verb->callback([&app, shell, &status] {
    const VerbEntry tool = describeVerb(app);
    const std::string script = *shell == "bash"  ? bashCompletion(tool)
                               : *shell == "zsh" ? zshCompletion(tool)
                                                 : fishCompletion(tool);
    std::fputs(script.c_str(), stdout);
    status = absl::OkStatus();
  });
}

static void addManualCommand(CLI::App &app, absl::Status &status) {
  CLI::App *verb =
      app.add_subcommand("manual", "Print the manual page, for man");
  verb->footer(
      absl::StrCat("Examples:\n  ", app.get_name(), " manual | man -l -"));
  verb->callback([&app, &status] {
    std::fputs(manualPage(describeVerb(app)).c_str(), stdout);
    status = absl::OkStatus();
  });
}

void addToolVerbs(CLI::App &app, const ToolParts &parts, absl::Status &status) {
  app.set_version_flag(
      "-V,--version", [parts] { return versionText(parts); },
      "Print the version, the build and the libraries");
  addDoctorCommand(app, parts, status);
  addCacheCommand(app, status);
  addCompletionCommand(app, status);
  addManualCommand(app, status);
  for (const char *name : {"doctor", "cache", "completion", "manual"})
    app.get_subcommand(name)->group(toolVerbsHeading);
}

} // namespace llamac
