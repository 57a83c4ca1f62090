//===- WeightLoader.cpp - Weights to where kernels read them --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/WeightLoader.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

namespace llamac {

absl::StatusOr<std::vector<std::unique_ptr<Buffer>>>
loadWeights(const PlanReader &plan, Device &device) {
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (const auto &weight : plan.plan().weights) {
    if (weight->source)
      return unsupportedError(
          absl::StrCat(plan.path(), ": weight ", weight->name,
                       ": expected an embedded weight, got one that refers to ",
                       weight->source->tensor));
    LLAMAC_ASSIGN_OR_RETURN(
        buffers.emplace_back(),
        device.share(plan.bytes(static_cast<uint32_t>(weight->section))));
  }
  return buffers;
}

} // namespace llamac
