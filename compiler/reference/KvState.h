//===- KvState.h - Keys and values of past positions ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The run-time form of !llama.kv: for each layer a map from (sequence,
// position) to a key and a value row.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_KVSTATE_H
#define LLAMAC_COMPILER_REFERENCE_KVSTATE_H

#include "absl/status/status.h"
#include "absl/types/span.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace llamac::reference {

/// The rows of one sequence in one layer, by position: [length, heads, size].
struct KvRows {
  std::vector<float> keys;
  std::vector<float> values;
};

/// The rows of one layer by sequence, in ascending order.
using KvLayer = std::map<int32_t, KvRows>;

/// A value: copies share their layers until one of them appends.
class KvState {
public:
  KvState(int64_t layers, int64_t heads, int64_t size);

  /// Floats in one row: heads x size.
  int64_t rowSize() const { return heads * size; }
  int64_t numHeads() const { return heads; }
  int64_t headSize() const { return size; }

  const KvLayer &layer(int64_t index) const { return *layers[index]; }

  /// Rows of `sequence` in a layer; between steps all layers hold as many.
  int64_t length(int64_t layer, int32_t sequence) const;

  /// Checks that a step with these rows may be appended to a layer: no position
  /// leaves a hole in its sequence, and no (sequence, position) occurs twice.
  absl::Status checkAppend(int64_t layer, absl::Span<const int32_t> positions,
                           absl::Span<const int32_t> sequences) const;

  /// Writes row n of `keys` and `values` (rowSize() floats each) to
  /// (sequences[n], positions[n]) of a layer. The step has been checked.
  void append(int64_t layer, const float *keys, const float *values,
              absl::Span<const int32_t> positions,
              absl::Span<const int32_t> sequences);

  /// Forgets all rows of `sequence`.
  void drop(int32_t sequence);

private:
  /// The layer, owned by this state alone.
  KvLayer &ownLayer(int64_t index);

  int64_t heads;
  int64_t size;
  std::vector<std::shared_ptr<KvLayer>> layers;
};

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_KVSTATE_H
