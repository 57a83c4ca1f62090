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
// terms, norms, softmax, cosines and sines are computed in fp64, values are
// kept in fp32.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_OPS_H
#define LLAMAC_COMPILER_REFERENCE_OPS_H

#include "compiler/reference/Parallel.h"
#include "compiler/reference/Value.h"
#include "compiler/reference/WeightStore.h"
#include "ir/kernel/Kernel.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <utility>

namespace llamac::reference {

/// One execution of one op. The verifier has checked types and attributes, and
/// the interpreter checks the shapes of results; what depends on the contents
/// of operands is checked by the op.
struct OpCall {
  mlir::Operation &op;
  /// In the order of the op's operands. One that nothing else refers to may be
  /// moved from.
  llvm::MutableArrayRef<ValuePtr> operands;
  WeightStore &weights;
  Parallel &parallel;
  /// Whose operands these are, and those of the op on each rank.
  int64_t rank = 0;
  llvm::ArrayRef<llvm::SmallVector<ValuePtr>> ofRanks = {};
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

  /// Adds the op's next result, or gives the error that it is.
  absl::Status give(Value value) {
    results.push_back(std::move(value));
    return absl::OkStatus();
  }
  template <typename T> absl::Status give(absl::StatusOr<T> value) {
    return value.ok() ? give(Value(*std::move(value))) : value.status();
  }

  /// Operand i of type T, without a copy when this is its last use.
  template <typename T> T take(unsigned i) {
    if (operands[i].use_count() == 1)
      return std::get<T>(std::move(*operands[i]));
    return std::get<T>(*operands[i]);
  }
};

/// A rough cost of exp, in floating-point operations.
inline constexpr double expCost = 20;

// A kernel op does what one or several llama ops do. Both call these, so that
// lowering changes no bit of the result.

/// The rows of `table` that `tokens` name: [tokens, columns]. Usage error for
/// a token outside the table. With `rank` the table is that rank's part, and
/// tokens of others give zeros.
absl::StatusOr<Tensor> embedRows(OpCall &call, const Indices &tokens,
                                 const Weight &table, const Indices *rank);

/// The sum of operand 0 of all ranks, in their order.
absl::StatusOr<Tensor> sumOfRanks(OpCall &call, int64_t ranks);

/// Operand 0 of all ranks, [rows, w] each, side by side.
absl::StatusOr<Tensor> columnsOfRanks(OpCall &call, int64_t ranks);

/// RMSNorm of the rows of x, or of each part of one that has the size of
/// `gains`.
absl::StatusOr<Tensor> normaliseRows(OpCall &call, const Tensor &x,
                                     const Weight &gains, double eps);

/// `rows` copies of `vector`.
absl::StatusOr<Tensor> repeatRow(OpCall &call, const Weight &vector,
                                 int64_t rows);

/// Adds `vector` to each row of x.
absl::Status addRow(OpCall &call, Tensor &x, const Weight &vector);

/// x [rows, k] times the transpose of weight [n, k]: [rows, n].
absl::StatusOr<Tensor> multiplyRows(OpCall &call, const Tensor &x,
                                    const Weight &weight);

/// Cosine and sine of positions[r] * frequencies[i]: [positions, frequencies,
/// 2].
Tensor cosSinTable(const Indices &positions,
                   mlir::DenseElementsAttr frequencies);

/// Rotates the pairs (2i, 2i + 1) of each head of x [rows, heads, size] by
/// `table`, cosines and sines, in place.
absl::Status rotateHeads(Tensor &x, const Tensor &table);

/// Causal attention of query [rows, heads, size] over the cache that is operand
/// 1, which holds the step's own rows; operands 2 and 3 are positions and
/// sequences. Query head j reads key/value head j / (heads / kv heads). The
/// result has the query's shape.
/// `window` is 0 where a row sees all keys up to its own, else how many of
/// them.
absl::StatusOr<Tensor> attend(OpCall &call, const Tensor &query,
                              const llvm::APFloat &scale, uint64_t window);

/// The largest error that an approximation may cause in attention.
struct ApproximationBound {
  std::vector<float> bounds; ///< Bounds of each element of the result.
  double dropped = 0;        ///< The largest share of a softmax outside top_k.
};

/// The bound of `op`, which has an approximation, with these operands.
ApproximationBound approximationBound(kernel::AttentionOp op,
                                      const Tensor &query, const KvState &kv,
                                      const Indices &positions,
                                      const Indices &sequences);

/// A function of one or two elements; a function of one ignores b.
using ScalarFn = float (*)(double a, double b);

/// The function that a scalar op, or the element-wise op of the graph that
/// becomes it, computes for each element; null for any other.
ScalarFn scalarFunction(mlir::Operation &op);

using OpFn = absl::Status (*)(OpCall &);

/// Computes `call`, of an op of class `Op`. Each op of the graph and each
/// launch has one, or it does not link.
template <typename Op> absl::Status compute(OpCall &call);

/// Computes an op of the graph that is a scalar op for each element.
absl::Status elementwise(OpCall &call);

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_OPS_H
