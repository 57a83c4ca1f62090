//===- ReferenceRun.h - llamac run on the reference -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_REFERENCERUN_H
#define LLAMAC_COMPILER_DRIVER_REFERENCERUN_H

#include "compiler/driver/Compiler.h"
#include "runtime/tools/RunCommand.h"

#include "absl/status/status.h"

#include <string>

namespace llamac {

/// runCommand of the checkpoint at `model` by the reference interpreter, on the
/// graph as it was imported but for the weights' format and the context that
/// `compile` gives. Usage error for a plan, which has no graph.
absl::Status referenceRun(const std::string &model,
                          const CompileOptions &compile,
                          const RunOptions &options, std::FILE *out,
                          std::FILE *log);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_REFERENCERUN_H
