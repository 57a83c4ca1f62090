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
#include "tests/conformance/gpu/Bandwidth.h"
#include "tests/conformance/ops/PlanDevice.h"
#include "tests/conformance/ops/RecordedPlans.h"
#include "tests/conformance/wrappers/CudaSource.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

using namespace llamac;
using namespace llamac::conformance;

/// One line of JSON.
static absl::Status printBandwidth(const std::shared_ptr<CudaDevice> &gpu,
                                   const char *mebibytes) {
  constexpr int passes = 20;
  LLAMAC_ASSIGN_OR_RETURN(
      const Bandwidth bandwidth,
      measureBandwidth(gpu, std::max(1, std::atoi(mebibytes)), passes));
  std::printf("{\"device\": \"%s\", \"architecture\": \"%s\", "
              "\"read_gb_s\": %.5g, \"copy_gb_s\": %.5g}\n",
              gpu->describe().c_str(), gpu->architecture().c_str(),
              bandwidth.readBytes / 1e9, bandwidth.copyBytes / 1e9);
  return absl::OkStatus();
}

static int report(const absl::Status &status) {
  if (!status.ok())
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return static_cast<int>(exitCode(status));
}

/// gpu_tests PLANS | gpu_tests --bandwidth MEBIBYTES
int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool bandwidth = argc == 3 && std::strcmp(argv[1], "--bandwidth") == 0;
  if (argc != 2 && !bandwidth)
    return report(usageError(
        "expected a folder that conformance_tests --record has written, or "
        "--bandwidth and a number of MiB"));
  const absl::StatusOr<std::shared_ptr<CudaDevice>> gpu = CudaDevice::create();
  if (!gpu.ok())
    return report(gpu.status());
  if (bandwidth)
    return report(printBandwidth(*gpu, argv[2]));
  std::printf("%s\n", (*gpu)->describe().c_str());
  PlanRunner runner;
  runner.library = std::make_shared<RecordedPlans>(argv[1]);
  runner.device = [&]() -> absl::StatusOr<std::shared_ptr<Device>> {
    return *gpu;
  };
  registerWrapperTests({cudaSourceRow(*gpu)});
  registerOpTests({cudaRow("cuda", std::move(runner))});
  return RUN_ALL_TESTS();
}
