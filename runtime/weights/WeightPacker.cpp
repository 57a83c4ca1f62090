//===- WeightPacker.cpp - Weights in the layout kernels read --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightPacker.h"

#include "runtime/base/Status.h"
#include "runtime/packing/PanelPacking.h"
#include "runtime/packing/TilePacking.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/threads/ParallelFor.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace llamac {

RowSource rowsOfPart(const WeightMap &weights, const WeightSource &source,
                     const schema::WeightT &weight, int64_t part) {
  return [&weights, &source, type = fromPlan(weight.type),
          origin = originOf(weight, part),
          cols = weight.cols](int64_t first, int64_t count, uint8_t *out) {
    return weights.readRowsAs(source, type, origin.row + first, count, out,
                              {origin.col, cols});
  };
}

WeightPacker::WeightPacker(RowSource source, DataType type, int64_t rows,
                           int64_t cols, schema::WeightLayout layout)
    : source(std::move(source)), type(type), rows(rows), cols(cols),
      layout(layout) {
  switch (layout) {
  case schema::WeightLayout::RowMajor:
    bytes = dataTypeBytes(type, cols);
    break;
  case schema::WeightLayout::Panel16:
    unitRows = panelRows;
    bytes = panelBytes(panelFormat(type), cols);
    break;
  case schema::WeightLayout::Tiles:
    unitRows = cuda::unitRows(cuda::weightFormat(type));
    bytes = cuda::unitBytes(cuda::weightFormat(type), cols);
    break;
  }
}

absl::Status WeightPacker::pack(int64_t first, int64_t count, uint8_t *out) {
  const int64_t firstRow = first * unitRows;
  const int64_t numRows = std::min(count * unitRows, rows - firstRow);
  if (layout == schema::WeightLayout::RowMajor)
    return source(firstRow, numRows, out);
  std::vector<uint8_t> stored(numRows * dataTypeBytes(type, cols));
  LLAMAC_RETURN_IF_ERROR(source(firstRow, numRows, stored.data()));
  if (layout == schema::WeightLayout::Panel16)
    packRows(type, rows, cols, first, count, stored.data(), out);
  else
    cuda::packWeight(type, cols, numRows, stored.data(), out);
  return absl::OkStatus();
}

/// Calls `work` on a partition of [0, count), in parts of at most `share`, by
/// `threads` threads.
static void
partition(int threads, int64_t count, int64_t share,
          absl::FunctionRef<void(int64_t first, int64_t count)> work) {
  const int64_t parts = count == 0 ? 0 : (count - 1) / share + 1;
  parallelFor(threads, static_cast<size_t>(parts), [&](size_t part) {
    const int64_t first = static_cast<int64_t>(part) * share;
    work(first, std::min(share, count - first));
  });
}

absl::Status WeightPacker::packOnThreads(int threads, int64_t first,
                                         int64_t count, uint8_t *out) {
  // A thread takes as much at a time as its cache holds.
  constexpr uint64_t shareBytes = uint64_t{1} << 20;
  const auto share =
      std::max<int64_t>(1, static_cast<int64_t>(shareBytes / bytes));
  std::mutex mutex;
  absl::Status result;
  partition(threads, count, share, [&](int64_t part, int64_t size) {
    const absl::Status status = pack(first + part, size, out + part * bytes);
    const std::lock_guard<std::mutex> lock(mutex);
    result.Update(status);
  });
  return result;
}

void copyOnThreads(int threads, absl::Span<const uint8_t> from,
                   absl::Span<uint8_t> to) {
  constexpr int64_t share = int64_t{1} << 20;
  partition(threads, static_cast<int64_t>(from.size()), share,
            [&](int64_t first, int64_t count) {
              std::memcpy(to.data() + first, from.data() + first, count);
            });
}

} // namespace llamac
