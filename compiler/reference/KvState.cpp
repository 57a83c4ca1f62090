//===- KvState.cpp - Keys and values of past positions --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Value.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>
#include <utility>

namespace llamac::reference {

std::vector<float> KvState::numbers() const {
  std::vector<float> numbers;
  for (const auto &[sequence, rows] : bySequence)
    for (const std::vector<float> *part : {&rows.keys, &rows.values})
      numbers.insert(numbers.end(), part->begin(), part->end());
  return numbers;
}

int64_t KvState::length(int32_t sequence) const {
  auto rows = bySequence.find(sequence);
  if (rows == bySequence.end())
    return 0;
  return static_cast<int64_t>(rows->second.keys.size()) / rowSize();
}

absl::Status KvState::checkAppend(absl::Span<const int32_t> positions,
                                  absl::Span<const int32_t> sequences) const {
  std::map<int32_t, int64_t> lengths;
  std::set<std::pair<int32_t, int32_t>> seen;
  for (size_t n = 0; n < positions.size(); ++n) {
    int32_t position = positions[n], sequence = sequences[n];
    int64_t &rows =
        lengths.try_emplace(sequence, length(sequence)).first->second;
    if (position < 0 || position > rows)
      return usageError(absl::StrCat("row ", n, ": expected a position in [0, ",
                                     rows, "] of sequence ", sequence, ", got ",
                                     position));
    if (!seen.insert({sequence, position}).second)
      return usageError(absl::StrCat("row ", n, ": position ", position,
                                     " of sequence ", sequence,
                                     " occurs twice in one step"));
    rows = std::max<int64_t>(rows, position + int64_t{1});
  }
  return absl::OkStatus();
}

void KvState::append(const float *keys, const float *values,
                     absl::Span<const int32_t> positions,
                     absl::Span<const int32_t> sequences) {
  const int64_t width = rowSize();
  auto write = [&](std::vector<float> &to, int64_t position,
                   const float *from) {
    uint64_t end = static_cast<uint64_t>((position + 1) * width);
    if (to.size() < end)
      to.resize(end);
    std::copy_n(from, width, to.data() + position * width);
  };
  for (size_t n = 0; n < positions.size(); ++n) {
    KvRows &sequence = bySequence[sequences[n]];
    write(sequence.keys, positions[n], keys + n * width);
    write(sequence.values, positions[n], values + n * width);
  }
}

} // namespace llamac::reference
