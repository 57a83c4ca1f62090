//===- WeightConverter.cpp - Weights in the form that kernels read --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightConverter.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/WeightPacking.h"
#include "runtime/cuda/WeightPacking.h"
#include "runtime/io/Dequantize.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace llamac {

absl::Status convertRows(const WeightMap &weights, const WeightSource &source,
                         DataType type, int64_t firstRow, int64_t numRows,
                         uint8_t *out) {
  if (type == source.type)
    return weights.readRows(source, firstRow, numRows, out);
  std::vector<float> values(numRows * source.cols);
  LLAMAC_RETURN_IF_ERROR(
      weights.readRowsAsF32(source, firstRow, numRows, values.data()));
  const uint64_t rowBytes = dataTypeBytes(type, source.cols);
  for (int64_t row = 0; row < numRows; ++row)
    quantizeRow(type, values.data() + row * source.cols, source.cols,
                out + row * rowBytes);
  return absl::OkStatus();
}

/// Panels [first, first + count) of the weight, packed to `out`.
namespace {

/// Packs a weight by units that the layout keeps together.
class Packer {
public:
  Packer(const WeightMap &weights, const WeightSource &source, DataType type,
         schema::WeightLayout layout);

  int64_t units() const { return (source.rows - 1) / unitRows + 1; }
  uint64_t unitBytes() const { return bytes; }

  /// Writes units [first, first + count) to `out`, unitBytes() each.
  absl::Status pack(int64_t first, int64_t count, uint8_t *out);

  /// What comes behind the last unit.
  absl::Span<const uint8_t> tail() const { return behind; }

private:
  const WeightMap &weights;
  const WeightSource &source;
  DataType type;
  schema::WeightLayout layout;
  int64_t unitRows;
  uint64_t bytes;
  std::vector<uint8_t> behind; ///< Padding, then scales.
  int64_t scalesAt = 0;        ///< In `behind`.
};

} // namespace

Packer::Packer(const WeightMap &weights, const WeightSource &source,
               DataType type, schema::WeightLayout layout)
    : weights(weights), source(source), type(type), layout(layout),
      unitRows(layout == schema::WeightLayout::Panel16 ? panelRows : 1) {
  switch (layout) {
  case schema::WeightLayout::RowMajor:
    bytes = dataTypeBytes(type, source.cols);
    break;
  case schema::WeightLayout::Panel16:
    bytes = panelBytes(panelFormat(type), source.cols);
    break;
  case schema::WeightLayout::Planes: {
    const cuda::WeightFormat format = cuda::weightFormat(type);
    bytes = cuda::valueRowBytes(format, source.cols);
    const auto values = static_cast<int64_t>(source.rows * bytes);
    behind.resize(cuda::packedWeightBytes(format, source.rows, source.cols) -
                  values);
    scalesAt = cuda::scalesOffset(format, source.rows, source.cols) - values;
    break;
  }
  }
}

absl::Status Packer::pack(int64_t first, int64_t count, uint8_t *out) {
  const int64_t firstRow = first * unitRows;
  const int64_t numRows = std::min(count * unitRows, source.rows - firstRow);
  if (layout == schema::WeightLayout::RowMajor)
    return convertRows(weights, source, type, firstRow, numRows, out);
  std::vector<uint8_t> rows(numRows * dataTypeBytes(type, source.cols));
  LLAMAC_RETURN_IF_ERROR(
      convertRows(weights, source, type, firstRow, numRows, rows.data()));
  if (layout == schema::WeightLayout::Panel16)
    packRows(type, source.rows, source.cols, first, count, rows.data(), out);
  else
    cuda::packWeightRows(
        type, source.cols, numRows, rows.data(), out,
        behind.data() + scalesAt +
            firstRow *
                cuda::scaleRowBytes(cuda::weightFormat(type), source.cols));
  return absl::OkStatus();
}

absl::Status
packWeight(const WeightMap &weights, const WeightSource &source, DataType type,
           schema::WeightLayout layout, int threads,
           absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> sink) {
  Packer packer(weights, source, type, layout);
  // A round: every thread packs a share of a few MiB, then all are given on.
  constexpr uint64_t shareBytes = uint64_t{4} << 20;
  const uint64_t unitBytes = packer.unitBytes();
  const int64_t units = packer.units();
  const int64_t share =
      std::clamp<int64_t>(static_cast<int64_t>(shareBytes / unitBytes), 1,
                          (units - 1) / threads + 1);
  std::vector<uint8_t> buffer(threads * share * unitBytes);
  for (int64_t round = 0; round < units; round += threads * share) {
    std::vector<absl::Status> results(threads);
    auto packShare = [&](int thread) {
      const int64_t first = round + thread * share;
      const int64_t count = std::min(share, units - first);
      if (count > 0)
        results[thread] = packer.pack(
            first, count, buffer.data() + thread * share * unitBytes);
    };
    std::vector<std::thread> team;
    for (int thread = 1; thread < threads; ++thread)
      team.emplace_back(packShare, thread);
    packShare(0);
    for (std::thread &member : team)
      member.join();
    for (const absl::Status &result : results)
      LLAMAC_RETURN_IF_ERROR(result);
    const int64_t packed = std::min<int64_t>(threads * share, units - round);
    LLAMAC_RETURN_IF_ERROR(
        sink(absl::MakeConstSpan(buffer.data(), packed * unitBytes)));
  }
  return packer.tail().empty() ? absl::OkStatus() : sink(packer.tail());
}

} // namespace llamac
