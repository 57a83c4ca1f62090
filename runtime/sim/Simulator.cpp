//===- Simulator.cpp - Runs CUDA kernels on the host ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/sim/Simulator.h"

#include "runtime/base/Status.h"
#include "runtime/sim/Machine.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <random>
#include <thread>

namespace llamac {

void SimMemory::add(std::string name, void *address, uint64_t size,
                    SimContents contents) {
  Buffer buffer{std::move(name), size, contents == SimContents::ReadOnly, {}};
  if (contents == SimContents::Undefined)
    buffer.defined.assign(size, 0);
  buffers[reinterpret_cast<uintptr_t>(address)] = std::move(buffer);
}

void SimMemory::remove(void *address) {
  buffers.erase(reinterpret_cast<uintptr_t>(address));
}

void SimMemory::markDefined(void *address, uint64_t size, bool defined) {
  uintptr_t start = 0;
  Buffer *buffer = find(address, start);
  assert(buffer && "the host writes to registered buffers");
  if (!buffer->defined.empty())
    std::fill_n(buffer->defined.begin() +
                    static_cast<ptrdiff_t>(
                        reinterpret_cast<uintptr_t>(address) - start),
                size, defined ? 1 : 0);
}

void SimMemory::rename(void *address, std::string name) {
  if (auto buffer = buffers.find(reinterpret_cast<uintptr_t>(address));
      buffer != buffers.end())
    buffer->second.name = std::move(name);
}

SimMemory::Buffer *SimMemory::find(const void *address, uintptr_t &start) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto next = buffers.upper_bound(at);
  if (next == buffers.begin())
    return nullptr;
  --next;
  start = next->first;
  return at - start < next->second.size ? &next->second : nullptr;
}

std::string SimMemory::describe(const void *address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto next = buffers.upper_bound(at);
  // The nearest buffer: the one that starts before, or the one behind.
  constexpr uint64_t near = 1 << 20;
  if (next != buffers.begin()) {
    const auto &[start, buffer] = *std::prev(next);
    if (at - start < buffer.size + near &&
        (at - start < buffer.size || next == buffers.end() ||
         at - start - buffer.size < next->first - at))
      return absl::StrCat("'", buffer.name, "' at byte ", at - start, " of ",
                          buffer.size);
  }
  if (next != buffers.end() && next->first - at < near)
    return absl::StrCat("'", next->second.name, "' at byte -", next->first - at,
                        " of ", next->second.size);
  return "an address that is near no buffer";
}

/// The blocks that run, cluster by cluster, in the order of the schedule.
static std::vector<uint32_t> blockOrder(const SimLaunch &launch,
                                        const SimOptions &options) {
  std::vector<uint32_t> clusters;
  if (launch.blocks.empty()) {
    clusters.resize(launch.grid.count() / launch.cluster);
    std::iota(clusters.begin(), clusters.end(), 0);
  }
  for (const uint32_t block : launch.blocks)
    if (const uint32_t cluster = block / launch.cluster;
        std::find(clusters.begin(), clusters.end(), cluster) == clusters.end())
      clusters.push_back(cluster);
  if (options.schedule == SimSchedule::Reverse)
    std::reverse(clusters.begin(), clusters.end());
  if (options.schedule == SimSchedule::Random)
    std::shuffle(clusters.begin(), clusters.end(),
                 std::mt19937_64(options.seed));
  std::vector<uint32_t> order;
  for (const uint32_t cluster : clusters)
    for (uint32_t rank = 0; rank < launch.cluster; ++rank)
      order.push_back(cluster * launch.cluster + rank);
  return order;
}

absl::Status Simulator::run(const SimModule &module, const SimLaunch &launch) {
  LLAMAC_ASSIGN_OR_RETURN(const void *kernel, module.kernel(launch.kernel));
  const uint64_t threads = launch.block.count();
  const uint64_t blocks = launch.grid.count();
  if (threads == 0 || threads > 1024 || blocks == 0 || blocks > INT32_MAX)
    return usageError(
        absl::StrCat("kernel ", launch.kernel, ": a launch of ", blocks,
                     " blocks of ", threads,
                     " threads; expected at least one of each and at most 1024 "
                     "threads"));
  if (launch.args.size() > 32)
    return usageError(absl::StrCat("kernel ", launch.kernel, ": ",
                                   launch.args.size(),
                                   " operands; expected at most 32"));
  if (launch.sharedBytes > options.sharedLimit)
    return deviceError(absl::StrCat(
        "kernel ", launch.kernel, ": needs ", launch.sharedBytes,
        " B of shared memory, a block has ", options.sharedLimit, " B"));

  constexpr uint32_t mostOfCluster = 8;
  const uint32_t cluster = launch.cluster;
  if (cluster == 0 || cluster > mostOfCluster || launch.grid.x % cluster != 0 ||
      (cluster > 1 && launch.cooperative))
    return usageError(absl::StrCat(
        "kernel ", launch.kernel, ": clusters of ", cluster,
        " blocks; expected 1 to ", mostOfCluster, ", what divides the grid's ",
        launch.grid.x, " blocks along x, in a launch that is not cooperative"));

  sim::Launch shared(module, launch, options, registered, stacks, kernel);
  shared.blockOrder = blockOrder(launch, options);

  auto work = [&shared, cluster] {
    sim::Group group(shared, shared.options.seed);
    for (;;) {
      const uint64_t next = shared.nextBlock.fetch_add(cluster);
      if (next >= shared.blockOrder.size() ||
          !group.run(&shared.blockOrder[next], cluster))
        return;
    }
  };
  unsigned workers = options.hostThreads ? options.hostThreads
                                         : std::thread::hardware_concurrency();
  workers = std::min<uint64_t>(options.checked ? 1 : workers, blocks / cluster);
  if (launch.cooperative) {
    sim::Group(shared, options.seed)
        .run(shared.blockOrder.data(), shared.blockOrder.size());
  } else if (workers <= 1) {
    work();
  } else {
    std::vector<std::thread> team;
    team.reserve(workers);
    for (unsigned i = 0; i < workers; ++i)
      team.emplace_back(work);
    for (std::thread &member : team)
      member.join();
  }
  if (shared.failed)
    return deviceError(shared.error);
  return absl::OkStatus();
}

} // namespace llamac
