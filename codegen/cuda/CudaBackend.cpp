//===- CudaBackend.cpp - The cuda target for the driver -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaBackend.h"

#include "codegen/KernelOps.h"
#include "codegen/SourceText.h"
#include "codegen/cuda/Configs.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace llamac {

absl::Status CudaBackend::checkModel(const ModelConfig &config) const {
  if (hasBlocks(target().options().kvFormat) &&
      config.headSize % cuda::kvBlock != 0)
    return unsupportedError(absl::StrCat(
        "--kv-type ",
        dataTypeName(cuda::dataTypeOf(target().options().kvFormat)),
        ": size of a head: expected a multiple of ", cuda::kvBlock, ", got ",
        config.headSize, "; --kv-type f16 takes the model"));
  constexpr int64_t unit = 8; // 16 bytes of bf16.
  for (const auto &[field, value] :
       {std::pair("width", config.dim),
        std::pair("feed-forward width", config.ffnDim)})
    if (value % unit != 0)
      return unsupportedError(absl::StrCat(
          "target cuda: ", field, ": expected a multiple of ", unit, ", got ",
          value, "; --target cpu takes the model"));
  // A block of attention has the query heads of one row and kv head.
  constexpr int most = cuda::attentionWarps * cuda::warpVectors;
  if (config.numHeads > most * config.numKvHeads)
    return unsupportedError(
        absl::StrCat("target cuda: query heads of a kv head: expected at most ",
                     most, ", got ", config.numHeads / config.numKvHeads,
                     "; --target cpu takes the model"));
  cuda::AttentionConfig attention{.kv = {.kvHeads = config.numKvHeads,
                                         .headSize = config.headSize,
                                         .pagesPerSequence = 1,
                                         .format = target().options().kvFormat},
                                  .heads = config.numHeads,
                                  .scale = 1};
  const cuda::LaunchShape manyRows = cuda::attentionShape(attention, 1);
  attention.stages = 1; // The fewest.
  for (const cuda::LaunchShape &shape :
       {manyRows, cuda::attentionSplitShape(attention, 1)})
    if (const std::string excess = exceededLimit(shape, target().options().gpu);
        !excess.empty())
      return unsupportedError(absl::StrCat(
          "target cuda: attention of heads of ", config.headSize, " ", excess,
          "; another --gpu, or --target cpu, takes the model"));
  return absl::OkStatus();
}

static std::string fileOf(StringRef symbol) { return symbol.str() + ".cu"; }

/// The first of `text`'s parameters that a launch may write and that the
/// prologue uses, itself or by its map; null when it uses weights alone.
static const CudaKernelText::Parameter *
touchedInPrologue(plan::KernelOp kernel, const CudaKernelText &text) {
  for (const auto &[i, parameter] : llvm::enumerate(text.parameters))
    if (kernel.getRole(i) != plan::ParamRole::Weight &&
        llvm::Regex("[[:<:]]" + parameter.name + "(Map)?[[:>:]]")
            .match(text.prologue))
      return &parameter;
  return nullptr;
}

/// The file that defines `kernel`, of family `family`, which is made of `text`;
/// a multiprocessor shall have room for `minBlocks` blocks.
static std::string kernelFile(plan::KernelOp kernel, const CudaFamily &family,
                              const CudaKernelText &text, int minBlocks,
                              const CudaTargetOptions &options) {
  const plan::GeometryAttr geometry = kernel.getGeometry();
  const bool overlaps = geometry.getDependent();
  assert((overlaps || text.prologue.empty()) &&
         "only a wait parts it from the body");
  std::string file;
  llvm::raw_string_ostream os(file);
  os << "// " << describeKernel(kernel) << "; for " << options.gpu.name
     << "\n\n"
     << (overlaps ? "#include \"llamac/chain.cuh\"\n" : "")
     << "#include \"llamac/"
     << (text.header.empty() ? family.header : text.header)
     << "\"\n\nusing namespace llamac::cuda;\n\n";
  if (text.table != 0)
    os << "struct Table {\nvoid *at[" << text.table << "];\n};\n\n";
  if (!text.parts.empty())
    os << "namespace {\n" << text.parts << "} // namespace\n\n";
  os << "// A grid of " << geometry.getItems() << " x "
     << (geometry.getRowBlock() == 0 ? "1"
         : geometry.getRowBlock() == 1
             ? "rows"
             : "ceil(rows / " + std::to_string(geometry.getRowBlock()) + ")")
     << " blocks";
  if (geometry.getScratch())
    os << ", " << geometry.getScratch() << " bytes of dynamic shared memory";
  if (geometry.getCluster() > 1)
    os << ", in clusters of " << geometry.getCluster();
  os << ".\nextern \"C\" __global__ void __launch_bounds__("
     << geometry.getThreads() << ", " << minBlocks << ") "
     << kernel.getSymName() << "(";
  if (text.table != 0) {
    os << "LLAMAC_TABLE(Table, table), int steps) {\n" << text.body << "\n}\n";
    return file;
  }
  for (const CudaKernelText::Parameter &parameter : text.parameters)
    os << parameter.type << parameter.name << ", ";
  for (const std::string &map : text.maps)
    os << "LLAMAC_TENSOR_MAP(" << map << "), ";
  os << "int rows) {\n";
  if (overlaps && nextBeginsLate(&kernel.getPrototype(), options))
    os << text.prologue << "waitForLaunches();\nletNextLaunchBegin();\n";
  else if (overlaps)
    os << "letNextLaunchBegin();\n" << text.prologue << "waitForLaunches();\n";
  os << text.body << "\n}\n";
  return file;
}

FailureOr<std::vector<SourceFile>>
CudaBackend::emit(ArrayRef<plan::KernelOp> kernels, const SourceEdit &edit,
                  SourceLayout layout) const {
  std::vector<SourceFile> files;
  for (plan::KernelOp kernel : kernels) {
    Operation &op = kernel.getPrototype();
    if (failed(checkScalars(op, "cuda")))
      return failure();
    const CudaFamily *family = findFamily(cudaFamilies(), &op);
    if (!family)
      return kernel.emitError() << "no cuda kernel family implements "
                                << op.getName() << " as it is";
    const CudaTargetOptions &options = target().options();
    const cuda::LaunchShape shape = family->shape(&op, options);
    const std::string excess = exceededLimit(shape, options.gpu);
    if (!excess.empty())
      return kernel.emitError()
             << "kernel " << kernel.getSymName() << " " << excess;
    const CudaKernelText parts = family->text(&op, options);
    const size_t written = parts.table ? parts.table : parts.parameters.size();
    if (written != kernel.getParams().size())
      return kernel.emitError()
             << "family " << family->name << " writes " << written
             << " parameters of kernel " << kernel.getSymName()
             << ", which declares " << kernel.getParams().size();
    if (const auto *touched = touchedInPrologue(kernel, parts))
      return kernel.emitError()
             << "kernel " << kernel.getSymName() << " touches " << touched->name
             << " before it waits for earlier launches";
    std::string text =
        kernelFile(kernel, *family, parts, shape.minBlocks, options);
    if (layout == SourceLayout::Formatted)
      text = formatSource(text);
    std::string name = fileOf(kernel.getSymName());
    if (edit)
      text = edit(name, std::move(text));
    files.push_back({std::move(name), std::move(text)});
  }
  return files;
}

ArrayRef<KernelHeader> CudaBackend::headers() const {
  static constexpr KernelHeader headers[] = {
#include "DeviceHeaders.inc"
  };
  return headers;
}

std::string
CudaBackend::planSource(const std::vector<SourceFile> &files) const {
  std::vector<SourceFile> all = files;
  for (const KernelHeader &header : headers())
    all.push_back({header.name.str(), header.text.str()});
  return joinSources(all);
}

SourceFile CudaBackend::kernelSource(StringRef source, StringRef symbol) const {
  const std::string name = fileOf(symbol);
  for (SourceFile &file : unbundleSources({source.data(), source.size()}))
    if (file.name == name)
      return std::move(file);
  return {};
}

absl::StatusOr<std::vector<PlanCode>>
CudaBackend::compile(ArrayRef<plan::KernelOp>, const SourceEdit &) const {
  return std::vector<PlanCode>();
}

} // namespace llamac
