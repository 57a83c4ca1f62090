//===- OpDevices.cpp - The devices that run kernel ops --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/OpDevice.h"

#include "codegen/cpu/CpuBackend.h"
#include "codegen/sim/SimBackend.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/sim/SimDevice.h"
#include "tests/conformance/ops/PlanDevice.h"

namespace llamac::conformance {

LoadedPrograms::~LoadedPrograms() = default;

static double exact(DataType, int64_t) { return 0; }
static double exactModel(const Model &) { return 0; }
static bool never(DataType) { return false; }

/// Rounding to nearest to fp16, with 11 bits, or to bf16, with 8.
static double cacheRounding(const Model &model) {
  return model.bf16Cache ? 0x1p-8 : 0x1p-11;
}

/// The interpreter computes in fp32 and sums in doubles.
static OpDeviceRow referenceRow() {
  return {"reference",
          {.weightError = exact,
           .activationError = exact,
           .roundsToInt8 = never,
           .cacheError = exactModel,
           .softmaxError = exactModel,
           .softmaxFloor = exactModel,
           .joinsRows = false},
          loadOnReference,
          {}};
}

static std::function<absl::StatusOr<std::unique_ptr<LoadedPrograms>>(
    const Model &, const std::vector<ProgramUse> &)>
loadBy(PlanRunner runner) {
  return [runner = std::move(runner)](const Model &model,
                                      const std::vector<ProgramUse> &programs) {
    return loadOnPlan(runner, model, programs);
  };
}

//===----------------------------------------------------------------------===//
// cpu
//===----------------------------------------------------------------------===//

/// Products with weights in these types round activations to 8 bits.
static bool isMultipliedInInt8(DataType type) {
  return type == DataType::Q8_0 || type == DataType::Q4_0 ||
         type == DataType::Q4_1;
}

/// The cpu target computes in fp32 but for products in 8 bits, and the cache
/// rounds keys and values (codegen/cpu/CpuNumerics.cpp has the reasons).
static OpDeviceRow cpuRow(const std::string &name, IsaLevel level) {
  PlanRunner runner;
  runner.library =
      std::make_shared<PlanLibrary>("cpu", [=](const Model &model) {
        return std::make_unique<CpuBackend>(
            CpuTargetOptions{.context = model.context,
                             .kvFormat = model.bf16Cache ? cpu::KvFormat::BF16
                                                         : cpu::KvFormat::F16},
            std::vector<IsaLevel>{level});
      });
  runner.device = []() -> absl::StatusOr<std::shared_ptr<Device>> {
    return CpuDevice::create({.threads = 2});
  };
  return {name,
          {.weightError = exact,
           .activationError = exact,
           .roundsToInt8 = isMultipliedInInt8,
           .cacheError = cacheRounding,
           .softmaxError = exactModel,
           .softmaxFloor = exactModel,
           .joinsRows = true},
          loadBy(std::move(runner)),
          // The runtime samples from the logits.
          {{"sampling", "no kernel family of target cpu implements "
                        "kernel.sample"}}};
}

//===----------------------------------------------------------------------===//
// cuda source
//===----------------------------------------------------------------------===//

/// Rounding to bf16.
static constexpr double bf16Rounding = 0x1p-8;

/// Steps of up to eight rows are computed in fp32 (gemv); larger ones by tensor
/// cores in bf16 (gemm).
static bool isGemm(int64_t rows) { return rows > 8; }

/// The formats that kernels unpack; all others are uploaded as bf16.
static bool isUnpacked(DataType type) {
  return type == DataType::BF16 || type == DataType::F16 ||
         type == DataType::Q8_0 || type == DataType::Q4_0 ||
         type == DataType::Q4_1;
}

static double cudaWeightError(DataType type, int64_t rows) {
  const bool isRounded =
      !isUnpacked(type) || (isGemm(rows) && type != DataType::BF16);
  return isRounded ? bf16Rounding : 0;
}

static double cudaActivationError(DataType, int64_t rows) {
  return isGemm(rows) ? bf16Rounding : 0;
}

/// Half of the smallest number of fp16; bf16 has smaller ones than matter.
static double softmaxFloor(const Model &model) {
  return model.bf16Cache ? 0 : 0x1p-25;
}

/// What every device that runs the cuda target's kernels has in common.
/// Attention rounds queries and softmax weights to the cache's format.
static OpDeviceRow cudaRow(const std::string &name, PlanRunner runner) {
  return {name,
          {.weightError = cudaWeightError,
           .activationError = cudaActivationError,
           .roundsToInt8 = never,
           .cacheError = cacheRounding,
           .softmaxError = cacheRounding,
           .softmaxFloor = softmaxFloor,
           .joinsRows = true},
          loadBy(std::move(runner)),
          // Query, key and value are always made by one kernel.
          {{"apart", "no kernel family of target cuda implements "
                     "kernel.rope_append"}}};
}

/// The simulator; plans of one flavour are shared by its rows.
static void addSimRows(std::vector<OpDeviceRow> &rows, SimFlavour flavour) {
  const bool checked = flavour == SimFlavour::Checked;
  const auto library =
      std::make_shared<PlanLibrary>("sim", [=](const Model &model) {
        return std::make_unique<SimBackend>(
            CudaTargetOptions{.context = model.context,
                              .kvFormat = model.bf16Cache
                                              ? cuda::KvFormat::BF16
                                              : cuda::KvFormat::F16},
            flavour);
      });
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
    rows.push_back(cudaRow(std::string("sim") + (checked ? "_checked" : "") +
                               (random ? "_random" : ""),
                           std::move(runner)));
    rows.back().seesAccesses = checked;
  }
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

std::vector<OpDeviceRow> opDevices() {
  std::vector<OpDeviceRow> rows = {referenceRow(),
                                   cpuRow("cpu", hostIsaLevel()),
                                   cpuRow("cpu_portable", IsaLevel::Portable)};
  // Another device for the cuda target's kernels is another cudaRow().
  addSimRows(rows, SimFlavour::Fast);
  addSimRows(rows, SimFlavour::Checked);
  return rows;
}

} // namespace llamac::conformance
