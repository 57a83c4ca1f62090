//===- SimTensorMap.cpp - Tensor maps of the simulator --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/sim/SimTensorMap.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

namespace llamac {

absl::Status encodeSimTensorMap(const void *base, const TensorMapShape &shape,
                                SimTensorMap &map) {
  std::string problem = problemOf(shape);
  if (problem.empty() && reinterpret_cast<uintptr_t>(base) % 16 != 0)
    problem = "a matrix that is not 16-byte aligned";
  if (!problem.empty())
    return usageError(absl::StrCat("a tensor map: ", problem));
  map = {};
  map.mark = SimTensorMap::made;
  map.base = static_cast<const std::byte *>(base);
  map.shape = shape;
  return absl::OkStatus();
}

} // namespace llamac
