//===- OpDevices.cpp - What devices have in common ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/PlanDevice.h"

namespace llamac::conformance {

LoadedPrograms::~LoadedPrograms() = default;

double cacheRounding(const Model &model) {
  return model.cache == CacheFormat::BF16 ? 0x1p-8 : 0x1p-11;
}

std::function<absl::StatusOr<std::unique_ptr<LoadedPrograms>>(
    const Model &, const std::vector<ProgramUse> &)>
loadBy(PlanRunner runner) {
  return [runner = std::move(runner)](const Model &model,
                                      const std::vector<ProgramUse> &programs) {
    return loadOnPlan(runner, model, programs);
  };
}

//===----------------------------------------------------------------------===//
// cuda source
//===----------------------------------------------------------------------===//

/// Rounding to bf16.
static constexpr double bf16Rounding = 0x1p-8;

/// Steps of up to four rows are computed in fp32 (gemv); larger ones by tensor
/// cores in bf16 (gemm, wgmma).
static bool usesTensorCores(int64_t rows) { return rows > 4; }

/// Weights are read as they are stored, but for those in fp32.
static double cudaWeightError(DataType type, int64_t rows) {
  const bool isBf16 = type == DataType::BF16 || type == DataType::MXFP8 ||
                      type == DataType::MXFP4;
  const bool isRounded =
      type == DataType::F32 || (usesTensorCores(rows) && !isBf16);
  return isRounded ? bf16Rounding : 0;
}

static double cudaActivationError(DataType, int64_t rows) {
  return usesTensorCores(rows) ? bf16Rounding : 0;
}

/// Half of the smallest number of fp16; bf16 has smaller ones than matter.
static double softmaxFloor(const Model &model) {
  return model.cache == CacheFormat::BF16 ? 0 : 0x1p-25;
}

/// Elements of the cache that share a scale.
static int64_t cudaCacheBlock(const Model &model) {
  if (model.cache == CacheFormat::FP8)
    return model.headSize;
  return model.cache == CacheFormat::Q8_0 && model.apart ? 16 : 0;
}

/// Attention widens blocks of the cache to fp16, and rounds queries and softmax
/// weights to the cache's format.
OpDeviceRow cudaRow(const std::string &name, PlanRunner runner) {
  return {name,
          {.weightError = cudaWeightError,
           .activationError = cudaActivationError,
           .roundsToInt8 = [](DataType) { return false; },
           .cacheError = cacheRounding,
           .cacheBlock = cudaCacheBlock,
           .blockError = [](const Model &) { return 0x1p-11; },
           .queryError = [](const Model &) { return 0.0; },
           .softmaxError = cacheRounding,
           .softmaxFloor = softmaxFloor,
           .joinsRows = true},
          loadBy(std::move(runner)),
          {{"leaves", "implements kernel.matmul as it is"},
           {"tree_over4", "implements kernel.all_reduce as it is"},
           {"tree_over8", "implements kernel.all_reduce as it is"}}};
}

} // namespace llamac::conformance
