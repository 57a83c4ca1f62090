//===- WeightConverter.cpp - Weights in the form that kernels read --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/WeightConverter.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/PanelLayout.h"
#include "runtime/cpu/WeightPacking.h"
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
static absl::Status packPanels(const WeightMap &weights,
                               const WeightSource &source, DataType type,
                               int64_t first, int64_t count, uint8_t *out) {
  const int64_t firstRow = first * panelRows;
  const int64_t numRows =
      std::min<int64_t>(count * panelRows, source.rows - firstRow);
  std::vector<uint8_t> rows(numRows * dataTypeBytes(type, source.cols));
  LLAMAC_RETURN_IF_ERROR(
      convertRows(weights, source, type, firstRow, numRows, rows.data()));
  packRows(type, source.rows, source.cols, first, count, rows.data(), out);
  return absl::OkStatus();
}

absl::Status
packWeight(const WeightMap &weights, const WeightSource &source, DataType type,
           int threads,
           absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> sink) {
  // A round: every thread packs a share of a few MiB, then all are given on.
  constexpr uint64_t shareBytes = uint64_t{4} << 20;
  const uint64_t panelSize =
      panelBytes(static_cast<PanelFormat>(type), source.cols);
  const int64_t panels = panelCount(source.rows);
  const int64_t share =
      std::max<int64_t>(1, static_cast<int64_t>(shareBytes / panelSize));
  std::vector<uint8_t> buffer(threads * share * panelSize);
  for (int64_t round = 0; round < panels; round += threads * share) {
    std::vector<absl::Status> results(threads);
    auto packShare = [&](int thread) {
      const int64_t first = round + thread * share;
      const int64_t count = std::min(share, panels - first);
      if (count > 0)
        results[thread] =
            packPanels(weights, source, type, first, count,
                       buffer.data() + thread * share * panelSize);
    };
    std::vector<std::thread> team;
    for (int thread = 1; thread < threads; ++thread)
      team.emplace_back(packShare, thread);
    packShare(0);
    for (std::thread &member : team)
      member.join();
    for (const absl::Status &result : results)
      LLAMAC_RETURN_IF_ERROR(result);
    const int64_t packed = std::min<int64_t>(threads * share, panels - round);
    LLAMAC_RETURN_IF_ERROR(
        sink(absl::MakeConstSpan(buffer.data(), packed * panelSize)));
  }
  return absl::OkStatus();
}

} // namespace llamac
