//===- LoadedPlan.cpp - A plan on the devices of its ranks ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/LoadedPlan.h"

#include "runtime/base/Status.h"
#include "runtime/load/MemoryNeeds.h"
#include "runtime/load/RankThreads.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/ranks/RankWorld.h"
#include "runtime/threads/Topology.h"
#include "runtime/weights/WeightLoader.h"

#include "absl/strings/str_cat.h"

#include <iterator>
#include <numeric>
#include <utility>

namespace llamac {

int threadsOf(const ModelOptions &options) {
  return options.threads != 0 ? options.threads
         : options.ranks      ? options.ranks->cores()
                              : usablePhysicalCores();
}

absl::StatusOr<std::shared_ptr<const PlanReader>>
openPlan(absl::string_view path, const ModelOptions &options) {
  PlanReadOptions reading{.verify = options.verify,
                          .threads = threadsOf(options),
                          .sequences = options.sequences,
                          .fillsGpu = options.fillsGpu};
  if (options.ranks)
    reading.rank = options.ranks->rank();
  return PlanReader::open(path, reading);
}

absl::StatusOr<LoadedPlan>
LoadedPlan::create(std::shared_ptr<const PlanReader> plan,
                   std::vector<std::shared_ptr<Device>> devices) {
  LoadedPlan loaded;
  loaded.plan = std::move(plan);
  for (std::shared_ptr<Device> &device : devices)
    loaded.ofRanks.emplace_back().device = std::move(device);
  if (loaded.ofRanks.size() > 1 &&
      loaded.device().rankLink() != RankLink::Lockstep) {
    LLAMAC_ASSIGN_OR_RETURN(loaded.together,
                            RankThreads::create(loaded.ofRanks.size()));
  }
  return loaded;
}

absl::StatusOr<LoadedPlan>
LoadedPlan::start(std::shared_ptr<const PlanReader> plan,
                  const ModelOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(
      auto devices, createDevices(plan->plan(), threadsOf(options), options));
  LLAMAC_ASSIGN_OR_RETURN(LoadedPlan loaded,
                          create(std::move(plan), std::move(devices)));
  loaded.pagesAreShared = options.sharesPages;
  loaded.processes = options.ranks;
  loaded.copies = options.rankCopies;
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceMemory> memory,
                          loaded.memory());
  LLAMAC_RETURN_IF_ERROR(
      checkMemory(*loaded.plan, memory, options.sharesPages));
  return loaded;
}

absl::Status LoadedPlan::loadCode(std::shared_ptr<const PlanReader> plan) {
  std::vector<std::shared_ptr<LoadedCode>> code;
  for (const Rank &rank : ofRanks) {
    LLAMAC_ASSIGN_OR_RETURN(code.emplace_back(), rank.device->loadCode(plan));
  }
  this->plan = std::move(plan);
  for (size_t i = 0; i < code.size(); ++i)
    ofRanks[i].code = std::move(code[i]);
  return absl::OkStatus();
}

absl::Status LoadedPlan::reserve() const {
  const MemoryNeeds needs = memoryNeeds(*plan);
  for (const Rank &rank : ofRanks)
    LLAMAC_RETURN_IF_ERROR(
        rank.device->reserve(needs.total() - (pagesAreShared ? needs.kv : 0)));
  return absl::OkStatus();
}

absl::Status LoadedPlan::loadWeights(std::optional<uint64_t> randomSeed,
                                     Progress *progress) {
  const std::vector<PlanSection> &sections = plan->sections();
  for (size_t i = 0; i < ofRanks.size(); ++i) {
    Rank &rank = ofRanks[i];
    const int number = processes ? processes->rank() : static_cast<int>(i);
    LLAMAC_ASSIGN_OR_RETURN(
        auto weights, llamac::loadWeights(*plan, *rank.device,
                                          {randomSeed, progress, number}));
    rank.weights.assign(std::make_move_iterator(weights.begin()),
                        std::make_move_iterator(weights.end()));
    rank.constants.resize(sections.size());
    for (uint32_t section = 0; section < sections.size(); ++section) {
      if (sections[section].kind != SectionKind::Constants)
        continue;
      LLAMAC_ASSIGN_OR_RETURN(rank.constants[section],
                              shareOrCopy(plan->bytes(section), *rank.device));
    }
    if (manifest().ranks > 1) {
      LLAMAC_ASSIGN_OR_RETURN(rank.number, allocateRank(number, *rank.device));
    }
  }
  return absl::OkStatus();
}

static std::vector<void *>
addressesOf(const std::vector<std::shared_ptr<Buffer>> &buffers) {
  std::vector<void *> addresses;
  addresses.reserve(buffers.size());
  for (const auto &buffer : buffers)
    addresses.push_back(buffer ? buffer->address() : nullptr);
  return addresses;
}

absl::StatusOr<std::unique_ptr<PreparedProgram>>
LoadedPlan::prepare(size_t program, std::vector<ProgramBindings> memory) const {
  std::vector<std::unique_ptr<PreparedProgram>> programs;
  for (size_t i = 0; i < ofRanks.size(); ++i) {
    const Rank &rank = ofRanks[i];
    ProgramBindings &bindings = memory[i];
    bindings.weights = addressesOf(rank.weights);
    bindings.constants = addressesOf(rank.constants);
    bindings.pageTableBytes = pageTableBytes(*manifest().kv);
    if (rank.number)
      bindings.inputs[static_cast<size_t>(schema::InputRole::Rank)] =
          rank.number->address();
    if (together)
      bindings.ranks = together.get();
    LLAMAC_ASSIGN_OR_RETURN(programs.emplace_back(),
                            rank.code->prepare(program, bindings));
  }
  if (programs.size() == 1)
    return std::move(programs.front());
  return groupPrograms(*manifest().programs[program], std::move(programs),
                       together);
}

//===----------------------------------------------------------------------===//
// The devices of all ranks
//===----------------------------------------------------------------------===//

std::string LoadedPlan::ofAll(const std::string &one) const {
  if (processes)
    return absl::StrCat(processes->size(), " processes of ", one);
  return ofRanks.size() == 1 ? one
                             : absl::StrCat(ofRanks.size(), " ranks of ", one);
}

std::string LoadedPlan::describe() const { return ofAll(device().describe()); }

std::string LoadedPlan::identity() const {
  return ofAll(device().identity(manifest()));
}

std::string LoadedPlan::arithmetic() const {
  return ofAll(device().arithmetic(manifest()));
}

int LoadedPlan::threads() const {
  return std::accumulate(
      ofRanks.begin(), ofRanks.end(), 0,
      [](int sum, const Rank &rank) { return sum + rank.device->threads(); });
}

absl::StatusOr<std::optional<DeviceMemory>> LoadedPlan::memory() const {
  std::optional<DeviceMemory> least;
  for (const Rank &rank : ofRanks) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceMemory> memory,
                            rank.device->memory());
    if (!memory)
      return memory;
    if (!least || memory->free < least->free)
      least = memory;
  }
  return least;
}

absl::Status LoadedPlan::check() const {
  for (const Rank &rank : ofRanks)
    LLAMAC_RETURN_IF_ERROR(rank.device->check());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<DeviceLimits>> LoadedPlan::measureLimits() const {
  if (manifest().ranks > 1)
    return std::nullopt;
  return device().measureLimits();
}

} // namespace llamac
