//===- CudaMemory.cpp - A GPU's memory, cut into buffers ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudaMemory.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <iterator>

namespace llamac {

CudaMemory::~CudaMemory() {
  for (const auto &[start, block] : blocks)
    freeBlock(start);
}

void CudaMemory::freeBlock(cuda::Address start) const {
  driver.cuStreamSynchronize(work);
  driver.cuMemFree_v2(start);
}

absl::StatusOr<DeviceMemory> CudaMemory::ofDevice() const {
  size_t free = 0, total = 0;
  LLAMAC_RETURN_IF_ERROR(
      driver.check(driver.cuMemGetInfo_v2(&free, &total), "cuMemGetInfo"));
  return DeviceMemory{free, total, taken};
}

absl::Status CudaMemory::reserve(uint64_t size) {
  const std::lock_guard<std::mutex> lock(mutex);
  return addBlock(reservedBytes(size));
}

absl::Status CudaMemory::addBlock(uint64_t size) {
  cuda::Address start = 0;
  const cuda::Result result = driver.cuMemAlloc_v2(&start, size);
  if (result == cuda::errorOutOfMemory) {
    LLAMAC_ASSIGN_OR_RETURN(const DeviceMemory memory, ofDevice());
    return memoryError(absl::StrCat(
        name, ": cannot allocate ", size, " bytes, ", memory.free, " of ",
        memory.total, " are free; compile with a smaller -c or --weights"));
  }
  LLAMAC_RETURN_IF_ERROR(
      driver.check(result, absl::StrCat("cuMemAlloc of ", size, " bytes")));
  blocks[start] = {size, {{0, size}}};
  return absl::OkStatus();
}

absl::StatusOr<cuda::Address> CudaMemory::take(uint64_t size) {
  const std::lock_guard<std::mutex> lock(mutex);
  const uint64_t needed = reservedBytes(size);
  auto takeFree = [&]() -> cuda::Address {
    for (auto &[start, block] : blocks)
      for (auto at = block.free.begin(); at != block.free.end(); ++at) {
        const auto [offset, bytes] = *at;
        if (bytes < needed)
          continue;
        block.free.erase(at);
        taken += needed;
        if (bytes != needed)
          block.free[offset + needed] = bytes - needed;
        return start + offset;
      }
    return 0;
  };
  if (const cuda::Address place = takeFree())
    return place;
  LLAMAC_RETURN_IF_ERROR(addBlock(needed));
  return takeFree();
}

void CudaMemory::giveBack(cuda::Address address, uint64_t size) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = std::prev(blocks.upper_bound(address));
  Block &block = found->second;
  taken -= reservedBytes(size);
  auto place =
      block.free.emplace(address - found->first, reservedBytes(size)).first;
  auto joinNext = [&](auto first) {
    const auto next = std::next(first);
    if (next == block.free.end() || first->first + first->second != next->first)
      return;
    first->second += next->second;
    block.free.erase(next);
  };
  joinNext(place);
  if (place != block.free.begin())
    joinNext(std::prev(place));
  if (block.free.begin()->second != block.size)
    return;
  freeBlock(found->first);
  blocks.erase(found);
}

} // namespace llamac
