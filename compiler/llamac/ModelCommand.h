//===- ModelCommand.h - What every verb that runs a model has ---*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_LLAMAC_MODELCOMMAND_H
#define LLAMAC_COMPILER_LLAMAC_MODELCOMMAND_H

#include "compiler/llamac/Commands.h"
#include "runtime/engine/Model.h"

#include <memory>
#include <string>

namespace llamac {

struct ModelCommand {
  std::string model;
  CompileFlags compile;
  ModelOptions runtime;

  /// Adds a verb with the model as its first argument; the verb's own options
  /// follow, then those that such verbs have in common.
  CLI::App *addVerb(CLI::App &app, const char *name, const char *description,
                    bool isRequired = true);
  void addCommonOptions(CLI::App &verb, const std::string &examples);

  /// The plan that the flags name, or one that is compiled on the way, loaded.
  /// Usage error for flags that a plan was not compiled with.
  absl::StatusOr<std::shared_ptr<const Model>> load(bool quiet = false) const;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_LLAMAC_MODELCOMMAND_H
