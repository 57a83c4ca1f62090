//===- DependentLaunches.cpp - Programmatic dependent launch --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programmatic dependent launch: a launch may begin once every block of the
// previous one has begun, which may itself wait for the one before it. The
// simulator takes that to its limit: the prologues of the first blocks, up to
// griddepcontrol.wait, run before the previous launch does, and their copies
// take what is in memory then. A value that is read too early is an old one.
// Checked launches report a byte that a prologue reads and a launch since the
// last full barrier writes, and every write in a prologue.
//
//===----------------------------------------------------------------------===//

#include "simulator/Machine.h"

#include "absl/strings/str_cat.h"

namespace llamac::sim {

//===----------------------------------------------------------------------===//
// Writes of previous launches
//===----------------------------------------------------------------------===//

void ChainWrites::add(Launch &launch) {
  kernels.push_back(launch.launch.kernel);
  const auto number = static_cast<uint32_t>(kernels.size());
  launch.globalShadow.forEachByte([&](const Cell &cell, uintptr_t address) {
    const Epoch &write = cell.write;
    const bool isAtomic = cell.read.clock != 0 && cell.read.isAtomic;
    if (write.clock == 0 && !isAtomic)
      return;
    Page &page = pages[address / Shadow::pageBytes];
    page.launches[address % Shadow::pageBytes] = number;
    page.sites[address % Shadow::pageBytes] =
        isAtomic ? cell.read.site : write.site;
  });
  launch.words.forEachStore([&](const Epoch &store, uintptr_t address) {
    for (uintptr_t byte = address; byte < address + 4; ++byte) {
      Page &page = pages[byte / Shadow::pageBytes];
      page.launches[byte % Shadow::pageBytes] = number;
      page.sites[byte % Shadow::pageBytes] = store.site;
    }
  });
}

ChainWrites::Writer ChainWrites::find(uintptr_t address) const {
  auto page = pages.find(address / Shadow::pageBytes);
  if (page == pages.end())
    return {};
  const uint32_t number = page->second.launches[address % Shadow::pageBytes];
  if (number == 0)
    return {};
  return {kernels[number - 1], page->second.sites[address % Shadow::pageBytes]};
}

//===----------------------------------------------------------------------===//
// Prologues
//===----------------------------------------------------------------------===//

bool Group::hasEarlyThreads() const {
  for (const std::unique_ptr<Block> &block : blocks)
    for (const Thread &thread : block->threads)
      if (thread.state == State::AtLaunches)
        return true;
  return false;
}

void Group::waitForLaunches() {
  running->hasWaited = true;
  if (!launchesAreDone)
    stopRunning(State::AtLaunches);
}

void Group::begin(const uint32_t *blockIndices, size_t count) {
  launchesAreDone = false;
  prepareAll(blockIndices, count);
  scheduleHere();
}

void Group::resume() {
  launchesAreDone = true;
  for (const std::unique_ptr<Block> &block : blocks)
    for (Thread &thread : block->threads)
      if (thread.state == State::AtLaunches)
        makeReady(thread);
  scheduleHere();
}

void Group::checkEarlyReads(const ChainWrites &written) {
  if (!checked() || launch.failed)
    return;
  launch.globalShadow.forEachByte([&](const Cell &cell, uintptr_t address) {
    if (cell.read.clock == 0 || launch.failed)
      return;
    const ChainWrites::Writer writer = written.find(address);
    if (writer.kernel.empty())
      return;
    const Epoch &read = cell.read;
    for (const std::unique_ptr<Block> &block : blocks)
      if (block->index == read.block)
        report(
            block->threads[read.thread], read.site,
            absl::StrCat(
                "dependent launch: reads ",
                launch.memory.describe(reinterpret_cast<const void *>(address)),
                " before gridDependencyWait, which kernel ", writer.kernel,
                " writes at ", launch.module.place(writer.site)));
  });
}

} // namespace llamac::sim
