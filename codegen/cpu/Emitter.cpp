//===- Emitter.cpp - The unit that holds a plan's cpu kernels -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Emitter.h"

#include "codegen/SourceText.h"

#include <set>

using namespace mlir;

namespace llamac {

FailureOr<std::string> emitCpuUnit(ArrayRef<plan::KernelOp> kernels,
                                   const CpuTargetOptions &options) {
  std::set<StringRef> headers;
  std::string body;
  llvm::raw_string_ostream os(body);
  for (plan::KernelOp kernel : kernels) {
    Operation &op = kernel.getPrototype();
    if (failed(checkScalars(op, "cpu")))
      return failure();
    const CpuFamily *family = cpuFamilyOf(&op);
    if (!family)
      return kernel.emitError() << "no cpu kernel family implements "
                                << op.getName() << " as it is";
    headers.insert(family->header);
    os << "\n// " << describeKernel(kernel) << "\n";
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

std::string cutKernel(StringRef unit, StringRef symbol) {
  // Each kernel begins with the line that describeKernel() makes.
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
