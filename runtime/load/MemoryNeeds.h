//===- MemoryNeeds.h - The memory that a plan runs in -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory is checked before anything is loaded, so that a plan that does not fit
// fails at once, with advice on what would fit.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_MEMORYNEEDS_H
#define LLAMAC_RUNTIME_LOAD_MEMORYNEEDS_H

#include "runtime/device/Device.h"

#include <cstdint>
#include <string>

namespace llamac {

/// Bytes of the arena, which the largest program needs.
uint64_t arenaBytes(const schema::PlanT &plan);

/// Bytes of a rank's device's memory, each buffer as reservedBytes() of it.
struct MemoryNeeds {
  uint64_t weights = 0;
  uint64_t kv = 0; ///< With as many pages as all sequences can use.
  uint64_t arena = 0;
  uint64_t inputs = 0;    ///< Inputs of a step, page tables included.
  uint64_t counters = 0;  ///< Blocks of a kernel wait for each other by these.
  uint64_t exchange = 0;  ///< The rank's area, which the others read.
  uint64_t gathered = 0;  ///< A GPU's GatherLayout of the parts of all ranks.
  uint64_t constants = 0; ///< Sections of a plan file.

  /// All but weights and cache.
  uint64_t rest() const {
    return arena + inputs + counters + exchange + gathered + constants;
  }
  uint64_t total() const { return weights + kv + rest(); }
};

/// Needs of a plan without its sections, which may be none yet.
MemoryNeeds memoryNeeds(const schema::PlanT &plan);
MemoryNeeds memoryNeeds(const PlanReader &plan);

/// Bytes of the pools of the cache, of at most `pages` pages in a group of
/// layers; 0 for as many as all sequences can use.
uint64_t kvPoolsBytes(const schema::PlanT &plan, int64_t pages = 0);

/// The most pages of a group whose pools take at most `bytes` together.
int64_t kvPagesWithin(const schema::PlanT &plan, uint64_t bytes);

/// The fewest pages of a group that are of any use: as many as a conversation
/// of 256 tokens takes.
int64_t leastKvPages(const schema::PlanT &plan);

/// Says what to compile with so that `free` bytes will do for `plan`, which
/// needs more: "compile with -c 4096, which would fit". Where `ranks` is not 0,
/// so many would do too. `sequences` have pages for a whole context each; 0 for
/// all of the plan.
std::string memoryAdvice(const schema::PlanT &plan, const MemoryNeeds &needs,
                         uint64_t free, int64_t ranks = 0,
                         int64_t sequences = 0);

/// Memory error when `memory`, that of a device, has less free than `plan`
/// needs: one line with both, what is missing, and the largest context or the
/// best format of the weights that would fit. OK where the host's memory is
/// used. Where sequences share pages (ModelOptions::sharesPages),
/// leastKvPages() do for the cache.
absl::Status checkMemory(const PlanReader &plan,
                         const std::optional<DeviceMemory> &memory,
                         bool sharesPages);

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_MEMORYNEEDS_H
