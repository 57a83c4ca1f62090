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

KvState::KvState(int64_t layers, int64_t heads, int64_t size)
    : heads(heads), size(size), layers(layers) {
  for (std::shared_ptr<KvLayer> &layer : this->layers)
    layer = std::make_shared<KvLayer>();
}

KvLayer &KvState::ownLayer(int64_t index) {
  std::shared_ptr<KvLayer> &layer = layers[index];
  if (layer.use_count() > 1)
    layer = std::make_shared<KvLayer>(*layer);
  return *layer;
}

std::vector<float> KvState::numbers(int64_t layer) const {
  std::vector<float> numbers;
  for (const auto &[sequence, rows] : *layers[layer])
    for (const std::vector<float> *part : {&rows.keys, &rows.values})
      numbers.insert(numbers.end(), part->begin(), part->end());
  return numbers;
}

int64_t KvState::length(int64_t layer, int32_t sequence) const {
  auto rows = layers[layer]->find(sequence);
  if (rows == layers[layer]->end())
    return 0;
  return static_cast<int64_t>(rows->second.keys.size()) / rowSize();
}

absl::Status KvState::checkAppend(int64_t layer,
                                  absl::Span<const int32_t> positions,
                                  absl::Span<const int32_t> sequences) const {
  std::map<int32_t, int64_t> lengths;
  std::set<std::pair<int32_t, int32_t>> seen;
  for (size_t n = 0; n < positions.size(); ++n) {
    int32_t position = positions[n], sequence = sequences[n];
    int64_t &rows =
        lengths.try_emplace(sequence, length(layer, sequence)).first->second;
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

void KvState::append(int64_t layer, const float *keys, const float *values,
                     absl::Span<const int32_t> positions,
                     absl::Span<const int32_t> sequences) {
  KvLayer &rows = ownLayer(layer);
  const int64_t width = rowSize();
  auto write = [&](std::vector<float> &to, int64_t position,
                   const float *from) {
    uint64_t end = static_cast<uint64_t>((position + 1) * width);
    if (to.size() < end)
      to.resize(end);
    std::copy_n(from, width, to.data() + position * width);
  };
  for (size_t n = 0; n < positions.size(); ++n) {
    KvRows &sequence = rows[sequences[n]];
    write(sequence.keys, positions[n], keys + n * width);
    write(sequence.values, positions[n], values + n * width);
  }
}

void KvState::drop(int32_t sequence) {
  for (size_t i = 0; i < layers.size(); ++i)
    ownLayer(static_cast<int64_t>(i)).erase(sequence);
}

} // namespace llamac::reference
