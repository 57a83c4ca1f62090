//===- TensorCopies.cpp - Boxes of matrices to shared memory --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor copy poisons its destination when it is issued, in every block that
// it goes to, and lands as late as it may, in each block on its own.
//
//===----------------------------------------------------------------------===//

#include "codegen/sim/Machine.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace llamac::sim {

namespace {

/// The part of one row of a box that lies in the matrix.
struct RowPart {
  const std::byte *from;
  int64_t skipped; ///< Bytes of the box before it.
  int64_t size;    ///< Not more than 0: none.
};

} // namespace

static RowPart rowPart(const TensorBox &box, uint32_t row) {
  const TensorMapShape &shape = box.map.shape;
  const int64_t y = box.row + row;
  const int64_t first = std::max<int64_t>(box.column, 0);
  const int64_t end = std::min<int64_t>(box.column + shape.boxColumns,
                                        static_cast<int64_t>(shape.columns));
  if (y < 0 || y >= static_cast<int64_t>(shape.rows))
    return {nullptr, 0, 0};
  return {box.map.base + y * static_cast<int64_t>(shape.rowBytes) +
              first * shape.elementBytes,
          (first - box.column) * shape.elementBytes,
          (end - first) * shape.elementBytes};
}

void Group::tensorLoad(std::byte *shared, const TensorBox &box,
                       unsigned long *barrier, uint32_t ranks) {
  Thread &self = *running;
  const TensorMapShape &shape = box.map.shape;
  if (box.map.mark != SimTensorMap::made)
    fail("a tensor copy whose map is none");
  checkAlignment(shared, 128, "the destination of a tensor copy");
  if (!isSharedOf(*self.block, shared))
    fail(absl::StrCat("out of bounds: a tensor copy to ",
                      describeShared(*self.block, shared)));
  if (checked())
    for (uint32_t row = 0; row < shape.boxRows; ++row)
      if (const RowPart part = rowPart(box, row); part.size > 0)
        check(self, part.from, part.size, Access::Copy);
  // Of a block that has begun early, what arrives is what is there now.
  std::vector<std::byte> taken;
  if (isEarly(self)) {
    const uint32_t rowBytes = shape.boxColumns * shape.elementBytes;
    taken.resize(uint64_t{shape.boxRows} * rowBytes);
    for (uint32_t row = 0; row < shape.boxRows; ++row)
      if (const RowPart part = rowPart(box, row); part.size > 0)
        std::copy_n(part.from, part.size,
                    taken.begin() + int64_t{row} * rowBytes + part.skipped);
  }
  const uint32_t own = clusterRank();
  const ptrdiff_t to = shared - self.block->shared;
  const ptrdiff_t at =
      reinterpret_cast<std::byte *>(barrier) - self.block->shared;
  for (uint32_t mask = ranks ? ranks : 1u << own; mask; mask &= mask - 1) {
    Block &block = peer(std::countr_zero(mask));
    auto *itsBarrier = reinterpret_cast<unsigned long *>(block.shared + at);
    memoryBarrier(block, itsBarrier);
    noteReached(block);
    const AsyncCopy copy{block.shared + to,
                         box.map.base,
                         static_cast<uint32_t>(shape.boxBytes()),
                         0,
                         self.site,
                         taken};
    checkProxy(self, block, copy.to, copy.size);
    if (checked()) {
      checkShared(self, block, copy.to, copy.size, Access::Write);
      std::fill_n(block.sharedState.begin() + to, copy.size,
                  ByteState::UnderWay);
      markCopied(block, copy.to, copy.size);
    }
    std::memset(copy.to, 0xff, copy.size);
    block.bulkCopies.push_back({copy, &self, itsBarrier,
                                checked() ? knowledgeFor(block) : nullptr,
                                box});
  }
}

void Group::landBox(Block &block, const BulkCopy &copy) {
  const TensorMapShape &shape = copy.box->map.shape;
  const auto start = static_cast<uint32_t>(copy.copy.to - block.shared);
  const uint32_t rowBytes = shape.boxColumns * shape.elementBytes;
  uintptr_t bufferStart = 0;
  const SimMemory::Buffer *buffer =
      checked() ? launch.memory.find(copy.box->map.base, bufferStart) : nullptr;
  for (uint32_t row = 0; row < shape.boxRows; ++row) {
    const RowPart part = rowPart(*copy.box, row);
    for (uint32_t byte = 0; byte < rowBytes; byte += shape.elementBytes) {
      // Swizzles count address bits of shared memory, whose start is aligned.
      const uint32_t to =
          swizzled(start + row * rowBytes + byte, shape.swizzleBytes);
      const int64_t at = byte - part.skipped;
      const bool inside = at >= 0 && at < part.size;
      if (inside)
        std::memcpy(block.shared + to,
                    copy.copy.taken.empty()
                        ? part.from + at
                        : &copy.copy.taken[uint64_t{row} * rowBytes + byte],
                    shape.elementBytes);
      else
        std::memset(block.shared + to, 0, shape.elementBytes);
      if (!checked())
        continue;
      const bool defined =
          !inside || !buffer || buffer->defined.empty() ||
          buffer->defined[reinterpret_cast<uintptr_t>(part.from + at) -
                          bufferStart];
      std::fill_n(block.sharedState.begin() + to, shape.elementBytes,
                  defined ? ByteState::Defined : ByteState::Undefined);
    }
  }
}

} // namespace llamac::sim
