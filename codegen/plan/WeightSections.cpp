//===- WeightSections.cpp - Weights as sections of a plan -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/WeightSections.h"

#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/weights/WeightPacker.h"

#include <thread>

namespace llamac {

// Gives `callback` all of part `part` of `weight`, packedBytes() of it in
// order, packed by `threads` threads in pieces of a few MiB each. Errors: those
// of the reader and of `callback`.
static absl::Status packWeight(
    const WeightMap &weights, const WeightSource &source,
    const schema::WeightT &weight, int64_t part, int threads,
    absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> callback) {
  WeightPacker packer(rowsOfPart(weights, source, weight, part),
                      fromPlan(weight.type), weight.rows, weight.cols,
                      weight.layout);
  // A round: every thread packs a few MiB.
  constexpr uint64_t shareBytes = uint64_t{4} << 20;
  const uint64_t unitBytes = packer.unitBytes();
  const int64_t units = packer.units();
  const int64_t round = std::clamp<int64_t>(
      static_cast<int64_t>(threads * shareBytes / unitBytes), 1, units);
  std::vector<uint8_t> buffer(round * unitBytes);
  for (int64_t first = 0; first < units; first += round) {
    const int64_t count = std::min(round, units - first);
    LLAMAC_RETURN_IF_ERROR(
        packer.packOnThreads(threads, first, count, buffer.data()));
    LLAMAC_RETURN_IF_ERROR(
        callback(absl::MakeConstSpan(buffer.data(), count * unitBytes)));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t>
addWeightSection(PlanWriter &writer, const schema::WeightT &weight,
                 const WeightMap &weights, const WeightSource &source,
                 const std::function<void(uint64_t)> &onBytes) {
  const int threads =
      static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::optional<uint32_t> first;
  for (int64_t part = 0; part < weight.parts; ++part) {
    LLAMAC_ASSIGN_OR_RETURN(
        const uint32_t section,
        writer.addSection(SectionKind::Weight, [&](PlanWriter &out) {
          return packWeight(weights, source, weight, part, threads,
                            [&](absl::Span<const uint8_t> bytes) {
                              onBytes(bytes.size());
                              return out.append(bytes);
                            });
        }));
    first = first.value_or(section);
  }
  return *first;
}

} // namespace llamac
