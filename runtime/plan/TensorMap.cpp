//===- TensorMap.cpp - A matrix that is copied by boxes -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/TensorMap.h"

#include "runtime/plan/PlanConfig.h"

#include "absl/strings/str_cat.h"

namespace llamac {

TensorMapShape shapeOf(const schema::TensorMap &map, const schema::PlanT &plan,
                       const schema::ProgramT &program,
                       const schema::LaunchT &launch) {
  const schema::Operand &operand = launch.operands[map.operand()];
  const uint64_t rowBytes = map.columns() * map.elementBytes();
  uint64_t rows = map.rows();
  if (rows == 0 && operand.kind() == schema::OperandKind::Kv && rowBytes != 0)
    rows = kvPoolBytes(*plan.kv, operand.index()) / rowBytes;
  else if (rows == 0)
    rows = static_cast<uint64_t>(maxRowsOf(launch, program));
  return {map.elementBytes(), map.columns(),    rows,
          rowBytes,           map.boxColumns(), map.boxRows(),
          map.swizzleBytes()};
}

std::string problemOf(const TensorMapShape &shape) {
  // Kernels name rows and columns by integers of 32 bits with a sign.
  constexpr uint64_t mostExtent = uint64_t{1} << 31;
  constexpr uint64_t mostRowBytes = uint64_t{1} << 40;
  constexpr uint32_t mostOfBox = 256;
  const uint64_t boxRowBytes = uint64_t{shape.boxColumns} * shape.elementBytes;
  if (shape.elementBytes != 2 && shape.elementBytes != 4 &&
      shape.elementBytes != 8)
    return absl::StrCat("elements of ", shape.elementBytes,
                        " bytes, expected 2, 4 or 8");
  if (shape.columns == 0 || shape.columns > mostExtent || shape.rows == 0 ||
      shape.rows > mostExtent)
    return absl::StrCat(shape.rows, " rows of ", shape.columns,
                        " elements, expected 1 to 2^31 of each");
  if (shape.rowBytes % 16 != 0 || shape.rowBytes >= mostRowBytes)
    return absl::StrCat("rows ", shape.rowBytes,
                        " bytes apart, expected a multiple of 16 below 2^40");
  if (shape.rowBytes < shape.columns * shape.elementBytes)
    return absl::StrCat("rows of ", shape.columns * shape.elementBytes,
                        " bytes that are ", shape.rowBytes, " bytes apart");
  if (shape.boxColumns == 0 || shape.boxColumns > mostOfBox ||
      shape.boxRows == 0 || shape.boxRows > mostOfBox)
    return absl::StrCat("boxes of ", shape.boxRows, " rows of ",
                        shape.boxColumns, " elements, expected 1 to ",
                        mostOfBox, " of each");
  if (boxRowBytes % 16 != 0)
    return absl::StrCat("boxes with rows of ", boxRowBytes,
                        " bytes, expected a multiple of 16");
  if (shape.swizzleBytes != 0 && shape.swizzleBytes != 32 &&
      shape.swizzleBytes != 64 && shape.swizzleBytes != 128)
    return absl::StrCat("a swizzle of ", shape.swizzleBytes,
                        " bytes, expected 0, 32, 64 or 128");
  if (shape.swizzleBytes != 0 && boxRowBytes != shape.swizzleBytes)
    return absl::StrCat("boxes with rows of ", boxRowBytes,
                        " bytes, expected the ", shape.swizzleBytes,
                        " of their swizzle");
  return "";
}

} // namespace llamac
