//===- TuneCommand.h - Finds the best tiles for this machine ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TOOLS_TUNECOMMAND_H
#define LLAMAC_RUNTIME_TOOLS_TUNECOMMAND_H

#include "runtime/engine/Model.h"
#include "runtime/tune/Tuner.h"

#include "absl/functional/function_ref.h"

#include <cstdio>
#include <memory>
#include <string>

namespace llamac {

struct TuneCommandOptions {
  double budget = 60;        ///< Seconds.
  int64_t candidates = 6;    ///< Of a kernel in a turn, beside its own.
  int64_t turns = 4;         ///< At most.
  bool tilesOnly = false;    ///< Try no other ways to run a program.
  bool list = false;         ///< Print candidates, and do nothing else.
  bool explain = false;      ///< Print what is known of each kernel.
  std::string exportTo = {}; ///< A file.
  std::string importFrom = {};
  bool json = false; ///< Print what was measured as JSON.
  bool quiet = false;
};

/// Gives the model to tune, loaded without tunings; it is not loaded before it
/// is needed. Null when none was named.
using ModelSource =
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<const Model>>()>;

/// Imports, tunes or lists, and exports, as `options` say. `compiler` may be
/// null. Errors: usage for options that do not go together; those of
/// tuneModel() and of the files.
absl::Status tuneCommand(ModelSource load, const TuneCommandOptions &options,
                         VariantCompiler *compiler, std::FILE *out);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TOOLS_TUNECOMMAND_H
