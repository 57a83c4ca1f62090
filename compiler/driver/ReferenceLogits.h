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

#include "compiler/reference/ReferenceModel.h"
#include "frontends/Checkpoint.h"
#include "runtime/tools/LogitsCommand.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace llamac {

/// The logits that follow the last of `tokens`, or each of them: those behind
/// the first `seen` tokens of a sequence, the only one. Accuracy error when
/// they are not finite.
absl::StatusOr<std::vector<float>>
referenceStep(reference::ReferenceModel &model,
              absl::Span<const int32_t> tokens, int64_t seen,
              OutputRows outputs);

/// Rows of the weights of `checkpoint`, which must outlive the result; a
/// weight of another type than the checkpoint's is rounded to it first.
reference::WeightReader checkpointReader(const Checkpoint &checkpoint);

/// The checkpoint at `model`. Usage error for a plan: it has no graph.
absl::StatusOr<Checkpoint> openForReference(const std::string &model);

/// The graph of `checkpoint` as it is imported, with its matrices in
/// `weightFormat`. Usage error for a format that is none.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>>
referenceGraph(mlir::MLIRContext &context, const Checkpoint &checkpoint,
               const std::string &weightFormat);

/// logitsCommand of the checkpoint at `model` by the reference interpreter, on
/// referenceGraph().
absl::Status referenceLogits(const std::string &model,
                             const std::string &weightFormat,
                             const LogitsOptions &options);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_REFERENCELOGITS_H
