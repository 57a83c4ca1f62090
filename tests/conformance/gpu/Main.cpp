//===- Main.cpp - The suite on a GPU --------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Needs the runtime, the driver and NVRTC only: the plans were compiled and
// written to a folder before (conformance_tests --record).
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "runtime/cuda/CudaDevice.h"
#include "tests/conformance/Register.h"
#include "tests/conformance/ops/PlanDevice.h"
#include "tests/conformance/ops/RecordedPlans.h"
#include "tests/conformance/wrappers/CudaSource.h"

#include <cstdio>
#include <gtest/gtest.h>

using namespace llamac;
using namespace llamac::conformance;

/// gpu_tests PLANS
int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr,
                 "usage: %s PLANS, the folder that conformance_tests "
                 "--record has written\n",
                 argv[0]);
    return static_cast<int>(ExitCode::Usage);
  }
  const absl::StatusOr<std::shared_ptr<CudaDevice>> gpu = CudaDevice::create();
  if (!gpu.ok()) {
    std::fprintf(stderr, "%s\n", std::string(gpu.status().message()).c_str());
    return static_cast<int>(exitCode(gpu.status()));
  }
  std::printf("%s\n", (*gpu)->describe().c_str());
  PlanRunner runner;
  runner.library = std::make_shared<RecordedPlans>(argv[1]);
  runner.device = [&]() -> absl::StatusOr<std::shared_ptr<Device>> {
    return *gpu;
  };
  registerWrapperTests({cudaSourceRow()});
  registerOpTests({cudaRow("cuda", std::move(runner))});
  return RUN_ALL_TESTS();
}
