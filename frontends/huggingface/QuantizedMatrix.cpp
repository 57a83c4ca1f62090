//===- QuantizedMatrix.cpp - Matrices of elements, scales and zeros -------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that is read is checked when a model is opened: shapes, scales,
// zero points and groups. Decoding a row then cannot fail.
//
// Layouts, with G groups of columns, as the libraries that write them have
// them; a word is 32 bits, little endian, of eight elements from the lowest
// bits on:
//   elements  Rows: [rows, columns]; Columns: words [columns / 8, rows];
//             Awq: words [columns, rows / 8], in the order of awqPlaces
//   scales    a number; [rows] or [rows, 1]; [rows, G]; a number a block; of
//             Columns and Awq [G, rows]
//   zeros     words [G, rows / 8] of Columns and Awq (as their elements); of
//             rows words [ceil(rows / 8), G], or bytes of the scales' shape
//   groups    32 bits a column
//
//===----------------------------------------------------------------------===//

#include "frontends/huggingface/Quantization.h"
#include "runtime/base/CodeBooks.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/formats/FloatBits.h"
#include "runtime/formats/Fp8.h"
#include "runtime/io/Malformed.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace llamac {

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// The places in its word of eight elements that AWQ writes side by side.
static constexpr int awqPlaces[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/// The columns of a block of the formats that keep quantised matrices.
static constexpr int64_t blockColumns = 32;

/// The 4 bits of element `place` of word `word` at `words`.
static int nibble(const uint8_t *words, int64_t word, int64_t place) {
  return words[4 * word + place / 2] >> 4 * (place % 2) & 15;
}

namespace {

enum class ScaleType { F32, F16, BF16, E4M3, E8M0 };
enum class ZeroLayout { None, Columns, Awq, Words, Bytes };

class QuantizedRows final : public RowDecoder {
public:
  QuantizedForm form;
  int64_t rows = 0, columns = 0;
  const uint8_t *elements = nullptr;
  std::array<float, 256> values = {}; ///< The number that bits stand for.

  ScaleType scaleType = ScaleType::F32;
  const uint8_t *scales = nullptr;
  int64_t scaleCount = 1;
  int64_t groupSize = 0; ///< Columns of a group.
  int64_t rowsOfScale = 1, rowStride = 0, groupStride = 0;
  float factor = 1;

  ZeroLayout zeroLayout = ZeroLayout::None;
  const uint8_t *zeros = nullptr;
  int zeroBias = 0; ///< Added to zero points as they are stored.
  const uint8_t *groups = nullptr;
  /// The files that hold what the pointers above point to.
  std::vector<std::shared_ptr<const MappedFile>> files;

  int64_t groupCount() const { return columns / groupSize; }

  /// The block format that keeps codes and scales as they are; an error that
  /// says why there is none. Of Q4_1 the minimum, -zero x scale, is rounded to
  /// f16, as the elements would be, and of FP8 the scale.
  absl::StatusOr<DataType> keptType() const;

  float scaleAt(int64_t index) const {
    const auto read = [&](auto bits) {
      std::memcpy(&bits, scales + index * sizeof(bits), sizeof(bits));
      return bits;
    };
    switch (scaleType) {
    case ScaleType::F32:
      return read(float());
    case ScaleType::F16:
      return f16ToF32(read(uint16_t()));
    case ScaleType::BF16:
      return bf16ToF32(read(uint16_t()));
    case ScaleType::E4M3:
      return e4m3ToF32(scales[index]);
    case ScaleType::E8M0:
      return e8m0ToF32(scales[index]);
    }
    return 0;
  }

  int zeroAt(int64_t row, int64_t group) const {
    switch (zeroLayout) {
    case ZeroLayout::None:
      return zeroBias;
    case ZeroLayout::Columns:
      return zeroBias + nibble(zeros, group * (rows / 8) + row / 8, row % 8);
    case ZeroLayout::Awq:
      return zeroBias +
             nibble(zeros, group * (rows / 8) + row / 8, awqPlaces[row % 8]);
    case ZeroLayout::Words:
      return zeroBias + nibble(zeros, row / 8 * groupCount() + group, row % 8);
    case ZeroLayout::Bytes:
      return zeroBias +
             static_cast<int8_t>(zeros[row * rowStride + group * groupStride]);
    }
    return 0;
  }

  int64_t groupOf(int64_t column) const {
    if (!groups)
      return column / groupSize;
    int32_t group;
    std::memcpy(&group, groups + 4 * column, 4);
    return group;
  }

  void readRows(DataType type, absl::Span<const int64_t> wanted,
                uint8_t *out) const override {
    std::vector<float> values(columns);
    for (const int64_t row : wanted) {
      withBits(row, [&](auto bitsAt) {
        if (isBlockFormat(type))
          return copyRow(type, row, out, bitsAt);
        decodeRow(row, values.data(), bitsAt);
        quantizeRow(type, values.data(), columns, out);
      });
      out += dataTypeBytes(type, static_cast<uint64_t>(columns));
    }
  }

private:
  /// Calls `use` with a function that gives the bits of each column of `row`.
  template <typename Use> void withBits(int64_t row, Use use) const {
    switch (form.order) {
    case ElementOrder::Rows:
      if (form.code == ElementCode::E4M3 || form.code == ElementCode::Int8)
        return use([&](int64_t column) -> int {
          return elements[row * columns + column];
        });
      return use([&](int64_t column) {
        return nibble(elements, row * (columns / 8) + column / 8, column % 8);
      });
    case ElementOrder::Columns:
      return use([&](int64_t column) {
        return nibble(elements, column / 8 * rows + row, column % 8);
      });
    case ElementOrder::Awq:
      return use([&](int64_t column) {
        return nibble(elements, column * (rows / 8) + row / 8,
                      awqPlaces[row % 8]);
      });
    }
  }

  int64_t scaleIndex(int64_t row, int64_t group) const {
    return row / rowsOfScale * rowStride + group * groupStride;
  }

  /// Writes a row as blocks of `type`, which keptType() gave.
  template <typename BitsAt>
  void copyRow(DataType type, int64_t row, uint8_t *out, BitsAt bitsAt) const {
    const auto put = [&](auto number) {
      std::memcpy(out, &number, sizeof(number));
      out += sizeof(number);
    };
    for (int64_t first = 0; first < columns; first += blockColumns) {
      const int64_t group = first / groupSize;
      const int64_t index = scaleIndex(row, group);
      if (type == DataType::MXFP4)
        put(scales[index]);
      else if (type == DataType::FP8)
        put(f32ToF16(scaleAt(index) / fp8Unit));
      else
        put(f32ToF16(scaleAt(index)));
      if (type == DataType::Q4_1)
        put(f32ToF16(static_cast<float>(-zeroAt(row, group)) * scaleAt(index)));
      if (type == DataType::Q8_0 || type == DataType::FP8) {
        for (int64_t i = 0; i < blockColumns; ++i)
          put(static_cast<uint8_t>(bitsAt(first + i)));
        continue;
      }
      // The elements of the first half of a block are the lower bits.
      for (int64_t i = 0; i < blockColumns / 2; ++i)
        put(static_cast<uint8_t>(bitsAt(first + i) |
                                 bitsAt(first + blockColumns / 2 + i) << 4));
    }
  }

  template <typename BitsAt>
  void decodeRow(int64_t row, float *out, BitsAt bitsAt) const {
    for (int64_t column = 0; column < columns;) {
      const int64_t group = groupOf(column);
      const float scale = factor * scaleAt(scaleIndex(row, group));
      const auto zero = static_cast<float>(zeroAt(row, group));
      const int64_t end =
          groups ? column + 1 : std::min(columns, (group + 1) * groupSize);
      for (; column < end; ++column)
        out[column] = (values[bitsAt(column)] - zero) * scale;
    }
  }
};

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

/// Makes the matrix of one module.
class Joiner {
public:
  Joiner(const Quantization &quantization, const WeightMap &weights,
         TensorSet &set, std::string module)
      : quantization(quantization), form(quantization.form), weights(weights),
        set(set), module(std::move(module)) {}

  /// Puts the matrix in place of its tensors. Widens [least, most] to the
  /// largest magnitudes of all groups.
  absl::StatusOr<std::shared_ptr<const QuantizedRows>> join(double &least,
                                                            double &most);

private:
  const FoundTensor *find(absl::string_view part) const {
    const auto found = set.tensors.find(nameOf(part));
    return part.empty() || found == set.tensors.end() ? nullptr
                                                      : &found->second;
  }
  std::string nameOf(absl::string_view part) const {
    return absl::StrCat(module, ".", part);
  }
  static absl::Status fail(const FoundTensor &tensor,
                           const absl::AlphaNum &expected,
                           const absl::AlphaNum &got) {
    return malformed(tensor.file, tensor.offset, tensor.name, expected, got);
  }
  static absl::Status checkShape(const FoundTensor &tensor,
                                 absl::Span<const uint64_t> shape) {
    return tensor.shape == shape
               ? absl::OkStatus()
               : fail(tensor, absl::StrCat("a shape of ", shapeText(shape)),
                      shapeText(tensor.shape));
  }
  static absl::Status checkType(const FoundTensor &tensor,
                                absl::string_view type) {
    return tensor.packedType == type
               ? absl::OkStatus()
               : fail(tensor, absl::StrCat("elements of ", type),
                      tensor.packedType.empty()
                          ? dataTypeName(tensor.type)
                          : absl::string_view(tensor.packedType));
  }
  /// The bytes of `tensor`, which the matrix will be read from.
  const uint8_t *take(const FoundTensor &tensor) {
    result->files.push_back(weights.files()[tensor.fileNumber]);
    extents.push_back({tensor.fileNumber, tensor.offset, tensor.size});
    taken.push_back(tensor.name);
    return result->files.back()->data() + tensor.offset;
  }
  std::vector<uint64_t> sizes(int64_t a, int64_t b) const {
    return {static_cast<uint64_t>(a), static_cast<uint64_t>(b)};
  }

  absl::Status addElements();
  absl::Status addScales();
  absl::Status setScaleLayout(const FoundTensor &tensor);
  absl::Status addZeros();
  absl::Status addGroups();
  absl::Status checkScales(double &least, double &most) const;

  const Quantization &quantization;
  const QuantizedForm &form;
  const WeightMap &weights;
  TensorSet &set;
  std::string module;
  std::shared_ptr<QuantizedRows> result = std::make_shared<QuantizedRows>();
  std::vector<FileExtent> extents;
  std::vector<std::string> taken;
};

} // namespace

absl::StatusOr<DataType> QuantizedRows::keptType() const {
  if (groups)
    return unsupportedError("no format has groups of columns apart");
  if (groupSize % blockColumns != 0)
    return unsupportedError(
        absl::StrCat("no format has groups of ", groupSize));
  if (columns % blockColumns != 0)
    return unsupportedError(absl::StrCat("no format has rows of ", columns));
  if (form.code == ElementCode::E2M1)
    return DataType::MXFP4;
  if (form.code == ElementCode::E4M3) {
    // Where they are normal numbers of f16, rounding costs 2^-11 of them.
    for (int64_t i = 0; i < scaleCount; ++i)
      if (const uint16_t half = f32ToF16(scaleAt(i) / fp8Unit);
          half < f32ToF16(0x1p-14F) || half > f32ToF16(65504))
        return unsupportedError("a scale is beyond fp8's");
    return DataType::FP8;
  }
  for (int64_t i = 0; scaleType != ScaleType::F16 && i < scaleCount; ++i)
    if (const float scale = scaleAt(i); f16ToF32(f32ToF16(scale)) != scale)
      return unsupportedError("a scale is no f16");
  if (form.code == ElementCode::Int8) {
    if (zeroLayout != ZeroLayout::None)
      return unsupportedError("no format has 8 bits and zero points");
    return DataType::Q8_0;
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t group = 0; group < groupCount(); ++group)
      if (zeroAt(row, group) != 8)
        return DataType::Q4_1;
  return DataType::Q4_0;
}

/// The value of the bits of an element.
static float valueOf(ElementCode code, uint8_t bits) {
  switch (code) {
  case ElementCode::E4M3:
    return e4m3ToF32(bits);
  case ElementCode::E2M1:
    return static_cast<float>(mxfp4Values[bits & 15]) / 2;
  case ElementCode::Int8:
    return static_cast<int8_t>(bits);
  case ElementCode::UInt4:
    return static_cast<float>(bits & 15);
  }
  return 0;
}

/// The dtype of the tensor of elements.
static absl::string_view storedTypeOf(ElementCode code) {
  switch (code) {
  case ElementCode::E4M3:
    return "F8_E4M3";
  case ElementCode::E2M1:
    return "U8";
  case ElementCode::Int8:
    return "I8";
  case ElementCode::UInt4:
    return "I32";
  }
  return "";
}

absl::Status Joiner::addElements() {
  const FoundTensor &tensor = *find(form.elements);
  LLAMAC_RETURN_IF_ERROR(checkType(tensor, storedTypeOf(form.code)));
  if (tensor.shape.size() != 2)
    return fail(tensor, "a matrix", shapeText(tensor.shape));
  const uint64_t packed = form.code == ElementCode::UInt4  ? 8
                          : form.code == ElementCode::E2M1 ? 2
                                                           : 1;
  std::vector<uint64_t> shape = tensor.shape;
  uint64_t &words = shape[form.order == ElementOrder::Columns ? 0 : 1];
  constexpr uint64_t most = std::numeric_limits<int32_t>::max();
  if (shape[0] == 0 || shape[1] == 0 || shape[0] > most || shape[1] > most ||
      words > most / packed)
    return fail(tensor, "sizes of 1 to 2^31 - 1", shapeText(tensor.shape));
  words *= packed;
  if (form.order != ElementOrder::Rows)
    std::swap(shape[0], shape[1]);
  result->form = form;
  result->rows = static_cast<int64_t>(shape[0]);
  result->columns = static_cast<int64_t>(shape[1]);
  if (packed > 1 && result->columns % 8 != 0)
    return fail(tensor, "a multiple of 8 columns", result->columns);
  if (form.order != ElementOrder::Rows && result->rows % 8 != 0)
    return fail(tensor, "a multiple of 8 rows", result->rows);
  for (int bits = 0; bits < 256; ++bits)
    result->values[bits] = valueOf(form.code, static_cast<uint8_t>(bits));
  result->elements = take(tensor);
  return absl::OkStatus();
}

/// Says which scale a row and group has.
absl::Status Joiner::setScaleLayout(const FoundTensor &tensor) {
  const int64_t rows = result->rows, columns = result->columns;
  int64_t &size = result->groupSize;
  size = quantization.groupSize ? quantization.groupSize : columns;
  if (columns % size != 0)
    return fail(tensor,
                absl::StrCat("groups that divide ", columns, " columns"),
                absl::StrCat("groups of ", size));
  if (form.order != ElementOrder::Rows) {
    result->rowStride = 1;
    result->groupStride = rows;
    return checkShape(tensor, sizes(columns / size, rows));
  }
  if (quantization.blockRows) {
    size = quantization.blockColumns;
    result->rowsOfScale = quantization.blockRows;
    result->rowStride = (columns - 1) / size + 1;
    result->groupStride = 1;
    return checkShape(
        tensor, sizes((rows - 1) / result->rowsOfScale + 1, result->rowStride));
  }
  if (result->scaleCount == 1 && quantization.groupSize == 0)
    return absl::OkStatus();
  const std::vector<uint64_t> &shape = tensor.shape;
  if (shape.empty() || shape.size() > 2 ||
      shape[0] != static_cast<uint64_t>(rows) ||
      (shape.size() == 2 && (shape[1] == 0 || columns % shape[1] != 0)))
    return fail(tensor,
                absl::StrCat("a shape of [1], or of [", rows,
                             ", N], N a divisor of ", columns),
                shapeText(shape));
  const auto groups = static_cast<int64_t>(shape.size() == 2 ? shape[1] : 1);
  if (quantization.groupSize == 0)
    size = columns / groups;
  result->rowStride = groups;
  result->groupStride = 1;
  return shape.size() == 1 && groups == columns / size
             ? absl::OkStatus()
             : checkShape(tensor, sizes(rows, columns / size));
}

absl::Status Joiner::addScales() {
  const FoundTensor *tensor = find(form.scales);
  if (!tensor)
    return fail(*find(form.elements),
                absl::StrCat(nameOf(form.scales), " beside it"), "none");
  const absl::string_view packed = tensor->packedType;
  if (packed.empty())
    result->scaleType = tensor->type == DataType::F32   ? ScaleType::F32
                        : tensor->type == DataType::F16 ? ScaleType::F16
                                                        : ScaleType::BF16;
  else if (packed == "F8_E4M3" && form.code == ElementCode::E2M1)
    result->scaleType = ScaleType::E4M3;
  else if ((packed == "U8" || packed == "F8_E8M0") &&
           form.code == ElementCode::E2M1 && form.factor.empty())
    result->scaleType = ScaleType::E8M0;
  else
    return fail(*tensor, "numbers of F32, F16 or BF16", packed);
  for (const uint64_t size : tensor->shape)
    result->scaleCount *= static_cast<int64_t>(size);
  LLAMAC_RETURN_IF_ERROR(setScaleLayout(*tensor));
  result->scales = take(*tensor);
  if (form.factor.empty())
    return absl::OkStatus();

  const FoundTensor *factor = find(form.factor);
  if (!factor)
    return fail(*tensor, absl::StrCat(nameOf(form.factor), " beside it"),
                "none");
  if (!factor->packedType.empty() || factor->type != DataType::F32 ||
      factor->size != sizeof(float))
    return fail(*factor, "one number of F32", shapeText(factor->shape));
  float value;
  std::memcpy(&value, take(*factor), sizeof(value));
  if (!(value > 0) || !std::isfinite(value))
    return fail(*factor, "a number above 0", value);
  result->factor = form.isDivisor ? 1 / value : value;
  return absl::OkStatus();
}

absl::Status Joiner::addZeros() {
  result->zeroBias = form.zero;
  const FoundTensor *tensor = find(form.zeros);
  const int64_t rows = result->rows, groups = result->groupCount();
  if (form.order != ElementOrder::Rows) {
    if (!tensor)
      return fail(*find(form.elements),
                  absl::StrCat(nameOf(form.zeros), " beside it"), "none");
    LLAMAC_RETURN_IF_ERROR(checkType(*tensor, "I32"));
    LLAMAC_RETURN_IF_ERROR(checkShape(*tensor, sizes(groups, rows / 8)));
    result->zeroLayout =
        form.order == ElementOrder::Awq ? ZeroLayout::Awq : ZeroLayout::Columns;
    result->zeroBias = quantization.addedToZeros;
    result->zeros = take(*tensor);
    // Its readers disagree on what 15 stands for, where 1 is added: 0 or 16.
    if (quantization.addedToZeros)
      for (uint64_t i = 0; i < tensor->size; ++i)
        if ((result->zeros[i] & 15) == 15 || result->zeros[i] >> 4 == 15)
          return fail(*tensor, "zero points of 1 to 15, stored less 1",
                      absl::StrCat("15 in byte ", i));
    return absl::OkStatus();
  }
  if (!tensor)
    return absl::OkStatus();
  if (form.code == ElementCode::UInt4 && tensor->packedType == "I32") {
    LLAMAC_RETURN_IF_ERROR(
        checkShape(*tensor, sizes((rows - 1) / 8 + 1, groups)));
    result->zeroLayout = ZeroLayout::Words;
    result->zeroBias = 0;
  } else {
    LLAMAC_RETURN_IF_ERROR(checkType(*tensor, "I8"));
    LLAMAC_RETURN_IF_ERROR(checkShape(*tensor, find(form.scales)->shape));
    result->zeroLayout = ZeroLayout::Bytes;
  }
  result->zeros = take(*tensor);
  return absl::OkStatus();
}

absl::Status Joiner::addGroups() {
  const FoundTensor *tensor = find(form.groups);
  const int64_t columns = result->columns, count = result->groupCount();
  if (!tensor)
    return quantization.needsGroups && count > 1
               ? fail(*find(form.elements),
                      absl::StrCat(nameOf(form.groups), " beside it"), "none")
               : absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(checkType(*tensor, "I32"));
  LLAMAC_RETURN_IF_ERROR(checkShape(*tensor, {static_cast<uint64_t>(columns)}));
  result->groups = take(*tensor);
  std::vector<int64_t> members(count);
  bool isInOrder = true;
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t group = result->groupOf(column);
    if (group < 0 || group >= count)
      return fail(*tensor, absl::StrCat("groups of 0 to ", count - 1),
                  absl::StrCat(group, " of column ", column));
    ++members[group];
    isInOrder = isInOrder && group == column / result->groupSize;
  }
  for (int64_t group = 0; group < count; ++group)
    if (members[group] != result->groupSize)
      return fail(*tensor,
                  absl::StrCat(result->groupSize, " columns in each group"),
                  absl::StrCat(members[group], " in group ", group));
  if (isInOrder)
    result->groups = nullptr;
  return absl::OkStatus();
}

absl::Status Joiner::checkScales(double &least, double &most) const {
  const double largest = form.code == ElementCode::E4M3    ? 448
                         : form.code == ElementCode::E2M1  ? 6
                         : form.code == ElementCode::UInt4 ? 15
                                                           : 255;
  for (int64_t i = 0; i < result->scaleCount; ++i) {
    const float scale = result->scaleAt(i);
    if (!(scale > 0) || !std::isfinite(scale))
      return fail(*find(form.scales), "scales above 0",
                  absl::StrCat(scale, " at ", i));
    const double magnitude =
        static_cast<double>(scale) * result->factor * largest;
    least = std::min(least, magnitude);
    most = std::max(most, magnitude);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const QuantizedRows>>
Joiner::join(double &least, double &most) {
  LLAMAC_RETURN_IF_ERROR(addElements());
  LLAMAC_RETURN_IF_ERROR(addScales());
  LLAMAC_RETURN_IF_ERROR(addZeros());
  LLAMAC_RETURN_IF_ERROR(addGroups());
  LLAMAC_RETURN_IF_ERROR(checkScales(least, most));
  FoundTensor matrix = *find(form.elements);
  matrix.name = nameOf("weight");
  matrix.packedType.clear();
  matrix.shape = sizes(result->rows, result->columns);
  matrix.size = 0; // None of it is stored as it is seen.
  matrix.extents = std::move(extents);
  matrix.decoder = result;
  for (const std::string &name : taken)
    set.tensors.erase(name);
  if (const auto found = set.tensors.find(matrix.name);
      found != set.tensors.end())
    return fail(found->second, "one tensor for the matrix",
                absl::StrCat("also ", nameOf(form.elements)));
  const std::string name = matrix.name;
  set.tensors.emplace(name, std::move(matrix));
  return result;
}

/// Drops the tensors that say how activations or the cache would be quantised,
/// and how large a packed matrix is, which its words say.
static void dropOtherScales(TensorSet &set) {
  static constexpr absl::string_view others[] = {
      "input_scale",  "input_zero_point", "output_scale",
      "k_scale",      "input_scale_ub",   "input_global_scale",
      "weight_shape", "q_scale",          "v_scale"};
  absl::erase_if(set.tensors, [](const auto &entry) {
    return std::any_of(
        std::begin(others), std::end(others), [&](absl::string_view other) {
          return absl::EndsWith(entry.first, absl::StrCat(".", other));
        });
  });
}

/// Drops biases of zeros that the model has not: AutoGPTQ writes some.
static void dropZeroBiases(const ModelConfig &config, const WeightMap &weights,
                           TensorSet &set) {
  std::set<std::string> known;
  for (const ExpectedWeight &weight : expectedWeights(config))
    known.insert(weight.hfName);
  absl::erase_if(set.tensors, [&](const auto &entry) {
    const auto &[name, tensor] = entry;
    const uint8_t *data =
        weights.files()[tensor.fileNumber]->data() + tensor.offset;
    return absl::EndsWith(name, "_proj.bias") && !known.count(name) &&
           std::all_of(data, data + tensor.size,
                       [](uint8_t byte) { return byte == 0; });
  });
}

/// The type that all matrices are seen in, so that products of several can be
/// fused: a block format that keeps each, or else f16, with a line that says
/// why; bf16 where [least, most] leaves the range of f16, which has three bits
/// more.
static DataType
typeOfAll(const Quantization &quantization, const std::string &path,
          absl::Span<const std::shared_ptr<const QuantizedRows>> matrices,
          double least, double most) {
  DataType type = DataType::F16;
  absl::Status widened;
  for (const std::shared_ptr<const QuantizedRows> &matrix : matrices) {
    const absl::StatusOr<DataType> kept = matrix->keptType();
    widened.Update(kept.status());
    // Q4_1 has whatever Q4_0 has.
    if (kept.ok() && !(type == DataType::Q4_1 && *kept == DataType::Q4_0))
      type = *kept;
  }
  if (widened.ok())
    return type;
  constexpr double f16Most = 65504, f16Least = 0x1p-14;
  type = most <= f16Most && least >= f16Least ? DataType::F16 : DataType::BF16;
  printWarning(
      absl::StrCat(path, ": ", quantization.name, ": ", matrices.size(),
                   " matrices are widened to ", dataTypeName(type), ", as ",
                   widened.message(),
                   "; --weights q8_0 or q4_0 makes a plan of them smaller"));
  return type;
}

absl::Status joinQuantized(const Quantization &quantization,
                           const ModelConfig &config, const WeightMap &weights,
                           TensorSet &set) {
  const std::string suffix = absl::StrCat(".", quantization.form.elements);
  std::set<std::string>
      modules; // In order, for messages that are always the same.
  for (const auto &[name, tensor] : set.tensors)
    if (absl::EndsWith(name, suffix) && !tensor.packedType.empty())
      modules.insert(name.substr(0, name.size() - suffix.size()));
  if (modules.empty())
    return malformed(set.path, 0, suffix.substr(1),
                     absl::StrCat("matrices by ", quantization.name), "none");
  double least = std::numeric_limits<double>::infinity(), most = 0;
  std::vector<std::shared_ptr<const QuantizedRows>> joined;
  for (const std::string &module : modules) {
    LLAMAC_ASSIGN_OR_RETURN(
        joined.emplace_back(),
        Joiner(quantization, weights, set, module).join(least, most));
  }
  dropOtherScales(set);
  dropZeroBiases(config, weights, set);
  const DataType type = typeOfAll(quantization, set.path, joined, least, most);
  for (const std::string &module : modules)
    set.tensors[absl::StrCat(module, ".weight")].type = type;
  for (const auto &[name, tensor] : set.tensors)
    if (!tensor.packedType.empty())
      return unsupportedError(
          malformed(tensor.file, tensor.offset, name,
                    "F32, F16 or BF16, or a part of a quantised matrix",
                    quoteForMessage(tensor.packedType))
              .message());
  return absl::OkStatus();
}

} // namespace llamac
