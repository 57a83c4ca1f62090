//===- Support.cpp - Kernels of the tests, compiled and run ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/simulator/Support.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

namespace llamac {

std::string readTestSource(const std::string &name) {
  std::ifstream file(std::string(LLAMAC_SIM_TEST_SOURCES) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

template <typename T> static T valueOrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

const SimModule &testModule(const std::string &name, SimFlavour flavour) {
  static std::map<std::pair<std::string, SimFlavour>,
                  std::unique_ptr<SimModule>>
      modules;
  std::unique_ptr<SimModule> &module = modules[{name, flavour}];
  if (!module) {
    const std::string object =
        valueOrDie(compileForSim({{name, readTestSource(name)}}, flavour));
    module = valueOrDie(SimModule::open(
        absl::MakeConstSpan(reinterpret_cast<const uint8_t *>(object.data()),
                            object.size()),
        name));
  }
  return *module;
}

std::vector<SimOptions> testSchedules(bool checked, bool together) {
  std::vector<SimOptions> result;
  auto add = [&](SimSchedule schedule, uint64_t seed) {
    SimOptions options;
    options.schedule = schedule;
    options.seed = seed;
    options.checked = checked;
    result.push_back(options);
  };
  add(SimSchedule::Forward, 0);
  add(SimSchedule::Reverse, 0);
  for (uint64_t seed = 1; seed <= 3; ++seed)
    add(SimSchedule::Random, seed);
  for (uint64_t seed = 1; together && seed <= 3; ++seed)
    add(SimSchedule::Stalled, seed);
  return result;
}

std::string describe(const SimOptions &options) {
  const std::string kind = options.checked ? "checked, " : "fast, ";
  switch (options.schedule) {
  case SimSchedule::Forward:
    return kind + "forward";
  case SimSchedule::Reverse:
    return kind + "reverse";
  case SimSchedule::Random:
    return kind + "random " + std::to_string(options.seed);
  case SimSchedule::Stalled:
    return kind + "stalled " + std::to_string(options.seed);
  }
  return kind;
}

} // namespace llamac
