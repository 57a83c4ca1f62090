//===- Main.cpp - The llamac tool -------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "compiler/llamac/Commands.h"
#include "compiler/llamac/LlvmErrors.h"
#include "runtime/base/Status.h"
#include "runtime/tools/CommandLine.h"

static int llamacMain(int argc, char **argv) {
  CLI::App app("Compiles Llama models into plans and runs them.", "llamac");
  app.set_version_flag("--version", LLAMAC_VERSION);
  absl::Status status = llamac::usageError("expected a verb, got none; see "
                                           "--help");
  llamac::addBenchCommand(app, status);
  llamac::addCheckCommand(app, status);
  llamac::addCompileCommand(app, status);
  llamac::addConvertCommand(app, status);
  llamac::addInspectCommand(app, status);
  llamac::addLogitsCommand(app, status);
  llamac::addPerplexityCommand(app, status);
  llamac::addRunCommand(app, status);
  llamac::addTokenizeCommand(app, status);
  llamac::addTuneCommand(app, status);
  if (const std::optional<int> code = llamac::parseCommandLine(app, argc, argv))
    return *code;
  return llamac::reportStatus("llamac", status);
}

int main(int argc, char **argv) {
  llamac::installLlvmErrorHandlers();
  return llamac::runTool("llamac", [&] { return llamacMain(argc, argv); });
}
