//===- Quantization.h - Hugging Face's quantised matrices -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// quantization_config, or ModelOpt's hf_quant_config.json, says how a model's
// matrices are quantised. The elements of a matrix, its scales and its zero
// points are tensors of their own beside each other; here they become one
// matrix, whose rows are decoded as they are read.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_HUGGINGFACE_QUANTIZATION_H
#define LLAMAC_FRONTENDS_HUGGINGFACE_QUANTIZATION_H

#include "frontends/WeightTable.h"
#include "runtime/io/JsonReader.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <optional>
#include <string>

namespace llamac {

/// The meaning of the bits of an element.
enum class ElementCode { E4M3, E2M1, Int8, UInt4 };

/// Where the element of a row and column lies. UInt4 and E2M1 have 4 bits, the
/// lower ones first.
enum class ElementOrder {
  Rows,    ///< Row by row.
  Columns, ///< [columns / 8, rows] of words of eight elements of a column.
  Awq,     ///< [columns, rows / 8] of words of eight elements of a row.
};

/// A form of quantised matrices: an element is (code - zero) * scale.
struct QuantizedForm {
  ElementCode code;
  ElementOrder order;
  /// The last parts of the names of the tensors, "" where there are none.
  absl::string_view elements, scales, zeros;
  absl::string_view groups = ""; ///< The group of each column.
  absl::string_view factor = ""; ///< A factor of all scales.
  bool isDivisor = false;        ///< Whether scales are divided by the factor.
  int zero = 0;                  ///< The zero point, where there is no tensor.

  bool operator==(const QuantizedForm &) const = default;
};

struct Quantization {
  std::string name; ///< For people: "GPTQ with 4 bits, groups of 128".
  QuantizedForm form;
  /// The columns of a row that have one scale; 0: as many as the shape of the
  /// scales says.
  int64_t groupSize = 0;
  /// Rows and columns of a block that has one scale; 0 without blocks.
  int64_t blockRows = 0, blockColumns = 0;
  int addedToZeros = 0; ///< 1 where zero points are stored less 1.
  /// Whether groups are of columns apart, so that their tensor must be there.
  bool needsGroups = false;
};

/// Reads quantization_config of `root`, the config.json of `directory`, and
/// ModelOpt's hf_quant_config.json beside it; a plain model has neither.
/// Errors: a malformed object; unsupported, by name, a method, or a setting of
/// it, that is not known, and two files that disagree.
absl::StatusOr<std::optional<Quantization>>
readQuantization(const JsonObject &root, const std::string &directory,
                 Checkpoint &checkpoint);

/// Makes one matrix of the tensors of each that is quantised in `set`, whose
/// files `weights` has. Tensors that say how activations or the cache would be
/// quantised go. Errors: a tensor that is missing or of another shape or dtype,
/// a scale that is not above 0, a zero point or group out of range.
absl::Status joinQuantized(const Quantization &quantization,
                           const ModelConfig &config, const WeightMap &weights,
                           TensorSet &set);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_HUGGINGFACE_QUANTIZATION_H
