//===- CheckedMath.h - Arithmetic on untrusted sizes ---------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes, counts and offsets read from a file are multiplied and added only by
// these functions, which say when a result leaves 64 bits.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_CHECKEDMATH_H
#define LLAMAC_RUNTIME_IO_CHECKEDMATH_H

#include "runtime/base/DataType.h"

#include "absl/types/span.h"

#include <cstdint>
#include <optional>

namespace llamac {

/// a + b, or nothing when it overflows.
inline std::optional<uint64_t> checkedAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    return std::nullopt;
  return sum;
}

/// a * b, or nothing when it overflows.
inline std::optional<uint64_t> checkedMul(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

/// The product of `sizes` (1 when empty), or nothing when it leaves int64_t.
inline std::optional<uint64_t>
checkedProduct(absl::Span<const uint64_t> sizes) {
  uint64_t product = 1;
  for (uint64_t size : sizes)
    if (size == 0)
      return 0;
  for (uint64_t size : sizes)
    if (__builtin_mul_overflow(product, size, &product) ||
        product > static_cast<uint64_t>(INT64_MAX))
      return std::nullopt;
  return product;
}

/// Bytes of `rows` rows of `cols` elements of `type`, or nothing when the
/// product overflows or `cols` is no multiple of the type's block.
inline std::optional<uint64_t> checkedTensorBytes(DataType type, uint64_t rows,
                                                  uint64_t cols) {
  const DataTypeInfo &info = dataTypeInfo(type);
  if (cols % info.blockElements != 0)
    return std::nullopt;
  std::optional<uint64_t> rowBytes =
      checkedMul(cols / info.blockElements, info.blockBytes);
  return rowBytes ? checkedMul(*rowBytes, rows) : std::nullopt;
}

/// Whether [offset, offset + size) lies in [0, limit).
inline bool isInside(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_CHECKEDMATH_H
