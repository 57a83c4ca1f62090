//===- WeightMap.h - Where the weights of a checkpoint lie ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A WeightMap names every weight of a checkpoint and says where its bytes lie.
// Nothing is copied: files are mapped, and rows are read on demand.
//
// Canonical names are Meta's without ".weight": tok_embeddings, norm, output,
// layers.N.{attention_norm,ffn_norm}, layers.N.attention.{wq,wk,wv,wo},
// layers.N.feed_forward.{w1,w2,w3}. Rows of wq and wk are seen in Meta's order
// (rotary pairs adjacent), whatever the file holds.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_WEIGHTMAP_H
#define LLAMAC_RUNTIME_IO_WEIGHTMAP_H

#include "runtime/base/DataType.h"
#include "runtime/io/MappedFile.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// Bytes [offset, offset + size) of file number `file` of the map.
struct FileExtent {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// Reads the rows of a matrix that its checkpoint does not store as an array of
/// a DataType: of a quantised one, whose scales are tensors of their own.
class RowDecoder {
public:
  virtual ~RowDecoder() = default;
  /// Writes all columns of the stored rows `rows` to `out` as `type`, the
  /// weight's: plain floats rounded, or blocks of the codes and scales as they
  /// are stored. May be called from several threads at once.
  virtual void readRows(DataType type, absl::Span<const int64_t> rows,
                        uint8_t *out) const = 0;
};

/// One weight: a matrix [rows, cols] in row-major order, or a vector (rows =
/// 1).
struct WeightSource {
  std::string name;   ///< Canonical name.
  std::string tensor; ///< The checkpoint's own name, for messages.
  DataType type = DataType::F32;
  int64_t rows = 0;
  int64_t cols = 0;
  /// The parts in order: one, or one for each tensor-parallel shard; each is
  /// contiguous and row-major, and its size says how many rows (or columns) of
  /// the whole it holds.
  std::vector<FileExtent> parts;
  /// The dimension that several parts partition: rows (0) or columns (1).
  int partsDim = 0;
  /// When not 0, each group of this many rows (a head), or elements of a
  /// vector, is stored with rotary pairs (i, i + h/2), Hugging Face's order;
  /// readers see (2i, 2i + 1).
  int64_t rotaryHalves = 0;
  /// Added to every element that is read as a number: 1 for gains that are
  /// stored less 1.
  float addend = 0;
  /// When set, the rows from `decoderRow` on of what it reads are the weight's.
  /// Then readers see rows of `type`, and `parts` are all that it reads.
  std::shared_ptr<const RowDecoder> decoder = nullptr;
  int64_t decoderRow = 0;
};

/// The row, of rows in Hugging Face's order, that is row `row` of Meta's: pair
/// i of a head of `headSize` rows is at rows i and i + h/2 of the head there,
/// and at 2i and 2i + 1 here.
int64_t rowOfHalves(int64_t row, int64_t headSize);

/// Columns [first, first + count) of a weight; by default all from `first` on.
struct ColumnRange {
  int64_t first = 0;
  std::optional<int64_t> count = std::nullopt;
};

/// The weights of one checkpoint and the files that hold them.
class WeightMap {
public:
  /// Adds a file; its number is the one extents use.
  uint32_t addFile(std::shared_ptr<MappedFile> file);

  /// Adds a weight. Errors: a duplicate name; parts that do not add up to
  /// rows x cols of the type; an extent past the end of its file; columns
  /// that are no multiple of the type's block.
  absl::Status add(WeightSource source);

  const std::vector<std::shared_ptr<MappedFile>> &files() const {
    return mappedFiles;
  }
  const std::vector<WeightSource> &weights() const { return sources; }

  /// The weight named `name`, or null.
  const WeightSource *find(absl::string_view name) const;

  /// Copies `columns` of rows [firstRow, firstRow + numRows) as they are
  /// stored, or rounded to the type that they are seen in, in Meta's row order,
  /// to `out` (numRows x dataTypeBytes(type, columns) bytes); of weights
  /// without an addend, and columns at borders of blocks.
  absl::Status readRows(const WeightSource &weight, int64_t firstRow,
                        int64_t numRows, uint8_t *out,
                        const ColumnRange &columns = {}) const;

  /// Reads rows as fp32: `out` holds numRows x columns values. All three may be
  /// called from several threads at once.
  absl::Status readRowsAsF32(const WeightSource &weight, int64_t firstRow,
                             int64_t numRows, float *out,
                             const ColumnRange &columns = {}) const;

  /// Reads rows as `type`: the stored bytes when it is the stored type, else
  /// converted through fp32 by quantizeRow, which writes it. NaN and infinity,
  /// which would spoil a block without a trace, are a bad-file error.
  absl::Status readRowsAs(const WeightSource &weight, DataType type,
                          int64_t firstRow, int64_t numRows, uint8_t *out,
                          const ColumnRange &columns = {}) const;

  /// fingerprintFiles (MappedFile.h) of all files of the map.
  absl::StatusOr<std::string> fingerprint() const;

private:
  absl::Status checkRead(const WeightSource &weight, int64_t firstRow,
                         int64_t numRows, const ColumnRange &columns) const;
  absl::Status copyDecodedRows(const WeightSource &weight, int64_t firstRow,
                               int64_t numRows, uint8_t *out,
                               const ColumnRange &columns) const;
  template <typename Visit>
  absl::Status visitRuns(const WeightSource &weight, int64_t firstRow,
                         int64_t numRows, const ColumnRange &columns,
                         Visit visit) const;

  std::vector<std::shared_ptr<MappedFile>> mappedFiles;
  std::vector<WeightSource> sources;
  absl::flat_hash_map<std::string, size_t> indices; ///< Name to source.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_WEIGHTMAP_H
