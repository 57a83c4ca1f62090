//===- OpDevices.cpp - The devices that run kernel ops --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/OpDevice.h"

#include "codegen/cpu/CpuBackend.h"
#include "runtime/cpu/CpuDevice.h"
#include "tests/conformance/ops/PlanDevice.h"

namespace llamac::conformance {

LoadedPrograms::~LoadedPrograms() = default;

static double exact(DataType, int64_t) { return 0; }
static double exactModel(const Model &) { return 0; }
static bool never(DataType) { return false; }

/// Rounding to nearest to fp16, with 11 bits, or to bf16, with 8.
static double cacheRounding(const Model &model) {
  return model.bf16Cache ? 0x1p-9 : 0x1p-12;
}

/// The interpreter computes in fp32 and sums in doubles.
static OpDeviceRow referenceRow() {
  return {"reference",
          {.weightError = exact,
           .activationError = exact,
           .roundsToInt8 = never,
           .cacheError = exactModel,
           .softmaxError = exactModel,
           .joinsRows = false},
          loadOnReference,
          {}};
}

/// The cpu target computes in fp32; products with weights in Q8_0, Q4_0 and
/// Q4_1 round activations to 8 bits in blocks of 32, and the cache rounds keys
/// and values (codegen/cpu/CpuNumerics.cpp has the reasons).
static OpDeviceRow cpuRow(const std::string &name, IsaLevel level) {
  PlanTarget target;
  target.name = "cpu";
  target.backend = [=](const Model &model) {
    return std::make_unique<CpuBackend>(
        CpuTargetOptions{.context = model.context,
                         .kvFormat = model.bf16Cache ? cpu::KvFormat::BF16
                                                     : cpu::KvFormat::F16},
        std::vector<IsaLevel>{level});
  };
  target.device = []() -> absl::StatusOr<std::shared_ptr<Device>> {
    return CpuDevice::create({.threads = 2});
  };
  return {name,
          {.weightError = exact,
           .activationError = exact,
           .roundsToInt8 =
               [](DataType type) {
                 return type == DataType::Q8_0 || type == DataType::Q4_0 ||
                        type == DataType::Q4_1;
               },
           .cacheError = cacheRounding,
           .softmaxError = exactModel,
           .joinsRows = true},
          [=](const Model &model, const std::vector<ProgramUse> &programs) {
            return loadOnPlan(target, model, programs);
          },
          {}};
}

std::vector<OpDeviceRow> opDevices() {
  return {referenceRow(), cpuRow("cpu", hostIsaLevel()),
          cpuRow("cpu_portable", IsaLevel::Portable)};
}

} // namespace llamac::conformance
