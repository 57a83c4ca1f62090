//===- Safetensors.cpp - .safetensors files -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout: u64 length of the header; the header, a JSON object
//   {"name": {"dtype": "BF16", "shape": [r, c], "data_offsets": [begin, end]},
//    "__metadata__": {"key": "text"}}
// then the data, which the offsets count from. As the reference implementation
// does, the header is capped at 100 MB, and duplicate names, holes and overlaps
// in the data are refused.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/Files.h"
#include "frontends/TensorFiles.h"
#include "frontends/WeightTable.h"
#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/CheckedMath.h"
#include "runtime/io/JsonReader.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <tuple>

namespace llamac {

static constexpr uint64_t maxHeaderBytes = 100'000'000;

static constexpr size_t maxSafetensorsRank = 8;

namespace {

/// A dtype of elements that are of no DataType.
struct PackedType {
  absl::string_view name;
  uint64_t bytes;
};

} // namespace

static constexpr PackedType packedTypes[] = {
    {"I8", 1},   {"U8", 1},      {"I32", 4},    {"I64", 8},
    {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1}};

uint64_t packedElementBytes(absl::string_view packedType) {
  const auto *found =
      std::ranges::find(packedTypes, packedType, &PackedType::name);
  return found == std::end(packedTypes) ? 0 : found->bytes;
}

// The tensor `name` that `entry`, at `offset` in the file, describes; data
// starts at `dataStart`.
static absl::StatusOr<StoredTensor>
readEntry(const MappedFile &file, uint64_t dataStart, uint64_t offset,
          const std::string &name, const nlohmann::json &entry,
          bool takesPacked) {
  const auto fail = [&](absl::string_view key, const absl::AlphaNum &expected,
                        const absl::AlphaNum &got) {
    return malformed(file.path(), offset,
                     absl::StrCat(quoteForMessage(name), key), expected, got);
  };
  if (!entry.is_object())
    return fail("", "an object", entry.type_name());
  for (const auto &[key, unused] : entry.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return fail("", "dtype, shape and data_offsets", quoteForMessage(key));
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key))
      return fail("", absl::StrCat("a ", key), "none");

  StoredTensor tensor;
  tensor.name = name;
  if (!entry["dtype"].is_string())
    return fail(" dtype", "a string", jsonForMessage(entry["dtype"]));
  const std::string &dtype = entry["dtype"].get_ref<const std::string &>();
  const auto *packed =
      std::find_if(std::begin(packedTypes), std::end(packedTypes),
                   [&](const PackedType &type) { return type.name == dtype; });
  if (dtype == "F32")
    tensor.type = DataType::F32;
  else if (dtype == "F16")
    tensor.type = DataType::F16;
  else if (dtype == "BF16")
    tensor.type = DataType::BF16;
  else if (takesPacked && packed != std::end(packedTypes))
    tensor.packedType = dtype;
  else
    return unsupportedError(
        fail(" dtype", "F32, F16 or BF16", quoteForMessage(dtype)).message());

  std::vector<uint64_t> extent;
  for (const auto &[key, numbers] : {std::pair("shape", &tensor.shape),
                                     std::pair("data_offsets", &extent)}) {
    const nlohmann::json &array = entry[key];
    if (!array.is_array() || array.size() > maxSafetensorsRank)
      return fail(absl::StrCat(" ", key),
                  absl::StrCat("an array of at most ", maxSafetensorsRank),
                  array.is_array() ? absl::StrCat(array.size())
                                   : jsonForMessage(array));
    for (const nlohmann::json &number : array) {
      if (!number.is_number_unsigned())
        return fail(absl::StrCat(" ", key),
                    "integers of at least 0 and below 2^64",
                    jsonForMessage(number));
      numbers->push_back(number.get<uint64_t>());
    }
  }
  const uint64_t dataBytes = file.size() - dataStart;
  if (extent.size() != 2 || extent[0] > extent[1] || extent[1] > dataBytes)
    return fail(
        " data_offsets",
        absl::StrCat("two, an extent within ", dataBytes, " bytes of data"),
        absl::StrCat("[", absl::StrJoin(extent, ", "), "]"));
  tensor.offset = dataStart + extent[0];
  tensor.size = extent[1] - extent[0];
  const std::optional<uint64_t> elements = checkedProduct(tensor.shape);
  const std::optional<uint64_t> bytes =
      elements
          ? checkedMul(*elements, tensor.packedType.empty()
                                      ? dataTypeInfo(tensor.type).blockBytes
                                      : packed->bytes)
          : std::nullopt;
  if (bytes != tensor.size)
    return fail(" shape",
                absl::StrCat(tensor.size, " bytes as data_offsets say"),
                absl::StrCat(dtype, " ", shapeText(tensor.shape),
                             bytes ? absl::StrCat(" of ", *bytes, " bytes")
                                   : " of 2^63 elements or more"));
  return tensor;
}

static absl::StatusOr<std::vector<StoredTensor>>
readTensors(const MappedFile &file, bool takesPacked) {
  const std::string &path = file.path();
  ByteCursor cursor(path, file.span());
  LLAMAC_ASSIGN_OR_RETURN(const uint64_t headerBytes,
                          cursor.read<uint64_t>("header length"));
  if (headerBytes > maxHeaderBytes || headerBytes > cursor.remaining())
    return malformed(
        path, 0, "header length",
        absl::StrCat("at most ", std::min(maxHeaderBytes, cursor.remaining())),
        headerBytes);
  LLAMAC_ASSIGN_OR_RETURN(absl::string_view header,
                          cursor.takeText(headerBytes, "header"));
  const uint64_t dataStart = cursor.offset();
  // Spaces in place of the length: offsets in messages are those of the file.
  const std::string text =
      absl::StrCat(std::string(sizeof headerBytes, ' '), header);
  LLAMAC_ASSIGN_OR_RETURN(
      const JsonDocument document,
      parseJson(path, text, {.maxBytes = text.size(), .maxDepth = 3}));
  const nlohmann::json &root = document.root();
  if (!root.is_object())
    return malformed(path, sizeof headerBytes, "header", "an object",
                     root.type_name());
  std::vector<StoredTensor> tensors;
  for (const auto &[name, entry] : root.items()) {
    const uint64_t offset = document.offsetOf(entry);
    if (name == "__metadata__") {
      if (!entry.is_object() ||
          !std::all_of(entry.begin(), entry.end(),
                       [](const auto &value) { return value.is_string(); }))
        return malformed(path, offset, name, "an object with a string each",
                         "something else");
      continue;
    }
    LLAMAC_ASSIGN_OR_RETURN(
        StoredTensor tensor,
        readEntry(file, dataStart, offset, name, entry, takesPacked));
    tensors.push_back(std::move(tensor));
  }

  // Empty tensors lie before the one that starts where they do.
  std::sort(tensors.begin(), tensors.end(),
            [](const StoredTensor &a, const StoredTensor &b) {
              return std::tie(a.offset, a.size, a.name) <
                     std::tie(b.offset, b.size, b.name);
            });
  uint64_t end = dataStart;
  for (const StoredTensor &tensor : tensors) {
    if (tensor.offset != end)
      return malformed(
          path, tensor.offset,
          absl::StrCat(quoteForMessage(tensor.name), " data_offsets"),
          absl::StrCat("data to follow the tensor before at ", end - dataStart,
                       " without hole or overlap"),
          tensor.offset - dataStart);
    end += tensor.size;
  }
  if (end != file.size())
    return malformed(path, end, "data", "the last tensor to end the file",
                     absl::StrCat(file.size() - end, " bytes more"));
  return tensors;
}

absl::StatusOr<std::vector<StoredTensor>>
readSafetensors(const MappedFile &file) {
  return readTensors(file, /*takesPacked=*/false);
}

absl::StatusOr<std::vector<StoredTensor>>
readPackedSafetensors(const MappedFile &file) {
  return readTensors(file, /*takesPacked=*/true);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

absl::Status writeTensor(const TensorStream &tensor, AtomicFile &file) {
  const uint64_t before = file.size();
  LLAMAC_RETURN_IF_ERROR(tensor.produce(
      [&](absl::Span<const uint8_t> bytes) { return file.write(bytes); }));
  if (file.size() - before != tensor.bytes())
    return internalError(absl::StrCat(tensor.name, ": ", tensor.bytes(),
                                      " bytes promised, ", file.size() - before,
                                      " given"));
  return absl::OkStatus();
}

absl::Status writeSafetensors(absl::string_view path,
                              absl::Span<const TensorStream> tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  uint64_t end = 0;
  for (const TensorStream &tensor : tensors) {
    const uint64_t begin = end;
    end += tensor.bytes();
    header[tensor.name] = {
        {"dtype", absl::AsciiStrToUpper(dataTypeName(tensor.type))},
        {"shape", tensor.shape},
        {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t headerBytes = text.size();

  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::create(path));
  LLAMAC_RETURN_IF_ERROR(file->write(absl::Span<const uint8_t>(
      reinterpret_cast<const uint8_t *>(&headerBytes), sizeof(headerBytes))));
  LLAMAC_RETURN_IF_ERROR(file->write(text));
  for (const TensorStream &tensor : tensors)
    LLAMAC_RETURN_IF_ERROR(writeTensor(tensor, *file));
  return file->commit();
}

} // namespace llamac
