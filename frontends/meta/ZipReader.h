//===- ZipReader.h - Directory of a zip file of stored entries  -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PyTorch's checkpoints are zip files whose entries are stored as they are, so
// that tensors can be mapped in place. This reader takes nothing else: no
// compression, no encryption, no duplicate or escaping names, no entries that
// overlap, and no local header that contradicts the central directory. Zip64 is
// supported.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_META_ZIPREADER_H
#define LLAMAC_FRONTENDS_META_ZIPREADER_H

#include "runtime/io/MappedFile.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <vector>

namespace llamac {

/// In a field of 32 bits: the value is in the zip64 record.
inline constexpr uint32_t zip64Field = 0xffffffff;

struct ZipEntry {
  absl::string_view name; ///< In the map.
  uint64_t offset = 0;    ///< Offset of the data in the file.
  uint64_t size = 0;      ///< In bytes.
  uint32_t crc = 0;       ///< CRC-32 of the data, as the directory says.
  uint64_t record = 0;    ///< Offset of the directory's record, for messages.
};

/// The checked directory of a zip file, which outlives it.
class ZipReader {
public:
  static absl::StatusOr<ZipReader> open(const MappedFile &file);

  const MappedFile &file() const { return *mapped; }
  const std::vector<ZipEntry> &entries() const { return list; }

  /// The entry named `name`, or null.
  const ZipEntry *find(absl::string_view name) const;

  /// The bytes of `entry` after its CRC was checked: for small entries.
  absl::StatusOr<absl::Span<const uint8_t>>
  readChecked(const ZipEntry &entry) const;

private:
  explicit ZipReader(const MappedFile &file) : mapped(&file) {}

  const MappedFile *mapped;
  std::vector<ZipEntry> list;
  absl::flat_hash_map<absl::string_view, size_t> indices;
};

} // namespace llamac

#endif // LLAMAC_FRONTENDS_META_ZIPREADER_H
