//===- CpuBackend.cpp - The cpu target for the driver ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuBackend.h"

#include "codegen/SourceText.h"
#include "codegen/cpu/CpuCompiler.h"
#include "codegen/cpu/Emitter.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

using namespace mlir;

namespace llamac {

absl::Status CpuBackend::checkModel(const ModelConfig &config) const {
  if (cpuTarget.options().kvFormat == cpu::KvFormat::Q8_0 &&
      config.headSize % cpu::kvBlock != 0)
    return unsupportedError(absl::StrCat(
        "--kv-type q8_0: size of a head: expected a multiple of ", cpu::kvBlock,
        ", got ", config.headSize, "; --kv-type f16 takes the model"));
  return absl::OkStatus();
}

static schema::DataType typeOf(cpu::KvFormat format) {
  switch (format) {
  case cpu::KvFormat::F32:
    return schema::DataType::F32;
  case cpu::KvFormat::F16:
    return schema::DataType::F16;
  case cpu::KvFormat::BF16:
    return schema::DataType::BF16;
  case cpu::KvFormat::Q8_0:
    return schema::DataType::Q8_0;
  }
  llvm_unreachable("no other format");
}

schema::KvLayoutT CpuBackend::kvLayout(llama::KVType kv) const {
  const cpu::KvConfig config = kvConfig(kv, cpuTarget.options());
  schema::KvLayoutT layout;
  layout.pageTokens = config.pageTokens;
  layout.pageBytes = cpu::kvPageBytes(config);
  layout.pagesPerSequence = config.pagesPerSequence;
  layout.type = typeOf(config.format);
  return layout;
}

static constexpr const char *unitName = "kernels.cpp";

FailureOr<std::string> CpuBackend::emitUnit(ArrayRef<plan::KernelOp> kernels,
                                            const SourceEdit &edit) const {
  FailureOr<std::string> unit = emitCpuUnit(kernels, cpuTarget.options());
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

ArrayRef<KernelHeader> CpuBackend::headers() const { return kernelHeaders(); }

SourceFile CpuBackend::kernelSource(StringRef source, StringRef symbol) const {
  return {symbol.str() + ".cpp", cutKernel(source, symbol)};
}

/// Deals `kernels` out to at most `parts` units.
static std::vector<std::vector<plan::KernelOp>>
deal(ArrayRef<plan::KernelOp> kernels, size_t parts) {
  std::vector<std::vector<plan::KernelOp>> units(
      std::min(parts, kernels.size()));
  for (auto [i, kernel] : llvm::enumerate(kernels))
    units[i % units.size()].push_back(kernel);
  return units;
}

absl::StatusOr<std::vector<PlanCode>>
CpuBackend::compile(ArrayRef<plan::KernelOp> kernels,
                    const SourceEdit &edit) const {
  // The code must not depend on how many cores compile it.
  constexpr size_t mostUnits = 8;
  std::vector<std::string> units;
  for (const auto &part : deal(kernels, mostUnits)) {
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
