//===- GgufReader.h - Reader of GGUF files -------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout of versions 2 and 3, little-endian: magic, version, number of tensors,
// number of metadata pairs; the pairs (key, type, value); the tensor records
// (name, rank, sizes with the row length first, type, offset); then, aligned to
// general.alignment (32), the data, which the offsets count from. Metadata and
// arrays are views of the map: a vocabulary is not copied.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_GGUF_GGUFREADER_H
#define LLAMAC_FRONTENDS_GGUF_GGUFREADER_H

#include "frontends/TensorFiles.h"

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

inline constexpr uint32_t ggufMagic = 0x46554747; // "GGUF"
/// Offsets of data are multiples of this, unless general.alignment says else.
inline constexpr uint64_t ggufAlignment = 32;

/// The number of `type` among GGML's types of tensors; nothing for a type that
/// is none of them.
std::optional<uint32_t> ggmlTypeNumber(DataType type);

/// Numbered as in the format.
enum class GgufType : uint32_t {
  UInt8,
  Int8,
  UInt16,
  Int16,
  UInt32,
  Int32,
  Float32,
  Bool,
  String,
  Array,
  UInt64,
  Int64,
  Float64
};

/// One metadata value, checked to lie in the file.
struct GgufValue {
  absl::string_view key;
  GgufType type = GgufType::UInt8; ///< Type of the value, or of an array's
                                   ///< elements.
  bool isArray = false;
  uint64_t count = 1; ///< Elements.
  /// The elements as they lie in the file, without alignment; a string is a
  /// u64 length and its bytes.
  absl::Span<const uint8_t> bytes;
  uint64_t offset = 0; ///< Offset of `bytes` in the file.
};

/// The checked metadata and tensor records of a file.
class GgufReader {
public:
  static absl::StatusOr<std::shared_ptr<const GgufReader>>
  open(std::shared_ptr<MappedFile> file);

  const std::shared_ptr<MappedFile> &file() const { return mapped; }
  const std::vector<GgufValue> &values() const { return metadata; }
  const std::vector<StoredTensor> &tensors() const { return list; }

  /// The value of `key`, or null.
  const GgufValue *find(absl::string_view key) const;
  const StoredTensor *findTensor(absl::string_view name) const;

  /// A scalar of `key`; nothing when there is no such key; an error when it is
  /// of another kind. Integers of all widths are taken, floats of both.
  absl::StatusOr<std::optional<int64_t>>
  optionalInt(absl::string_view key) const;
  absl::StatusOr<std::optional<double>>
  optionalNumber(absl::string_view key) const;
  absl::StatusOr<std::optional<bool>> optionalBool(absl::string_view key) const;
  absl::StatusOr<std::optional<absl::string_view>>
  optionalString(absl::string_view key) const;

  /// An array of `key`, empty when there is no such key. The strings are views
  /// of the map.
  absl::StatusOr<std::vector<absl::string_view>>
  strings(absl::string_view key) const;
  /// Bools are 0 and 1.
  absl::StatusOr<std::vector<int64_t>> ints(absl::string_view key) const;
  absl::StatusOr<std::vector<float>> floats(absl::string_view key) const;

  /// `file:offset: key: expected ..., got ...` for the value of `key`.
  absl::Status fail(absl::string_view key, absl::string_view expected,
                    absl::string_view got) const;
  /// fail() for a value that is well-formed but not supported.
  absl::Status unsupported(absl::string_view key, absl::string_view expected,
                           absl::string_view got) const;

private:
  explicit GgufReader(std::shared_ptr<MappedFile> file)
      : mapped(std::move(file)) {}
  absl::Status parse();
  template <class T, class Convert>
  absl::StatusOr<std::optional<T>> scalar(absl::string_view key,
                                          absl::string_view expected,
                                          const Convert &convert) const;
  template <class T, class Convert>
  absl::StatusOr<std::vector<T>> array(absl::string_view key,
                                       absl::string_view expected,
                                       const Convert &convert) const;

  std::shared_ptr<MappedFile> mapped;
  std::vector<GgufValue> metadata;
  std::vector<StoredTensor> list;
  absl::flat_hash_map<absl::string_view, size_t> keys;
  absl::flat_hash_map<std::string, size_t> names;
};

} // namespace llamac

#endif // LLAMAC_FRONTENDS_GGUF_GGUFREADER_H
