//===- CpuBackend.cpp - The cpu target for the driver ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuBackend.h"

#include "codegen/SourceText.h"
#include "codegen/clang/ClangCompiler.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <set>

using namespace mlir;

namespace llamac {

absl::Status CpuBackend::checkModel(const ModelConfig &config) const {
  if (target().options().kvFormat == cpu::KvFormat::Q8_0 &&
      config.headSize % cpu::kvBlock != 0)
    return unsupportedError(absl::StrCat(
        "--kv-type q8_0: size of a head: expected a multiple of ", cpu::kvBlock,
        ", got ", config.headSize, "; --kv-type f16 takes the model"));
  return absl::OkStatus();
}

FailureOr<std::string> emitCpuUnit(ArrayRef<plan::KernelOp> kernels,
                                   const CpuTargetOptions &options) {
  std::set<StringRef> headers;
  std::string body;
  llvm::raw_string_ostream os(body);
  for (plan::KernelOp kernel : kernels) {
    Operation &op = kernel.getPrototype();
    if (failed(checkScalars(op, "cpu")))
      return failure();
    const CpuFamily *family = findFamily(cpuFamilies(), &op);
    if (!family)
      return kernel.emitError() << "no cpu kernel family implements "
                                << op.getName() << " as it is";
    headers.insert(family->header);
    const CpuKernelText text = family->text(&op, options);
    const StringRef symbol = kernel.getSymName();
    os << "\n// " << describeKernel(kernel) << "\n";
    // extern "C", so the namespace is of the parts alone.
    if (!text.parts.empty())
      os << "namespace " << symbol << " {\n" << text.parts;
    os << "extern \"C\" void " << symbol << "(const CpuLaunch *launch) {\n"
       << text.body << "\n}\n";
    if (!text.parts.empty())
      os << "} // namespace " << symbol << "\n";
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

static constexpr const char *unitName = "kernels.cpp";

FailureOr<std::string> CpuBackend::emitUnit(ArrayRef<plan::KernelOp> kernels,
                                            const SourceEdit &edit) const {
  FailureOr<std::string> unit = emitCpuUnit(kernels, target().options());
  if (failed(unit) || !edit)
    return unit;
  return edit(unitName, std::move(unit).value_or(""));
}

FailureOr<std::vector<SourceFile>>
CpuBackend::emit(ArrayRef<plan::KernelOp> kernels, const SourceEdit &edit,
                 SourceLayout layout) const {
  FailureOr<std::string> unit = emitUnit(kernels, edit);
  if (failed(unit))
    return failure();
  std::string text = std::move(unit).value_or("");
  if (layout == SourceLayout::Formatted)
    text = formatSource(text);
  return std::vector<SourceFile>{{unitName, std::move(text)}};
}

SourceFile CpuBackend::kernelSource(StringRef source, StringRef symbol) const {
  // Each kernel begins with the line that describeKernel() makes.
  constexpr StringRef mark = "\n// kernel.";
  const size_t head = source.find(mark);
  std::string unit;
  for (size_t begin = head; begin != StringRef::npos && unit.empty();) {
    const size_t end = source.find(mark, begin + 1);
    StringRef part = source.slice(begin, end);
    if (part.contains(("void " + symbol + "(").str()))
      unit = (source.take_front(head) + part).str();
    begin = end;
  }
  return {symbol.str() + ".cpp", unit};
}

static constexpr KernelHeader headers[] = {
#include "KernelHeaders.inc"
};

ArrayRef<KernelHeader> kernelHeaders() { return headers; }

/// cc1's -target-cpu and -target-feature arguments of a level.
static std::vector<std::string> targetArgs(IsaLevel level) {
  auto argsOf = [](const char *processor,
                   std::initializer_list<const char *> features) {
    std::vector<std::string> args = {"-target-cpu", processor};
    for (const char *feature : features)
      args.insert(args.end(), {"-target-feature", feature});
    return args;
  };
#if defined(__x86_64__)
  // Without fast-dpwssd LLVM makes two instructions of each vpdpwssd.
  switch (level) {
  case IsaLevel::Portable:
    return argsOf("x86-64", {});
  case IsaLevel::X86V3:
    return argsOf("x86-64-v3", {});
  case IsaLevel::X86V4Vnni:
    return argsOf("x86-64-v4", {"+avx512vnni", "+fast-dpwssd"});
  case IsaLevel::X86V4Bf16:
    return argsOf("x86-64-v4", {"+avx512vnni", "+fast-dpwssd", "+avx512bf16"});
  case IsaLevel::X86V4Amx:
    return argsOf("x86-64-v4", {"+avx512vnni", "+fast-dpwssd", "+avx512bf16",
                                "+amx-tile", "+amx-int8"});
  }
  llvm_unreachable("no other level");
#else
  return argsOf("generic", {});
#endif
}

absl::StatusOr<std::string> compileForCpu(ArrayRef<std::string> units,
                                          IsaLevel level) {
  ClangJob job;
  job.what = absl::StrCat("an emitted cpu kernel for ", isaLevelName(level));
  job.headers = kernelHeaders().vec();
  job.args = targetArgs(level);
  job.args.insert(job.args.end(), {"-O3", "-vectorize-loops", "-vectorize-slp",
                                   "-ffreestanding", "-ffp-contract=off",
                                   "-mprefer-vector-width=512"});
  for (const std::string &unit : units)
    job.units.push_back({{"kernels.cpp", unit}, {}});
  return compileSharedObject(job);
}

absl::StatusOr<std::vector<PlanCode>>
CpuBackend::compile(ArrayRef<plan::KernelOp> kernels,
                    const SourceEdit &edit) const {
  // The code must not depend on how many cores compile it.
  const size_t count = std::min<size_t>(8, kernels.size());
  std::vector<SmallVector<plan::KernelOp>> parts(count);
  for (auto [i, kernel] : llvm::enumerate(kernels))
    parts[i % count].push_back(kernel);
  std::vector<std::string> units;
  for (const auto &part : parts) {
    FailureOr<std::string> unit = emitUnit(part, edit);
    if (failed(unit))
      return internalError("a kernel that was emitted is so no more");
    units.push_back(std::move(unit).value_or(""));
  }
  std::vector<PlanCode> code;
  for (IsaLevel level : levels) {
    LLAMAC_ASSIGN_OR_RETURN(std::string elf, compileForCpu(units, level));
    code.push_back({std::string(isaLevelName(level)), std::move(elf)});
  }
  return code;
}

} // namespace llamac
