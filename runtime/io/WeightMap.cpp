//===- WeightMap.cpp - Where the weights of a checkpoint lie --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading rows comes down to runs: stretches of stored rows that are contiguous
// in one part, and where they go in the output. visitRuns finds them; the two
// readers differ only in what they do with one. A weight that is whole, or
// partitioned by rows, and in Meta's order gives one run for each part; columns
// in several shards, rows in Hugging Face's order or some columns alone give
// one run a row and part. A decoder reads the rows of quantised matrices.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/WeightMap.h"

#include "runtime/base/Status.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/formats/FloatBits.h"
#include "runtime/io/CheckedMath.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

namespace llamac {

namespace {

// `elements` consecutive elements at `data`, of which row r (counted from the
// run's first) goes to row `row` + r, from column `col` on.
struct RowRun {
  const uint8_t *data;
  int64_t row;
  int64_t col;
  int64_t elements;
};

} // namespace

uint32_t WeightMap::addFile(std::shared_ptr<MappedFile> file) {
  mappedFiles.push_back(std::move(file));
  return static_cast<uint32_t>(mappedFiles.size() - 1);
}

absl::Status WeightMap::add(WeightSource source) {
  const auto fail = [&](absl::string_view message) {
    return badFileError(absl::StrCat(source.tensor, ": ", message));
  };
  if (indices.contains(source.name))
    return fail(absl::StrCat("expected one tensor for ", source.name,
                             ", got a second"));
  if (source.rows <= 0 || source.cols <= 0)
    return fail(absl::StrCat("shape: expected positive sizes, got [",
                             source.rows, ", ", source.cols, "]"));
  if (source.parts.empty() || source.partsDim < 0 || source.partsDim > 1)
    return fail("parts: expected at least one, of rows or columns");
  const int64_t rotated = source.rows == 1 ? source.cols : source.rows;
  if (source.rotaryHalves != 0 &&
      (source.rotaryHalves < 0 || source.rotaryHalves % 2 != 0 ||
       rotated % source.rotaryHalves != 0))
    return fail(absl::StrCat("rows: expected a multiple of an even head size, "
                             "got ",
                             rotated, " rows of heads of ",
                             source.rotaryHalves));
  if (source.rotaryHalves != 0 && source.rows == 1 &&
      isBlockFormat(source.type))
    return fail(absl::StrCat("type: expected f32, f16 or bf16 for a vector, "
                             "got ",
                             dataTypeName(source.type)));

  const DataTypeInfo &info = dataTypeInfo(source.type);
  if (source.cols % info.blockElements != 0)
    return fail(absl::StrCat("columns: expected a multiple of ",
                             info.blockElements, " for ", info.name, ", got ",
                             source.cols));
  const std::optional<uint64_t> bytes =
      checkedTensorBytes(source.type, static_cast<uint64_t>(source.rows),
                         static_cast<uint64_t>(source.cols));
  if (!bytes)
    return fail(absl::StrCat("shape: expected a size below 2^64 bytes, got [",
                             source.rows, ", ", source.cols, "]"));

  // A part of rows holds whole rows; a part of columns holds whole blocks of
  // each row.
  const uint64_t unit =
      source.partsDim == 0
          ? *bytes / static_cast<uint64_t>(source.rows)
          : static_cast<uint64_t>(source.rows) * info.blockBytes;
  uint64_t total = 0;
  for (const FileExtent &part : source.parts) {
    if (part.file >= mappedFiles.size())
      return fail(absl::StrCat("file: expected a number below ",
                               mappedFiles.size(), ", got ", part.file));
    LLAMAC_RETURN_IF_ERROR(withContext(
        mappedFiles[part.file]->slice(part.offset, part.size).status(),
        source.tensor));
    if (source.decoder)
      continue;
    if (part.size == 0 || part.size % unit != 0)
      return fail(absl::StrCat("part: expected a multiple of ", unit,
                               " bytes, got ", part.size));
    total += part.size;
  }
  if (!source.decoder && total != *bytes)
    return fail(absl::StrCat("size: expected ", *bytes, " bytes for ",
                             info.name, " [", source.rows, ", ", source.cols,
                             "], got ", total));
  indices.emplace(source.name, sources.size());
  sources.push_back(std::move(source));
  return absl::OkStatus();
}

const WeightSource *WeightMap::find(absl::string_view name) const {
  const auto found = indices.find(name);
  return found == indices.end() ? nullptr : &sources[found->second];
}

int64_t rowOfHalves(int64_t row, int64_t headSize) {
  const int64_t inHead = row % headSize;
  return row - inHead + inHead / 2 + (inHead % 2) * (headSize / 2);
}

// The stored row, or element of a vector, that is seen as `row`.
static int64_t storedRow(const WeightSource &weight, int64_t row) {
  return weight.rotaryHalves ? rowOfHalves(row, weight.rotaryHalves) : row;
}

static int64_t countOf(const WeightSource &weight, const ColumnRange &columns) {
  return columns.count.value_or(weight.cols - columns.first);
}

/// The columns of all blocks that `columns` meets.
static ColumnRange blocksAround(const WeightSource &weight,
                                const ColumnRange &columns) {
  const auto block =
      static_cast<int64_t>(dataTypeInfo(weight.type).blockElements);
  const int64_t end = columns.first + countOf(weight, columns);
  const int64_t first = columns.first / block * block;
  return {first, (end + block - 1) / block * block - first};
}

static absl::Status checkRange(const WeightSource &weight, int64_t firstRow,
                               int64_t numRows, const ColumnRange &columns) {
  const int64_t count = countOf(weight, columns);
  if (firstRow < 0 || numRows < 0 || firstRow > weight.rows - numRows)
    return internalError(absl::StrCat(weight.name, ": rows [", firstRow, ", +",
                                      numRows, ") of ", weight.rows));
  if (columns.first < 0 || count < 0 || columns.first > weight.cols - count)
    return internalError(absl::StrCat(weight.name, ": columns [", columns.first,
                                      ", +", count, ") of ", weight.cols));
  return absl::OkStatus();
}

/// Visits what is inside `columns` of `run`, which is of whole rows or of some
/// columns of one. The output has these columns alone.
template <typename Visit>
static void visitInside(const WeightSource &weight, const ColumnRange &columns,
                        const RowRun &run, Visit visit) {
  const int64_t count = countOf(weight, columns);
  if (count == weight.cols)
    return visit(run);
  const int64_t width = std::min(run.elements, weight.cols);
  const int64_t first = std::max(run.col, columns.first);
  const int64_t last = std::min(run.col + width, columns.first + count);
  for (int64_t r = 0; first < last && r * width < run.elements; ++r)
    visit(RowRun{run.data +
                     dataTypeBytes(weight.type, r * width + first - run.col),
                 run.row + r, first - columns.first, last - first});
}

/// Checks that the columns are at borders of blocks, and the files unchanged.
absl::Status WeightMap::checkRead(const WeightSource &weight, int64_t firstRow,
                                  int64_t numRows,
                                  const ColumnRange &columns) const {
  LLAMAC_RETURN_IF_ERROR(checkRange(weight, firstRow, numRows, columns));
  if (blocksAround(weight, columns).count != countOf(weight, columns))
    return internalError(absl::StrCat(weight.name, ": columns [", columns.first,
                                      ", +", countOf(weight, columns),
                                      ") are not at borders of blocks"));
  for (const FileExtent &part : weight.parts)
    LLAMAC_RETURN_IF_ERROR(mappedFiles[part.file]->checkUnchanged());
  return absl::OkStatus();
}

template <typename Visit>
absl::Status WeightMap::visitRuns(const WeightSource &weight, int64_t firstRow,
                                  int64_t numRows, const ColumnRange &columns,
                                  Visit visitPart) const {
  LLAMAC_RETURN_IF_ERROR(checkRead(weight, firstRow, numRows, columns));
  const auto visit = [&](const RowRun &run) {
    visitInside(weight, columns, run, visitPart);
  };
  const auto dataOf = [&](const FileExtent &part) {
    return mappedFiles[part.file]->data() + part.offset;
  };
  if (weight.partsDim == 1) {
    int64_t col = 0;
    for (const FileExtent &part : weight.parts) {
      const DataTypeInfo &info = dataTypeInfo(weight.type);
      const uint64_t rowBytes = part.size / static_cast<uint64_t>(weight.rows);
      const auto partCols =
          static_cast<int64_t>(rowBytes / info.blockBytes * info.blockElements);
      for (int64_t r = 0; r < numRows; ++r)
        visit(RowRun{dataOf(part) + storedRow(weight, firstRow + r) *
                                        static_cast<int64_t>(rowBytes),
                     r, col, partCols});
      col += partCols;
    }
    return absl::OkStatus();
  }

  if (weight.rows == 1 && weight.rotaryHalves != 0) {
    const auto elementBytes =
        static_cast<int64_t>(dataTypeBytes(weight.type, 1));
    for (int64_t i = 0; i < weight.cols && numRows == 1; ++i)
      visit(
          RowRun{dataOf(weight.parts[0]) + storedRow(weight, i) * elementBytes,
                 0, i, 1});
    return absl::OkStatus();
  }
  const auto rowBytes = static_cast<int64_t>(
      dataTypeBytes(weight.type, static_cast<uint64_t>(weight.cols)));
  for (int64_t r = 0; r < numRows;) {
    int64_t stored = storedRow(weight, firstRow + r);
    size_t part = 0;
    auto partRows = static_cast<int64_t>(weight.parts[0].size) / rowBytes;
    while (stored >= partRows) {
      stored -= partRows;
      partRows = static_cast<int64_t>(weight.parts[++part].size) / rowBytes;
    }
    const int64_t run =
        weight.rotaryHalves != 0 ? 1 : std::min(numRows - r, partRows - stored);
    visit(RowRun{dataOf(weight.parts[part]) + stored * rowBytes, r, 0,
                 run * weight.cols});
    r += run;
  }
  return absl::OkStatus();
}

absl::Status WeightMap::copyDecodedRows(const WeightSource &weight,
                                        int64_t firstRow, int64_t numRows,
                                        uint8_t *out,
                                        const ColumnRange &columns) const {
  LLAMAC_RETURN_IF_ERROR(checkRead(weight, firstRow, numRows, columns));
  std::vector<int64_t> decoded(numRows);
  for (int64_t row = 0; row < numRows; ++row)
    decoded[row] = weight.decoderRow + storedRow(weight, firstRow + row);

  const auto bytesOf = [&](int64_t elements) {
    return static_cast<int64_t>(
        dataTypeBytes(weight.type, static_cast<uint64_t>(elements)));
  };
  std::vector<uint8_t> rows(numRows * bytesOf(weight.cols));
  weight.decoder->readRows(weight.type, decoded, rows.data());
  for (int64_t row = 0; row < numRows; ++row)
    out = std::copy_n(rows.data() + row * bytesOf(weight.cols) +
                          bytesOf(columns.first),
                      bytesOf(countOf(weight, columns)), out);
  return absl::OkStatus();
}

absl::Status WeightMap::readRows(const WeightSource &weight, int64_t firstRow,
                                 int64_t numRows, uint8_t *out,
                                 const ColumnRange &columns) const {
  if (weight.addend != 0)
    return internalError(
        absl::StrCat(weight.name, ": stored less ", weight.addend));
  if (weight.decoder)
    return copyDecodedRows(weight, firstRow, numRows, out, columns);
  const uint64_t rowBytes = dataTypeBytes(
      weight.type, static_cast<uint64_t>(countOf(weight, columns)));
  return visitRuns(weight, firstRow, numRows, columns, [&](const RowRun &run) {
    uint8_t *to = out + static_cast<uint64_t>(run.row) * rowBytes +
                  dataTypeBytes(weight.type, static_cast<uint64_t>(run.col));
    std::memcpy(
        to, run.data,
        dataTypeBytes(weight.type, static_cast<uint64_t>(run.elements)));
  });
}

absl::Status WeightMap::readRowsAsF32(const WeightSource &weight,
                                      int64_t firstRow, int64_t numRows,
                                      float *out,
                                      const ColumnRange &columns) const {
  LLAMAC_RETURN_IF_ERROR(checkRange(weight, firstRow, numRows, columns));
  const int64_t count = countOf(weight, columns);
  if (const ColumnRange blocks = blocksAround(weight, columns);
      blocks.count != count) {
    std::vector<float> values(numRows * *blocks.count);
    LLAMAC_RETURN_IF_ERROR(
        readRowsAsF32(weight, firstRow, numRows, values.data(), blocks));
    for (int64_t row = 0; row < numRows; ++row)
      std::copy_n(values.data() + row * *blocks.count + columns.first -
                      blocks.first,
                  count, out + row * count);
    return absl::OkStatus();
  }
  if (weight.decoder) {
    std::vector<uint8_t> rows(numRows * dataTypeBytes(weight.type, count));
    LLAMAC_RETURN_IF_ERROR(
        copyDecodedRows(weight, firstRow, numRows, rows.data(), columns));
    dequantizeRow(weight.type, rows.data(), numRows * count, out);
    return absl::OkStatus();
  }
  return visitRuns(weight, firstRow, numRows, columns, [&](const RowRun &run) {
    float *to = out + run.row * count + run.col;
    dequantizeRow(weight.type, run.data, run.elements, to);
    if (weight.addend != 0)
      for (int64_t i = 0; i < run.elements; ++i)
        to[i] += weight.addend;
  });
}

absl::Status WeightMap::readRowsAs(const WeightSource &weight, DataType type,
                                   int64_t firstRow, int64_t numRows,
                                   uint8_t *out,
                                   const ColumnRange &columns) const {
  if (type == weight.type && weight.addend == 0)
    return readRows(weight, firstRow, numRows, out, columns);
  LLAMAC_RETURN_IF_ERROR(checkRange(weight, firstRow, numRows, columns));
  const int64_t count = countOf(weight, columns);
  std::vector<float> values(numRows * count);
  LLAMAC_RETURN_IF_ERROR(
      readRowsAsF32(weight, firstRow, numRows, values.data(), columns));
  if (isBlockFormat(type) && !allFinite(values)) {
    const auto bad = std::find_if_not(values.begin(), values.end(), isFinite);
    const int64_t at = bad - values.begin();
    return badFileError(absl::StrCat(
        weight.tensor, ": row ", firstRow + at / count, ", column ",
        columns.first + at % count, ": expected a finite number to bring to ",
        dataTypeName(type), ", got ", *bad));
  }
  quantizeRow(type, values.data(), static_cast<int64_t>(values.size()), out);
  return absl::OkStatus();
}

absl::StatusOr<std::string> WeightMap::fingerprint() const {
  return fingerprintFiles(mappedFiles);
}

} // namespace llamac
