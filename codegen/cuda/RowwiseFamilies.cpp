//===- RowwiseFamilies.cpp - Kernels that take a row by itself ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/OpShapes.h"
#include "codegen/ScalarRenderer.h"
#include "codegen/SourceText.h"
#include "codegen/cuda/Families.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace llamac {

static cuda::LaunchShape rowwiseShape(Operation *, const CudaTargetOptions &) {
  return cuda::rowwiseShape();
}
static cuda::LaunchShape ropeTableShape(Operation *,
                                        const CudaTargetOptions &) {
  return cuda::ropeTableShape();
}

static std::string frequenciesText(ElementsAttr frequencies) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// Radians per position.\n"
        "__device__ constexpr double frequencies[] = {";
  llvm::interleaveComma(frequencies.getValues<double>(), os,
                        [&](double value) { os << literal(value); });
  os << "};\n";
  return text;
}

static CudaKernelText ropeTableText(Operation *operation,
                                    const CudaTargetOptions &) {
  auto op = cast<kernel::RopeTableOp>(operation);
  CudaKernelText text;
  text.parts = frequenciesText(op.getFrequencies());
  text.parameters = {{numbers, "positions"}, {results, "table"}};
  text.body = llvm::formatv("ropeTable<{0}>(positions, frequencies, table);",
                            2 * op.getFrequencies().getNumElements());
  return text;
}

/// More logits might weigh more together than 64 bits hold.
static constexpr int64_t maxSampledWidth = int64_t{1} << 18;

static bool isSample(Operation *op) {
  auto sample = dyn_cast<kernel::SampleOp>(op);
  return sample && widthOf(sample.getLogits()) <= maxSampledWidth;
}

static cuda::LaunchShape sampleShape(Operation *, const CudaTargetOptions &) {
  return cuda::sampleShape();
}

static CudaKernelText sampleText(Operation *operation,
                                 const CudaTargetOptions &) {
  auto op = cast<kernel::SampleOp>(operation);
  CudaKernelText text;
  text.parameters = {
      {floats, "logits"}, {"const Draw *", "draws"}, {"int *", "out"}};
  text.body = llvm::formatv("sample<{0}>(logits, draws, out);",
                            widthOf(op.getLogits()));
  return text;
}

static bool isEmbed(Operation *op) {
  auto embed = dyn_cast<kernel::EmbedOp>(op);
  return embed && isPackable(embed.getTable());
}

static CudaKernelText embedText(Operation *operation,
                                const CudaTargetOptions &) {
  auto op = cast<kernel::EmbedOp>(operation);
  CudaKernelText text;
  text.parts = llvm::formatv("constexpr EmbedConfig config{{.format = "
                             "WeightFormat::{0}, .tokens = {1}, .width = {2}"
                             "};\n",
                             formatRow(op.getTable()).enumerator,
                             rowsOf(op.getTable()), widthOf(op.getTable()));
  text.parameters = {{numbers, "tokens"},
                     {packed, "table", /*isWeight=*/true},
                     {results, "out"}};
  text.body = "embed<config>(tokens, table, out);";
  if (!op.getCosSin())
    return text;
  text.parts += frequenciesText(op.getFrequenciesAttr());
  text.parameters.insert(text.parameters.end() - 1, {numbers, "positions"});
  text.parameters.push_back({results, "angles"});
  text.body +=
      llvm::formatv("\nropeTable<{0}>(positions, frequencies, angles);",
                    2 * op.getFrequenciesAttr().getNumElements());
  return text;
}

static CudaKernelText rmsNormText(Operation *operation,
                                  const CudaTargetOptions &) {
  auto op = cast<kernel::RmsNormOp>(operation);
  CudaKernelText text;
  text.parameters = {{floats, "input"}, {floats, "gain"}, {results, "out"}};
  text.body = llvm::formatv("rmsNorm<{0}>(input, gain, {1}f, out);",
                            widthOf(op.getInput()),
                            literal(op.getEps().convertToDouble()));
  return text;
}

static CudaKernelText gatherRowsText(Operation *operation,
                                     const CudaTargetOptions &) {
  auto op = cast<kernel::GatherRowsOp>(operation);
  // Positions and sequences are rows of one number.
  const bool isVector =
      cast<ShapedType>(op.getInput().getType()).getRank() == 1;
  CudaKernelText text;
  text.parameters = {{isVector ? numbers : floats, "input"},
                     {numbers, "index"},
                     {isVector ? "int *" : results, "out"}};
  text.body = llvm::formatv("gatherRows<{0}>(input, index, out);",
                            isVector ? 1 : widthOf(op.getInput()));
  return text;
}

static cuda::LaunchShape pointwiseShape(Operation *op,
                                        const CudaTargetOptions &) {
  return cuda::pointwiseShape(
      widthOf(cast<kernel::PointwiseOp>(op).getResult()));
}

static CudaKernelText pointwiseText(Operation *operation,
                                    const CudaTargetOptions &) {
  auto op = cast<kernel::PointwiseOp>(operation);
  const int64_t width = widthOf(op.getResult());
  CudaKernelText text;
  std::vector<std::string> names;
  std::string members, loads, args;
  for (size_t i = 0; i < op.getInputs().size(); ++i) {
    const std::string input = "input" + std::to_string(i);
    names.push_back("x" + std::to_string(i));
    members += "const float *" + input + ";\n";
    loads += "const F32x2 " + names.back() + " = load2(" + input + " + at);\n";
    args += input + ", ";
    text.parameters.push_back({floats, input});
  }
  text.parameters.push_back({results, "out"});
  llvm::raw_string_ostream os(text.parts);
  os << "struct Function {\n"
     << members
     << "float *out;\n\nLLAMAC_DEVICE void operator()(long row, long column) "
        "const {\nconst long at = row * "
     << width << " + column;\n"
     << loads;
  const std::string result = renderScalars(op.getBody(), "F32x2", names, os);
  os << "store2(out + at, " << result << ");\n}\n};\n";
  text.body = llvm::formatv("pointwise<{0}>(Function{{{1}out});", width, args);
  return text;
}

ArrayRef<CudaFamily> rowwiseFamilies() {
  using namespace kernel;
  static constexpr CudaFamily families[] = {
      {"embed", "rowwise.cuh", isEmbed, rowwiseShape, embedText},
      {"gather_rows", "rowwise.cuh", isOp<GatherRowsOp>, rowwiseShape,
       gatherRowsText},
      {"pointwise", "rowwise.cuh", isOp<PointwiseOp>, pointwiseShape,
       pointwiseText},
      {"rms_norm", "rowwise.cuh", isOp<RmsNormOp>, rowwiseShape, rmsNormText},
      {"rope_table", "rowwise.cuh", isOp<RopeTableOp>, ropeTableShape,
       ropeTableText},
      {"sample", "sampling.cuh", isSample, sampleShape, sampleText},
  };
  return families;
}

} // namespace llamac
