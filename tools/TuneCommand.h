//===- TuneCommand.h - Finds the fastest configs for a machine --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_TUNECOMMAND_H
#define LLAMAC_TOOLS_TUNECOMMAND_H

#include "engine/tuner/Tuner.h"

#include "absl/functional/function_ref.h"

#include <cstdio>
#include <memory>
#include <string>

namespace llamac {

struct TuneCommandOptions {
  TuneOptions tune = {};     ///< The command sets its pointers.
  bool list = false;         ///< Print candidates, and do nothing else.
  bool explain = false;      ///< Print the entries of each kernel.
  std::string exportTo = {}; ///< A file.
  std::string importFrom = {};
  bool json = false; ///< Print what was measured as JSON.
  bool quiet = false;
};

/// Loads the model to tune without tunings, once it is needed. Null when none
/// was named.
using ModelSource =
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<const Model>>()>;

/// Imports, tunes or lists, and exports, as `options` say. `compiler` may be
/// null. Errors: usage for options that do not go together; those of
/// tuneModel(), of the user's TuningStore and of the files.
absl::Status tuneCommand(ModelSource load, const TuneCommandOptions &options,
                         const VariantCompiler *compiler, std::FILE *out);

} // namespace llamac

#endif // LLAMAC_TOOLS_TUNECOMMAND_H
