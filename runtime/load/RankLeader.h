//===- RankLeader.h - Rank 0 of several processes ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The engine runs in the process of rank 0. The others load the same plan, each
// with its parts of the weights and of the cache, have the same memory of each
// engine, and run the steps that rank 0 runs (RankFollower.h). What differs
// between two steps are the inputs: their bytes are sent with the next.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_RANKLEADER_H
#define LLAMAC_RUNTIME_LOAD_RANKLEADER_H

#include "runtime/device/Device.h"
#include "runtime/load/ModelOptions.h"
#include "runtime/ranks/ProcessExchange.h"
#include "runtime/ranks/RankWorld.h"

#include <memory>
#include <optional>

namespace llamac {

namespace ranks {
struct StepT;
} // namespace ranks

/// The other ranks, as they have a plan of rank 0.
class RankTeam {
public:
  /// Tells the ranks of `world`, which outlives it, to load the plan at `path`.
  static std::shared_ptr<RankTeam>
  load(RankWorld &world, absl::string_view path, const ModelOptions &options);
  RankTeam(const RankTeam &) = delete;
  RankTeam &operator=(const RankTeam &) = delete;
  ~RankTeam();

  /// Whether the ranks can run `plan`: badPlan for one for another number of
  /// ranks.
  absl::Status check(const PlanReader &plan) const;

  /// Once all have loaded what rank 0 has as `plan`: joins their devices with
  /// `own`, and they begin to load weights. Errors: those of the other ranks
  /// and of joining; badPlan where one has another plan or is another program.
  absl::Status join(const PlanReader &plan, Device &own,
                    std::optional<uint64_t> randomWeights);

  /// Waits until all have their weights. Errors: theirs.
  absl::Status finishLoading();

private:
  friend class FollowerMemory;
  RankTeam(RankWorld &world, uint32_t number) : world(world), number(number) {}

  RankWorld &world;
  const uint32_t number;
};

/// The memory of the other ranks that goes with a PlanMemory of rank 0.
class FollowerMemory {
public:
  explicit FollowerMemory(std::shared_ptr<RankTeam> team);
  FollowerMemory(const FollowerMemory &) = delete;
  FollowerMemory &operator=(const FollowerMemory &) = delete;
  ~FollowerMemory();

  /// Allocates it, and binds programs, as PlanMemory does. Errors: those of the
  /// other ranks.
  absl::Status allocate(int64_t pages, const SharedFile &areas);

  /// Bytes of the inputs, for the next step.
  void write(uint64_t offset, absl::Span<const uint8_t> bytes);

  /// Program number `number`, `own` on rank 0, on all.
  std::unique_ptr<PreparedProgram> lead(const schema::ProgramT &program,
                                        size_t number,
                                        std::unique_ptr<PreparedProgram> own);

  /// Has the others run a step, of one launch or, for -1, of all, and runs
  /// `own` meanwhile.
  absl::Status run(size_t program, const StepShape &shape, int32_t launch,
                   absl::FunctionRef<absl::Status()> own);

private:
  const std::shared_ptr<RankTeam> team;
  const uint32_t number;
  std::unique_ptr<ranks::StepT> next; ///< Has what was written for it.
};

/// Tells the other ranks to end.
void endRanks(RankWorld &world);

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_RANKLEADER_H
