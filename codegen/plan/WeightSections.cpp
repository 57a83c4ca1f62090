//===- WeightSections.cpp - Weights as sections of a plan -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/WeightSections.h"

#include "runtime/plan/PlanConfig.h"
#include "runtime/weights/WeightConverter.h"

#include <thread>

namespace llamac {

absl::StatusOr<uint32_t>
addWeightSection(PlanWriter &writer, const schema::WeightT &weight,
                 const WeightMap &weights, const WeightSource &source,
                 const std::function<void(uint64_t)> &onBytes) {
  const int threads =
      static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return writer.addSection(SectionKind::Weight, [&](PlanWriter &out) {
    return packWeight(weights, source, fromPlan(weight.type), weight.layout,
                      threads, [&](absl::Span<const uint8_t> bytes) {
                        onBytes(bytes.size());
                        return out.append(bytes);
                      });
  });
}

} // namespace llamac
