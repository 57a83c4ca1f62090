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

#include "compiler/reference/KvState.h"
#include "runtime/base/DataType.h"

#include <cstdint>
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

/// An i32 tensor: tokens, positions, sequences, rows, or draws, four words a
/// row.
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
};

using Value = std::variant<Tensor, Indices, Weight, KvState>;

/// Values are shared between the environment and the ops that use them; whoever
/// holds the only reference may take the contents.
using ValuePtr = std::shared_ptr<Value>;

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_VALUE_H
