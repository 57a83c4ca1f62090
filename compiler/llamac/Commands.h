//===- Commands.h - The verbs of llamac -------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#ifndef LLAMAC_COMPILER_LLAMAC_COMMANDS_H
#define LLAMAC_COMPILER_LLAMAC_COMMANDS_H

#include "compiler/driver/Compiler.h"
#include "tools/CommandLine.h"

#include "absl/status/status.h"
#include <CLI/CLI.hpp>

#include <string>
#include <utility>
#include <vector>

namespace llamac {

// Each adds one verb to `app`; when the verb is the one given, it runs and its
// outcome is left in `status`, which outlives the parse.
void addBenchCommand(CLI::App &app, absl::Status &status);
void addChatCommand(CLI::App &app, absl::Status &status);
void addCheckCommand(CLI::App &app, absl::Status &status);
void addCompileCommand(CLI::App &app, absl::Status &status);
void addConvertCommand(CLI::App &app, absl::Status &status);
void addGenerateCommand(CLI::App &app, absl::Status &status);
void addInspectCommand(CLI::App &app, absl::Status &status);
void addListCommand(CLI::App &app, absl::Status &status);
void addLogitsCommand(CLI::App &app, absl::Status &status);
void addPerplexityCommand(CLI::App &app, absl::Status &status);
void addPlanCommand(CLI::App &app, absl::Status &status);
void addPullCommand(CLI::App &app, absl::Status &status);
void addRmCommand(CLI::App &app, absl::Status &status);
void addRunCommand(CLI::App &app, absl::Status &status);
void addServeCommand(CLI::App &app, absl::Status &status);
void addShowCommand(CLI::App &app, absl::Status &status);
void addTokenizeCommand(CLI::App &app, absl::Status &status);
void addTuneCommand(CLI::App &app, absl::Status &status);

/// The model at `path`; its configuration alone where `path` is one, or a
/// directory with nothing else of it. Errors: those of openCheckpoint().
absl::StatusOr<Checkpoint> openModelOrConfig(const std::string &path,
                                             const OpenOptions &opening = {});

/// Says on stderr that the file or directory at `path` was written, with its
/// size, and `more` behind that; nothing of a pipe or a device.
void printWritten(const std::string &path, absl::string_view more = "");

/// The limits of this machine's cores, measured now: kept ones would be those
/// of a moment when something else may have run. Errors: those of
/// CpuDevice::measureLimits().
absl::StatusOr<std::optional<DeviceLimits>> hostLimits();

/// The flags of a compilation, as every verb that may compile takes them.
struct CompileFlags {
  CompileOptions options;
  std::string isa;                    ///< Levels, comma separated.
  std::string featureLayers;          ///< Numbers, comma separated.
  std::vector<std::string> overrides; ///< NAME=FILE each.
  bool referenceWeights = false;
  bool quiet = false;

  /// A verb that does more than compile names them in its footer() alone.
  enum class Help { Listed, Named };
  void addTo(CLI::App &command, Help help = Help::Named);

  /// For verbs that take no options of the runtime, which have it too.
  void addGpuIndexTo(CLI::App &command, Help help = Help::Named);

  /// Adds flags that show the passes' work, for verbs that always compile.
  void addReportsTo(CLI::App &command, Help help = Help::Named);

  /// The help text about flags that help does not list.
  std::string footer() const;

  /// The options that the flags say. Usage error for an unknown level, or an
  /// override that cannot be read.
  absl::StatusOr<CompileOptions> parse() const;

  /// Whether code of processors is not tuned for one that may be another.
  bool isForThisMachine() const;

  /// Usage error for a flag that was given and that the plan at `path`, which
  /// is compiled already, was not compiled with.
  absl::Status checkPlan(const std::string &path) const;

private:
  /// Every flag, with its name in CompileOptions::describe(); empty for what a
  /// plan does not record.
  std::vector<std::pair<const CLI::Option *, std::string>> given;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_LLAMAC_COMMANDS_H
