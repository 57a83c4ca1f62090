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
#include "runtime/plan/PlanReader.h"
#include "runtime/weights/WeightLoader.h"
#include "tests/conformance/Register.h"
#include "tests/conformance/gpu/Bandwidth.h"
#include "tests/conformance/ops/PlanDevice.h"
#include "tests/conformance/ops/RecordedPlans.h"
#include "tests/conformance/wrappers/CudaSource.h"
#include "tests/engine/step/RowBits.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace llamac;
using namespace llamac::conformance;

namespace {

struct Options {
  bool bandwidth = false; ///< Measures bandwidth over `mebibytes`, in place of
                          ///< the suite.
  bool compile = false;   ///< Compiles `plans`, in place of the suite.
  bool rows = false;      ///< Compares rows of the plan `plans`, in place of
                          ///< the suite.
  int requests = 0;       ///< For these rows.
  bool batchInvariant = true;
  int mebibytes = 0;
  int gpuIndex = 0;
  std::string plans;
};

} // namespace

/// gpu_tests PLANS, --compile PLANS, --bandwidth MEBIBYTES, or --rows REQUESTS
/// PLAN, maybe with --no-batch-invariant; and --gpu-index N.
static absl::StatusOr<Options> parse(absl::Span<char *> arguments) {
  Options options;
  bool isGood = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const absl::string_view argument = arguments[i];
    const absl::string_view next =
        i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (argument == "--compile") {
      options.compile = true;
    } else if (argument == "--bandwidth") {
      options.bandwidth = true;
      isGood = isGood && absl::SimpleAtoi(next, &options.mebibytes) &&
               options.mebibytes > 0;
      ++i;
    } else if (argument == "--rows") {
      options.rows = true;
      isGood = isGood && absl::SimpleAtoi(next, &options.requests) &&
               options.requests > 0;
      ++i;
    } else if (argument == "--no-batch-invariant") {
      options.batchInvariant = false;
    } else if (argument == "--gpu-index") {
      isGood = isGood && absl::SimpleAtoi(next, &options.gpuIndex);
      ++i;
    } else {
      isGood =
          isGood && options.plans.empty() && !absl::StartsWith(argument, "-");
      options.plans = arguments[i];
    }
  }
  if (!isGood || options.plans.empty() != options.bandwidth ||
      options.compile + options.bandwidth + options.rows > 1 ||
      (!options.batchInvariant && !options.rows))
    return usageError(
        "expected a folder that conformance_tests --record has written, "
        "--compile and such a folder, --bandwidth and a number of MiB, or "
        "--rows, a number of requests and a plan, and maybe "
        "--no-batch-invariant; and maybe --gpu-index and a number");
  return options;
}

/// One line of JSON.
static absl::Status printBandwidth(const std::shared_ptr<CudaDevice> &gpu,
                                   int mebibytes) {
  // A small buffer is for trying it out.
  const int passes = mebibytes < 64 ? 1 : 20;
  LLAMAC_ASSIGN_OR_RETURN(const Bandwidth bandwidth,
                          measureBandwidth(gpu, mebibytes, passes));
  std::printf("{\"device\": \"%s\", \"architecture\": \"%s\", "
              "\"read_gb_s\": %.5g, \"copy_gb_s\": %.5g}\n",
              gpu->describe().c_str(), gpu->architecture().c_str(),
              bandwidth.readBytes / 1e9, bandwidth.copyBytes / 1e9);
  return absl::OkStatus();
}

/// Brings the kernels of all plans into the cache of cubins: a case that loads
/// them does not wait for NVRTC.
static absl::Status compilePlans(CudaDevice &gpu, const std::string &folder) {
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    const std::filesystem::path &path = entry.path();
    if (path.extension() != ".plan")
      continue;
    LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const PlanReader> plan,
                            PlanReader::open(path.string(), {}));
    LLAMAC_RETURN_IF_ERROR(gpu.loadCode(std::move(plan)).status());
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);
  }
  return error ? badFileError(absl::StrCat(folder, ": ", error.message()))
               : absl::OkStatus();
}

/// One line of JSON. A plan without weights has random ones.
static absl::Status printRows(const Options &options) {
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const PlanReader> plan,
                          PlanReader::open(options.plans, {.verify = false}));
  ModelOptions loading{.gpuIndex = options.gpuIndex, .quiet = true};
  if (!hasWeights(plan->plan()))
    loading.randomWeights = 1;
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const llamac::Model> model,
                          llamac::Model::load(options.plans, loading));
  LLAMAC_ASSIGN_OR_RETURN(
      const RowBitsReport report,
      compareRowBits(model, options.requests, options.batchInvariant));
  std::printf("%s\n",
              nlohmann::ordered_json({{"compared", report.compared},
                                      {"difference", report.difference}})
                  .dump()
                  .c_str());
  return absl::OkStatus();
}

static int report(const absl::Status &status) {
  if (!status.ok())
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return static_cast<int>(exitCode(status));
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  const absl::StatusOr<Options> options =
      parse(absl::MakeSpan(argv + 1, argc - 1));
  if (!options.ok())
    return report(options.status());
  const absl::StatusOr<std::shared_ptr<CudaDevice>> gpu =
      CudaDevice::create({.index = options->gpuIndex});
  if (!gpu.ok())
    return report(gpu.status());
  if (options->bandwidth)
    return report(printBandwidth(*gpu, options->mebibytes));
  if (options->compile)
    return report(compilePlans(**gpu, options->plans));
  if (options->rows)
    return report(printRows(*options));
  std::printf("%s\n", (*gpu)->describe().c_str());
  PlanRunner runner;
  runner.library = std::make_shared<RecordedPlans>(options->plans);
  runner.device = [&]() -> absl::StatusOr<std::shared_ptr<Device>> {
    return *gpu;
  };
  registerWrapperTests({cudaSourceRow(*gpu)});
  registerOpTests({cudaRow("cuda", std::move(runner))});
  return RUN_ALL_TESTS();
}
