//===- HostileRounding.h - Sums of MMAs that round badly --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensor cores round the sums of MMAs as shim.h rounds scalars: which of two
// neighbours an inexact sum becomes depends on its operands and on the line.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_HOSTILEROUNDING_H
#define LLAMAC_SIMULATOR_HOSTILEROUNDING_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace llamac::sim {

/// `sum`, which is `before` and `depth` products of a[k] and b(k), or its
/// neighbour unless it is exact. Which of the two depends on `site` and on the
/// operands, but not on those of products that are 0: what a mask hides changes
/// no bit.
template <int depth, typename A, typename B>
float hostileSum(float sum, float before, const A &a, const B &b, int site) {
  double exact = before;
  uint32_t hash =
      (static_cast<uint32_t>(site) ^ std::bit_cast<uint32_t>(before)) *
      0x9e3779b1u;
  uint32_t place = 0x85ebca6bu;
  for (int k = 0; k < depth; ++k, place += 0xc2b2ae36u) {
    const float left = a[k], right = b(k);
    exact += double{left} * right;
    const uint32_t operands = std::bit_cast<uint32_t>(left) * 0x27d4eb2fu ^
                              std::bit_cast<uint32_t>(right);
    hash += left * right == 0 ? 0 : (operands ^ operands >> 15) * place;
  }
  const double error = sum - exact;
  if (sum == 0 || !std::isfinite(sum) || !(error < 0 || error > 0))
    return sum;
  hash ^= hash >> 16;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(sum) ^
                              (hash * 0x7feb352du >> 31));
}

} // namespace llamac::sim

#endif // LLAMAC_SIMULATOR_HOSTILEROUNDING_H
