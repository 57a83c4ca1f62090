//===- LoadedPlan.h - A plan on the devices of its ranks --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process has one rank of a plan or, where mpirun has not started others, all
// of them. What it has of each is the same: a device, the plan's code on it,
// and the rank's parts of the weights.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_LOADEDPLAN_H
#define LLAMAC_RUNTIME_LOAD_LOADEDPLAN_H

#include "runtime/device/Device.h"
#include "runtime/load/ModelOptions.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

class Progress;
class RankTeam;
class RankThreads;

/// The threads that `options` ask for.
int threadsOf(const ModelOptions &options);

/// Opens the plan at `path`; a rank of several processes reads its parts alone.
/// Errors: those of PlanReader::open.
absl::StatusOr<std::shared_ptr<const PlanReader>>
openPlan(absl::string_view path, const ModelOptions &options);

/// Copies share what they have.
class LoadedPlan {
public:
  /// A rank's device, with the code and memory that the plan has on it.
  struct Rank {
    std::shared_ptr<Device> device;
    std::shared_ptr<LoadedCode> code;
    std::vector<std::shared_ptr<Buffer>> weights; ///< Numbered as in the plan.
    /// Numbered by section; null for those of another kind.
    std::vector<std::shared_ptr<Buffer>> constants;
    /// The input Rank of its programs; null for the only rank.
    std::shared_ptr<Buffer> number;
  };

  /// Starts the devices, without code and weights. Errors: those of
  /// createDevices() and of create(); memory where `plan` does not fit.
  static absl::StatusOr<LoadedPlan>
  start(std::shared_ptr<const PlanReader> plan, const ModelOptions &options);

  /// Takes `devices`, by rank, for the plan. Memory error where the system
  /// gives too few threads for ranks that wait for each other.
  static absl::StatusOr<LoadedPlan>
  create(std::shared_ptr<const PlanReader> plan,
         std::vector<std::shared_ptr<Device>> devices);

  /// Loads the kernels of `plan`, which is the plan or has other configs or
  /// fewer programs, and makes it the plan. Nothing changes on an error.
  absl::Status loadCode(std::shared_ptr<const PlanReader> plan);

  /// Asks the devices for all memory that the plan needs, but for the cache
  /// where sequences share pages.
  absl::Status reserve() const;

  /// Loads the weights, or random ones, and the constants. Errors: those of
  /// llamac::loadWeights().
  absl::Status loadWeights(std::optional<uint64_t> randomSeed,
                           Progress *progress = nullptr);

  /// Binds program number `program` on all ranks of this process to `memory`,
  /// by rank: arena, cache, inputs, counters, exchange areas and what finds
  /// those of others. The rest is that of the plan.
  absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(size_t program, std::vector<ProgramBindings> memory) const;

  const std::shared_ptr<const PlanReader> &reader() const { return plan; }
  const schema::PlanT &manifest() const { return plan->plan(); }
  const std::vector<Rank> &ranks() const { return ofRanks; }
  Device &device(size_t rank = 0) const { return *ofRanks[rank].device; }
  bool hasCode() const { return ofRanks.front().code != nullptr; }
  LoadedCode &code() const { return *ofRanks.front().code; }

  /// ModelOptions::sharesPages
  bool sharesPages() const { return pagesAreShared; }

  //===--------------------------------------------------------------------===//
  // The devices of all ranks
  //===--------------------------------------------------------------------===//

  /// See Device; ranks are counted in front.
  std::string describe() const;
  std::string identity() const;
  std::string arithmetic() const;

  /// Host threads that the devices of this process keep busy.
  int threads() const;

  /// The memory of the device that has the least; none where the host's memory
  /// is used.
  absl::StatusOr<std::optional<DeviceMemory>> memory() const;

  /// The first error of Device::check().
  absl::Status check() const;

  /// None for several ranks.
  absl::StatusOr<std::optional<DeviceLimits>> measureLimits() const;

  //===--------------------------------------------------------------------===//
  // Ranks that are processes
  //===--------------------------------------------------------------------===//

  /// Null where this process has all ranks.
  RankWorld *world() const { return processes; }

  /// Whether they exchange by MPI even where they share memory.
  bool copiesExchanges() const { return copies; }

  /// The others, which do what this one does; of rank 0 alone, else null.
  const std::shared_ptr<RankTeam> &team() const { return others; }
  void setTeam(std::shared_ptr<RankTeam> team) { others = std::move(team); }

private:
  LoadedPlan() = default;

  std::string ofAll(const std::string &one) const;

  std::shared_ptr<const PlanReader> plan;
  std::vector<Rank> ofRanks; ///< The ranks of this process.
  /// Threads of ranks that wait for each other; null for one, or in lockstep.
  std::shared_ptr<RankThreads> together;
  bool pagesAreShared = false;
  RankWorld *processes = nullptr;
  bool copies = false;
  std::shared_ptr<RankTeam> others;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_LOADEDPLAN_H
