//===- Value.h - What the reference computes with ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The run-time counterparts of the values of a llama graph.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_VALUE_H
#define LLAMAC_COMPILER_REFERENCE_VALUE_H

#include "runtime/base/DataType.h"

#include "absl/status/status.h"
#include "absl/types/span.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace llamac::reference {

/// An f32 tensor, row-major.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> data;

  Tensor() = default;
  explicit Tensor(std::vector<int64_t> dims)
      : shape(std::move(dims)), data(elements(shape)) {}

  static uint64_t elements(const std::vector<int64_t> &shape) {
    uint64_t count = 1;
    for (int64_t size : shape)
      count *= static_cast<uint64_t>(size);
    return count;
  }
};

/// An i32 tensor: tokens, positions, sequences, rows, or sampling params, four
/// words a row.
using Indices = std::vector<int32_t>;
inline constexpr int64_t samplingParamWords = 4;

/// A weight by its name; its rows are read where they are used. A vector is a
/// matrix of one row. `type` is what the IR says, which need not be what the
/// checkpoint holds.
struct Weight {
  std::string name;
  int64_t rows = 0;
  int64_t cols = 0;
  DataType type = DataType::F32;
  /// Where a rank's part begins in the whole.
  int64_t firstRow = 0;
  int64_t firstCol = 0;
};

/// The rows of one sequence in one layer, by position: [length, heads, size].
struct KvRows {
  std::vector<float> keys;
  std::vector<float> values;
};

/// The run-time form of !llama.kv: a map from (sequence, position) to a key and
/// a value row.
class KvState {
public:
  KvState(int64_t heads, int64_t size) : heads(heads), size(size) {}

  /// Floats in one row: heads x size.
  int64_t rowSize() const { return heads * size; }
  int64_t numHeads() const { return heads; }
  int64_t headSize() const { return size; }

  /// Rows by sequence, in ascending order.
  const std::map<int32_t, KvRows> &rows() const { return bySequence; }

  /// All numbers: for each sequence its keys, then its values.
  std::vector<float> numbers() const;

  /// Rows of `sequence`; between steps all layers hold as many.
  int64_t length(int32_t sequence) const;

  /// Checks that a step with these rows may be appended: no position leaves a
  /// hole in its sequence, and no (sequence, position) occurs twice.
  absl::Status checkAppend(absl::Span<const int32_t> positions,
                           absl::Span<const int32_t> sequences) const;

  /// Writes row n of `keys` and `values` (rowSize() floats each) to
  /// (sequences[n], positions[n]). The step has been checked.
  void append(const float *keys, const float *values,
              absl::Span<const int32_t> positions,
              absl::Span<const int32_t> sequences);

  /// Forgets all rows of `sequence`.
  void drop(int32_t sequence) { bySequence.erase(sequence); }

private:
  int64_t heads;
  int64_t size;
  std::map<int32_t, KvRows> bySequence;
};

using Value = std::variant<Tensor, Indices, Weight, KvState>;

/// Values are shared between the environment and the ops that use them; whoever
/// holds the only reference may take the contents.
using ValuePtr = std::shared_ptr<Value>;

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_VALUE_H
