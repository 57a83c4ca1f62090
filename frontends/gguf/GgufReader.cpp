//===- GgufReader.cpp - Reader of GGUF files ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufReader.h"

#include "frontends/ByteCursor.h"
#include "frontends/gguf/GgufKeys.h"
#include "runtime/base/Status.h"
#include "runtime/io/CheckedMath.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>

namespace llamac {

static constexpr uint64_t maxKeyBytes = 65535;
static constexpr uint64_t maxTensorNameBytes = 1024;
static constexpr uint32_t maxGgufRank = 4;
// Minimum sizes of a metadata pair and a tensor record.
static constexpr uint64_t leastPairBytes = 8 + 4 + 1;
static constexpr uint64_t leastTensorBytes = 8 + 4 + 8 + 4 + 8;

namespace {

// A value type's name and bytes (0: not of one size).
struct GgufTypeRow {
  absl::string_view name;
  uint64_t bytes;
};

} // namespace

static constexpr GgufTypeRow typeRows[] = {
    {"uint8", 1},  {"int8", 1},    {"uint16", 2}, {"int16", 2},  {"uint32", 4},
    {"int32", 4},  {"float32", 4}, {"bool", 1},   {"string", 0}, {"array", 0},
    {"uint64", 8}, {"int64", 8},   {"float64", 8}};

static const GgufTypeRow &typeRow(GgufType type) {
  return typeRows[static_cast<size_t>(type)];
}

// GGML's tensor types by number, "" where there is none; a DataType has the
// same name in lower case, and what has none is not supported.
static constexpr absl::string_view ggmlTypeNames[] = {
    "F32",   "F16",   "Q4_0",    "Q4_1",   "",        "",      "Q5_0",
    "Q5_1",  "Q8_0",  "Q8_1",    "Q2_K",   "Q3_K",    "Q4_K",  "Q5_K",
    "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",
    "IQ3_S", "IQ2_S", "IQ4_XS",  "I8",     "I16",     "I32",   "I64",
    "F64",   "IQ1_M", "BF16",    "",       "",        "",      "TQ1_0",
    "TQ2_0", "",      "",        "",       "MXFP4"};

static std::optional<DataType> ggmlType(size_t number) {
  return parseDataType(absl::AsciiStrToLower(ggmlTypeNames[number]));
}

std::optional<uint32_t> ggmlTypeNumber(DataType type) {
  for (uint32_t number = 0; number < std::size(ggmlTypeNames); ++number)
    if (ggmlType(number) == type)
      return number;
  return std::nullopt;
}

/// The names of those that have a DataType: "F32, F16, Q4_0".
static std::string supportedTypes() {
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < std::size(ggmlTypeNames); ++i)
    if (ggmlType(i))
      names.push_back(ggmlTypeNames[i]);
  return absl::StrJoin(names, ", ");
}

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

// Reads one value at `cursor`.
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
static absl::StatusOr<StoredTensor> readTensor(const MappedFile &file,
                                               ByteCursor &cursor) {
  StoredTensor tensor;
  const uint64_t record = cursor.offset();
  LLAMAC_ASSIGN_OR_RETURN(const absl::string_view name,
                          readString(cursor, "tensor name"));
  if (name.empty() || name.size() > maxTensorNameBytes)
    return malformed(file.path(), record, "tensor name",
                     absl::StrCat("1 to ", maxTensorNameBytes, " bytes"),
                     name.size());
  tensor.name = std::string(name);
  const std::string field = quoteForMessage(name);
  const uint64_t rankAt = cursor.offset();
  LLAMAC_ASSIGN_OR_RETURN(const uint32_t rank, cursor.read<uint32_t>(field));
  if (rank == 0 || rank > maxGgufRank)
    return malformed(file.path(), rankAt, absl::StrCat(field, " rank"),
                     absl::StrCat("1 to ", maxGgufRank), rank);
  std::vector<uint64_t> shape(rank);
  const uint64_t shapeAt = cursor.offset();
  for (uint64_t &size : shape) {
    LLAMAC_ASSIGN_OR_RETURN(size, cursor.read<uint64_t>(field));
  }
  const uint64_t typeAt = cursor.offset();
  LLAMAC_ASSIGN_OR_RETURN(const uint32_t number, cursor.read<uint32_t>(field));
  LLAMAC_ASSIGN_OR_RETURN(tensor.offset, cursor.read<uint64_t>(field));

  if (number >= std::size(ggmlTypeNames) || ggmlTypeNames[number].empty())
    return malformed(file.path(), typeAt, absl::StrCat(field, " type"),
                     "a tensor type of GGML", number);
  const std::optional<DataType> type = ggmlType(number);
  if (!type)
    return unsupportedError(malformed(file.path(), typeAt,
                                      absl::StrCat(field, " type"),
                                      absl::StrCat("one of ", supportedTypes()),
                                      ggmlTypeNames[number])
                                .message());
  tensor.type = *type;
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
  const std::optional<uint64_t> bytes =
      checkedTensorBytes(tensor.type, *elements / shape[0], shape[0]);
  if (!bytes || *bytes > file.size())
    return malformed(
        file.path(), shapeAt, absl::StrCat(field, " shape"),
        absl::StrCat("at most the file's ", file.size(), " bytes"),
        absl::StrCat(info.name, " [", absl::StrJoin(shape, ", "), "]"));
  tensor.size = *bytes;
  tensor.shape.assign(shape.rbegin(), shape.rend());
  return tensor;
}

absl::Status GgufReader::parse() {
  const std::string &path = mapped->path();
  ByteCursor cursor(path, mapped->span());
  LLAMAC_ASSIGN_OR_RETURN(const uint32_t found, cursor.read<uint32_t>("magic"));
  if (found != ggufMagic)
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
  std::vector<uint64_t> records;
  for (uint64_t i = 0; i < tensorCount; ++i) {
    records.push_back(cursor.offset());
    LLAMAC_ASSIGN_OR_RETURN(StoredTensor tensor, readTensor(*mapped, cursor));
    if (!names.emplace(tensor.name, i).second)
      return malformed(path, records[i], "tensor name", "a name used once",
                       absl::StrCat("a second ", quoteForMessage(tensor.name)));
    list.push_back(std::move(tensor));
  }

  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> given,
                          optionalInt(ggufkeys::alignment));
  const int64_t alignment = given.value_or(ggufAlignment);
  constexpr int64_t maxAlignment = 1 << 20;
  if (alignment < 1 || alignment > maxAlignment ||
      (alignment & (alignment - 1)) != 0)
    return fail(ggufkeys::alignment,
                absl::StrCat("a power of two up to ", maxAlignment),
                absl::StrCat(alignment));
  const auto step = static_cast<uint64_t>(alignment);
  const uint64_t dataStart = (cursor.offset() + step - 1) / step * step;
  const uint64_t dataBytes =
      mapped->size() > dataStart ? mapped->size() - dataStart : 0;
  std::vector<size_t> byOffset;
  for (size_t i = 0; i < list.size(); ++i) {
    StoredTensor &tensor = list[i];
    const std::string field =
        absl::StrCat(quoteForMessage(tensor.name), " offset");
    if (tensor.offset % step != 0)
      return malformed(path, records[i], field,
                       absl::StrCat("a multiple of ", step), tensor.offset);
    if (!isInside(tensor.offset, tensor.size, dataBytes))
      return malformed(
          path, records[i], field,
          absl::StrCat("an extent within ", dataBytes, " bytes of data"),
          absl::StrCat(tensor.size, " bytes from ", tensor.offset));
    tensor.offset += dataStart;
    byOffset.push_back(i);
  }
  std::sort(byOffset.begin(), byOffset.end(), [&](size_t a, size_t b) {
    return list[a].offset < list[b].offset;
  });
  for (size_t i = 1; i < byOffset.size(); ++i) {
    const StoredTensor &before = list[byOffset[i - 1]];
    const StoredTensor &after = list[byOffset[i]];
    if (after.offset - before.offset < before.size)
      return malformed(path, records[byOffset[i]],
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

const StoredTensor *GgufReader::findTensor(absl::string_view name) const {
  const auto found = names.find(name);
  return found == names.end() ? nullptr : &list[found->second];
}

absl::Status GgufReader::fail(absl::string_view key, absl::string_view expected,
                              absl::string_view got) const {
  const GgufValue *value = find(key);
  return malformed(mapped->path(), value ? value->offset : 0, key, expected,
                   got);
}

absl::Status GgufReader::unsupported(absl::string_view key,
                                     absl::string_view expected,
                                     absl::string_view got) const {
  return unsupportedError(fail(key, expected, got).message());
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

// A description of `value` for messages.
static std::string describe(const GgufValue &value) {
  return value.isArray ? absl::StrCat("an array of ", value.count, " ",
                                      typeRow(value.type).name)
                       : std::string(typeRow(value.type).name);
}

template <typename T> static T elementAs(const GgufValue &value, uint64_t i) {
  T result;
  std::memcpy(&result, value.bytes.data() + i * sizeof(T), sizeof(T));
  return result;
}

// Element i as an integer; nothing when it has another type or overflows
// int64_t.
static std::optional<int64_t> intElement(const GgufValue &value, uint64_t i) {
  switch (value.type) {
  case GgufType::UInt8:
    return elementAs<uint8_t>(value, i);
  case GgufType::Int8:
    return elementAs<int8_t>(value, i);
  case GgufType::UInt16:
    return elementAs<uint16_t>(value, i);
  case GgufType::Int16:
    return elementAs<int16_t>(value, i);
  case GgufType::UInt32:
    return elementAs<uint32_t>(value, i);
  case GgufType::Int32:
    return elementAs<int32_t>(value, i);
  case GgufType::UInt64:
    if (elementAs<int64_t>(value, i) < 0)
      return std::nullopt;
    [[fallthrough]];
  case GgufType::Int64:
    return elementAs<int64_t>(value, i);
  default:
    return std::nullopt;
  }
}

static std::optional<double> floatElement(const GgufValue &value, uint64_t i) {
  if (value.type == GgufType::Float32)
    return elementAs<float>(value, i);
  if (value.type == GgufType::Float64)
    return elementAs<double>(value, i);
  return std::nullopt;
}

template <class T, class Convert>
absl::StatusOr<std::optional<T>>
GgufReader::scalar(absl::string_view key, absl::string_view expected,
                   const Convert &convert) const {
  const GgufValue *value = find(key);
  if (!value)
    return std::nullopt;
  const std::optional<T> result =
      value->isArray ? std::nullopt : std::optional<T>(convert(*value, 0));
  if (!result)
    return fail(key, expected, describe(*value));
  return result;
}

template <class T, class Convert>
absl::StatusOr<std::vector<T>> GgufReader::array(absl::string_view key,
                                                 absl::string_view expected,
                                                 const Convert &convert) const {
  std::vector<T> elements;
  const GgufValue *value = find(key);
  if (!value)
    return elements;
  if (value->isArray)
    elements.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto element = convert(*value, i);
    if (!value->isArray || !element)
      return fail(key, expected, describe(*value));
    elements.push_back(static_cast<T>(*element));
  }
  return elements;
}

absl::StatusOr<std::optional<int64_t>>
GgufReader::optionalInt(absl::string_view key) const {
  return scalar<int64_t>(key, "an integer", intElement);
}

absl::StatusOr<std::optional<double>>
GgufReader::optionalNumber(absl::string_view key) const {
  return scalar<double>(key, "a float", floatElement);
}

absl::StatusOr<std::optional<bool>>
GgufReader::optionalBool(absl::string_view key) const {
  return scalar<bool>(key, "a bool", [](const GgufValue &value, uint64_t) {
    return value.type == GgufType::Bool ? std::optional(value.bytes[0] != 0)
                                        : std::nullopt;
  });
}

// Takes the string at the front of `bytes`.
static std::optional<absl::string_view>
takeString(const GgufValue &value, absl::Span<const uint8_t> &bytes) {
  if (value.type != GgufType::String)
    return std::nullopt;
  uint64_t size;
  std::memcpy(&size, bytes.data(), sizeof(size));
  const absl::string_view text(
      reinterpret_cast<const char *>(bytes.data()) + sizeof(size), size);
  bytes.remove_prefix(sizeof(size) + size);
  return text;
}

absl::StatusOr<std::optional<absl::string_view>>
GgufReader::optionalString(absl::string_view key) const {
  return scalar<absl::string_view>(
      key, "a string", [](const GgufValue &value, uint64_t) {
        absl::Span<const uint8_t> bytes = value.bytes;
        return takeString(value, bytes);
      });
}

absl::StatusOr<std::vector<absl::string_view>>
GgufReader::strings(absl::string_view key) const {
  absl::Span<const uint8_t> rest;
  return array<absl::string_view>(key, "an array of strings",
                                  [&](const GgufValue &value, uint64_t i) {
                                    if (i == 0)
                                      rest = value.bytes;
                                    return takeString(value, rest);
                                  });
}

absl::StatusOr<std::vector<int64_t>>
GgufReader::ints(absl::string_view key) const {
  return array<int64_t>(
      key, "an array of integers", [](const GgufValue &value, uint64_t i) {
        return value.type == GgufType::Bool
                   ? std::optional<int64_t>(value.bytes[i] != 0)
                   : intElement(value, i);
      });
}

absl::StatusOr<std::vector<float>>
GgufReader::floats(absl::string_view key) const {
  return array<float>(key, "an array of floats", floatElement);
}

} // namespace llamac
