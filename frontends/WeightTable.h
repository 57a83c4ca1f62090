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

#include "frontends/Checkpoint.h"
#include "frontends/TensorFiles.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llamac {

/// One weight as the configuration says.
struct ExpectedWeight {
  std::string name;     ///< Canonical.
  std::string metaName; ///< With ".weight", as the three below.
  std::string hfName;
  std::string ggufName;
  int64_t rows = 0; ///< 1 for a vector.
  int64_t cols = 0;
  bool isVector = false;
  bool isRotary = false; ///< Rows, or elements of a vector, are rotary pairs.
  bool isNorm = false;   ///< The gain of a norm.
};

/// All weights of a model with `config`, in the order of the mathematics; with
/// "output" also when the embeddings are tied.
std::vector<ExpectedWeight> expectedWeights(const ModelConfig &config);

/// "[4096, 1024]".
std::string shapeText(absl::Span<const uint64_t> shape);

/// A tensor of a checkpoint, whatever its format.
struct FoundTensor : StoredTensor {
  std::string file; ///< For messages.
  uint32_t fileNumber = 0;
  /// The decoder of a quantised matrix, as WeightSource has it, and all extents
  /// that it reads.
  std::shared_ptr<const RowDecoder> decoder = nullptr;
  int64_t decoderRow = 0;
  std::vector<FileExtent> extents = {};
};

/// The tensors of one shard of a checkpoint.
struct TensorSet {
  std::string path; ///< The file or directory, for messages.
  absl::flat_hash_map<std::string, FoundTensor> tensors = {};
};

/// Adds what `read` finds in the file at `path` to `set`, and the file to
/// `weights`.
absl::Status addTensorFile(
    const std::string &path,
    absl::StatusOr<std::vector<StoredTensor>> (*read)(const MappedFile &file),
    WeightMap &weights, TensorSet &set);

/// One tensor's parts, by shard.
using TensorParts = std::vector<const FoundTensor *>;

/// The parts of the tensor `name`; an error where one is missing or has not as
/// many sizes as `expected`.
absl::StatusOr<TensorParts> findParts(absl::Span<const TensorSet> shards,
                                      absl::string_view name,
                                      const ExpectedWeight &expected);

/// How a checkpoint has its weights.
struct StoredForm {
  std::string ExpectedWeight::*name;
  bool rotaryHalves = false; ///< Rotary pairs are (i, i + h/2) of a head.
  /// wq, wk and wv are one tensor, and so are w1 and w3.
  bool fused = false;
  bool shiftedNorms = false; ///< Gains of norms are stored less 1.
};

/// A tensor of a file: its name, and the weights that it holds one behind the
/// other.
struct TensorOfWeights {
  std::string name;
  std::vector<const ExpectedWeight *> weights;
};

/// The tensors that hold `expected`, which outlives them, in the form `form`.
std::vector<TensorOfWeights>
tensorsOf(absl::Span<const ExpectedWeight> expected, const StoredForm &form);

/// Makes the weights of `checkpoint`, whose configuration is known, out of
/// `shards`, which have them in `form`; no "output" when the embeddings are
/// tied. The shapes of a matrix's parts say how they partition it. Errors: a
/// weight that is missing, has another shape or differs in type between shards;
/// unsupported, a tensor of no known meaning, without which the results could
/// be wrong.
absl::Status addWeights(std::vector<TensorSet> &shards, const StoredForm &form,
                        Checkpoint &checkpoint);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_WEIGHTTABLE_H
