//===- CommandLine.h - Options that the tools share -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TOOLS_COMMANDLINE_H
#define LLAMAC_RUNTIME_TOOLS_COMMANDLINE_H

#include "runtime/tools/BenchCommand.h"
#include "runtime/tools/LogitsCommand.h"
#include "runtime/tools/PerplexityCommand.h"
#include "runtime/tools/RunCommand.h"
#include "runtime/tools/TuneCommand.h"

#include "absl/functional/function_ref.h"

#include <CLI/CLI.hpp>
#include <optional>

namespace llamac {

// Each declares the flags of one structure, with its defaults; where the plan
// or model comes from is the tool's own.
void addModelOptions(CLI::App &app, ModelOptions &options);
void addRunOptions(CLI::App &app, RunOptions &options);
void addBenchOptions(CLI::App &app, BenchOptions &options);
void addLogitsOptions(CLI::App &app, LogitsOptions &options);
void addTuneOptions(CLI::App &app, TuneCommandOptions &options);
void addPerplexityOptions(CLI::App &app, PerplexityOptions &options);

/// Parses the command line. When the tool is to end at once (help, version, or
/// a wrong flag, which is named on stderr) the exit code it ends with.
std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv);

/// main() of the tool of this name: gives what `body` does, and ends in one
/// line whatever happens (FatalEvents.h); an exception, too, becomes an error.
int runTool(const char *tool, absl::FunctionRef<int()> body);

/// Prints an error as `tool: error: message`, one line on stderr, and gives
/// the exit code; 0 for OK.
int reportStatus(absl::string_view tool, const absl::Status &status);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TOOLS_COMMANDLINE_H
