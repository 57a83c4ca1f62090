//===- Main.cpp - The llamac tool -------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "compiler/driver/Devices.h"
#include "compiler/llamac/Commands.h"
#include "compiler/llamac/LlvmErrors.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "tools/CommandLine.h"
#include "tools/ToolVerbs.h"

#include "llvm/Config/llvm-config.h"

// An option that is declared twice ends the program.
// NOLINTNEXTLINE(bugprone-exception-escape)
static int llamacMain(int argc, char **argv) {
  CLI::App app("Compiles Llama models into plans and runs them.", "llamac");
  llamac::formatHelp(app);
  app.footer("MODEL is a model directory, a .gguf file or the name of a pulled "
             "model, PLAN\nwhat `llamac compile` made of one. `llamac VERB "
             "--help` shows the options of a\nverb.");
  absl::Status status = llamac::usageError("expected a verb, got none; see "
                                           "llamac --help");
  using AddCommand = void (*)(CLI::App &, absl::Status &);
  const std::pair<const char *, std::vector<AddCommand>> groups[] = {
      {"Run a model or plan",
       {llamac::addRunCommand, llamac::addChatCommand, llamac::addServeCommand,
        llamac::addGenerateCommand, llamac::addBenchCommand,
        llamac::addPerplexityCommand, llamac::addLogitsCommand,
        llamac::addTokenizeCommand}},
      {"Get models",
       {llamac::addPullCommand, llamac::addListCommand, llamac::addShowCommand,
        llamac::addRmCommand}},
      {"Make plans and models",
       {llamac::addCompileCommand, llamac::addTuneCommand,
        llamac::addConvertCommand}},
      {"Look inside",
       {llamac::addPlanCommand, llamac::addInspectCommand,
        llamac::addCheckCommand}}};
  for (const auto &[heading, verbs] : groups)
    for (const AddCommand add : verbs) {
      add(app, status);
      app.get_subcommands({}).back()->group(heading);
    }
  llamac::addToolVerbs(app,
                       {.name = "llamac",
                        .devices = llamac::allDevices(),
                        .compiler = {{"LLVM", LLVM_VERSION_STRING}}},
                       status);
  if (const std::optional<int> code = llamac::parseCommandLine(app, argc, argv))
    return *code;
  return llamac::finishTool("llamac", status);
}

int main(int argc, char **argv) {
  llamac::installLlvmErrorHandlers();
  return llamac::runTool("llamac", [&] { return llamacMain(argc, argv); });
}
