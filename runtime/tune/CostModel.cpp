//===- CostModel.cpp - Seconds of a launch by its tiles -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/CostModel.h"

#include <algorithm>
#include <cmath>

namespace llamac {

namespace {

struct NamedMachine {
  absl::string_view gpu;
  MachineSpec spec;
};

} // namespace

// Of GPUs the makers' data sheets; the first of each architecture that plans
// name. A cpu stands for one core's share of a server.
static constexpr MachineSpec cpuMachine{.bandwidth = 16e9,
                                        .operations = 150e9,
                                        .sharedBandwidth = 40e9,
                                        .latency = 120e-9,
                                        .unitBytes = 2 << 20,
                                        .units = 1,
                                        .launchSeconds = 2e-6};
static constexpr NamedMachine gpuMachines[] = {
    {"sm_80",
     {1.56e12, 19.5e12, 4e12, 600e-9, 192 << 10, 108, 2e-6, 312e12, 19e12}},
    {"sm_86",
     {0.94e12, 35e12, 3e12, 500e-9, 128 << 10, 82, 2e-6, 71e12, 18e12}},
    {"sm_89",
     {1.01e12, 82e12, 4e12, 500e-9, 128 << 10, 128, 2e-6, 165e12, 41e12}},
    {"sm_90a",
     {4.8e12, 67e12, 7e12, 700e-9, 256 << 10, 132, 2e-6, 989e12, 33e12}},
    {"sm_100a",
     {8e12, 75e12, 10e12, 700e-9, 256 << 10, 148, 2e-6, 2250e12, 36e12}},
    {"sm_120a",
     {1.79e12, 104e12, 6e12, 600e-9, 128 << 10, 170, 2e-6, 209e12, 52e12}},
};

MachineSpec nominalMachine(absl::string_view target, absl::string_view gpu) {
  if (target == "cpu")
    return cpuMachine;
  for (const NamedMachine &known : gpuMachines)
    if (known.gpu == gpu)
      return known.spec;
  return gpuMachines[3].spec;
}

absl::string_view limitName(Limit limit) {
  switch (limit) {
  case Limit::Memory:
    return "memory";
  case Limit::SharedCache:
    return "shared cache";
  case Limit::Arithmetic:
    return "arithmetic";
  case Limit::Launch:
    return "launch";
  }
  return "";
}

static double ceilDivide(double a, double b) { return std::ceil(a / b); }

/// Keys that all rows of the step see together.
static double keysOf(const TunedStep &step) {
  const auto rows = static_cast<double>(step.rows);
  return rows * static_cast<double>(step.context) - rows * (rows - 1) / 2;
}

double leastBytes(const schema::LaunchCost &cost, const TunedStep &step) {
  return static_cast<double>(cost.weightBytes()) +
         static_cast<double>(cost.rowBytes()) * static_cast<double>(step.rows) +
         static_cast<double>(cost.keyBytes()) *
             static_cast<double>(step.context);
}

namespace {

/// Seconds that a launch would take if nothing else limited it.
struct Parts {
  double fromMemory = 0;
  double fromShared = 0;
  double computing = 0;
};

} // namespace

static Prediction slowestOf(const Parts &parts, const MachineSpec &machine) {
  Prediction prediction{machine.launchSeconds, Limit::Launch};
  const auto bound = [&](double seconds, Limit limit) {
    if (seconds > prediction.seconds)
      prediction = {seconds, limit};
  };
  bound(parts.fromMemory, Limit::Memory);
  bound(parts.fromShared, Limit::SharedCache);
  bound(parts.computing, Limit::Arithmetic);
  // The others are hidden in part only.
  prediction.seconds +=
      0.1 * std::max(0.0, parts.fromMemory + parts.fromShared +
                              parts.computing - prediction.seconds);
  return prediction;
}

static double operationsOf(const schema::LaunchCost &cost,
                           const TunedStep &step) {
  return static_cast<double>(cost.rowFlops()) * static_cast<double>(step.rows) +
         static_cast<double>(cost.keyFlops()) * keysOf(step);
}

/// On a GPU.
static Prediction predictBlocks(const TiledLaunch &launch,
                                const TunedStep &step,
                                const MachineSpec &machine) {
  const schema::TileModel &model = launch.model;
  const auto rows = static_cast<double>(step.rows);
  const auto context = static_cast<double>(step.context);
  const auto units = static_cast<double>(machine.units);
  const auto items = static_cast<double>(launch.items);
  const double shared =
      model.weightRows() == 0
          ? rows
          : std::min(rows, static_cast<double>(model.weightRows()));
  const double passes = ceilDivide(rows, shared);

  // Pieces of work, and the blocks that may be at them at a time.
  const double slots = units * static_cast<double>(model.resident());
  double work = items * passes, places = slots;
  if (model.itemKeys() != 0) {
    const double shares =
        ceilDivide(context, static_cast<double>(model.itemKeys()));
    work =
        passes * std::min(items, static_cast<double>(model.tiles()) * shares);
  } else if (model.tiles() != 0) {
    work = passes * static_cast<double>(model.tiles());
    places = std::min(slots, items);
  }
  const double rounds = ceilDivide(work, places);
  const double atWork = work / rounds;

  Parts parts;
  // A round begins with empty hands, but for blocks that stay.
  const bool stays = model.tiles() != 0 && model.itemKeys() == 0;
  const double flowing =
      std::min(1.0, static_cast<double>(model.flightBytes()) * atWork /
                        (machine.bandwidth * machine.latency));
  parts.fromMemory =
      leastBytes(launch.cost, step) / (machine.bandwidth * flowing) +
      machine.latency * (stays ? 1 : rounds);

  const double reread =
      (passes - 1) * (static_cast<double>(launch.cost.weightBytes()) +
                      static_cast<double>(launch.cost.keyBytes()) * context);
  const double input = shared * static_cast<double>(model.rowBytes()) * work;
  parts.fromShared = (reread + input) / machine.sharedBandwidth;

  // Blocks of a multiprocessor share what it computes.
  const double busy = work / (units * ceilDivide(work, units));
  const double operations = operationsOf(launch.cost, step);
  // A block computes all the rows that it is made for.
  const double wasted =
      passes *
      (model.weightRows() == 0 ? shared
                               : static_cast<double>(model.weightRows())) /
      rows;
  parts.computing = wasted * operations / busy *
                    std::max(1 / (model.matrixUnits() ? machine.matrixOperations
                                                      : machine.operations),
                             static_cast<double>(model.localBytes()) / 1024 /
                                 machine.localBandwidth);
  return slowestOf(parts, machine);
}

Prediction predict(const TiledLaunch &launch, const TunedStep &step,
                   const MachineSpec &machine) {
  if (launch.model.resident() != 0)
    return predictBlocks(launch, step, machine);
  const auto rows = static_cast<double>(step.rows);
  const schema::TileModel &model = launch.model;
  const double shared =
      model.weightRows() == 0
          ? rows
          : std::min(rows, static_cast<double>(model.weightRows()));
  const double passes = ceilDivide(rows, shared);

  // What is read again comes from the cache that the units share.
  const double reread =
      (passes - 1) *
      (static_cast<double>(launch.cost.weightBytes()) +
       static_cast<double>(launch.cost.keyBytes() * step.context));
  // Rows that the unit's cache does not hold are read again for each item.
  const double inputBytes = shared * static_cast<double>(model.rowBytes());
  const double spilled =
      inputBytes > 0.6 * static_cast<double>(machine.unitBytes)
          ? inputBytes * static_cast<double>(launch.items) * passes
          : 0;
  const double fromShared = (reread + spilled) / machine.sharedBandwidth;

  const double needed =
      machine.bandwidth * machine.latency / static_cast<double>(machine.units);
  // A unit that reads few streams fetches them by itself.
  const bool fetches = machine.readStreams < MachineSpec::mostStreams;
  const double flowing =
      model.flightBytes() == 0 || fetches
          ? 1
          : std::min(1.0, static_cast<double>(model.flightBytes()) / needed);
  // Each doubling of the streams beyond what suits a unit costs a quarter.
  const double streams =
      std::max(1.0, static_cast<double>(model.chains()) / machine.readStreams);
  const double fromMemory =
      leastBytes(launch.cost, step) /
      (machine.bandwidth * flowing * std::pow(0.75, std::log2(streams)));

  // A unit finishes some sums a cycle when enough of them are independent; a
  // block of few rows has less to do for what it brings in.
  const double busy = model.chains() == 0
                          ? 1
                          : std::min(1.0, static_cast<double>(model.chains()) /
                                              machine.busyChains);
  const double reuse = model.weightRows() == 0 ? 1 : shared / (shared + 4);
  return slowestOf({.fromMemory = fromMemory,
                    .fromShared = fromShared,
                    .computing = operationsOf(launch.cost, step) /
                                 (machine.operations * busy * reuse)},
                   machine);
}

} // namespace llamac
