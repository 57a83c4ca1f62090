//===- Cost.h - Bytes and arithmetic of a launch ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The least that a kernel op must move and compute, from its types alone. Every
// operand counts as read once a launch and every result as written once, so a
// target that reads a weight again for each block of rows moves more, and one
// that finds activations in its caches reads less from memory.
//
// A multiply-add is two operations. Addition, multiplication, division, the
// larger of two, exponential, sine, cosine and square root are one each.
// Dequantising weights is not counted.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_KERNEL_COST_H
#define LLAMAC_IR_KERNEL_COST_H

#include "mlir/IR/Operation.h"

#include <cstdint>

namespace llamac::kernel {

class Target;

/// The step that a cost is for: `rows` consecutive rows of one sequence, of
/// which the last is at position `context` - 1. So row r of them attends to
/// `context` - `rows` + r + 1 keys.
struct CostStep {
  static constexpr int64_t usualContext = 512;

  int64_t rows = 1;    ///< Rows of the launch.
  int64_t context = 1; ///< At least `rows`.
  /// Tokens that all splits of split-KV attention cover together; of a shorter
  /// context only its share of the partial results is written. 0: all are.
  int64_t splitContext = 0;
  /// Bytes of one layer's cache, keys and values, that a token takes.
  int64_t kvTokenBytes = 0;
  /// Whose kernels read the weights; null: as they are stored.
  const Target *target = nullptr;

  /// Bytes of a weight of `type`, a tensor of a static shape.
  int64_t weightBytes(mlir::Type type) const;
};

struct Cost {
  int64_t weightBytes = 0; ///< Read, norm weights included.
  int64_t inputBytes = 0;  ///< Activations and indices, read.
  int64_t outputBytes = 0; ///< Activations, written.
  int64_t kvReadBytes = 0;
  int64_t kvWrittenBytes = 0;
  int64_t flops = 0;

  int64_t bytes() const {
    return weightBytes + inputBytes + outputBytes + kvReadBytes +
           kvWrittenBytes;
  }
  /// Operations for each byte; 0 when nothing is moved.
  double intensity() const {
    return bytes() ? static_cast<double>(flops) / static_cast<double>(bytes())
                   : 0;
  }

  bool operator==(const Cost &) const = default;
};

/// Bytes of a weight of `type`, a tensor of a static shape, as it is stored.
int64_t weightBytes(mlir::Type type);

} // namespace llamac::kernel

#endif // LLAMAC_IR_KERNEL_COST_H
