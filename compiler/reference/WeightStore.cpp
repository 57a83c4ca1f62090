//===- WeightStore.cpp - Weights as fp32 rows -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/WeightStore.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace llamac::reference {

/// Rows that one thread converts at a time.
static constexpr int64_t chunkRows = 64;

/// A key for a part of a weight, which differs by rank, or for all of it.
static std::string keyOf(const Weight &weight) {
  return absl::StrCat(weight.name, " ", weight.firstRow, " ", weight.firstCol);
}

absl::Status WeightStore::keep(const Weight &weight, Parallel &parallel) {
  const auto bytes = static_cast<uint64_t>(weight.rows) *
                     static_cast<uint64_t>(weight.cols) * sizeof(float);
  if (kept.contains(keyOf(weight)) || bytes > limitBytes - keptBytes)
    return absl::OkStatus();
  std::vector<float> data(bytes / sizeof(float));
  const int64_t chunks = (weight.rows + chunkRows - 1) / chunkRows;
  LLAMAC_RETURN_IF_ERROR(parallel.tryForEach(
      chunks, static_cast<double>(data.size()), [&](int64_t chunk) {
        int64_t first = chunk * chunkRows;
        int64_t count = std::min(chunkRows, weight.rows - first);
        return reader(weight, first, count, data.data() + first * weight.cols);
      }));
  keptBytes += bytes;
  kept.emplace(keyOf(weight), std::move(data));
  return absl::OkStatus();
}

absl::StatusOr<const float *>
WeightStore::rows(const Weight &weight, int64_t firstRow, int64_t numRows,
                  std::vector<float> &scratch) const {
  if (auto data = kept.find(keyOf(weight)); data != kept.end())
    return data->second.data() + firstRow * weight.cols;
  scratch.resize(static_cast<size_t>(numRows * weight.cols));
  LLAMAC_RETURN_IF_ERROR(reader(weight, firstRow, numRows, scratch.data()));
  return scratch.data();
}

} // namespace llamac::reference
