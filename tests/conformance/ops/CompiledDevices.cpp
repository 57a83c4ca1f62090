//===- CompiledDevices.cpp - The devices where there is a compiler --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/CpuDevice.h"
#include "runtime/cuda/GpuSpec.h"
#include "runtime/packing/PanelPacking.h"
#include "simulator/SimDevice.h"
#include "tests/conformance/ops/CompiledPlans.h"
#include "tests/conformance/ops/PlanDevice.h"

namespace llamac::conformance {

static double exact(DataType, int64_t) { return 0; }
static double exactModel(const Model &) { return 0; }
static bool never(DataType) { return false; }
static int64_t noBlock(const Model &) { return 0; }

/// The interpreter computes in fp32 and sums in doubles.
static OpDeviceRow referenceRow() {
  return {"reference",
          {.weightError = exact,
           .activationError = exact,
           .roundsToInt8 = never,
           .cacheError = exactModel,
           .cacheBlock = noBlock,
           .blockError = exactModel,
           .queryError = exactModel,
           .softmaxError = exactModel,
           .softmaxFloor = exactModel,
           .joinsRows = false},
          loadOnReference,
          {}};
}

//===----------------------------------------------------------------------===//
// cpu
//===----------------------------------------------------------------------===//

static int64_t cpuCacheBlock(const Model &model) {
  return model.cache == CacheFormat::Q8_0 ? 16 : 0;
}

static bool isMultipliedInInt8(DataType type) {
  return panelProduct(panelFormat(type)) == PanelProduct::Int8;
}

/// Over keys in 8 bits queries are in 16: half a step of 1 / 32767.
static double cpuQueryError(const Model &model) {
  return model.cache == CacheFormat::Q8_0 ? 1 / 65534.0 : 0;
}

/// The cpu target computes in fp32 but for products in 8 bits, which --exact
/// has none of, and the cache rounds keys and values
/// (codegen/cpu/CpuNumerics.cpp has the reasons).
static OpDeviceRow cpuRow(const std::string &name, IsaLevel level,
                          bool isExact = false) {
  CompileOptions options;
  options.isaLevels = {level};
  options.exact = isExact;
  PlanRunner runner;
  runner.library = std::make_shared<CompiledPlans>(options);
  runner.device = []() -> absl::StatusOr<std::shared_ptr<Device>> {
    return CpuDevice::create({.threads = 2});
  };
  return {name,
          {.weightError = exact,
           .activationError = exact,
           .roundsToInt8 = isExact ? never : isMultipliedInInt8,
           .cacheError = cacheRounding,
           .cacheBlock = cpuCacheBlock,
           .blockError = exactModel,
           .queryError = cpuQueryError,
           .softmaxError = exactModel,
           .softmaxFloor = exactModel,
           .joinsRows = true},
          loadBy(std::move(runner)),
          // The runtime samples from the logits.
          {{"sampling", "no kernel family of target cpu implements "
                        "kernel.sample"}}};
}

//===----------------------------------------------------------------------===//
// sim
//===----------------------------------------------------------------------===//

/// The simulator with the kernels of `gpu`, whose plans its rows share; their
/// names begin with `name`.
static void addSimRows(std::vector<OpDeviceRow> &rows, const std::string &name,
                       const std::string &gpu, bool checked) {
  CompileOptions compile;
  compile.target = "sim";
  compile.gpu = gpu;
  compile.simCheck = checked;
  const auto library = std::make_shared<CompiledPlans>(compile);
  for (const bool random : {false, true}) {
    SimDeviceOptions options;
    options.checked = checked;
    if (random)
      options.order = {SimSchedule::Random, 5};
    PlanRunner runner;
    runner.library = library;
    runner.device = [=]() -> absl::StatusOr<std::shared_ptr<Device>> {
      return std::make_shared<SimDevice>(options);
    };
    runner.seesUndefined = checked;
    rows.push_back(
        cudaRow(name + (checked ? "_checked" : "") + (random ? "_random" : ""),
                std::move(runner)));
    rows.back().seesAccesses = checked;
  }
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

std::vector<OpDeviceRow> opDevices() {
  std::vector<OpDeviceRow> rows = {
      referenceRow(), cpuRow("cpu", hostIsaLevel()),
      cpuRow("cpu_exact", hostIsaLevel(), /*isExact=*/true),
      cpuRow("cpu_portable", IsaLevel::Portable)};
  // Another device for the cuda target's kernels is another cudaRow().
  for (const bool checked : {false, true}) {
    addSimRows(rows, "sim", defaultGpuSpec().name, checked);
    // All other GPUs have the kernels of this one, with other tiles.
    addSimRows(rows, "sim_sm_80", "sm_80", checked);
  }
  return rows;
}

} // namespace llamac::conformance
