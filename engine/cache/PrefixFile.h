//===- PrefixFile.h - A prefix cache in a file ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The nodes of a prefix cache and their pages, of all layers. Everything is
// little-endian:
//
//   header    64 bytes: what the file is, its counts, and the XXH3-128 of the
//             first 48 header bytes followed by the table
//   table     u64 bytes of a page, by group
//             24 bytes a node: i64 its parent's number, which is below its own,
//             or -1; the XXH3-128 of its pages
//             i32 tokens, [nodes][tokens of a page]
//             u8 whether there is a page, [nodes][groups]
//             the identity of the model
//   pages     of one node after the other, from a multiple of 4096 bytes on:
//             by group, a page of each of its layers
//
// Only the header and the table are read when a file is opened. Pages are read
// from the map, and checked, each time they are used.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_CACHE_PREFIXFILE_H
#define LLAMAC_ENGINE_CACHE_PREFIXFILE_H

#include "runtime/io/AtomicFile.h"
#include "runtime/io/MappedFile.h"
#include "runtime/plan/PlanFormat.h"

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

/// The shape of pages.
struct PrefixFileLayout {
  /// A text for people on all that decides the pages' bits, beside their
  /// tokens.
  std::string identity;
  uint32_t pageTokens;
  /// Bytes of a page by group: in all layers of the group together.
  std::vector<uint64_t> pageBytes;
};

/// A page of tokens behind those of its parent.
struct PrefixFileNode {
  int64_t parent; ///< Its number, below the node's own; -1: none.
  absl::Span<const int32_t> tokens;
};

/// A file of a prefix cache, mapped.
class PrefixFile {
public:
  /// Maps the file at `path`. Errors: bad file, naming what was expected and
  /// what was found, for one that is no prefix cache, of another version,
  /// truncated or damaged; usage for one of another identity than `layout` has.
  static absl::StatusOr<std::unique_ptr<PrefixFile>>
  open(absl::string_view path, const PrefixFileLayout &layout);

  size_t size() const { return offsets.size(); }
  PrefixFileNode node(size_t number) const;

  /// Whether node number `number` has a page of `group`.
  bool has(size_t number, size_t group) const {
    return table[presence + number * pageBytes.size() + group] != 0;
  }

  /// The bytes of that page, layer after layer. Bad-file error when those of
  /// the node are not what was written.
  absl::StatusOr<absl::Span<const uint8_t>> page(size_t number,
                                                 size_t group) const;

  /// From now on the node has no pages.
  void forget(size_t number);

private:
  PrefixFile() = default;

  absl::Status readTable(const PrefixFileLayout &layout);
  absl::Status readNodes(uint64_t pagesBegin);

  std::shared_ptr<MappedFile> file;
  std::vector<uint8_t> table;      ///< A copy.
  std::vector<uint64_t> pageBytes; ///< Bytes of a page by group.
  uint32_t pageTokens = 0;
  size_t nodes = 0, tokens = 0, presence = 0; ///< Where they are in the table.
  std::vector<uint64_t> offsets;              ///< Offsets of the nodes' pages.
};

/// Appends the bytes of the page that node number `node` has of `group`, layer
/// after layer; false where it has none.
using PrefixFilePages = absl::FunctionRef<absl::StatusOr<bool>(
    size_t node, size_t group, std::vector<uint8_t> &bytes)>;

/// Replaces the file at `path`, whole or not at all, by one of `nodes`. Errors:
/// those of AtomicFile and of `pages`.
absl::Status writePrefixFile(absl::string_view path,
                             const PrefixFileLayout &layout,
                             absl::Span<const PrefixFileNode> nodes,
                             PrefixFilePages pages,
                             FileCalls calls = FileCalls::system());

} // namespace llamac

#endif // LLAMAC_ENGINE_CACHE_PREFIXFILE_H
