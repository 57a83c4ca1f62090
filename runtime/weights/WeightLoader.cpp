//===- WeightLoader.cpp - Weights to where kernels read them --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightLoader.h"

#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/weights/RandomWeights.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac {

// The weight as the reader of checkpoints describes it.
static WeightSource sourceOf(const schema::WeightT &weight) {
  const schema::WeightSourceT &source = *weight.source;
  WeightSource out;
  out.name = weight.name;
  out.tensor = source.tensor;
  out.type = fromPlan(source.type);
  const MatrixShape whole = wholeShape(weight);
  out.rows = whole.rows;
  out.cols = whole.cols;
  for (const schema::SourceExtent &part : source.parts)
    out.parts.push_back({part.file(), part.offset(), part.size()});
  out.partsDim = source.partsDim;
  out.rotaryHalves = source.rotaryHalves;
  out.addend = source.addend;
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

bool hasWeights(const schema::PlanT &plan) {
  return plan.weights.empty() || plan.weights.front()->source ||
         plan.weights.front()->section >= 0;
}

namespace {

/// Brings weights to a device.
class Loader {
public:
  Loader(const PlanReader &plan, const WeightMap &checkpoint, Device &device,
         const WeightOptions &options)
      : plan(plan), checkpoint(checkpoint), device(device), options(options) {}

  absl::StatusOr<std::vector<std::unique_ptr<Buffer>>> load();

private:
  using Fill =
      absl::FunctionRef<absl::Status(uint64_t first, absl::Span<uint8_t> out)>;

  absl::StatusOr<std::unique_ptr<Buffer>>
  loadWeight(const schema::WeightT &weight);
  absl::Status copyEmbedded(const schema::WeightT &weight, Buffer &buffer);
  absl::StatusOr<RowSource> rowsOf(const schema::WeightT &weight) const;
  int64_t partOf(const schema::WeightT &weight) const {
    return llamac::partOf(weight, options.rank, plan.plan().ranks);
  }
  /// The packed bytes of the rank's part of an embedded weight.
  absl::Span<const uint8_t> embeddedBytes(const schema::WeightT &weight) const {
    return plan.bytes(static_cast<uint32_t>(weight.section + partOf(weight)));
  }
  absl::Status pack(const schema::WeightT &weight, Buffer &buffer);
  absl::Status send(Buffer &buffer, uint64_t offset, uint64_t bytes,
                    uint64_t unitBytes, Fill fill);

  const PlanReader &plan;
  const WeightMap &checkpoint; ///< Empty for a plan that refers to none.
  Device &device;
  WeightOptions options;
  std::unique_ptr<Upload> upload;
  uint64_t done = 0, total = 0;
};

} // namespace

// A few pieces are held at a time. Starting threads costs a hundredth of the
// time of a piece.
static constexpr uint64_t uploadPieceBytes = uint64_t{16} << 20;

/// Gives `fill` all of [offset, offset + bytes) of `buffer`, in pieces of whole
/// units; what it fills begins `first` behind `offset`.
absl::Status Loader::send(Buffer &buffer, uint64_t offset, uint64_t bytes,
                          uint64_t unitBytes, Fill fill) {
  const uint64_t most =
      std::max(uploadPieceBytes / unitBytes, uint64_t{1}) * unitBytes;
  for (uint64_t first = 0; first < bytes; first += most) {
    const uint64_t size = std::min(most, bytes - first);
    LLAMAC_ASSIGN_OR_RETURN(const absl::Span<uint8_t> piece,
                            upload->next(buffer, offset + first, size));
    LLAMAC_RETURN_IF_ERROR(fill(first, piece));
    LLAMAC_RETURN_IF_ERROR(upload->send());
    done += size;
    if (options.progress)
      options.progress->update("loading weights", done, total);
  }
  return absl::OkStatus();
}

absl::Status Loader::copyEmbedded(const schema::WeightT &weight,
                                  Buffer &buffer) {
  const absl::Span<const uint8_t> bytes = embeddedBytes(weight);
  return send(
      buffer, 0, bytes.size(), 1, [&](uint64_t first, absl::Span<uint8_t> out) {
        copyOnThreads(device.threads(), bytes.subspan(first, out.size()), out);
        return absl::OkStatus();
      });
}

static WeightPacker packerOf(const schema::WeightT &weight, RowSource rows) {
  return {std::move(rows), fromPlan(weight.type), weight.rows, weight.cols,
          weight.layout};
}

absl::StatusOr<RowSource> Loader::rowsOf(const schema::WeightT &weight) const {
  if (options.randomSeed)
    return randomRows(weight, partOf(weight), *options.randomSeed);
  return rowsOfPart(checkpoint, *checkpoint.find(weight.name), weight,
                    partOf(weight));
}

absl::Status Loader::pack(const schema::WeightT &weight, Buffer &buffer) {
  LLAMAC_ASSIGN_OR_RETURN(RowSource rows, rowsOf(weight));
  WeightPacker packer = packerOf(weight, std::move(rows));
  const uint64_t unitBytes = packer.unitBytes();
  const uint64_t bytes = static_cast<uint64_t>(packer.units()) * unitBytes;
  return send(buffer, 0, bytes, unitBytes,
              [&](uint64_t first, absl::Span<uint8_t> out) {
                return packer.packOnThreads(
                    device.threads(), static_cast<int64_t>(first / unitBytes),
                    static_cast<int64_t>(out.size() / unitBytes), out.data());
              });
}

absl::StatusOr<std::unique_ptr<Buffer>>
Loader::loadWeight(const schema::WeightT &weight) {
  const bool isEmbedded = weight.section >= 0 && !options.randomSeed;
  if (isEmbedded)
    if (auto shared = device.share(embeddedBytes(weight)))
      return shared;
  LLAMAC_ASSIGN_OR_RETURN(
      std::unique_ptr<Buffer> buffer,
      device.allocate(packedBytes(weight), MemoryUse::Filled));
  LLAMAC_RETURN_IF_ERROR(isEmbedded ? copyEmbedded(weight, *buffer)
                                    : pack(weight, *buffer));
  return buffer;
}

absl::StatusOr<std::vector<std::unique_ptr<Buffer>>> Loader::load() {
  // The rows that a layout keeps together are not cut.
  uint64_t largestUnit = 0;
  for (const auto &weight : plan.plan().weights) {
    total += packedBytes(*weight);
    largestUnit = std::max(largestUnit, packerOf(*weight, {}).unitBytes());
  }
  std::vector<std::unique_ptr<Buffer>> buffers;
  LLAMAC_ASSIGN_OR_RETURN(
      upload, device.newUpload(std::max(uploadPieceBytes, largestUnit)));
  for (const auto &weight : plan.plan().weights) {
    auto buffer = loadWeight(*weight);
    if (!buffer.ok())
      return withContext(buffer.status(),
                         absl::StrCat(plan.path(), ": weight ", weight->name));
    buffers.push_back(*std::move(buffer));
  }
  LLAMAC_RETURN_IF_ERROR(upload->finish());
  return buffers;
}

absl::StatusOr<std::vector<std::unique_ptr<Buffer>>>
loadWeights(const PlanReader &plan, Device &device,
            const WeightOptions &options) {
  WeightMap checkpoint;
  if (!options.randomSeed) {
    if (!hasWeights(plan.plan()))
      return usageError(absl::StrCat(
          plan.path(), ": the plan has no weights; use random ones by "
                       "--random-weights SEED"));
    LLAMAC_ASSIGN_OR_RETURN(checkpoint, openCheckpoint(plan));
  }
  return Loader(plan, checkpoint, device, options).load();
}

} // namespace llamac
