//===- ScheduleVariants.cpp - Other ways to run a step --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ScheduleVariants.h"

#include "compiler/driver/KernelVariants.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace mlir;

namespace llamac {

//===----------------------------------------------------------------------===//
// What two plans share
//===----------------------------------------------------------------------===//

/// What `kernel` computes, whatever it is called.
static std::string contentsOf(plan::KernelOp kernel) {
  std::string text = kernel.getFamily().str();
  llvm::raw_string_ostream stream(text);
  for (BlockArgument arg : kernel.getBody().getArguments())
    stream << ", " << arg.getType();
  kernel.getPrototype().print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

static std::string textOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

/// Calls each kernel of `other` what `plan` calls it, or, one that `plan` does
/// not have, by its name and `suffix`. Gives those.
static SmallVector<plan::KernelOp> shareNames(ModuleOp plan, ModuleOp other,
                                              const std::string &suffix) {
  llvm::StringMap<StringAttr> known;
  for (auto kernel : plan.getOps<plan::KernelOp>())
    known[contentsOf(kernel)] = kernel.getSymNameAttr();
  llvm::DenseMap<StringAttr, StringAttr> names;
  SmallVector<plan::KernelOp> own;
  for (auto kernel : other.getOps<plan::KernelOp>()) {
    StringAttr &name = names[kernel.getSymNameAttr()];
    name = known.lookup(contentsOf(kernel));
    if (!name) {
      name = StringAttr::get(kernel.getContext(),
                             kernel.getSymName() + "_" + suffix);
      own.push_back(kernel);
    }
    kernel.setSymNameAttr(name);
  }
  for (auto program : other.getOps<plan::ProgramOp>())
    for (auto launch : program.getOps<plan::LaunchOp>())
      launch.setKernelAttr(FlatSymbolRefAttr::get(
          names.lookup(launch.getKernelAttr().getAttr())));
  return own;
}

/// Removes from `other` the programs that are as in `plan`.
static void dropEqualPrograms(ModuleOp plan, ModuleOp other) {
  for (auto program :
       llvm::make_early_inc_range(other.getOps<plan::ProgramOp>())) {
    auto same = plan.lookupSymbol<plan::ProgramOp>(program.getSymName());
    if (!same || textOf(same) == textOf(program))
      program.erase();
  }
}

/// Whether a launch of `plan` runs `kernel`.
static bool isLaunched(plan::KernelOp kernel, ModuleOp plan) {
  return llvm::any_of(plan.getOps<plan::ProgramOp>(), [&](auto program) {
    return llvm::any_of(program.template getOps<plan::LaunchOp>(),
                        [&](plan::LaunchOp launch) {
                          return launch.getKernel() == kernel.getSymName();
                        });
  });
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// The error that the launches of a step add up to at most, of the program of
/// `plan` that allows most.
static double toleranceOf(ModuleOp plan, const Backend &backend) {
  if (backend.target().otherConfigsAreExact())
    return 0;
  double most = 0;
  for (auto program : plan.getOps<plan::ProgramOp>()) {
    double sum = 0;
    for (auto launch : program.getOps<plan::LaunchOp>()) {
      auto kernel = plan.lookupSymbol<plan::KernelOp>(launch.getKernel());
      for (OpResult result : kernel.getPrototype().getResults())
        sum += backend.numerics().tolerance(&kernel.getPrototype(),
                                            result.getResultNumber());
    }
    most = std::max(most, sum);
  }
  return most;
}

/// `unfused` in the plan dialect, made without the passes of `schedule`; null
/// when one of the others fails.
static OwningOpRef<ModuleOp> makePlan(ModuleOp unfused,
                                      const ScheduleOption &schedule,
                                      CompileOptions options,
                                      const Backend &backend) {
  options.reports = {};
  for (StringRef pass : schedule.withoutPasses)
    options.skipPasses.push_back(pass.str());
  OwningOpRef<ModuleOp> module = unfused.clone();
  PassManager pm(unfused.getContext(), ModuleOp::getOperationName());
  for (const Phase phase : {Phase::Fuse, Phase::Schedule})
    addSteps(pm, passesOf(phase, options, backend.target()));
  if (failed(pm.run(*module)))
    return {};
  return module;
}

std::vector<PlanSchedule> listSchedules(ModuleOp unfused, ModuleOp plan,
                                        const PlanContents &contents,
                                        const CompileOptions &options,
                                        const Backend &backend) {
  ScopedDiagnosticHandler quiet(plan.getContext(),
                                [](Diagnostic &) { return success(); });
  std::vector<PlanSchedule> schedules;
  for (const ScheduleOption &option : otherSchedules()) {
    PlanSchedule schedule;
    schedule.name = option.name.str();
    schedule.module = makePlan(unfused, option, options, backend);
    if (!schedule.module)
      continue;
    std::string suffix = schedule.name;
    std::replace(suffix.begin(), suffix.end(), '-', '_');
    SmallVector<plan::KernelOp> own =
        shareNames(plan, *schedule.module, suffix);
    dropEqualPrograms(plan, *schedule.module);
    if (schedule.module->getOps<plan::ProgramOp>().empty())
      continue;
    llvm::erase_if(own, [&](plan::KernelOp kernel) {
      return !isLaunched(kernel, *schedule.module);
    });
    for (plan::KernelOp kernel : own)
      if (std::optional<std::string> source = kernelSource(kernel, backend))
        schedule.sources[kernel.getSymName()] = *std::move(source);
    // One kernel that has no room on the device, and there is no schedule.
    if (schedule.sources.size() != own.size())
      continue;
    std::vector<std::string> shared;
    for (auto kernel : plan.getOps<plan::KernelOp>())
      shared.push_back(kernel.getSymName().str());
    schedule.tuning = listVariants(*schedule.module, contents, backend, shared);
    schedule.tolerance = toleranceOf(*schedule.module, backend);
    schedules.push_back(std::move(schedule));
  }
  return schedules;
}

llvm::StringMap<std::string>
programTuning(ModuleOp plan, const std::vector<PlanSchedule> &schedules) {
  llvm::StringMap<std::string> texts;
  for (auto program : plan.getOps<plan::ProgramOp>()) {
    std::string all = textOf(program);
    for (const PlanSchedule &schedule : schedules) {
      ModuleOp module = *schedule.module;
      auto other = module.lookupSymbol<plan::ProgramOp>(program.getSymName());
      if (!other)
        continue;
      all += schedule.name + textOf(other);
      for (auto kernel : module.getOps<plan::KernelOp>())
        all += schedule.sources.lookup(kernel.getSymName());
    }
    const auto launches = program.getOps<plan::LaunchOp>();
    texts[program.getSymName()] =
        ("step of at most " + llvm::Twine(program.getMaxRows()) +
         (program.getMaxRows() == 1 ? " row: " : " rows: ") +
         llvm::Twine(std::distance(launches.begin(), launches.end())) +
         " launches #" + textHash(all))
            .str();
  }
  return texts;
}

} // namespace llamac
