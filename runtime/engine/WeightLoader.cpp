//===- WeightLoader.cpp - Weights to where kernels read them --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/WeightLoader.h"

#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/weights/WeightConverter.h"

#include "absl/strings/str_cat.h"

namespace llamac {

// The weight as the reader of checkpoints describes it.
static WeightSource sourceOf(const schema::WeightT &weight) {
  const schema::WeightSourceT &source = *weight.source;
  WeightSource out;
  out.name = weight.name;
  out.tensor = source.tensor;
  out.type = fromPlan(source.type);
  out.rows = weight.rows;
  out.cols = weight.cols;
  for (const schema::SourceExtent &part : source.parts)
    out.parts.push_back({part.file(), part.offset(), part.size()});
  out.splitDim = source.splitDim;
  out.rotaryHalves = source.rotaryHalves;
  return out;
}

// The checkpoint that the plan's weights refer to; empty when all are embedded.
static absl::StatusOr<WeightMap> openCheckpoint(const PlanReader &plan) {
  WeightMap weights;
  LLAMAC_ASSIGN_OR_RETURN(const auto files, openSourceFiles(plan));
  for (const auto &file : files)
    weights.addFile(file);
  for (const auto &weight : plan.plan().weights) {
    if (!weight->source)
      continue;
    if (absl::Status status = weights.add(sourceOf(*weight)); !status.ok())
      return badPlanError(absl::StrCat(plan.path(), ": weight ", weight->name,
                                       ": ", status.message(),
                                       "; compile it again"));
  }
  return weights;
}

// Reads a weight of the checkpoint into memory of the device.
static absl::StatusOr<std::unique_ptr<Buffer>>
convertWeight(const schema::WeightT &weight, const WeightMap &checkpoint,
              Device &device) {
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                          device.allocateDense(packedBytes(weight)));
  uint64_t written = 0;
  LLAMAC_RETURN_IF_ERROR(packWeight(
      checkpoint, *checkpoint.find(weight.name), fromPlan(weight.type),
      weight.layout, device.threads(), [&](absl::Span<const uint8_t> bytes) {
        written += bytes.size();
        return device.write(*buffer, written - bytes.size(), bytes);
      }));
  return buffer;
}

absl::StatusOr<std::vector<std::unique_ptr<Buffer>>>
loadWeights(const PlanReader &plan, Device &device) {
  LLAMAC_ASSIGN_OR_RETURN(const WeightMap checkpoint, openCheckpoint(plan));
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (const auto &weight : plan.plan().weights) {
    auto buffer =
        weight->source
            ? convertWeight(*weight, checkpoint, device)
            : device.share(plan.bytes(static_cast<uint32_t>(weight->section)));
    if (!buffer.ok())
      return withContext(buffer.status(),
                         absl::StrCat(plan.path(), ": weight ", weight->name));
    buffers.push_back(*std::move(buffer));
  }
  return buffers;
}

} // namespace llamac
