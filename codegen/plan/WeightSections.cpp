//===- WeightSections.cpp - Weights as sections of a plan -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/WeightSections.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/WeightConverter.h"
#include "runtime/cpu/WeightPacking.h"
#include "runtime/plan/PlanConfig.h"

#include <thread>

namespace llamac {

uint64_t weightSectionBytes(const schema::WeightT &weight) {
  const DataType type = fromPlan(weight.type);
  if (weight.layout == schema::WeightLayout::RowMajor)
    return dataTypeBytes(type, weight.rows * weight.cols);
  return packedBytes(type, weight.rows, weight.cols);
}

absl::StatusOr<uint32_t>
addWeightSection(PlanWriter &writer, const schema::WeightT &weight,
                 const WeightMap &weights, const WeightSource &source,
                 const std::function<void(uint64_t)> &onBytes) {
  const DataType type = fromPlan(weight.type);
  const int threads =
      static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return writer.addSection(
      SectionKind::Weight, [&](PlanWriter &out) -> absl::Status {
        auto append = [&](absl::Span<const uint8_t> bytes) {
          onBytes(bytes.size());
          return out.append(bytes);
        };
        if (weight.layout == schema::WeightLayout::Panel16)
          return packWeight(weights, source, type, threads, append);
        std::vector<uint8_t> rows(weightSectionBytes(weight));
        LLAMAC_RETURN_IF_ERROR(
            convertRows(weights, source, type, 0, source.rows, rows.data()));
        return append(rows);
      });
}

} // namespace llamac
