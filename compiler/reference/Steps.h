//===- Steps.h - What ops of both dialects compute --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel op does what one or several llama ops do. Both call these, so that
// lowering changes no bit of the result.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_STEPS_H
#define LLAMAC_COMPILER_REFERENCE_STEPS_H

#include "compiler/reference/Ops.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "llvm/ADT/ArrayRef.h"

namespace llamac::reference {

/// The rows of `table` that `tokens` name: [tokens, columns]. Usage error for
/// a token outside the table.
absl::StatusOr<Tensor> embedRows(OpCall &call, const Indices &tokens,
                                 const Weight &table);

/// RMSNorm of each row of x [rows, width] with gains [width].
absl::StatusOr<Tensor> normaliseRows(OpCall &call, const Tensor &x,
                                     const Weight &gains, double eps);

/// x [rows, k] times the transpose of weight [n, k]: [rows, n].
absl::StatusOr<Tensor> multiplyRows(OpCall &call, const Tensor &x,
                                    const Weight &weight);

/// Cosine and sine of positions[r] * frequencies[i]: [positions,
/// frequencies, 2].
Tensor angleTable(const Indices &positions, llvm::ArrayRef<double> frequencies);

/// Turns the pairs (2i, 2i + 1) of each head of x [rows, heads, size] by the
/// angles of `table`, in place.
absl::Status turnHeads(Tensor &x, const Tensor &table);

/// Causal attention of query [rows, heads, size] over layer `layer` of `kv`,
/// which holds the step's own rows. Query head j reads key/value head
/// j / (heads / kv heads). The result has the query's shape.
absl::StatusOr<Tensor> attend(OpCall &call, const Tensor &query,
                              const KvState &kv, const Indices &positions,
                              const Indices &sequences, int64_t layer,
                              double scale);

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_STEPS_H
