//===- ZipReader.cpp - Directory of a zip file of stored entries ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A zip file is read from its end: the end record (found by searching back over
// a comment) gives the central directory, or a zip64 locator before it gives
// the zip64 end record which does. Each directory record gives a local header,
// and the data follows that. Field names are those of PKWARE's APPNOTE 6.3.
//
//===----------------------------------------------------------------------===//

#include "frontends/meta/ZipReader.h"

#include "frontends/ByteCursor.h"
#include "runtime/base/Status.h"
#include "runtime/io/CheckedMath.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <limits>
#include <zlib.h>

namespace llamac {

static constexpr uint32_t localSignature = 0x04034b50;
static constexpr uint32_t centralSignature = 0x02014b50;
static constexpr uint32_t endSignature = 0x06054b50;
static constexpr uint32_t locator64Signature = 0x07064b50;
static constexpr uint32_t end64Signature = 0x06064b50;
static constexpr uint64_t localHeaderBytes = 30;
static constexpr uint64_t centralHeaderBytes = 46;
static constexpr uint64_t endBytes = 22;
static constexpr uint64_t locator64Bytes = 20;
static constexpr uint16_t encryptedFlags = 0x0001 | 0x0040 | 0x2000;
static constexpr uint16_t descriptorFlag = 0x0008;
static constexpr uint16_t zip64Extra = 0x0001;
static constexpr size_t maxNameBytes = 1024;

namespace {

// Where the central directory lies.
struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t entries = 0;
};

} // namespace

template <typename T> static T load(const MappedFile &file, uint64_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

static absl::StatusOr<Directory> findDirectory(const MappedFile &file) {
  const std::string &path = file.path();
  if (file.size() < endBytes)
    return malformed(path, 0, "zip end record",
                     absl::StrCat("at least ", endBytes, " bytes"),
                     file.size());
  // The end record has a comment of up to 65535 bytes after it.
  const uint64_t last = file.size() - endBytes;
  const uint64_t first = last - std::min<uint64_t>(last, 0xffff);
  const auto isEnd = [&](uint64_t at) {
    return load<uint32_t>(file, at) == endSignature &&
           load<uint16_t>(file, at + 20) == last - at;
  };
  uint64_t end = last;
  while (!isEnd(end))
    if (end-- == first)
      return malformed(path, last, "zip end record", "one at the end",
                       "no signature");

  Directory directory;
  if (load<uint16_t>(file, end + 4) != 0 || load<uint16_t>(file, end + 6) != 0)
    return malformed(path, end + 4, "disk number", "a single disk",
                     load<uint16_t>(file, end + 4));
  directory.entries = load<uint16_t>(file, end + 10);
  directory.size = load<uint32_t>(file, end + 12);
  directory.offset = load<uint32_t>(file, end + 16);
  uint64_t limit = end;

  constexpr uint64_t end64Bytes = 56;
  if (end >= locator64Bytes &&
      load<uint32_t>(file, end - locator64Bytes) == locator64Signature) {
    const uint64_t at = load<uint64_t>(file, end - locator64Bytes + 8);
    if (!isInside(at, end64Bytes, end - locator64Bytes) ||
        load<uint32_t>(file, at) != end64Signature)
      return malformed(path, at, "zip64 end record",
                       absl::StrCat(end64Bytes, " bytes with its signature"),
                       "none");
    directory.entries = load<uint64_t>(file, at + 32);
    directory.size = load<uint64_t>(file, at + 40);
    directory.offset = load<uint64_t>(file, at + 48);
    limit = at;
  }
  if (!isInside(directory.offset, directory.size, limit))
    return malformed(
        path, end, "central directory",
        absl::StrCat("an extent within ", limit, " bytes"),
        absl::StrCat(directory.size, " bytes from ", directory.offset));
  if (directory.entries > directory.size / centralHeaderBytes)
    return malformed(
        path, end, "entry count",
        absl::StrCat("at most ", directory.size / centralHeaderBytes,
                     " in a directory of ", directory.size, " bytes"),
        directory.entries);
  return directory;
}

static absl::Status checkName(const std::string &path, uint64_t offset,
                              absl::string_view name) {
  bool good = !name.empty() && name.size() <= maxNameBytes && name[0] != '/' &&
              name.find('\0') == absl::string_view::npos &&
              name.find('\\') == absl::string_view::npos;
  for (absl::string_view part : absl::StrSplit(name, '/'))
    good = good && part != ".." && part != ".";
  if (good)
    return absl::OkStatus();
  return malformed(path, offset, "entry name",
                   "a relative path without \"..\" or backslash",
                   quoteForMessage(name));
}

// Replaces the fields that are zip64Field by those of the zip64 extra field,
// where they lie in this order.
static absl::Status readZip64(const std::string &path, uint64_t offset,
                              absl::Span<const uint8_t> extra,
                              absl::Span<uint64_t *const> fields) {
  if (absl::c_none_of(fields, [](uint64_t *f) { return *f == zip64Field; }))
    return absl::OkStatus();
  ByteCursor cursor(path, extra, offset);
  while (cursor.remaining() > 0) {
    LLAMAC_ASSIGN_OR_RETURN(const uint16_t id,
                            cursor.read<uint16_t>("extra field id"));
    LLAMAC_ASSIGN_OR_RETURN(const uint16_t size,
                            cursor.read<uint16_t>("extra field size"));
    const uint64_t at = cursor.offset();
    LLAMAC_ASSIGN_OR_RETURN(absl::Span<const uint8_t> body,
                            cursor.take(size, "extra field"));
    if (id != zip64Extra)
      continue;
    ByteCursor values(path, body, at);
    for (uint64_t *field : fields)
      if (*field == zip64Field) {
        LLAMAC_ASSIGN_OR_RETURN(*field,
                                values.read<uint64_t>("zip64 extra field"));
      }
    return absl::OkStatus();
  }
  return malformed(path, offset, "zip64 extra field",
                   "one for an entry of 4 GiB or more", "none");
}

// Finds the data of `entry` behind its local header at `offset`, and checks
// that the header says what the directory does.
static absl::Status readLocalHeader(const MappedFile &file, uint64_t offset,
                                    uint64_t limit, ZipEntry &entry) {
  const std::string &path = file.path();
  if (!isInside(offset, localHeaderBytes, limit))
    return malformed(path, entry.record, "local header offset",
                     absl::StrCat("one before the directory at ", limit),
                     offset);
  if (load<uint32_t>(file, offset) != localSignature)
    return malformed(path, offset, "local header", "its signature",
                     absl::Hex(load<uint32_t>(file, offset)));
  const uint16_t flags = load<uint16_t>(file, offset + 6);
  const uint16_t method = load<uint16_t>(file, offset + 8);
  const uint32_t crc = load<uint32_t>(file, offset + 14);
  uint64_t compressed = load<uint32_t>(file, offset + 18);
  uint64_t size = load<uint32_t>(file, offset + 22);
  const uint64_t start = offset + localHeaderBytes;
  ByteCursor cursor(path, file.span().subspan(start, limit - start), start);
  LLAMAC_ASSIGN_OR_RETURN(
      absl::string_view name,
      cursor.takeText(load<uint16_t>(file, offset + 26), "local name"));
  const uint64_t extraAt = cursor.offset();
  LLAMAC_ASSIGN_OR_RETURN(
      absl::Span<const uint8_t> extra,
      cursor.take(load<uint16_t>(file, offset + 28), "local extra field"));
  if (name != entry.name)
    return malformed(path, offset, "local name", quoteForMessage(entry.name),
                     quoteForMessage(name));
  if (method != 0 || (flags & encryptedFlags) != 0)
    return malformed(path, offset, "local method",
                     "a stored, unencrypted entry as in the directory",
                     absl::StrCat("method ", method, ", flags ", flags));
  // With a data descriptor the sizes follow the data and may be 0 here.
  if ((flags & descriptorFlag) == 0) {
    LLAMAC_RETURN_IF_ERROR(
        readZip64(path, extraAt, extra, {&size, &compressed}));
    if (size != entry.size || compressed != entry.size || crc != entry.crc)
      return malformed(path, offset, "local size and CRC",
                       absl::StrCat(entry.size, " and ", absl::Hex(entry.crc),
                                    " as in the directory"),
                       absl::StrCat(size, " and ", absl::Hex(crc)));
  }
  entry.offset = cursor.offset();
  if (entry.size > cursor.remaining())
    return malformed(path, offset, quoteForMessage(entry.name),
                     absl::StrCat("at most ", cursor.remaining(),
                                  " bytes before the directory"),
                     entry.size);
  return absl::OkStatus();
}

absl::StatusOr<ZipReader> ZipReader::open(const MappedFile &file) {
  LLAMAC_ASSIGN_OR_RETURN(const Directory directory, findDirectory(file));
  const std::string &path = file.path();
  ZipReader zip(file);
  ByteCursor cursor(path, file.span().subspan(directory.offset, directory.size),
                    directory.offset);
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const uint64_t at = cursor.offset();
    LLAMAC_RETURN_IF_ERROR(
        cursor.take(centralHeaderBytes, "directory record").status());
    if (load<uint32_t>(file, at) != centralSignature)
      return malformed(path, at, "directory record", "its signature",
                       absl::Hex(load<uint32_t>(file, at)));
    const uint16_t flags = load<uint16_t>(file, at + 8);
    const uint16_t method = load<uint16_t>(file, at + 10);
    ZipEntry entry;
    entry.record = at;
    entry.crc = load<uint32_t>(file, at + 16);
    uint64_t compressed = load<uint32_t>(file, at + 20);
    entry.size = load<uint32_t>(file, at + 24);
    uint64_t local = load<uint32_t>(file, at + 42);
    LLAMAC_ASSIGN_OR_RETURN(
        entry.name,
        cursor.takeText(load<uint16_t>(file, at + 28), "entry name"));
    const uint64_t extraAt = cursor.offset();
    LLAMAC_ASSIGN_OR_RETURN(
        absl::Span<const uint8_t> extra,
        cursor.take(load<uint16_t>(file, at + 30), "extra field"));
    LLAMAC_RETURN_IF_ERROR(
        cursor.take(load<uint16_t>(file, at + 32), "entry comment").status());

    LLAMAC_RETURN_IF_ERROR(checkName(path, at, entry.name));
    const std::string field = quoteForMessage(entry.name);
    if ((flags & encryptedFlags) != 0)
      return malformed(path, at, field, "an unencrypted entry",
                       absl::StrCat("flags ", absl::Hex(flags)));
    if (method != 0)
      return malformed(path, at, field, "a stored entry (method 0)",
                       absl::StrCat("method ", method));
    LLAMAC_RETURN_IF_ERROR(
        readZip64(path, extraAt, extra, {&entry.size, &compressed, &local}));
    if (compressed != entry.size)
      return malformed(path, at, field,
                       absl::StrCat("a stored size of ", entry.size),
                       compressed);
    LLAMAC_RETURN_IF_ERROR(
        readLocalHeader(file, local, directory.offset, entry));
    if (!zip.indices.emplace(entry.name, zip.list.size()).second)
      return malformed(path, at, "entry name", "a name used once",
                       absl::StrCat("a second ", field));
    zip.list.push_back(entry);
  }
  if (cursor.remaining() != 0)
    return malformed(
        path, cursor.offset(), "central directory",
        absl::StrCat("to end after ", directory.entries, " entries"),
        absl::StrCat(cursor.remaining(), " bytes more"));

  std::vector<ZipEntry> byOffset = zip.list;
  absl::c_sort(byOffset, [](const ZipEntry &a, const ZipEntry &b) {
    return a.offset < b.offset;
  });
  for (size_t i = 1; i < byOffset.size(); ++i) {
    const ZipEntry &before = byOffset[i - 1];
    const ZipEntry &after = byOffset[i];
    // At least a local header lies between the data of two entries.
    if (after.offset - before.offset < before.size + localHeaderBytes)
      return malformed(path, after.offset, quoteForMessage(after.name),
                       absl::StrCat("data after ", quoteForMessage(before.name),
                                    ", which ends at ",
                                    before.offset + before.size),
                       "an overlap");
  }
  return zip;
}

const ZipEntry *ZipReader::find(absl::string_view name) const {
  const auto found = indices.find(name);
  return found == indices.end() ? nullptr : &list[found->second];
}

absl::StatusOr<absl::Span<const uint8_t>>
ZipReader::readChecked(const ZipEntry &entry) const {
  if (entry.size > std::numeric_limits<uInt>::max())
    return malformed(mapped->path(), entry.offset, quoteForMessage(entry.name),
                     "less than 4 GiB", entry.size);
  const uint8_t *data = mapped->data() + entry.offset;
  const auto crc = static_cast<uint32_t>(
      crc32(crc32(0, nullptr, 0), data, static_cast<uInt>(entry.size)));
  if (crc != entry.crc)
    return malformed(mapped->path(), entry.offset, quoteForMessage(entry.name),
                     absl::StrCat("CRC-32 ", absl::Hex(entry.crc)),
                     absl::Hex(crc));
  return absl::Span<const uint8_t>(data, entry.size);
}

} // namespace llamac
