//===- Main.cpp - One suite for every device ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/sim/SimCompiler.h"
#include "runtime/base/Status.h"
#include "runtime/cuda/GpuSpec.h"
#include "tests/conformance/Register.h"
#include "tests/conformance/Sources.h"
#include "tests/conformance/ops/CompiledPlans.h"
#include "tests/conformance/ops/RecordedPlans.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>

using namespace llamac;
using namespace llamac::conformance;

/// Writes what the suite needs to run on a GPU where no compiler is; for sim,
/// the same kernels for a fake GPU, and those of the sources beside.
static absl::Status record(const std::string &target, const std::string &folder,
                           const std::vector<std::string> &tests) {
  CompileOptions options;
  options.target = target;
  options.gpu = defaultGpuSpec().name;
  CompiledPlans plans(options);
  LLAMAC_RETURN_IF_ERROR(recordPlans(plans, folder, tests));
  if (target != "sim")
    return absl::OkStatus();
  for (const SourceFile &source : {wrappersSource(), bandwidthSource()}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::string object,
                            compileForSim({source}, SimFlavour::Fast));
    const std::string stem =
        folder + "/" + source.name.substr(0, source.name.rfind('.'));
    std::ofstream(stem + ".cu", std::ios::binary) << source.text;
    std::ofstream(stem + ".sim", std::ios::binary) << object;
  }
  return absl::OkStatus();
}

/// conformance_tests [--record cuda|sim FOLDER [TEST...]]
int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc >= 4 && std::strcmp(argv[1], "--record") == 0) {
    const absl::Status status =
        record(argv[2], argv[3], {argv + 4, argv + argc});
    if (!status.ok())
      std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return static_cast<int>(exitCode(status));
  }
  registerWrapperTests(sourceDevices());
  registerOpTests(opDevices());
  return RUN_ALL_TESTS();
}
