//===- Simulator.h - Runs CUDA kernels on the host --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel's threads are fibers. Blocks run one after the other, those of a
// cooperative launch together. What a GPU leaves open is made to fail: the
// order of threads varies, shared memory starts as NaN, asynchronous copies are
// late. docs/simulator.md lists what is found.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_SIMULATOR_H
#define LLAMAC_SIMULATOR_SIMULATOR_H

#include "simulator/Fiber.h"
#include "simulator/SimModule.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

/// Which of the ready threads runs next.
enum class SimSchedule {
  Forward, ///< The first.
  Reverse, ///< The last.
  Random,  ///< Any, by the seed; the order of blocks is random too.
  /// Random, but one of the blocks that run together, by the seed, stands
  /// still: it runs when the others have looked in vain for what it does many
  /// times.
  Stalled,
};

struct SimOptions {
  SimSchedule schedule = SimSchedule::Forward;
  uint64_t seed = 0;
  /// Whether bounds, initialised bytes and races are checked. The module must
  /// have been compiled for it; all blocks then run on one host thread.
  bool checked = false;
  /// Host threads that blocks are spread over; 0 means one for each core.
  unsigned hostThreads = 0;
  /// The most shared memory of a block, in bytes; sm_90a's by default.
  uint32_t sharedLimit = 232448;
  /// Whether prologues of a dependent launch run before the previous launch.
  bool earlyDependents = false;
};

struct SimSize {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;

  uint64_t count() const { return uint64_t{x} * y * z; }
};

/// extern "C" __global__ void KERNEL(T0 *args[0], T1 *args[1], ..., int rows),
/// or KERNEL(LLAMAC_TABLE(Table, args), int rows).
struct SimLaunch {
  std::string kernel;
  SimSize grid;
  SimSize block;
  uint32_t sharedBytes = 0;      ///< Dynamic shared memory.
  std::vector<void *> args = {}; ///< At most 32, unless they are a table.
  int32_t rows = 0;
  /// The kernel takes its operands as one structure of pointers.
  bool table = false;
  /// All blocks are resident at once and may wait for each other.
  bool cooperative = false;
  /// Programmatic dependent launch: every thread calls gridDependencyWait(). A
  /// cooperative one does not begin early.
  bool dependent = false;
  /// Blocks along x that run together and reach each other's shared memory; it
  /// divides grid.x. No cooperative launch has clusters.
  uint32_t cluster = 1;
  /// Blocks to run, by number, each with its cluster; empty: all.
  std::vector<uint32_t> blocks = {};

  static constexpr uint32_t usualResidentBlocks = 3;

  /// Makes it a resident kernel's, which works with any number of blocks: it
  /// has `most` of them at most, as each takes time.
  void makeResident(uint32_t most = usualResidentBlocks) {
    table = cooperative = true;
    grid.x = std::min(grid.x, most);
  }
};

/// The contents of a buffer when it is registered.
enum class SimContents { Defined, Undefined, ReadOnly };

/// The memory that checked kernels may touch besides their own.
class SimMemory {
public:
  struct Buffer {
    std::string name; ///< For messages.
    /// Names of the parts that begin at these bytes, where it has parts.
    std::map<uint64_t, std::string> parts;
    uint64_t size = 0;
    bool readOnly = false;
    /// One byte for each, not 0 where it was written; empty: all were.
    std::vector<uint8_t> defined;
  };

  /// Registers `size` bytes at `address`, which overlap no other buffer.
  void add(std::string name, void *address, uint64_t size,
           SimContents contents = SimContents::Defined);
  void remove(void *address);

  /// Marks `size` bytes at `address`, in one buffer that was registered as
  /// undefined, as written by the host or as undefined again.
  void markDefined(void *address, uint64_t size, bool defined = true);

  /// Names what starts at `address`: a buffer, or a part of one, which ends
  /// where the next begins. Nothing where there is no buffer.
  void rename(void *address, std::string name);

  /// The buffer that `address` is in, and its start; null if there is none.
  Buffer *find(const void *address, uintptr_t &start);

  /// Where `address` is, for messages: "4 bytes behind the end of 'x'".
  std::string describe(const void *address) const;

private:
  std::map<uintptr_t, Buffer> buffers;
};

class Simulator {
public:
  explicit Simulator(const SimOptions &options) : options(options) {}

  SimMemory &memory() { return registered; }

  /// Runs one launch to its end. A fault of the kernel is a device error: one
  /// line with the kernel, block, thread, place in the source, and the fault.
  /// The contents of the launch's buffers are then undefined.
  absl::Status run(const SimModule &module, const SimLaunch &launch);

  /// Runs `launches` in order; a dependent one may begin early (see
  /// SimOptions).
  absl::Status run(const SimModule &module,
                   absl::Span<const SimLaunch> launches);

private:
  class Running;

  absl::StatusOr<std::unique_ptr<Running>> start(const SimModule &module,
                                                 const SimLaunch &launch);

  SimOptions options;
  SimMemory registered;
  std::shared_ptr<sim::StackPool> stacks = sim::StackPool::shared();
};

} // namespace llamac

#endif // LLAMAC_SIMULATOR_SIMULATOR_H
