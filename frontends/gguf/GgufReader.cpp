//===- GgufReader.cpp - Reader of GGUF files ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufReader.h"

#include "frontends/ByteCursor.h"
#include "runtime/base/Status.h"
#include "runtime/io/CheckedMath.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>

namespace llamac {

static constexpr uint32_t magic = 0x46554747; // "GGUF"
static constexpr uint64_t maxKeyBytes = 65535;
static constexpr uint64_t maxTensorNameBytes = 1024;
static constexpr uint32_t maxRank = 4;
// The least a metadata pair and a tensor record take.
static constexpr uint64_t leastPairBytes = 8 + 4 + 1;
static constexpr uint64_t leastTensorBytes = 8 + 4 + 8 + 4 + 8;

namespace {

// A row for each value type: its name and bytes (0: not of one size).
struct GgufTypeRow {
  absl::string_view name;
  uint64_t bytes;
};

} // namespace

static constexpr GgufTypeRow typeRows[] = {
    {"uint8", 1},  {"int8", 1},    {"uint16", 2},  {"int16", 2},  {"uint32", 4},
    {"int32", 4},  {"float32", 4}, {"bool", 1},    {"string", 0}, {"array", 0},
    {"uint64", 8}, {"int64", 8},   {"float64", 8},
};
static const GgufTypeRow &typeRow(GgufType type) {
  return typeRows[static_cast<size_t>(type)];
}

namespace {

// GGML's tensor types by number; those without a DataType are not supported.
struct GgmlTypeRow {
  uint32_t number;
  absl::string_view name;
  std::optional<DataType> type;
};

} // namespace

static constexpr GgmlTypeRow ggmlTypes[] = {
    {0, "F32", DataType::F32},
    {1, "F16", DataType::F16},
    {2, "Q4_0", DataType::Q4_0},
    {3, "Q4_1", DataType::Q4_1},
    {6, "Q5_0", DataType::Q5_0},
    {7, "Q5_1", DataType::Q5_1},
    {8, "Q8_0", DataType::Q8_0},
    {9, "Q8_1", {}},
    {10, "Q2_K", {}},
    {11, "Q3_K", {}},
    {12, "Q4_K", DataType::Q4_K},
    {13, "Q5_K", DataType::Q5_K},
    {14, "Q6_K", DataType::Q6_K},
    {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},
    {19, "IQ1_S", {}},
    {20, "IQ4_NL", {}},
    {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},
    {23, "IQ4_XS", {}},
    {24, "I8", {}},
    {25, "I16", {}},
    {26, "I32", {}},
    {27, "I64", {}},
    {28, "F64", {}},
    {29, "IQ1_M", {}},
    {30, "BF16", DataType::BF16},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {39, "MXFP4", {}},
};

static absl::StatusOr<absl::string_view> readString(ByteCursor &cursor,
                                                    absl::string_view field) {
  LLAMAC_ASSIGN_OR_RETURN(const uint64_t size, cursor.read<uint64_t>(field));
  return cursor.takeText(size, field);
}

static absl::StatusOr<GgufType>
readType(absl::string_view file, ByteCursor &cursor, absl::string_view field) {
  const uint64_t at = cursor.offset();
  LLAMAC_ASSIGN_OR_RETURN(const uint32_t number, cursor.read<uint32_t>(field));
  if (number >= std::size(typeRows))
    return malformed(file, at, absl::StrCat(field, " type"),
                     absl::StrCat("a type below ", std::size(typeRows)),
                     number);
  return static_cast<GgufType>(number);
}

// Moves `cursor` over one value and says where it lies.
static absl::StatusOr<GgufValue> readValue(const MappedFile &file,
                                           ByteCursor &cursor) {
  const uint64_t keyAt = cursor.offset();
  GgufValue value;
  LLAMAC_ASSIGN_OR_RETURN(value.key, readString(cursor, "metadata key"));
  if (value.key.empty() || value.key.size() > maxKeyBytes)
    return malformed(file.path(), keyAt, "metadata key",
                     absl::StrCat("1 to ", maxKeyBytes, " bytes"),
                     value.key.size());
  const std::string field = quoteForMessage(value.key);
  LLAMAC_ASSIGN_OR_RETURN(value.type, readType(file.path(), cursor, field));
  if (value.type == GgufType::Array) {
    value.isArray = true;
    const uint64_t at = cursor.offset();
    LLAMAC_ASSIGN_OR_RETURN(value.type, readType(file.path(), cursor, field));
    if (value.type == GgufType::Array)
      return unsupportedError(malformed(file.path(), at, field,
                                        "an array of scalars or strings",
                                        "an array of arrays")
                                  .message());
    LLAMAC_ASSIGN_OR_RETURN(value.count, cursor.read<uint64_t>(field));
  }
  value.offset = cursor.offset();
  const uint64_t left = cursor.remaining();
  if (value.type == GgufType::String) {
    for (uint64_t i = 0; i < value.count; ++i)
      LLAMAC_RETURN_IF_ERROR(readString(cursor, field).status());
  } else {
    const std::optional<uint64_t> bytes =
        checkedMul(value.count, typeRow(value.type).bytes);
    if (!bytes || *bytes > left)
      return malformed(
          file.path(), value.offset, field,
          absl::StrCat("at most ", left, " bytes to the end of the file"),
          absl::StrCat(value.count, " of ", typeRow(value.type).name));
    LLAMAC_RETURN_IF_ERROR(cursor.take(*bytes, field).status());
  }
  value.bytes = file.span().subspan(value.offset, left - cursor.remaining());
  if (value.type == GgufType::Bool)
    for (size_t i = 0; i < value.bytes.size(); ++i)
      if (value.bytes[i] > 1)
        return malformed(file.path(), value.offset + i, field, "0 or 1",
                         value.bytes[i]);
  return value;
}

// One tensor record; its offset still counts from the data.
static absl::StatusOr<GgufTensor> readTensor(const MappedFile &file,
                                             ByteCursor &cursor) {
  GgufTensor tensor;
  tensor.record = cursor.offset();
  LLAMAC_ASSIGN_OR_RETURN(tensor.name, readString(cursor, "tensor name"));
  if (tensor.name.empty() || tensor.name.size() > maxTensorNameBytes)
    return malformed(file.path(), tensor.record, "tensor name",
                     absl::StrCat("1 to ", maxTensorNameBytes, " bytes"),
                     tensor.name.size());
  const std::string field = quoteForMessage(tensor.name);
  const uint64_t rankAt = cursor.offset();
  LLAMAC_ASSIGN_OR_RETURN(const uint32_t rank, cursor.read<uint32_t>(field));
  if (rank == 0 || rank > maxRank)
    return malformed(file.path(), rankAt, absl::StrCat(field, " rank"),
                     absl::StrCat("1 to ", maxRank), rank);
  tensor.rank = static_cast<int>(rank);
  std::vector<uint64_t> shape(rank);
  const uint64_t shapeAt = cursor.offset();
  for (uint64_t &size : shape) {
    LLAMAC_ASSIGN_OR_RETURN(size, cursor.read<uint64_t>(field));
  }
  const uint64_t typeAt = cursor.offset();
  LLAMAC_ASSIGN_OR_RETURN(const uint32_t number, cursor.read<uint32_t>(field));
  LLAMAC_ASSIGN_OR_RETURN(tensor.offset, cursor.read<uint64_t>(field));

  const auto *row =
      std::find_if(std::begin(ggmlTypes), std::end(ggmlTypes),
                   [&](const GgmlTypeRow &r) { return r.number == number; });
  if (row == std::end(ggmlTypes))
    return malformed(file.path(), typeAt, absl::StrCat(field, " type"),
                     "a tensor type of GGML", number);
  if (!row->type)
    return unsupportedError(
        malformed(file.path(), typeAt, absl::StrCat(field, " type"),
                  "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K "
                  "or Q6_K",
                  row->name)
            .message());
  tensor.type = *row->type;

  const DataTypeInfo &info = dataTypeInfo(tensor.type);
  const std::optional<uint64_t> elements = checkedProduct(shape);
  if (!elements || *elements == 0)
    return malformed(file.path(), shapeAt, absl::StrCat(field, " shape"),
                     "1 to 2^63 - 1 elements",
                     absl::StrCat("[", absl::StrJoin(shape, ", "), "]"));
  if (shape[0] % info.blockElements != 0)
    return malformed(file.path(), shapeAt, absl::StrCat(field, " shape"),
                     absl::StrCat("rows of a multiple of ", info.blockElements,
                                  " for ", info.name),
                     shape[0]);
  tensor.cols = static_cast<int64_t>(shape[0]);
  tensor.rows = static_cast<int64_t>(*elements / shape[0]);
  const std::optional<uint64_t> bytes =
      checkedTensorBytes(tensor.type, *elements / shape[0], shape[0]);
  if (!bytes || *bytes > file.size())
    return malformed(
        file.path(), shapeAt, absl::StrCat(field, " shape"),
        absl::StrCat("at most the file's ", file.size(), " bytes"),
        absl::StrCat(info.name, " [", absl::StrJoin(shape, ", "), "]"));
  tensor.size = *bytes;
  return tensor;
}

absl::Status GgufReader::parse() {
  const std::string &path = mapped->path();
  ByteCursor cursor(path, mapped->span());
  LLAMAC_ASSIGN_OR_RETURN(const uint32_t found, cursor.read<uint32_t>("magic"));
  if (found != magic)
    return malformed(path, 0, "magic", "\"GGUF\"",
                     quoteForMessage(mapped->text().substr(0, 4)));
  LLAMAC_ASSIGN_OR_RETURN(const uint32_t version,
                          cursor.read<uint32_t>("version"));
  if (version != 2 && version != 3) {
    const bool bigEndian = version == 0x02000000 || version == 0x03000000;
    return unsupportedError(malformed(path, 4, "version", "2 or 3",
                                      bigEndian
                                          ? std::string("a big-endian file")
                                          : absl::StrCat(version))
                                .message());
  }
  LLAMAC_ASSIGN_OR_RETURN(const uint64_t tensorCount,
                          cursor.read<uint64_t>("tensor count"));
  LLAMAC_ASSIGN_OR_RETURN(const uint64_t valueCount,
                          cursor.read<uint64_t>("metadata count"));
  const uint64_t left = cursor.remaining();
  if (tensorCount > left / leastTensorBytes)
    return malformed(path, 8, "tensor count",
                     absl::StrCat("at most ", left / leastTensorBytes, " in ",
                                  left, " bytes"),
                     tensorCount);
  if (valueCount > left / leastPairBytes)
    return malformed(
        path, 16, "metadata count",
        absl::StrCat("at most ", left / leastPairBytes, " in ", left, " bytes"),
        valueCount);

  for (uint64_t i = 0; i < valueCount; ++i) {
    const uint64_t at = cursor.offset();
    LLAMAC_ASSIGN_OR_RETURN(GgufValue value, readValue(*mapped, cursor));
    if (!keys.emplace(value.key, metadata.size()).second)
      return malformed(path, at, "metadata key", "a key used once",
                       absl::StrCat("a second ", quoteForMessage(value.key)));
    metadata.push_back(value);
  }
  for (uint64_t i = 0; i < tensorCount; ++i) {
    LLAMAC_ASSIGN_OR_RETURN(GgufTensor tensor, readTensor(*mapped, cursor));
    if (!names.emplace(tensor.name, list.size()).second)
      return malformed(path, tensor.record, "tensor name", "a name used once",
                       absl::StrCat("a second ", quoteForMessage(tensor.name)));
    list.push_back(tensor);
  }

  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> given,
                          getInt("general.alignment"));
  const int64_t alignment = given.value_or(32);
  constexpr int64_t maxAlignment = 1 << 20;
  if (alignment < 1 || alignment > maxAlignment ||
      (alignment & (alignment - 1)) != 0)
    return fail("general.alignment",
                absl::StrCat("a power of two up to ", maxAlignment),
                absl::StrCat(alignment));
  const auto step = static_cast<uint64_t>(alignment);
  const uint64_t dataStart = (cursor.offset() + step - 1) / step * step;
  const uint64_t dataBytes =
      mapped->size() > dataStart ? mapped->size() - dataStart : 0;
  for (GgufTensor &tensor : list) {
    const std::string field =
        absl::StrCat(quoteForMessage(tensor.name), " offset");
    if (tensor.offset % step != 0)
      return malformed(path, tensor.record, field,
                       absl::StrCat("a multiple of ", step), tensor.offset);
    if (!isInside(tensor.offset, tensor.size, dataBytes))
      return malformed(
          path, tensor.record, field,
          absl::StrCat("an extent within ", dataBytes, " bytes of data"),
          absl::StrCat(tensor.size, " bytes from ", tensor.offset));
    tensor.offset += dataStart;
  }

  std::vector<const GgufTensor *> byOffset;
  byOffset.reserve(list.size());
  for (const GgufTensor &tensor : list)
    byOffset.push_back(&tensor);
  std::sort(byOffset.begin(), byOffset.end(),
            [](const GgufTensor *a, const GgufTensor *b) {
              return a->offset < b->offset;
            });
  for (size_t i = 1; i < byOffset.size(); ++i) {
    const GgufTensor &before = *byOffset[i - 1];
    const GgufTensor &after = *byOffset[i];
    if (after.offset - before.offset < before.size)
      return malformed(path, after.record,
                       absl::StrCat(quoteForMessage(after.name), " offset"),
                       absl::StrCat("data after ", quoteForMessage(before.name),
                                    ", which ends at ",
                                    before.offset + before.size - dataStart),
                       after.offset - dataStart);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const GgufReader>>
GgufReader::open(std::shared_ptr<MappedFile> file) {
  std::shared_ptr<GgufReader> reader(new GgufReader(std::move(file)));
  LLAMAC_RETURN_IF_ERROR(reader->parse());
  return std::shared_ptr<const GgufReader>(std::move(reader));
}

const GgufValue *GgufReader::find(absl::string_view key) const {
  const auto found = keys.find(key);
  return found == keys.end() ? nullptr : &metadata[found->second];
}

const GgufTensor *GgufReader::findTensor(absl::string_view name) const {
  const auto found = names.find(name);
  return found == names.end() ? nullptr : &list[found->second];
}

absl::Status GgufReader::fail(absl::string_view key, absl::string_view expected,
                              absl::string_view got) const {
  const GgufValue *value = find(key);
  return malformed(mapped->path(), value ? value->offset : 0, key, expected,
                   got);
}

// What `value` is, for messages.
static std::string describe(const GgufValue &value) {
  return value.isArray ? absl::StrCat("an array of ", value.count, " ",
                                      typeRow(value.type).name)
                       : std::string(typeRow(value.type).name);
}

template <typename T> static T element(const GgufValue &value, uint64_t i) {
  T result;
  std::memcpy(&result, value.bytes.data() + i * sizeof(T), sizeof(T));
  return result;
}

// Element i as an integer; nothing when it is none, or leaves int64_t.
static std::optional<int64_t> intElement(const GgufValue &value, uint64_t i) {
  switch (value.type) {
  case GgufType::UInt8:
    return element<uint8_t>(value, i);
  case GgufType::Int8:
    return element<int8_t>(value, i);
  case GgufType::UInt16:
    return element<uint16_t>(value, i);
  case GgufType::Int16:
    return element<int16_t>(value, i);
  case GgufType::UInt32:
    return element<uint32_t>(value, i);
  case GgufType::Int32:
    return element<int32_t>(value, i);
  case GgufType::Int64:
    return element<int64_t>(value, i);
  case GgufType::UInt64: {
    const auto number = element<uint64_t>(value, i);
    if (number > static_cast<uint64_t>(INT64_MAX))
      return std::nullopt;
    return static_cast<int64_t>(number);
  }
  default:
    return std::nullopt;
  }
}

static std::optional<double> floatElement(const GgufValue &value, uint64_t i) {
  if (value.type == GgufType::Float32)
    return element<float>(value, i);
  if (value.type == GgufType::Float64)
    return element<double>(value, i);
  return std::nullopt;
}

absl::StatusOr<std::optional<int64_t>>
GgufReader::getInt(absl::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::nullopt;
  const std::optional<int64_t> number =
      value->isArray ? std::nullopt : intElement(*value, 0);
  if (!number)
    return fail(key, "an integer", describe(*value));
  return number;
}

absl::StatusOr<std::optional<double>>
GgufReader::getFloat(absl::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::nullopt;
  const std::optional<double> number =
      value->isArray ? std::nullopt : floatElement(*value, 0);
  if (!number)
    return fail(key, "a float", describe(*value));
  return number;
}

absl::StatusOr<std::optional<bool>>
GgufReader::getBool(absl::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::nullopt;
  if (value->isArray || value->type != GgufType::Bool)
    return fail(key, "a bool", describe(*value));
  return value->bytes[0] != 0;
}

absl::StatusOr<std::optional<absl::string_view>>
GgufReader::getString(absl::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::nullopt;
  if (value->isArray || value->type != GgufType::String)
    return fail(key, "a string", describe(*value));
  return absl::string_view(reinterpret_cast<const char *>(value->bytes.data()) +
                               sizeof(uint64_t),
                           value->bytes.size() - sizeof(uint64_t));
}

absl::StatusOr<std::vector<absl::string_view>>
GgufReader::getStrings(absl::string_view key) const {
  std::vector<absl::string_view> strings;
  const GgufValue *value = find(key);
  if (!value)
    return strings;
  if (!value->isArray || value->type != GgufType::String)
    return fail(key, "an array of strings", describe(*value));
  strings.reserve(value->count);
  const auto *at = reinterpret_cast<const char *>(value->bytes.data());
  for (uint64_t i = 0; i < value->count; ++i) {
    uint64_t size;
    std::memcpy(&size, at, sizeof(size));
    at += sizeof(size);
    strings.emplace_back(at, size);
    at += size;
  }
  return strings;
}

absl::StatusOr<std::vector<int64_t>>
GgufReader::getInts(absl::string_view key) const {
  std::vector<int64_t> numbers;
  const GgufValue *value = find(key);
  if (!value)
    return numbers;
  if (!value->isArray)
    return fail(key, "an array of integers", describe(*value));
  numbers.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::optional<int64_t> number = intElement(*value, i);
    if (!number)
      return fail(key, "an array of integers", describe(*value));
    numbers.push_back(*number);
  }
  return numbers;
}

absl::StatusOr<std::vector<float>>
GgufReader::getFloats(absl::string_view key) const {
  std::vector<float> numbers;
  const GgufValue *value = find(key);
  if (!value)
    return numbers;
  if (!value->isArray)
    return fail(key, "an array of floats", describe(*value));
  numbers.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::optional<double> number = floatElement(*value, i);
    if (!number)
      return fail(key, "an array of floats", describe(*value));
    numbers.push_back(static_cast<float>(*number));
  }
  return numbers;
}

} // namespace llamac
