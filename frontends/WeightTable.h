//===- WeightTable.h - The weights a Llama model has ---------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table for every format: the canonical name of each weight, its shape in
// terms of the configuration, and what Hugging Face and GGUF call it.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_WEIGHTTABLE_H
#define LLAMAC_FRONTENDS_WEIGHTTABLE_H

#include "runtime/base/ModelConfig.h"
#include "runtime/io/WeightMap.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llamac {

/// One weight as the configuration wants it.
struct ExpectedWeight {
  std::string name;     ///< Canonical.
  std::string metaName; ///< With ".weight", as the three below.
  std::string hfName;
  std::string ggufName;
  int64_t rows = 0; ///< 1 for a vector.
  int64_t cols = 0;
  bool isVector = false;
  bool isRotary = false; ///< wq and wk: rows come in rotary pairs.
};

/// All weights of a model with `config`, in the order of the mathematics; with
/// "output" also when the embeddings are tied.
std::vector<ExpectedWeight> expectedWeights(const ModelConfig &config);

/// A tensor of a checkpoint, whatever its format.
struct FoundTensor {
  std::string name;
  std::string file; ///< For messages.
  DataType type = DataType::F32;
  std::vector<uint64_t> shape; ///< Outermost size first.
  FileExtent extent;
};

/// "[4096, 1024]".
std::string shapeText(absl::Span<const uint64_t> shape);

/// `file:offset: "tensor": expected a shape of ..., got ...`.
absl::Status wrongShape(const FoundTensor &tensor,
                        const ExpectedWeight &expected);

/// The error for a tensor that `file` should hold.
absl::Status missingTensor(absl::string_view file, absl::string_view tensor,
                           const ExpectedWeight &expected);

/// The error for a tensor of no known meaning: computing without it would give
/// wrong results without a word.
absl::Status unknownTensor(const FoundTensor &tensor);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_WEIGHTTABLE_H
