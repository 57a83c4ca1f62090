//===- PassRecorder.cpp - What every pass did to the IR -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/IrDiff.h"
#include "compiler/report/Report.h"

using namespace mlir;

namespace llamac {

/// The operations in the functions and programs of `module`: launches once
/// there are programs. Weights, memory, the contents of kernels' regions and
/// ends of functions are not counted.
static int64_t countOps(ModuleOp module) {
  int64_t count = 0;
  for (auto func : module.getOps<func::FuncOp>())
    count += llvm::count_if(func.getOps(), [](Operation &op) {
      return !isa<llama::WeightOp, func::ReturnOp>(op);
    });
  for (auto program : module.getOps<plan::ProgramOp>())
    count += llvm::count_if(program.getOps(), llvm::IsaPred<plan::LaunchOp>);
  return count;
}

/// "  --+" as [" -+", [2, 2, 1]].
static Json runsJson(StringRef signs) {
  std::string kinds;
  std::vector<size_t> lengths;
  while (!signs.empty()) {
    kinds += signs.front();
    lengths.push_back(
        std::min(signs.find_first_not_of(signs.front()), signs.size()));
    signs = signs.drop_front(lengths.back());
  }
  return Json::array({kinds, lengths});
}

size_t PassRecorder::addVersion(StringRef text) {
  std::vector<size_t> version;
  for (StringRef line : llvm::split(text.rtrim('\n'), '\n')) {
    const auto [it, isNew] =
        lineNumbers.try_emplace(line, history["lines"].size());
    if (isNew)
      history["lines"].push_back(line.str());
    version.push_back(it->second);
  }
  history["versions"].push_back(version);
  return history["versions"].size() - 1;
}

void PassRecorder::stepDone(StringRef phase, StringRef name, ModuleOp module,
                            double seconds) {
  std::string text = printIr(module, /*locations=*/false), signs;
  Json last = history["steps"].empty() ? Json() : history["steps"].back();
  const Json before = last.is_null() ? Json(addVersion(text)) : last["after"];
  Json after = before;
  if (!last.is_null() && text != lastText) {
    signs = diffSigns(lastText, text);
    after = addVersion(text);
  }
  history["steps"].push_back(
      {{"phase", phase.str()},
       {"name", name.str()},
       {"seconds", seconds},
       {"ops_before", last.is_null() ? Json(0) : last["ops_after"]},
       {"ops_after", countOps(module)},
       {"removed", llvm::count(signs, '-')},
       {"added", llvm::count(signs, '+')},
       {"before", before},
       {"after", after},
       {"runs", runsJson(signs)}});
  lastText = std::move(text);
}

} // namespace llamac
