//===- ReferenceTarget.h - Commands on the reference ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// --target reference: the reference interpreter runs the graph as it was
// imported, but for the weights' format. It takes the checkpoint at `model`; a
// plan, which has no graph, is a usage error.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_REFERENCETARGET_H
#define LLAMAC_COMPILER_DRIVER_REFERENCETARGET_H

#include "compiler/driver/Compiler.h"
#include "compiler/reference/WeightStore.h"
#include "tools/LogitsCommand.h"
#include "tools/RunCommand.h"

#include "absl/status/status.h"

#include <string>

namespace llamac {

/// Rows of the weights of `checkpoint`, which must outlive the result; a
/// weight of another type than the checkpoint's is rounded to it first.
reference::WeightReader checkpointReader(const Checkpoint &checkpoint);

/// logitsCommand by the reference.
absl::Status referenceLogits(const std::string &model,
                             const CompileOptions &compile,
                             const LogitsOptions &options);

/// runCommand by the reference, with the context that `compile` gives.
absl::Status referenceRun(const std::string &model,
                          const CompileOptions &compile,
                          const RunOptions &options, std::FILE *out,
                          std::FILE *log);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_REFERENCETARGET_H
