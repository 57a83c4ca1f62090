//===- Emitter.cpp - The unit that holds a plan's cpu kernels -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Emitter.h"

#include "codegen/cpu/ScalarRenderer.h"

#include "mlir/IR/BuiltinOps.h"
#include "clang/Format/Format.h"

#include <set>

using namespace mlir;

namespace llamac {

std::string formatUnit(const std::string &unit) {
  clang::format::FormatStyle style = clang::format::getLLVMStyle();
  style.Standard = clang::format::FormatStyle::LS_Cpp20;
  auto replacements = clang::format::reformat(
      style, unit, {clang::tooling::Range(0, unit.size())}, "kernels.cpp");
  auto result = clang::tooling::applyAllReplacements(unit, replacements);
  if (!result) {
    llvm::consumeError(result.takeError());
    return unit;
  }
  return *result;
}

/// Every region of scalars below `op` can be written down.
static LogicalResult checkRegions(Operation &op) {
  for (Region &region : op.getRegions()) {
    Operation *unknown = nullptr;
    if (!canRenderScalars(region, unknown))
      return unknown->emitError()
             << "the cpu target has no rendering of " << unknown->getName();
  }
  return success();
}

/// "kernel.matmul for layers.*.attention.wo; 30 launches in decode".
static std::string describe(plan::KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << kernel.getPrototype().getName() << " for ";
  llvm::interleaveComma(kernel.getServes().getAsValueRange<StringAttr>(), os);
  for (auto program :
       kernel->getParentOfType<ModuleOp>().getOps<plan::ProgramOp>()) {
    const auto count = llvm::count_if(
        program.getBody().getOps<plan::LaunchOp>(), [&](plan::LaunchOp launch) {
          return launch.getKernel() == kernel.getSymName();
        });
    if (count)
      os << "; " << count << (count == 1 ? " launch" : " launches") << " in "
         << program.getSymName();
  }
  return text;
}

FailureOr<std::string> emitCpuUnit(ArrayRef<plan::KernelOp> kernels,
                                   const CpuTargetOptions &options) {
  std::set<StringRef> headers;
  std::string body;
  llvm::raw_string_ostream os(body);
  for (plan::KernelOp kernel : kernels) {
    Operation &op = kernel.getPrototype();
    if (failed(checkRegions(op)))
      return failure();
    const CpuFamily *family = cpuFamilyOf(&op);
    if (!family)
      return kernel.emitError() << "no cpu kernel family implements "
                                << op.getName() << " as it is";
    headers.insert(family->header);
    os << "\n// " << describe(kernel) << "\n";
    family->emit(&op, kernel.getSymName(), options, os);
  }
  std::string unit;
  llvm::raw_string_ostream head(unit);
  head << "// Kernels of a plan for the cpu target; operand<T>(launch, i) is "
          "argument i.\n\n";
  for (StringRef header : headers)
    head << "#include \"llamac/cpu/" << header << "\"\n";
  head << "\nusing namespace llamac::cpu;\nusing llamac::CpuLaunch;\n"
          "using llamac::PanelFormat;\n"
       << body;
  return unit;
}

std::string kernelSource(StringRef unit, StringRef symbol) {
  // Each kernel begins with the line that describe() makes.
  constexpr StringRef mark = "\n// kernel.";
  const size_t head = unit.find(mark);
  for (size_t begin = head; begin != StringRef::npos;) {
    const size_t end = unit.find(mark, begin + 1);
    StringRef part = unit.slice(begin, end);
    if (part.contains(("void " + symbol + "(").str()))
      return (unit.take_front(head) + part).str();
    begin = end;
  }
  return {};
}

} // namespace llamac
