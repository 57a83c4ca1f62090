//===- PrefixFile.cpp - A prefix cache in a file --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/cache/PrefixFile.h"

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/CheckedMath.h"
#include "runtime/io/Malformed.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace llamac {

namespace {

constexpr std::array<uint8_t, 8> magic = {0x89, 'L',  'L',  'K',
                                          '\r', '\n', 0x1a, '\n'};
constexpr uint32_t version = 1;
constexpr uint64_t pagesAlignment = 4096;
/// More than any has.
constexpr uint32_t mostIdentityBytes = 4096;

struct Header {
  std::array<uint8_t, 8> magic = llamac::magic;
  uint32_t version = llamac::version;
  uint32_t pageTokens = 0;
  uint32_t groups = 0;
  uint32_t identityBytes = 0;
  uint64_t nodes = 0;
  uint64_t fileBytes = 0;
  uint64_t reserved = 0; ///< 0.
  PlanHash hash = {};    ///< Hash of the fields above, then the table.
};
static_assert(sizeof(Header) == 64);
constexpr uint64_t hashedBytes = 48;

struct NodeEntry {
  int64_t parent;
  PlanHash hash; ///< Hash of its pages, one after the other.
};
static_assert(sizeof(NodeEntry) == 24);

/// Where the parts of a table begin, from its own first byte on.
struct TableShape {
  uint64_t nodes = 0, tokens = 0, presence = 0, identity = 0;
  uint64_t bytes = 0; ///< Bytes of all parts.
};

} // namespace

/// None when the counts of `header` leave 64 bits.
static std::optional<TableShape> shapeOf(const Header &header) {
  TableShape shape;
  uint64_t end = 0;
  const auto part = [&](uint64_t &begin, uint64_t count, uint64_t each) {
    const std::optional<uint64_t> size = checkedMul(count, each);
    const std::optional<uint64_t> after =
        size ? checkedAdd(end, *size) : std::nullopt;
    begin = end;
    end = after.value_or(end);
    return after.has_value();
  };
  uint64_t groups = 0;
  if (!part(groups, header.groups, sizeof(uint64_t)) ||
      !part(shape.nodes, header.nodes, sizeof(NodeEntry)) ||
      !part(shape.tokens, header.nodes,
            header.pageTokens * uint64_t{sizeof(int32_t)}) ||
      !part(shape.presence, header.nodes, header.groups) ||
      !part(shape.identity, header.identityBytes, 1))
    return std::nullopt;
  shape.bytes = end;
  return shape;
}

/// The first multiple of the pages' alignment at `offset` or behind it.
static std::optional<uint64_t> alignPages(uint64_t offset) {
  const std::optional<uint64_t> last = checkedAdd(offset, pagesAlignment - 1);
  return last ? std::optional(*last / pagesAlignment * pagesAlignment)
              : std::nullopt;
}

static PlanHash hashOf(const Header &header, absl::Span<const uint8_t> table) {
  return hashBytes({reinterpret_cast<const uint8_t *>(&header), hashedBytes},
                   table);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static absl::Status damaged(const MappedFile &file, uint64_t offset,
                            const absl::AlphaNum &field,
                            const absl::AlphaNum &expected,
                            const absl::AlphaNum &got) {
  return badFileAt(file.path(), offset,
                   absl::StrCat(field, ": expected ", expected, ", got ", got,
                                "; remove the file, or name another one"));
}

/// The header, whose table lies in the file.
static absl::StatusOr<Header> readHeader(const MappedFile &file) {
  Header header;
  const absl::Span<const uint8_t> bytes = file.span();
  if (bytes.size() < sizeof(header))
    return damaged(file, 0, "prefix cache",
                   absl::StrCat("at least ", sizeof(header), " bytes"),
                   bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != magic)
    return badFileAt(file.path(), 0,
                     "magic: expected that of a prefix cache, got another "
                     "kind of file; name another one");
  if (header.version != version)
    return damaged(file, 8, "version of the prefix cache", version,
                   header.version);
  if (header.fileBytes != bytes.size())
    return damaged(file, 32, "size of the file",
                   absl::StrCat(header.fileBytes, " bytes"), bytes.size());
  if (header.identityBytes > mostIdentityBytes)
    return damaged(file, 20, "bytes of the identity",
                   absl::StrCat("at most ", mostIdentityBytes),
                   header.identityBytes);
  const std::optional<TableShape> shape = shapeOf(header);
  if (!shape || !isInside(sizeof(header), shape->bytes, bytes.size()))
    return damaged(file, 24, "table",
                   absl::StrCat("to end within ", bytes.size(), " bytes"),
                   absl::StrCat(header.nodes, " nodes of ", header.pageTokens,
                                " tokens and ", header.groups, " groups"));
  if (header.reserved != 0)
    return damaged(file, 40, "reserved field", 0, header.reserved);
  return header;
}

absl::StatusOr<std::unique_ptr<PrefixFile>>
PrefixFile::open(absl::string_view path, const PrefixFileLayout &layout) {
  std::unique_ptr<PrefixFile> opened(new PrefixFile);
  LLAMAC_ASSIGN_OR_RETURN(opened->file, MappedFile::open(path));
  LLAMAC_RETURN_IF_ERROR(opened->readTable(layout));
  return opened;
}

absl::Status PrefixFile::readTable(const PrefixFileLayout &layout) {
  LLAMAC_ASSIGN_OR_RETURN(const Header header, readHeader(*file));
  const TableShape shape = *shapeOf(header);
  const absl::Span<const uint8_t> bytes =
      file->span().subspan(sizeof(header), shape.bytes);
  table.assign(bytes.begin(), bytes.end());
  if (const PlanHash got = hashOf(header, table); got != header.hash)
    return damaged(*file, hashedBytes, "checksum of header and table",
                   hashText(header.hash), hashText(got));

  const std::string identity(
      table.begin() + static_cast<ptrdiff_t>(shape.identity), table.end());
  if (identity != layout.identity)
    return usageError(
        absl::StrCat(file->path(), ": expected a prefix cache of ",
                     layout.identity, ", got one of ", printable(identity),
                     "; name another file, or remove it to begin anew"));
  pageTokens = header.pageTokens;
  if (pageTokens != layout.pageTokens)
    return damaged(*file, 12, "tokens of a page", layout.pageTokens,
                   pageTokens);
  if (header.groups != layout.pageBytes.size())
    return damaged(*file, 16, "groups of layers", layout.pageBytes.size(),
                   header.groups);
  pageBytes = layout.pageBytes;
  for (size_t group = 0; group < pageBytes.size(); ++group) {
    uint64_t got = 0;
    std::memcpy(&got, table.data() + group * sizeof(got), sizeof(got));
    if (got != pageBytes[group])
      return damaged(*file, sizeof(header) + group * sizeof(got),
                     absl::StrCat("bytes of a page of group ", group),
                     pageBytes[group], got);
  }
  nodes = shape.nodes;
  tokens = shape.tokens;
  presence = shape.presence;
  offsets.resize(header.nodes);
  return readNodes(sizeof(header) + shape.bytes);
}

/// Checks the nodes, and finds where their pages lie from `end` on.
absl::Status PrefixFile::readNodes(uint64_t end) {
  for (size_t i = 0; i < size(); ++i) {
    const uint64_t at = sizeof(Header) + nodes + i * sizeof(NodeEntry);
    const int64_t parent = node(i).parent;
    if (parent < -1 || parent >= static_cast<int64_t>(i))
      return damaged(*file, at, absl::StrCat("parent of node ", i),
                     absl::StrCat("a node before it, or -1"), parent);
    std::optional<uint64_t> after = alignPages(end);
    offsets[i] = after.value_or(0);
    for (size_t group = 0; group < pageBytes.size(); ++group)
      if (after && has(i, group))
        after = checkedAdd(*after, pageBytes[group]);
    if (!after || *after > file->size())
      return damaged(*file, at, absl::StrCat("pages of node ", i),
                     absl::StrCat("to end within ", file->size(), " bytes"),
                     absl::StrCat("offset ", offsets[i]));
    end = *after;
  }
  if (end != file->size())
    return damaged(*file, end, "size of the file", absl::StrCat(end, " bytes"),
                   file->size());
  return absl::OkStatus();
}

PrefixFileNode PrefixFile::node(size_t number) const {
  PrefixFileNode node{};
  std::memcpy(&node.parent, table.data() + nodes + number * sizeof(NodeEntry),
              sizeof(node.parent));
  // Behind multiples of 8 bytes.
  const auto *all = reinterpret_cast<const int32_t *>(table.data() + tokens);
  node.tokens = {all + number * pageTokens, pageTokens};
  return node;
}

absl::StatusOr<absl::Span<const uint8_t>> PrefixFile::page(size_t number,
                                                           size_t group) const {
  // One that was cut short would end the process where it is read.
  LLAMAC_RETURN_IF_ERROR(file->checkUnchanged());
  uint64_t begin = 0, size = 0;
  for (size_t other = 0; other < pageBytes.size(); ++other) {
    if (other == group)
      begin = size;
    if (has(number, other))
      size += pageBytes[other];
  }
  const absl::Span<const uint8_t> bytes =
      file->span().subspan(offsets[number], size);
  NodeEntry entry;
  std::memcpy(&entry, table.data() + nodes + number * sizeof(entry),
              sizeof(entry));
  if (const PlanHash got = hashBytes(bytes); got != entry.hash)
    return malformed(file->path(), offsets[number],
                     absl::StrCat("checksum of the pages of node ", number),
                     hashText(entry.hash), hashText(got));
  return bytes.subspan(begin, pageBytes[group]);
}

void PrefixFile::forget(size_t number) {
  std::fill_n(table.begin() +
                  static_cast<ptrdiff_t>(presence + number * pageBytes.size()),
              pageBytes.size(), uint8_t{0});
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

absl::Status writePrefixFile(absl::string_view path,
                             const PrefixFileLayout &layout,
                             absl::Span<const PrefixFileNode> nodes,
                             PrefixFilePages pages, FileCalls calls) {
  const size_t groups = layout.pageBytes.size();
  Header header{.pageTokens = layout.pageTokens,
                .groups = static_cast<uint32_t>(groups),
                .identityBytes = static_cast<uint32_t>(layout.identity.size()),
                .nodes = nodes.size()};
  const TableShape shape = *shapeOf(header);
  std::vector<uint8_t> table(shape.bytes);
  const auto put = [&](uint64_t offset, const void *from, size_t size) {
    std::memcpy(table.data() + offset, from, size);
  };
  put(0, layout.pageBytes.data(), groups * sizeof(uint64_t));
  put(shape.identity, layout.identity.data(), layout.identity.size());

  LLAMAC_ASSIGN_OR_RETURN(const auto file,
                          AtomicFile::create(path, std::move(calls)));
  // Their place; the bytes come when all pages are known.
  LLAMAC_RETURN_IF_ERROR(file->write(std::vector<uint8_t>(sizeof(header), 0)));
  LLAMAC_RETURN_IF_ERROR(file->write(table));
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    LLAMAC_RETURN_IF_ERROR(file->alignTo(pagesAlignment));
    bytes.clear();
    for (size_t group = 0; group < groups; ++group) {
      LLAMAC_ASSIGN_OR_RETURN(const bool has, pages(i, group, bytes));
      table[shape.presence + i * groups + group] = has;
    }
    LLAMAC_RETURN_IF_ERROR(file->write(bytes));
    const NodeEntry entry{nodes[i].parent, hashBytes(bytes)};
    put(shape.nodes + i * sizeof(entry), &entry, sizeof(entry));
    const size_t size = layout.pageTokens * sizeof(int32_t);
    put(shape.tokens + i * size, nodes[i].tokens.data(), size);
  }
  header.fileBytes = file->size();
  header.hash = hashOf(header, table);
  LLAMAC_RETURN_IF_ERROR(file->overwrite(
      0, {reinterpret_cast<const uint8_t *>(&header), sizeof(header)}));
  LLAMAC_RETURN_IF_ERROR(file->overwrite(sizeof(header), table));
  return file->commit();
}

} // namespace llamac
