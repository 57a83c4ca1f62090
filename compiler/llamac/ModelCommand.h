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

  void addTo(CLI::App &verb, bool isRequired = true);

  /// The plan that the flags name, or one that is compiled on the way, loaded.
  absl::StatusOr<std::shared_ptr<const Model>> load(bool quiet = false) const;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_LLAMAC_MODELCOMMAND_H
