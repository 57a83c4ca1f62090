//===- PlanMemory.h - The memory that steps of a plan run in ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_PLANMEMORY_H
#define LLAMAC_RUNTIME_LOAD_PLANMEMORY_H

#include "runtime/device/LaunchObserver.h"
#include "runtime/load/LoadedPlan.h"
#include "runtime/load/StepInputs.h"
#include "runtime/ranks/ProcessExchange.h"

#include <map>
#include <memory>
#include <vector>

namespace llamac {

class FollowerMemory;

/// Where launches of a rank find the exchange areas of all ranks: by the offset
/// of an operand, a table in the rank's memory.
class PeerTables {
public:
  /// The tables of all programs of `plan`; none where `device` gathers what
  /// they read. `areas` are those of all ranks, as `device` sees them.
  static absl::StatusOr<PeerTables> create(const schema::PlanT &plan,
                                           Device &device,
                                           absl::Span<void *const> areas);

  /// The value of ProgramBindings::peers.
  std::map<uint64_t, void *> addresses() const;

private:
  std::map<uint64_t, std::unique_ptr<Buffer>> tables;
};

/// The memory that the programs of a plan are bound to beside its weights: an
/// arena, pools of the cache, inputs, counters and exchange areas, on each rank
/// of this process. Where others are processes, rank 0 has them do what is done
/// here.
class PlanMemory final : public StepMemory {
public:
  /// All but the pools. Where ranks are processes, rank 0 says in `areas` where
  /// they find their exchange areas, and the others are given that. `plan`
  /// outlives it.
  static absl::StatusOr<std::unique_ptr<PlanMemory>>
  create(const LoadedPlan &plan, SharedFile areas = {});
  ~PlanMemory() override;

  /// Allocates pools of at most `pages` pages in a group, in place of those
  /// that there are; 0: as many as all sequences can use.
  absl::Status allocatePools(int64_t pages);

  /// Binds all programs; the pools are there.
  absl::Status prepare();

  /// Binds one of `plan`, which may have other configs.
  absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(const LoadedPlan &plan, size_t program) const;

  PreparedProgram &program(size_t number) const { return *programs[number]; }

  StepInputs &inputs() { return stepInputs; }

  /// Writes what was filled in inputs().
  absl::Status sendInputs();

  /// Writes bytes of the buffer of all inputs.
  absl::Status writeInputs(uint64_t offset, absl::Span<const uint8_t> bytes);

  // Buffers of the first rank of this process.
  Buffer &inputBuffer() const { return *ofRanks.front().inputs; }
  Buffer &pool(size_t layer) const { return *ofRanks.front().pools[layer]; }
  /// Bytes of the pools of all layers.
  uint64_t poolBytes() const;

  /// Bytes of the arena of the first rank. See StepMemory.
  absl::StatusOr<absl::Span<const uint8_t>>
  readArena(uint64_t offset, uint64_t size,
            std::vector<uint8_t> &staging) const;

  absl::StatusOr<absl::Span<const uint8_t>>
  read(const schema::Operand &operand, uint64_t offset, uint64_t size,
       std::vector<uint8_t> &staging) override;
  /// On all ranks. Of ranks that are processes, inputs alone.
  absl::Status write(const schema::Operand &operand, uint64_t offset,
                     absl::Span<const uint8_t> bytes) override;

private:
  struct Rank {
    std::unique_ptr<Buffer> arena, counters, inputs;
    /// Null where it is that of `processes`.
    std::unique_ptr<Buffer> exchange;
    std::vector<std::unique_ptr<Buffer>> pools; ///< Numbered by layer.
    PeerTables peers;
  };
  struct Place {
    Buffer *buffer;
    uint64_t start;
  };

  explicit PlanMemory(const LoadedPlan &plan);

  absl::Status allocate();
  absl::Status allocateExchange();
  absl::StatusOr<Place> find(const Rank &rank, const schema::Operand &operand,
                             uint64_t offset, uint64_t size) const;

  const LoadedPlan &plan;
  StepInputs stepInputs;
  SharedFile areas;
  std::unique_ptr<ProcessExchange> processes; ///< The areas of processes.
  std::vector<Rank> ofRanks;                  ///< The ranks of this process.
  std::unique_ptr<FollowerMemory> followers;  ///< Null without a RankTeam.
  std::vector<std::unique_ptr<PreparedProgram>> programs;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_PLANMEMORY_H
