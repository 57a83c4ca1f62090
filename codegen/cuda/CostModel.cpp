//===- CostModel.cpp - Seconds of a launch by its tiles -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CostModel.h"

#include "runtime/cuda/GpuSpec.h"

#include <algorithm>
#include <cmath>

namespace llamac {

namespace {

/// From the makers' data sheets, all in a second and of all multiprocessors:
/// bytes from L2 and from shared memory, operations in f32 and in bf16 on
/// tensor cores.
struct Machine {
  llvm::StringLiteral gpu;
  double cacheBandwidth, sharedBandwidth;
  double operations, matrixOperations;
  double latency; ///< Seconds until memory answers.
  double multiprocessors;
};

} // namespace

static constexpr Machine machines[] = {
    {"sm_80", 4e12, 19e12, 19.5e12, 312e12, 600e-9, 108},
    {"sm_86", 3e12, 18e12, 35e12, 71e12, 500e-9, 82},
    {"sm_89", 4e12, 41e12, 82e12, 165e12, 500e-9, 128},
    {"sm_90a", 7e12, 33e12, 67e12, 989e12, 700e-9, 132},
    {"sm_100a", 10e12, 36e12, 75e12, 2250e12, 700e-9, 148},
    {"sm_120a", 6e12, 52e12, 104e12, 209e12, 600e-9, 170},
};

static const Machine *findMachine(llvm::StringRef gpu) {
  const auto *known =
      std::find_if(std::begin(machines), std::end(machines),
                   [&](const Machine &machine) { return machine.gpu == gpu; });
  return known == std::end(machines) ? nullptr : known;
}

/// Bytes a second from memory.
static double bandwidthOf(const Machine &machine) {
  return findGpuProduct({machine.gpu.data(), machine.gpu.size()})->bandwidth;
}

std::optional<kernel::Peaks> peaksOf(llvm::StringRef gpu,
                                     bool usesMatrixUnits) {
  const Machine *machine = findMachine(gpu);
  if (!machine)
    return std::nullopt;
  return kernel::Peaks{bandwidthOf(*machine), usesMatrixUnits
                                                  ? machine->matrixOperations
                                                  : machine->operations};
}

double predictedSeconds(const TileModel &tiles, int64_t blocks,
                        const kernel::Cost &cost, const kernel::CostStep &step,
                        llvm::StringRef gpu) {
  const Machine *known = findMachine(gpu);
  const Machine &machine = known ? *known : machines[3];
  const double bandwidth = bandwidthOf(machine);
  const auto rows = static_cast<double>(step.rows);
  const double madeFor =
      tiles.weightRows ? static_cast<double>(tiles.weightRows) : rows;
  const double shared = std::min(rows, madeFor);
  const double passes = std::ceil(rows / shared);

  // Pieces of work, and the blocks that may be at them at a time.
  double work = static_cast<double>(blocks) * passes;
  double places =
      machine.multiprocessors * static_cast<double>(tiles.occupancy);
  if (tiles.itemKeys != 0) {
    const double shares = std::ceil(static_cast<double>(step.context) /
                                    static_cast<double>(tiles.itemKeys));
    work = passes * static_cast<double>(tiles.tiles) *
           std::min(static_cast<double>(tiles.splits), shares);
  } else if (tiles.tiles != 0) {
    work = passes * static_cast<double>(tiles.tiles);
  }
  if (tiles.tiles != 0)
    places = std::min(places, static_cast<double>(blocks));
  const double rounds = std::ceil(work / places);

  // Each round waits for its first bytes, but for blocks that stay.
  const bool stays = tiles.tiles != 0 && tiles.itemKeys == 0;
  const double flowing =
      std::min(1.0, static_cast<double>(tiles.bytesInFlight) * work / rounds /
                        (bandwidth * machine.latency));
  const double fromMemory =
      static_cast<double>(cost.bytes()) / (bandwidth * flowing) +
      machine.latency * (stays ? 1 : rounds);

  const double readAgain =
      (passes - 1) * static_cast<double>(cost.weightBytes + cost.kvReadBytes) +
      shared * static_cast<double>(tiles.rowBytes) * work;
  const double fromCache = readAgain / machine.cacheBandwidth;

  // Blocks of a multiprocessor share what it computes, and a block computes all
  // the rows that it is made for.
  const double busy = work / (machine.multiprocessors *
                              std::ceil(work / machine.multiprocessors));
  const double ofOne = std::max(
      1 / (tiles.usesMatrixUnits ? machine.matrixOperations
                                 : machine.operations),
      static_cast<double>(tiles.localBytes) / 1024 / machine.sharedBandwidth);
  const double computing =
      passes * madeFor / rows * static_cast<double>(cost.flops) / busy * ofOne;

  constexpr double launch = 2e-6;
  const double slowest = std::max({launch, fromMemory, fromCache, computing});
  // The others are hidden in part only.
  return slowest +
         0.1 * std::max(0.0, fromMemory + fromCache + computing - slowest);
}

double residentSeconds(const kernel::Cost &cost, int64_t phases,
                       llvm::StringRef gpu) {
  const Machine *known = findMachine(gpu);
  const Machine &machine = known ? *known : machines[3];
  // A value is stored, polled and multiplied: 1.73 us on an H200
  // (docs/gpu-model.md).
  constexpr double latencies = 2.5;
  return static_cast<double>(cost.bytes()) / bandwidthOf(machine) +
         latencies * machine.latency * static_cast<double>(phases);
}

} // namespace llamac
