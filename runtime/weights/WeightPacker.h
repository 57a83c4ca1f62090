//===- WeightPacker.h - Weights in the layout kernels read ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_WEIGHTS_WEIGHTPACKER_H
#define LLAMAC_RUNTIME_WEIGHTS_WEIGHTPACKER_H

#include "runtime/io/WeightMap.h"
#include "runtime/plan/plan_generated.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

#include <functional>
#include <vector>

namespace llamac {

/// Gives rows [first, first + count) of a weight, row-major in its type; on any
/// thread.
using RowSource =
    std::function<absl::Status(int64_t first, int64_t count, uint8_t *out)>;

/// The rows of part `part` of `weight`, which is `source` of `weights` as a
/// whole. `weights` and `source` outlive the result.
RowSource rowsOfPart(const WeightMap &weights, const WeightSource &source,
                     const schema::WeightT &weight, int64_t part);

/// Packs a weight [rows, cols] by units that the layout keeps together.
class WeightPacker {
public:
  WeightPacker(RowSource source, DataType type, int64_t rows, int64_t cols,
               schema::WeightLayout layout);

  int64_t units() const { return (rows - 1) / unitRows + 1; }
  uint64_t unitBytes() const { return bytes; }

  /// Writes units [first, first + count) to `out`, unitBytes() each.
  absl::Status pack(int64_t first, int64_t count, uint8_t *out);

  /// pack() by `threads` threads.
  absl::Status packOnThreads(int threads, int64_t first, int64_t count,
                             uint8_t *out);

private:
  RowSource source;
  DataType type;
  int64_t rows;
  int64_t cols;
  schema::WeightLayout layout;
  int64_t unitRows = 1;
  uint64_t bytes = 0; ///< Bytes of a unit.
};

/// Copies `from` to `to`, of the same size, by `threads` threads.
void copyOnThreads(int threads, absl::Span<const uint8_t> from,
                   absl::Span<uint8_t> to);

} // namespace llamac

#endif // LLAMAC_RUNTIME_WEIGHTS_WEIGHTPACKER_H
