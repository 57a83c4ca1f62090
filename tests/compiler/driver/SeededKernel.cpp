//===- SeededKernel.cpp - Checks a plan with a wrong kernel in it ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// llamac-seeded-kernel MODEL FAULT FOLDER: compiles the model with one of the
// faults below in the kernels' source, checks every launch, and prints the
// kernel, op, layer, location and place that are found, one a line, then the
// kernels that are outside their tolerance. The plan and the reproducer go to
// FOLDER.
//
//===----------------------------------------------------------------------===//

#include "compiler/check/LaunchCheck.h"
#include "compiler/driver/Devices.h"
#include "compiler/driver/PlanCache.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "llvm/Support/raw_ostream.h"

namespace llamac {
namespace {

/// The source of a unit that is being edited. An edit that finds nothing to
/// change leaves the unit as it is.
class Source {
public:
  explicit Source(std::string text) : text(std::move(text)) {}

  /// Inside the kernel whose symbol starts with `symbol`: puts `by` in the
  /// place of the first `what` behind the first `after`.
  void replace(const std::string &symbol, const std::string &after,
               const std::string &what, const std::string &by) {
    size_t at = 0;
    for (const std::string &next : {" " + symbol, after, what}) {
      at = text.find(next, at);
      if (at == std::string::npos)
        return;
    }
    text.replace(at, what.size(), by);
    wasChanged = true;
  }

  std::string text;
  bool wasChanged = false;
};

struct Fault {
  std::string name;
  void (*plant)(Source &);
  std::string approximateExp = ""; ///< The plan's --approximate-exp.
  int64_t sparsifyTopK = 0;
};

} // namespace

static const std::string kernelStart = "(const CpuLaunch *launch) {\n";

/// The product of down in decode leaves out its last panel of outputs.
static void skipPanel(Source &source) {
  source.replace("gemv_feed_forward_w2", "operator()", "const long at",
                 "if (column + 16 >= config.outputs) return;\nconst long at");
}

/// The attention kernels whose symbol starts with `symbol` do not see the last
/// key of a page in the row that appended it.
static void missKey(Source &source, const std::string &symbol) {
  source.replace(symbol, ".positions = ", "operand<int>(*launch, 2)",
                 "positions");
  source.replace(symbol, kernelStart, "attention",
                 "int positions[512];\n"
                 "for (long i = 0; i < launch->rows; ++i) {\n"
                 "const int own = operand<int>(*launch, 2)[i];\n"
                 "positions[i] = own - (own % 64 == 63);\n}\n"
                 "attention");
}
static void missKeyInPrefill(Source &source) { missKey(source, "attention_n"); }
static void missKeyInDecode(Source &source) {
  missKey(source, "attention_split");
}

/// Rotates the wrong way.
static void swapSine(Source &source) {
  source.replace("rope_table", "frequencies[] = {", "1.0,", "-1.0,");
}

/// The second launch of gate and up in decode has no SiLU.
static void dropSilu(Source &source) {
  const std::string kernel = "gemv_feed_forward_w1";
  source.replace(kernel, "{\n", "constexpr",
                 "static int launches = 0;\nconstexpr");
  source.replace(kernel, "operator()", "silu(acc0)",
                 "(launches == 2 ? acc0 : silu(acc0))");
  source.replace(kernel, kernelStart, "gemv<",
                 "launches += launch->begin == 0;\ngemv<");
}

/// Exponentials of the polynomial are off by more than the plan says.
static void coarsenExp(Source &source) {
  source.replace("attention_split", ".heads",
                 ".scale = ", ".scale = 1.004f * ");
}

/// Decode keeps fewer scores than the plan says.
static void keepFewer(Source &source) {
  source.replace("attention_split", ".heads", ".topK = 192", ".topK = 8");
}

static void seedNothing(Source &source) { source.wasChanged = true; }

/// In prefill the values that go to the cache are made with the keys' weights.
static void appendKey(Source &source) {
  source.replace("qkv_gemm", ".value = ", "operand<void>(*launch, 3)",
                 "operand<void>(*launch, 2)");
}

static absl::Status run(const std::string &model, const std::string &name,
                        const std::string &folder) {
  const Fault faults[] = {
      {"none", seedNothing},
      {"skipped-panel", skipPanel},
      {"missed-key", missKeyInPrefill},
      {"missed-key-in-decode", missKeyInDecode},
      {"swapped-sine", swapSine},
      {"dropped-silu", dropSilu},
      {"appended-key", appendKey},
      {"poly", seedNothing, "poly=3"},
      {"coarse-poly", coarsenExp, "poly=3"},
      {"top", seedNothing, "table=256", 192},
      {"fewer-than-top", keepFewer, "table=256", 192},
  };
  const Fault *fault = llvm::find_if(
      faults, [&](const Fault &known) { return known.name == name; });
  if (fault == std::end(faults))
    return usageError(absl::StrCat("no fault is named ", name));

  LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, openCheckpoint(model));
  CompileOptions compileOptions;
  compileOptions.context = 256;
  compileOptions.approximateExp = fault->approximateExp;
  compileOptions.sparsifyTopK = fault->sparsifyTopK;
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, compileOptions));
  bool isSeeded = false;
  compilation->editSource([&](llvm::StringRef, std::string text) {
    Source source(std::move(text));
    fault->plant(source);
    isSeeded |= source.wasChanged;
    return source.text;
  });
  const std::string plan = folder + "/seeded.plan";
  LLAMAC_RETURN_IF_ERROR(
      compileToFile(*compilation, plan, /*quiet=*/true).status());
  if (!isSeeded)
    return internalError(absl::StrCat("no kernel to plant ", name, " in"));

  // One thread, which takes a launch from its first item on.
  LLAMAC_ASSIGN_OR_RETURN(
      const std::shared_ptr<const Model> loaded,
      Model::load(plan, {.threads = 1, .devices = allDevices()}));
  CheckOptions options;
  options.bisect = true;
  options.reproducerFolder = folder;
  LLAMAC_ASSIGN_OR_RETURN(
      const LaunchCheckResult result,
      checkLaunches(checkpoint, compileOptions, loaded, options));
  if (!result.culprit) {
    llvm::outs() << "nothing\n";
    return absl::OkStatus();
  }
  llvm::outs() << result.culprit->kernel << "\n"
               << result.culprit->op << "\n"
               << result.culprit->layer.value_or(-1) << "\n"
               << result.culprit->location << "\n"
               << result.culprit->where << "\n";
  for (const CheckedKernel &kernel : result.kernels)
    if (!kernel.passed())
      llvm::outs() << kernel.kernel << "\n";
  return absl::OkStatus();
}

} // namespace llamac

int main(int argc, char **argv) {
  if (argc != 4) {
    llvm::errs() << "usage: llamac-seeded-kernel MODEL FAULT FOLDER\n";
    return 2;
  }
  const absl::Status status = llamac::run(argv[1], argv[2], argv[3]);
  if (!status.ok())
    llvm::errs() << std::string(status.message()) << "\n";
  return static_cast<int>(llamac::exitCode(status));
}
