//===- Families.cpp - The list of cuda kernel families --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters of a kernel stand in the order that lower-to-plan gives a launch's
// arguments: the op's operands, the page table when the op touches the cache,
// its results.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Families.h"
#include "codegen/OpShapes.h"
#include "codegen/ScalarRenderer.h"
#include "codegen/SourceText.h"
#include "codegen/cuda/Configs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace llamac {

using Parameter = CudaKernelText::Parameter;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// True of a product, or the products of query, key and value, of the family
/// `family` that the skeletons take.
template <typename Op, kernel::MatmulFamily family>
static bool isProduct(Operation *op) {
  return hasFamily<Op, family>(op) &&
         llvm::all_of(weightsOf(cast<Op>(op)), isPackable);
}

/// The config of a product as a designated initialiser.
static std::string gemvText(Value weight, const cuda::GemvConfig &config) {
  return llvm::formatv(
      "{{.format = WeightFormat::{0}, .outputs = {1}, .depth = {2}, .weights "
      "= {3}, .maxRows = {4}, .warps = {5}, .outputsPerWarp = {6}, .unroll = "
      "{7}}",
      formatRow(weight).enumerator, config.outputs, config.depth,
      config.weights, config.maxRows, config.warps, config.outputsPerWarp,
      config.unroll);
}

static std::string streamText(Value weight, const cuda::StreamConfig &config) {
  return llvm::formatv(
      "{{.product = {0}, .parts = {{{1}, {2}, {3}}, .blocks = {4}, .stageBytes "
      "= {5}}",
      gemvText(weight, config.product), config.parts[0], config.parts[1],
      config.parts[2], config.blocks, config.stageBytes);
}

static std::string gemmText(Value weight, const cuda::GemmConfig &config) {
  return llvm::formatv(
      "{{.format = WeightFormat::{0}, .outputs = {1}, .depth = {2}, .weights "
      "= {3}, .blockRows = {4}, .blockOutputs = {5}, .warpsAlongRows = {6}, "
      ".warpsAlongOutputs = {7}, .stages = {8}}",
      formatRow(weight).enumerator, config.outputs, config.depth,
      config.weights, config.blockRows, config.blockOutputs,
      config.warpsAlongRows, config.warpsAlongOutputs, config.stages);
}

static std::string wgmmaText(Value weight, const cuda::WgmmaConfig &config) {
  return llvm::formatv(
      "{{.format = WeightFormat::{0}, .parts = {{{1}, {2}, {3}}, .depth = {4}, "
      ".weights = {5}, .panels = {6}, .panelOutputs = {7}, .stages = {8}, "
      ".cluster = {9}, .blocks = {10}}",
      formatRow(weight).enumerator, config.parts[0], config.parts[1],
      config.parts[2], config.depth, config.weights, config.panels,
      config.panelOutputs, config.stages, config.cluster, config.blocks);
}

static std::string gemvMmaText(Value weight,
                               const cuda::GemvMmaConfig &config) {
  return llvm::formatv(
      "{{.format = WeightFormat::{0}, .outputs = {1}, .depth = {2}, .weights "
      "= {3}, .maxRows = {4}, .warps = {5}, .unroll = {6}}",
      formatRow(weight).enumerator, config.outputs, config.depth,
      config.weights, config.maxRows, config.warps, config.unroll);
}

namespace {

/// How a product is written down: the skeletons of one product and of query,
/// key and value, and the config's type and value.
struct ProductText {
  StringRef skeleton, qkvSkeleton, configType;
  std::string config;
};

} // namespace

static ProductText productText(Value weight, size_t weights,
                               kernel::MatmulConfigAttr attr) {
  switch (attr.getFamily()) {
  case kernel::MatmulFamily::Gemv:
    return {"gemv", "qkvGemv", "GemvConfig",
            gemvText(weight, gemvConfig(weight, weights, attr))};
  case kernel::MatmulFamily::GemvMma:
    return {"gemvMma", "qkvGemvMma", "GemvMmaConfig",
            gemvMmaText(weight, gemvMmaConfig(weight, weights, attr))};
  case kernel::MatmulFamily::Gemm:
    return {"gemm", "qkvGemm", "GemmConfig",
            gemmText(weight, gemmConfig(weight, weights, attr))};
  case kernel::MatmulFamily::Wgmma:
    break;
  }
  llvm_unreachable("wgmma has an object, not a function");
}

/// The prologue of a product: the rows of its input as they are or normalised.
template <typename Op> static std::string rowsText(Op op) {
  const int64_t depth = widthOf(op.getInput());
  if (!op.getNormWeight())
    return llvm::formatv("InputRows<{0}>{{input}", depth);
  return llvm::formatv("NormRows<{0}>{{input, gain, {1}f}", depth,
                       literal(op.getEpsAttr().getValueAsDouble()));
}

/// The epilogue as a functor: loads its extras, stores a pair of `outputs`.
static std::string sinkText(kernel::MatmulOp op, StringRef outputs) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const size_t weights = op.getWeights().size();
  std::vector<std::string> names;
  os << "struct Sink {\n";
  for (size_t i = 0; i < op.getExtras().size(); ++i)
    os << "const float *extra" << i << ";\n";
  os << "float *out;\n\nLLAMAC_DEVICE void operator()(long row, long column";
  for (size_t i = 0; i < weights; ++i) {
    names.push_back(weights == 1 ? "acc" : "acc" + std::to_string(i));
    os << ", F32x2 " << names.back();
  }
  os << ") const {\n";
  for (size_t i = 0; i < op.getExtras().size(); ++i) {
    names.push_back("x" + std::to_string(i));
    os << "const F32x2 " << names.back() << " = loadPair<" << outputs
       << ">(extra" << i << ", row, column);\n";
  }
  const std::string result =
      renderScalars(op.getEpilogue(), "F32x2", names, os);
  os << "storePair<" << outputs << ">(out, row, column, " << result
     << ");\n}\n};\n";
  return text;
}

static cuda::LaunchShape gemvShape(Operation *op,
                                   const CudaTargetOptions &options) {
  auto product = cast<kernel::MatmulOp>(op);
  if (streams(product, options))
    return cuda::streamShape(streamConfig(product, options));
  return cuda::gemvShape(gemvConfig(product.getWeights()[0],
                                    product.getWeights().size(),
                                    product.getConfigAttr()));
}

static cuda::LaunchShape gemvMmaShape(Operation *op,
                                      const CudaTargetOptions &) {
  auto product = cast<kernel::MatmulOp>(op);
  return cuda::gemvMmaShape(gemvMmaConfig(product.getWeights()[0],
                                          product.getWeights().size(),
                                          product.getConfigAttr()));
}

static cuda::LaunchShape gemmShape(Operation *op, const CudaTargetOptions &) {
  auto product = cast<kernel::MatmulOp>(op);
  return cuda::gemmShape(gemmConfig(product.getWeights()[0],
                                    product.getWeights().size(),
                                    product.getConfigAttr()));
}

static cuda::LaunchShape wgmmaShape(Operation *op,
                                    const CudaTargetOptions &options) {
  return cuda::wgmmaShape(wgmmaConfig(cast<kernel::MatmulOp>(op), options));
}

/// The input is operand 0, and weights follow.
static std::vector<cuda::MapShape> wgmmaMaps(Operation *op,
                                             const CudaTargetOptions &options) {
  const cuda::WgmmaConfig config =
      wgmmaConfig(cast<kernel::MatmulOp>(op), options);
  std::vector<cuda::MapShape> maps = {cuda::wgmmaInputMap(config, 0)};
  for (int i = 0; i < config.weights; ++i)
    maps.push_back(cuda::wgmmaWeightMap(config, 0, 1 + i));
  return maps;
}

/// The statement that makes the object of a product by wgmma, which starts to
/// copy weights; `text` gets the maps.
static std::string wgmmaProduct(ArrayRef<std::string> weights,
                                CudaKernelText &text) {
  text.maps.push_back("inputMap");
  std::string list;
  for (const std::string &weight : weights) {
    text.maps.push_back(weight + "Map");
    list +=
        llvm::formatv("{0}{{{1}, &{1}Map}", list.empty() ? "" : ", ", weight);
  }
  return "WgmmaProduct<config> product(rows, {" + list + "});\n";
}

static CudaKernelText matmulText(Operation *operation,
                                 const CudaTargetOptions &options) {
  auto op = cast<kernel::MatmulOp>(operation);
  const size_t count = op.getWeights().size();
  Value weight = op.getWeights()[0];
  const bool stream = streams(op, options);
  const bool wgmma =
      op.getConfigAttr().getFamily() == kernel::MatmulFamily::Wgmma;
  CudaKernelText text;
  text.parameters.push_back({floats, "input"});
  std::vector<std::string> weights;
  for (size_t i = 0; i < count; ++i) {
    weights.push_back("weight" + (count == 1 ? "" : std::to_string(i)));
    text.parameters.push_back({packed, weights.back(), /*isWeight=*/true});
  }
  if (op.getNormWeight())
    text.parameters.push_back({floats, "gain", /*isWeight=*/true});
  std::string extras;
  for (size_t i = 0; i < op.getExtras().size(); ++i) {
    const std::string name = "extra" + std::to_string(i);
    text.parameters.push_back({floats, name});
    extras += name + ", ";
  }
  text.parameters.push_back({results, "out"});
  const std::string rows = rowsText(op), sink = "Sink{" + extras + "out}";
  if (stream) {
    text.header = "stream.cuh";
    text.parts = "constexpr StreamConfig config" +
                 streamText(weight, streamConfig(op, options)) + ";\n\n" +
                 sinkText(op, "config.product.outputs");
    text.ahead = llvm::formatv("WeightStream<config> stream({{{0}});\n",
                               llvm::join(weights, ", "));
    text.body = llvm::formatv("stream.run(rows, {0}, {1});", rows, sink);
    return text;
  }
  if (wgmma) {
    text.parts = "constexpr WgmmaConfig config" +
                 wgmmaText(weight, wgmmaConfig(op, options)) + ";\n\n" +
                 sinkText(op, "config.parts[0]");
    text.ahead = wgmmaProduct(weights, text);
    text.body = llvm::formatv("product.run({0}, inputMap, {1});", rows, sink);
    return text;
  }
  const ProductText product = productText(weight, count, op.getConfigAttr());
  text.parts = ("constexpr " + product.configType + " config").str() +
               product.config + ";\n\n" + sinkText(op, "config.outputs");
  text.body =
      llvm::formatv("{0}<config>(rows, {1}, {{{2}}, {3});", product.skeleton,
                    rows, llvm::join(weights, ", "), sink);
  return text;
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

static std::string kvText(const cuda::KvConfig &kv) {
  return llvm::formatv(
      "{{.kvHeads = {0}, .headSize = {1}, .pagesPerSequence = {2}, "
      ".pageTokens = {3}, .format = KvFormat::{4}}",
      kv.kvHeads, kv.headSize, kv.pagesPerSequence, kv.pageTokens,
      kv.format == cuda::KvFormat::F16 ? "F16" : "BF16");
}

static cuda::LaunchShape qkvWgmmaShape(Operation *op,
                                       const CudaTargetOptions &options) {
  return cuda::wgmmaShape(wgmmaConfig(cast<kernel::QkvOp>(op), options));
}

/// The input is operand 0; query, key and value follow.
static std::vector<cuda::MapShape>
qkvWgmmaMaps(Operation *op, const CudaTargetOptions &options) {
  const cuda::WgmmaConfig config =
      wgmmaConfig(cast<kernel::QkvOp>(op), options);
  std::vector<cuda::MapShape> maps = {cuda::wgmmaInputMap(config, 0)};
  for (int part = 0; part < 3; ++part)
    maps.push_back(cuda::wgmmaWeightMap(config, part, 1 + part));
  return maps;
}

static cuda::LaunchShape qkvGemvShape(Operation *operation,
                                      const CudaTargetOptions &options) {
  auto op = cast<kernel::QkvOp>(operation);
  return streams(op, options) ? cuda::streamShape(streamConfig(op, options))
                              : cuda::gemvShape(qkvGemvConfig(op, options));
}
static cuda::LaunchShape qkvGemvMmaShape(Operation *op,
                                         const CudaTargetOptions &options) {
  return cuda::gemvMmaShape(qkvGemvMmaConfig(cast<kernel::QkvOp>(op), options));
}
static cuda::LaunchShape qkvGemmShape(Operation *op,
                                      const CudaTargetOptions &options) {
  return cuda::gemmShape(qkvGemmConfig(cast<kernel::QkvOp>(op), options));
}

static CudaKernelText qkvText(Operation *operation,
                              const CudaTargetOptions &options) {
  auto op = cast<kernel::QkvOp>(operation);
  const std::string kv =
      kvText(kvConfig(cast<llama::KVType>(op.getKv().getType()), options));
  const bool wgmma =
      op.getConfigAttr().getFamily() == kernel::MatmulFamily::Wgmma;
  CudaKernelText text;
  text.parameters = {{floats, "input"},
                     {packed, "query", /*isWeight=*/true},
                     {packed, "key", /*isWeight=*/true},
                     {packed, "value", /*isWeight=*/true}};
  if (op.getNormWeight())
    text.parameters.push_back({floats, "gain", /*isWeight=*/true});
  llvm::append_range(text.parameters,
                     ArrayRef<Parameter>{{floats, "angles"},
                                         {"void *", "pool"},
                                         {numbers, "positions"},
                                         {numbers, "sequences"},
                                         {numbers, "pageTable"},
                                         {results, "turned"}});
  const StringRef to = "{.table = angles, .pool = pool, .pageTable = "
                       "pageTable, .positions = positions, .sequences = "
                       "sequences}";
  const std::string rows = rowsText(op);
  const std::string sink = llvm::formatv(
      "QkvSink<kv, config.parts[0]>{{.part = QkvPart::Query, .to = {0}, .out = "
      "turned}",
      to);
  if (streams(op, options)) {
    text.parts = llvm::formatv(
        "constexpr KvConfig kv{0};\nconstexpr StreamConfig config{1};\n", kv,
        streamText(op.getQueryWeight(), streamConfig(op, options)));
    text.ahead = "WeightStream<config> stream({query, key, value});\n";
    text.body = llvm::formatv("stream.run(rows, {0}, {1});", rows, sink);
    return text;
  }
  if (wgmma) {
    text.parts = llvm::formatv(
        "constexpr KvConfig kv{0};\nconstexpr WgmmaConfig config{1};\n", kv,
        wgmmaText(op.getQueryWeight(), wgmmaConfig(op, options)));
    text.ahead = wgmmaProduct({"query", "key", "value"}, text);
    text.body = llvm::formatv("product.run({0}, inputMap, {1});", rows, sink);
    return text;
  }
  SmallVector<ProductText> products;
  for (Value weight : weightsOf(op))
    products.push_back(productText(weight, 1, op.getConfigAttr()));
  text.parts = llvm::formatv(
      "constexpr QkvConfig<{0}> config{{.query = {1}, .key = {2}, .value = "
      "{3}, .kv = {4}};\n",
      products[0].configType, products[0].config, products[1].config,
      products[2].config, kv);
  text.body = llvm::formatv(
      "{0}<config>(rows, {1}, QkvArgs{{.query = query, .key = key, .value = "
      "value, .to = {2}, .out = turned});",
      products[0].qkvSkeleton, rows, to);
  return text;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static std::string attentionParts(const cuda::AttentionConfig &config) {
  return llvm::formatv(
      "constexpr AttentionConfig config{{.kv = {0}, .heads = {1}, .scale = "
      "{2}f, .splits = {3}, .minSplitTokens = {4}, .stages = {5}};\n",
      kvText(config.kv), config.heads, literal(config.scale), config.splits,
      config.minSplitTokens, config.stages);
}

static cuda::LaunchShape wholeShape(Operation *operation,
                                    const CudaTargetOptions &options) {
  auto op = cast<kernel::AttentionOp>(operation);
  const cuda::AttentionConfig config = attentionConfigOf(op, options);
  return attendsByWgmma(op, options) ? cuda::wgmmaAttentionShape(config)
                                     : cuda::attentionShape(config);
}

/// The pool is operand 1.
static std::vector<cuda::MapShape> wholeMaps(Operation *operation,
                                             const CudaTargetOptions &options) {
  auto op = cast<kernel::AttentionOp>(operation);
  if (!attendsByWgmma(op, options))
    return {};
  return {cuda::wgmmaPoolMap(attentionConfigOf(op, options), 1)};
}

static cuda::LaunchShape splitShape(Operation *op,
                                    const CudaTargetOptions &options) {
  return cuda::attentionSplitShape(
      attentionConfigOf(cast<kernel::AttentionOp>(op), options));
}
static CudaKernelText attentionText(Operation *operation,
                                    const CudaTargetOptions &options) {
  auto op = cast<kernel::AttentionOp>(operation);
  const bool split =
      op.getConfigAttr().getFamily() == kernel::AttentionFamily::Merged;
  const bool wgmma = attendsByWgmma(op, options);
  CudaKernelText text;
  if (wgmma) {
    text.header = "attention_sm90a.cuh";
    text.maps.push_back("poolMap");
  }
  text.parts = attentionParts(attentionConfigOf(op, options));
  text.parameters = {{floats, "query"},
                     {packed, "pool"},
                     {numbers, "positions"},
                     {numbers, "sequences"},
                     {numbers, "pageTable"}};
  if (split)
    llvm::append_range(
        text.parameters,
        ArrayRef<Parameter>{{results, "partials"}, {"unsigned *", "counters"}});
  text.parameters.push_back({results, "out"});
  text.body = llvm::formatv(
      "{0}AttentionArgs{{.q = query, .pool = pool, .pageTable = pageTable, "
      ".positions = positions, .sequences = sequences, .out = out}{1});",
      split   ? "attentionSplit<config>("
      : wgmma ? "attentionWgmma<config>(rows, poolMap, "
              : "attention<config>(rows, ",
      split ? ", {partials, counters}" : "");
  return text;
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

ArrayRef<CudaFamily> cudaFamilies() {
  using namespace kernel;
  static constexpr CudaFamily products[] = {
      {"attention", "attention.cuh",
       hasFamily<AttentionOp, AttentionFamily::Unsplit>, wholeShape,
       attentionText, wholeMaps},
      {"attention_split", "attention.cuh",
       hasFamily<AttentionOp, AttentionFamily::Merged>, splitShape,
       attentionText},
      {"gemm", "gemm.cuh", isProduct<MatmulOp, MatmulFamily::Gemm>, gemmShape,
       matmulText},
      {"gemm_wgmma", "gemm_sm90a.cuh", isProduct<MatmulOp, MatmulFamily::Wgmma>,
       wgmmaShape, matmulText, wgmmaMaps},
      {"gemv", "gemv.cuh", isProduct<MatmulOp, MatmulFamily::Gemv>, gemvShape,
       matmulText},
      {"gemv_mma", "gemv_mma.cuh", isProduct<MatmulOp, MatmulFamily::GemvMma>,
       gemvMmaShape, matmulText},
      {"qkv_gemm", "qkv.cuh", isProduct<QkvOp, MatmulFamily::Gemm>,
       qkvGemmShape, qkvText},
      {"qkv_gemv", "qkv.cuh", isProduct<QkvOp, MatmulFamily::Gemv>,
       qkvGemvShape, qkvText},
      {"qkv_gemv_mma", "qkv.cuh", isProduct<QkvOp, MatmulFamily::GemvMma>,
       qkvGemvMmaShape, qkvText},
      {"qkv_wgmma", "gemm_sm90a.cuh", isProduct<QkvOp, MatmulFamily::Wgmma>,
       qkvWgmmaShape, qkvText, qkvWgmmaMaps},
  };
  static const std::vector<CudaFamily> families = [] {
    std::vector<CudaFamily> all(std::begin(products), std::end(products));
    llvm::append_range(all, rowwiseFamilies());
    llvm::sort(all, [](const CudaFamily &a, const CudaFamily &b) {
      return a.name < b.name;
    });
    return all;
  }();
  return families;
}

} // namespace llamac
