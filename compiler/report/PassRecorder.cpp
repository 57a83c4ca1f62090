//===- PassRecorder.cpp - What every pass did to the IR -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/PassRecorder.h"

#include "compiler/driver/IrDiff.h"
#include "ir/llama/Llama.h"
#include "ir/plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace llamac {

int64_t countOps(ModuleOp module) {
  int64_t count = 0;
  for (auto func : module.getOps<func::FuncOp>())
    count += llvm::count_if(func.getOps(), [](Operation &op) {
      return !isa<llama::WeightOp, func::ReturnOp>(op);
    });
  for (auto program : module.getOps<plan::ProgramOp>())
    count += llvm::count_if(program.getOps(), llvm::IsaPred<plan::LaunchOp>);
  return count;
}

uint32_t PassRecorder::addVersion(StringRef text) {
  IrVersion version;
  SmallVector<StringRef> lines;
  text.rtrim('\n').split(lines, '\n');
  for (StringRef line : lines) {
    const auto [it, isNew] = lineNumbers.try_emplace(
        line, static_cast<uint32_t>(history.lines.size()));
    if (isNew)
      history.lines.push_back(line.str());
    version.lines.push_back(it->second);
  }
  history.versions.push_back(std::move(version));
  return static_cast<uint32_t>(history.versions.size() - 1);
}

void PassRecorder::stepDone(StringRef phase, StringRef name, ModuleOp module,
                            double seconds) {
  PassStep step;
  step.phase = phase.str();
  step.name = name.str();
  step.seconds = seconds;
  step.opsAfter = countOps(module);
  std::string text = printIr(module, /*locations=*/false);
  if (history.steps.empty()) {
    step.before = step.after = addVersion(text);
  } else {
    step.opsBefore = history.steps.back().opsAfter;
    step.before = step.after = history.steps.back().after;
    if (text != lastText) {
      step.signs = diffSigns(lastText, text);
      step.linesRemoved = llvm::count(step.signs, '-');
      step.linesAdded = llvm::count(step.signs, '+');
      step.after = addVersion(text);
    }
  }
  history.steps.push_back(std::move(step));
  lastText = std::move(text);
}

} // namespace llamac
