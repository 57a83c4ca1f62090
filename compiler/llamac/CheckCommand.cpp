//===- CheckCommand.cpp - llamac check --------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "compiler/check/Check.h"
#include "compiler/driver/PlanCache.h"
#include "compiler/llamac/Commands.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "tools/RunCommand.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdio>

namespace llamac {

namespace {

struct CheckCommand {
  CompileFlags flags;
  CheckOptions options;
  std::string model, tokens;

  absl::Status run() {
    if (!(options.tolerance > 0) || !(options.targetTolerance.value_or(1) > 0))
      return usageError("check: expected tolerances above 0");
    LLAMAC_ASSIGN_OR_RETURN(const CompileOptions compileOptions, flags.parse());
    if (!tokens.empty()) {
      LLAMAC_ASSIGN_OR_RETURN(options.tokens, parseTokenIds(tokens));
    }
    LLAMAC_RETURN_IF_ERROR(checkNoPlan(model));
    LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, openCheckpoint(model));
    Progress progress(flags.quiet);
    options.progress = [&](const std::string &what) { progress.stage(what); };
    LLAMAC_ASSIGN_OR_RETURN(const CheckReport report,
                            checkModel(checkpoint, compileOptions, options));
    progress.finish();
    print(report);
    if (report.passed())
      return absl::OkStatus();
    return accuracyError(verdict(report));
  }

  static void print(const CheckReport &report) {
    auto printSteps = [](const char *kind,
                         const std::vector<CheckedStep> &steps) {
      std::printf("%-32s %10s %10s  %-7s %s\n", kind, "nmse", "max", "verdict",
                  "worst at");
      for (const CheckedStep &step : steps)
        std::printf("%-32s %10.2e %10.2e  %-7s %s\n", step.name.c_str(),
                    step.difference.nmse, step.difference.maximum,
                    step.passed() ? "ok" : "WRONG",
                    step.difference.nmse == 0 ? "-" : step.where.c_str());
    };
    printSteps("pass", report.passes);
    if (!report.kernels.empty())
      printKernels(report.kernels);
    if (!report.targets.empty()) {
      std::printf("\n");
      printSteps("target", report.targets);
    }
    if (report.culprit)
      for (const std::string &file : report.culprit->files)
        std::printf("wrote %s\n", printable(file).c_str());
    if (report.passed())
      std::printf(
          "\nok: %zu passes, %zu kernels and %zu targets agree with the "
          "reference\n",
          report.passes.size(), report.kernels.size(), report.targets.size());
  }

  /// One line for each kernel, of its worst launch.
  static void printKernels(const std::vector<CheckedKernel> &kernels) {
    size_t width = 0;
    for (const CheckedKernel &kernel : kernels)
      width = std::max(width, kernel.kernel.size());
    const int pad = static_cast<int>(width);
    std::printf("\n%-*s %8s %10s %10s %10s  %-7s %s\n", pad, "kernel",
                "launches", "nmse", "tile", "max", "verdict", "worst at");
    for (const CheckedKernel &kernel : kernels)
      std::printf("%-*s %8lld %10.2e %10.2e %10.2e  %-7s %s, %s, %s\n", pad,
                  kernel.kernel.c_str(),
                  static_cast<long long>(kernel.launches),
                  kernel.difference.nmse, kernel.difference.tile,
                  kernel.difference.maximum, kernel.passed() ? "ok" : "WRONG",
                  kernel.program.c_str(), firstName(kernel).c_str(),
                  kernel.where.c_str());
    for (const CheckedKernel &kernel : kernels)
      if (kernel.approximation)
        std::printf("%s: off by at most %.2g of what the approximation's bound "
                    "and rounding allow; dropped at most %.2g of a softmax\n",
                    kernel.kernel.c_str(), kernel.approximation->error,
                    kernel.approximation->dropped);
  }

  /// A fused op has the names of all that it stands for.
  static std::string firstName(const CheckedKernel &kernel) {
    return kernel.location.substr(0, kernel.location.find(','));
  }

  /// One line: what is the first to be wrong, and its first op when that is
  /// known.
  static std::string verdict(const CheckReport &report) {
    const std::optional<Culprit> &culprit = report.culprit;
    for (const CheckedStep &pass : report.passes)
      if (!pass.passed())
        return describePass(pass, culprit);
    if (culprit)
      return absl::StrCat("kernel ", culprit->kernel,
                          " is the first to leave its tolerance: ", culprit->op,
                          " at ", culprit->location, layerText(*culprit), ", ",
                          culprit->where,
                          ", has a normalised mean squared error of ",
                          culprit->difference.nmse);
    for (const CheckedStep &target : report.targets)
      if (!target.passed())
        return leaves(target);
    return "";
  }

  static std::string leaves(const CheckedStep &step) {
    return absl::StrCat(step.name,
                        " is the first to leave the tolerance: expected a "
                        "normalised mean squared error of at most ",
                        step.tolerance, ", got ", step.difference.nmse);
  }

  static std::string layerText(const Culprit &culprit) {
    return culprit.layer ? absl::StrCat(" (layer ", *culprit.layer, ")") : "";
  }

  static std::string describePass(const CheckedStep &pass,
                                  const std::optional<Culprit> &culprit) {
    if (!culprit)
      return leaves(pass);
    if (culprit->op.empty())
      return absl::StrCat(leaves(pass),
                          "; no op that has a name before and after the pass "
                          "differs");
    return absl::StrCat(leaves(pass), "; the first wrong op is ", culprit->op,
                        " at ", culprit->location, layerText(*culprit),
                        " with ", culprit->difference.nmse);
  }
};

} // namespace

void addCheckCommand(CLI::App &app, absl::Status &status) {
  auto command = std::make_shared<CheckCommand>();
  CLI::App *verb = app.add_subcommand(
      "check", "Compare every pass and target with the reference");
  addModelArgument(*verb, command->model, "A model directory or .gguf file")
      ->required();
  const OptionGroup group{*verb};
  group.add(
      "--tokens", command->tokens, "IDS",
      "Token ids to compute logits of: 1,2,3 (default: 24 of the vocabulary)");
  group.addDefault(
      "--tolerance", command->options.tolerance, "NMSE",
      "Largest normalised mean squared error that a pass may cause");
  group.add("--target-tolerance", command->options.targetTolerance, "NMSE",
            "Largest normalised mean squared error that a target may have "
            "(default: 0.0004, and what rounding the KV cache may cost)");
  group.add("--sim-schedule", command->options.simSchedule, "ORDER",
            "On sim: order of the threads: forward, reverse, random, "
            "random:SEED, stalled or stalled:SEED");
  group.addFlag("--bisect", command->options.bisect,
                "Find the first wrong op of the first wrong pass, or the first "
                "wrong launch, and write it with its inputs");
  group.add("--reproducer", command->options.reproducerFolder, "DIR",
            "Directory that --bisect writes to");
  group.addFlag("-q,--quiet", command->flags.quiet, "Print no progress");
  command->flags.addTo(*verb);
  command->flags.addGpuIndexTo(*verb, CompileFlags::Help::Listed);
  verb->footer("Examples:\n"
               "  llamac check model.gguf --target sim --bisect" +
               command->flags.footer());
  verb->callback([command, &status] { status = command->run(); });
}

} // namespace llamac
