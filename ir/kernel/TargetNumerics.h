//===- TargetNumerics.h - How exact a target's kernels are ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A check gives every launch of a target what the reference has for its
// operands and compares the results. What it must know of the target for that
// is here: the errors that kernels have by design, and how the KV cache holds
// its rows.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_KERNEL_TARGETNUMERICS_H
#define LLAMAC_IR_KERNEL_TARGETNUMERICS_H

#include "ir/kernel/Kernel.h"
#include "ir/llama/Llama.h"

#include "mlir/IR/Operation.h"

#include <cstdint>

namespace llamac::kernel {

class TargetNumerics {
public:
  virtual ~TargetNumerics() = default;

  /// The normalised mean squared error, sum (got - expected)^2 over
  /// sum expected^2, that the kernel of `op` may have in result number
  /// `result` when its operands are exact but for the cache's own rounding.
  virtual double tolerance(mlir::Operation *op, unsigned result) const = 0;

  /// The normalised mean squared error of keys and values in the cache.
  virtual double cacheTolerance() const = 0;

  /// Whether `value` is in a form that only the target's own kernels know, as
  /// the partial results of split-KV attention are.
  static bool isPrivate(mlir::Value value) {
    auto attention = value.getDefiningOp<AttentionOp>();
    return attention && attention.getType() != attention.getQuery().getType();
  }

  /// Reads the key and the value of token number `token` of a page of one
  /// layer's cache: `key` and `value` are f32 [heads * size].
  virtual void readKv(llama::KVType kv, const uint8_t *page, int64_t token,
                      float *key, float *value) const = 0;

  /// The reverse, rounded as the cache rounds.
  virtual void writeKv(llama::KVType kv, const float *key, const float *value,
                       int64_t token, uint8_t *page) const = 0;
};

} // namespace llamac::kernel

#endif // LLAMAC_IR_KERNEL_TARGETNUMERICS_H
