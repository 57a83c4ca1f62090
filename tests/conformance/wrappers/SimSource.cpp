//===- SimSource.cpp - CUDA source on the simulator -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/wrappers/SourceDevice.h"

#include "codegen/sim/SimCompiler.h"
#include "runtime/base/Status.h"
#include "simulator/SimTensorMap.h"
#include "simulator/Simulator.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>

namespace llamac::conformance {

namespace {

/// The simulator in one mode.
class SimSource final : public SourceDevice {
public:
  SimSource(std::shared_ptr<const SimModule> module, const SimOptions &options)
      : module(std::move(module)), options(options) {}

  absl::StatusOr<Words> run(const WordLaunch &launch, const Words &in,
                            size_t outWords) override {
    // Aligned as a GPU aligns its allocations, for loads of 16 bytes.
    struct alignas(256) Block {
      uint32_t words[64];
    };
    std::vector<Block> input(in.size() / 64 + 1), output(outWords / 64 + 1);
    std::copy(in.begin(), in.end(), input.front().words);
    Simulator simulator(options);
    simulator.memory().add("in", input.data(), in.size() * sizeof(uint32_t),
                           SimContents::ReadOnly);
    simulator.memory().add("out", output.data(), outWords * sizeof(uint32_t));
    SimLaunch sim{
        launch.kernel, {launch.cluster}, {launch.threads}, launch.sharedBytes};
    sim.cluster = launch.cluster;
    sim.args = {output.data(), input.data()};
    SimTensorMap map;
    if (launch.map) {
      LLAMAC_RETURN_IF_ERROR(
          encodeSimTensorMap(input.data(), mapOfInput(*launch.map), map));
      sim.args.push_back(&map);
    }
    sim.rows = 1;
    LLAMAC_RETURN_IF_ERROR(simulator.run(*module, sim));
    const uint32_t *words = output.front().words;
    return Words(words, words + outWords);
  }

private:
  std::shared_ptr<const SimModule> module;
  SimOptions options;
};

} // namespace

static absl::StatusOr<std::shared_ptr<const SimModule>>
compileModule(const SourceFile &source, bool checked) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string object,
                          compileForSim({source}, checked ? SimFlavour::Checked
                                                          : SimFlavour::Fast));
  return SimModule::open(
      {reinterpret_cast<const uint8_t *>(object.data()), object.size()},
      source.name);
}

/// The simulator with `options`; modes that want the same code share it.
static SourceDeviceRow
simRow(const std::string &name, const SimOptions &options,
       const std::shared_ptr<std::map<bool, std::shared_ptr<const SimModule>>>
           &modules) {
  auto create = [=](const SourceFile &source)
      -> absl::StatusOr<std::unique_ptr<SourceDevice>> {
    std::shared_ptr<const SimModule> &module = (*modules)[options.checked];
    if (!module) {
      LLAMAC_ASSIGN_OR_RETURN(module, compileModule(source, options.checked));
    }
    return std::make_unique<SimSource>(module, options);
  };
  return {name, create};
}

std::vector<SourceDeviceRow> sourceDevices() {
  static constexpr struct {
    const char *name;
    SimSchedule schedule;
    uint64_t seed;
  } schedules[] = {{"forward", SimSchedule::Forward, 0},
                   {"reverse", SimSchedule::Reverse, 0},
                   {"random1", SimSchedule::Random, 1},
                   {"random2", SimSchedule::Random, 2},
                   {"random3", SimSchedule::Random, 3}};
  std::vector<SourceDeviceRow> rows;
  const auto modules =
      std::make_shared<std::map<bool, std::shared_ptr<const SimModule>>>();
  for (const bool checked : {false, true})
    for (const auto &[name, schedule, seed] : schedules) {
      SimOptions options;
      options.schedule = schedule;
      options.seed = seed;
      options.checked = checked;
      rows.push_back(
          simRow(absl::StrCat("sim_", checked ? "checked_" : "", name), options,
                 modules));
    }
  return rows;
}

} // namespace llamac::conformance
