//===- ReferenceLogits.h - Logits by the reference interpreter --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#ifndef LLAMAC_COMPILER_DRIVER_REFERENCELOGITS_H
#define LLAMAC_COMPILER_DRIVER_REFERENCELOGITS_H

#include "compiler/reference/WeightStore.h"
#include "frontends/Checkpoint.h"
#include "runtime/tools/LogitsCommand.h"

#include "absl/status/status.h"

#include <string>

namespace llamac {

/// Rows of the weights of `checkpoint`, which must outlive the result; a
/// weight of another type than the checkpoint's is rounded to it first.
reference::WeightReader checkpointReader(const Checkpoint &checkpoint);

/// logitsCommand of the checkpoint at `model` by the reference interpreter, on
/// the graph as it was imported but for the weights' format. Usage error for a
/// plan, which has no graph, and for a format that is none.
absl::Status referenceLogits(const std::string &model,
                             const std::string &weightFormat,
                             const LogitsOptions &options);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_REFERENCELOGITS_H
