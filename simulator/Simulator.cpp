//===- Simulator.cpp - Runs CUDA kernels on the host ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/Simulator.h"

#include "runtime/base/Status.h"
#include "runtime/threads/ParallelFor.h"
#include "simulator/Machine.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <random>
#include <thread>

namespace llamac {

void SimMemory::add(std::string name, void *address, uint64_t size,
                    SimContents contents) {
  Buffer buffer{.name = std::move(name),
                .parts = {},
                .size = size,
                .readOnly = contents == SimContents::ReadOnly,
                .defined = {}};
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
  uintptr_t start = 0;
  Buffer *buffer = find(address, start);
  if (!buffer)
    return;
  const uint64_t offset = reinterpret_cast<uintptr_t>(address) - start;
  (offset == 0 ? buffer->name : buffer->parts[offset]) = std::move(name);
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
         at - start - buffer.size < next->first - at)) {
      const auto behind = buffer.parts.upper_bound(at - start);
      const auto part =
          behind == buffer.parts.begin()
              ? std::pair(uint64_t{0}, buffer.name)
              : std::pair(std::prev(behind)->first, std::prev(behind)->second);
      const uint64_t end =
          behind == buffer.parts.end() ? buffer.size : behind->first;
      return absl::StrCat("'", part.second, "' at byte ",
                          at - start - part.first, " of ", end - part.first);
    }
  }
  if (next != buffers.end() && next->first - at < near)
    return absl::StrCat("'", next->second.name, "' at byte -", next->first - at,
                        " of ", next->second.size);
  return "an address that is near no buffer";
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

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
  if (options.schedule == SimSchedule::Random ||
      options.schedule == SimSchedule::Stalled)
    std::shuffle(clusters.begin(), clusters.end(),
                 std::mt19937_64(options.seed));
  std::vector<uint32_t> order;
  for (const uint32_t cluster : clusters)
    for (uint32_t rank = 0; rank < launch.cluster; ++rank)
      order.push_back(cluster * launch.cluster + rank);
  return order;
}

/// A launch between its begin and its end.
class Simulator::Running {
public:
  template <class... Args> explicit Running(Args &&...args) : shared{args...} {
    shared.blockOrder = blockOrder(shared.launch, shared.options);
  }

  /// Runs the prologues of the first blocks.
  void begin() {
    // Threads that may be resident beside the previous launch.
    constexpr uint64_t earlyThreads = 2048;
    const uint32_t cluster = shared.launch.cluster;
    const uint64_t count =
        cluster > 1
            ? cluster
            : std::clamp<uint64_t>(earlyThreads / shared.launch.block.count(),
                                   1, shared.blockOrder.size());
    early = std::make_unique<sim::Group>(shared, shared.options.seed);
    shared.nextBlock = count;
    early->begin(shared.blockOrder.data(), count);
  }
  /// Runs all blocks to their end. `written`: by previous launches, since the
  /// last one that was not dependent.
  absl::Status finish(const sim::ChainWrites &written) {
    if (early) {
      early->checkEarlyReads(written);
      early->resume();
    }
    const uint32_t cluster = shared.launch.cluster;
    auto work = [this, cluster] {
      sim::Group group(shared, shared.options.seed);
      for (;;) {
        const uint64_t next = shared.nextBlock.fetch_add(cluster);
        if (next >= shared.blockOrder.size() ||
            !group.run(&shared.blockOrder[next], cluster))
          return;
      }
    };
    const SimOptions &options = shared.options;
    unsigned workers = options.hostThreads
                           ? options.hostThreads
                           : std::thread::hardware_concurrency();
    workers = std::min<uint64_t>(options.checked ? 1 : workers,
                                 shared.launch.grid.count() / cluster);
    if (shared.failed) {
      // Its first blocks have failed.
    } else if (shared.launch.cooperative) {
      sim::Group(shared, options.seed)
          .run(shared.blockOrder.data(), shared.blockOrder.size());
    } else {
      parallelFor(static_cast<int>(workers), workers, [&](size_t) { work(); });
    }
    if (shared.failed)
      return deviceError(shared.error);
    return absl::OkStatus();
  }
  void addWrites(sim::ChainWrites &written) { written.add(shared); }

private:
  sim::Launch shared;
  std::unique_ptr<sim::Group> early; ///< With the first blocks; null: none.
};

absl::StatusOr<std::unique_ptr<Simulator::Running>>
Simulator::start(const SimModule &module, const SimLaunch &launch) {
  LLAMAC_ASSIGN_OR_RETURN(const void *kernel, module.kernel(launch.kernel));
  const uint64_t threads = launch.block.count();
  const uint64_t blocks = launch.grid.count();
  if (threads == 0 || threads > 1024 || blocks == 0 || blocks > INT32_MAX)
    return usageError(
        absl::StrCat("kernel ", launch.kernel, ": a launch of ", blocks,
                     " blocks of ", threads,
                     " threads; expected at least one of each and at most 1024 "
                     "threads"));
  if (launch.args.size() > 32 && !launch.table)
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
  return std::make_unique<Running>(module, launch, options, registered, *stacks,
                                   kernel);
}

absl::Status Simulator::run(const SimModule &module,
                            absl::Span<const SimLaunch> launches) {
  sim::ChainWrites written;
  std::unique_ptr<Running> next;
  for (size_t i = 0; i < launches.size(); ++i) {
    std::unique_ptr<Running> current = std::move(next);
    if (!current) {
      LLAMAC_ASSIGN_OR_RETURN(current, start(module, launches[i]));
    }
    // Behind a launch that waits for all of them nothing of before is at work.
    if (!launches[i].dependent)
      written.clear();
    if (options.earlyDependents && i + 1 < launches.size() &&
        launches[i + 1].dependent && !launches[i + 1].cooperative) {
      LLAMAC_ASSIGN_OR_RETURN(next, start(module, launches[i + 1]));
      next->begin();
    }
    LLAMAC_RETURN_IF_ERROR(current->finish(written));
    if (next)
      current->addWrites(written);
  }
  return absl::OkStatus();
}

absl::Status Simulator::run(const SimModule &module, const SimLaunch &launch) {
  return run(module, absl::MakeConstSpan(&launch, 1));
}

} // namespace llamac
