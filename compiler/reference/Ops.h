//===- Ops.h - The mathematics of each op -----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table maps the name of an op to the function that computes it. The
// functions follow the formulas of LlamaOps.td and KernelOps.td; sums of many
// terms, norms, softmax and angles are computed in fp64, values are kept in
// fp32.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_OPS_H
#define LLAMAC_COMPILER_REFERENCE_OPS_H

#include "compiler/reference/Parallel.h"
#include "compiler/reference/Value.h"
#include "compiler/reference/WeightStore.h"

#include "absl/status/status.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace llamac::reference {

/// One execution of one op. The verifier has checked types and attributes, and
/// the interpreter checks the shapes of results; what depends on the contents
/// of operands is checked by the op.
struct OpCall {
  mlir::Operation &op;
  /// In the order of the op's operands. One that nobody else refers to may be
  /// taken apart.
  llvm::MutableArrayRef<ValuePtr> operands;
  WeightStore &weights;
  Parallel &parallel;
  /// Filled by the op, one for each of its results.
  llvm::SmallVector<Value, 2> results = {};

  const Tensor &tensor(unsigned i) const {
    return std::get<Tensor>(*operands[i]);
  }
  const Indices &indices(unsigned i) const {
    return std::get<Indices>(*operands[i]);
  }
  const Weight &weight(unsigned i) const {
    return std::get<Weight>(*operands[i]);
  }
  const KvState &kv(unsigned i) const {
    return std::get<KvState>(*operands[i]);
  }

  /// Operand i of type T, without a copy when this is its last use.
  template <typename T> T take(unsigned i) {
    if (operands[i].use_count() == 1)
      return std::get<T>(std::move(*operands[i]));
    return std::get<T>(*operands[i]);
  }
};

using OpFn = absl::Status (*)(OpCall &);

/// The op's name and the function that computes it.
struct OpEntry {
  llvm::StringRef name;
  OpFn compute;
};

/// Weights, rows and element-wise ops.
llvm::ArrayRef<OpEntry> rowOps();
/// Rotary embedding, KV state and attention.
llvm::ArrayRef<OpEntry> attentionOps();
/// Launches.
llvm::ArrayRef<OpEntry> kernelOps();

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_OPS_H
