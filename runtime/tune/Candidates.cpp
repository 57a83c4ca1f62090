//===- Candidates.cpp - What the tuner chooses from -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Candidates.h"

#include "runtime/cpu/Processor.h"
#include "runtime/cpu/Topology.h"

#include "absl/strings/str_split.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace llamac {

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// The first launch of each kernel in `program`, by the kernel's number.
static std::map<size_t, const schema::LaunchT *>
firstLaunches(const schema::ProgramT &program) {
  std::map<size_t, const schema::LaunchT *> launches;
  for (const auto &launch : program.launches)
    launches.try_emplace(launch->kernel, launch.get());
  return launches;
}

std::vector<TunedKernel> candidatesOf(const schema::PlanT &plan, size_t program,
                                      const TunedStep &step,
                                      const MachineSpec &machine) {
  std::vector<TunedKernel> kernels;
  for (const auto &[number, launch] : firstLaunches(*plan.programs[program])) {
    const schema::KernelT &kernel = *plan.kernels[number];
    if (kernel.variants.empty() || !kernel.model || !launch->cost)
      continue;
    TunedKernel tuned{number, *launch->cost, {}};
    for (size_t i = 0; i < kernel.variants.size(); ++i) {
      const schema::VariantT &variant = *kernel.variants[i];
      if (variant.model)
        tuned.candidates.push_back(
            {.variant = i,
             .tiles = variant.tiles,
             .prediction = predict({tuned.cost, *variant.model, variant.items},
                                   step, machine)});
    }
    // Of those that the model does not tell apart the compiler's order counts.
    std::sort(tuned.candidates.begin(), tuned.candidates.end(),
              [](const Candidate &a, const Candidate &b) {
                return std::pair(a.prediction.seconds, a.variant) <
                       std::pair(b.prediction.seconds, b.variant);
              });
    const Candidate own{
        .prediction =
            predict({tuned.cost, *kernel.model, launch->items}, step, machine)};
    tuned.candidates.insert(tuned.candidates.begin(), own);
    kernels.push_back(std::move(tuned));
  }
  return kernels;
}

size_t tilesApart(const std::string &a, const std::string &b) {
  const std::set<std::string> ofA = absl::StrSplit(a, ' ', absl::SkipEmpty());
  const std::set<std::string> ofB = absl::StrSplit(b, ' ', absl::SkipEmpty());
  std::set<std::string> names;
  for (const auto *from : {&ofA, &ofB})
    for (const std::string &tile : *from)
      if (!ofA.contains(tile) || !ofB.contains(tile))
        names.insert(tile.substr(0, tile.find('=')));
  return names.size();
}

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

/// The limits that `text` has; none when it does not say.
static std::optional<DeviceLimits> parseLimits(const std::string &text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("bandwidth") ||
      !json["bandwidth"].is_number() || !json.contains("operations") ||
      !json["operations"].is_number())
    return std::nullopt;
  return DeviceLimits{.bandwidth = json["bandwidth"],
                      .bandwidthOf = "",
                      .f32Operations = json["operations"]};
}

static std::optional<DeviceLimits>
limitsOf(Device &device, const std::string &identity, TuningStore *store) {
  if (const auto kept = store ? store->findProbe(identity) : std::nullopt)
    if (std::optional<DeviceLimits> limits = parseLimits(*kept))
      return limits;
  const std::optional<DeviceLimits> measured =
      device.measureLimits().value_or(std::nullopt);
  if (!measured)
    return std::nullopt;
  const nlohmann::json json = {{"bandwidth", measured->bandwidth},
                               {"operations", measured->f32Operations}};
  if (store)
    store->keepProbe(identity, json.dump());
  return measured;
}

MachineSpec machineOf(Device &device, const schema::PlanT &plan,
                      TuningStore *store) {
  MachineSpec machine = nominalMachine(plan.target, plan.gpu);
  const std::optional<DeviceLimits> limits =
      limitsOf(device, device.identity(plan), store);
  if (!limits || limits->bandwidth <= 0)
    return machine;
  // What was not measured is as much better or worse as what was.
  machine.sharedBandwidth *= limits->bandwidth / machine.bandwidth;
  machine.bandwidth = limits->bandwidth;
  if (limits->f32Operations > 0)
    machine.operations = limits->f32Operations;
  if (plan.target == "cpu") {
    machine.units = device.threads();
    machine.unitBytes = coreCacheBytes();
    machine.readStreams = readStreams(hostProcessor());
    // One stream is one panel, whose sums follow each other.
    machine.busyChains = std::min(machine.busyChains, machine.readStreams);
  }
  return machine;
}

//===----------------------------------------------------------------------===//
// Choices that are kept
//===----------------------------------------------------------------------===//

TuningKey tuningKey(const schema::PlanT &plan, size_t kernel,
                    const std::string &device) {
  return {device, plan.generator, plan.kernels[kernel]->tuning};
}

std::optional<size_t> findVariant(const schema::KernelT &kernel,
                                  const std::string &tiles) {
  for (size_t i = 0; i < kernel.variants.size(); ++i)
    if (kernel.variants[i]->tiles == tiles)
      return i;
  return std::nullopt;
}

bool needsCode(const std::string &target) { return target != "cuda"; }

std::vector<KernelPick> storedPicks(const schema::PlanT &plan,
                                    const std::string &device,
                                    TuningStore &store) {
  std::vector<KernelPick> picks(plan.kernels.size());
  for (size_t i = 0; i < picks.size(); ++i) {
    const schema::KernelT &kernel = *plan.kernels[i];
    if (kernel.variants.empty())
      continue;
    std::optional<TuningEntry> entry = store.find(tuningKey(plan, i, device));
    if (!entry)
      continue;
    const std::optional<size_t> variant = findVariant(kernel, entry->tiles);
    // Code is of a symbol; another plan may call the same kernel differently.
    const bool hasCode = variant &&
                         entry->symbol == kernel.variants[*variant]->symbol &&
                         !entry->code.empty();
    if (!variant || (needsCode(plan.target) && !hasCode))
      continue;
    picks[i].variant = variant;
    if (needsCode(plan.target))
      picks[i].code =
          std::make_shared<const std::string>(std::move(entry->code));
  }
  return picks;
}

} // namespace llamac
