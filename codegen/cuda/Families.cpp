//===- Families.cpp - The list of cuda kernel families --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters of a kernel stand in the order in which its plan.kernel declares
// them.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/ConfigFields.h"
#include "codegen/cuda/Configs.h"
#include "codegen/cuda/Resident.h"

#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace llamac {

using Parameter = CudaKernelText::Parameter;

// Types of parameters.
static constexpr const char *floats = "const float *";
static constexpr const char *packed = "const void *";
static constexpr const char *numbers = "const int *";
static constexpr const char *results = "float *";

/// The element type of `value`, rows of numbers.
static StringRef elementOf(Value value) {
  switch (rowFormatOf(value)) {
  case cuda::RowFormat::F32:
    return "float";
  case cuda::RowFormat::BF16:
    return "BFloat16";
  case cuda::RowFormat::LaneBF16:
    return "LaneBFloat16";
  }
  llvm_unreachable("no other format");
}

/// The parameter that `value`, a result or the input of a product, is.
static Parameter resultOf(Value value, StringRef name = "out") {
  return {(elementOf(value) + " *").str(), name.str()};
}
static Parameter inputOf(Value value) {
  return {("const " + elementOf(value) + " *").str(), "input"};
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Whether a kernel gives what `op` does for the norm that comes next, if
/// anything.
static bool givesSquares(Operation *op) {
  auto maker = cast<kernel::NextNormOpInterface>(op);
  return !maker.getNextNorm() ||
         widthOf(maker.getSquares()) == squarePartsOf(op);
}

/// True of a product, or the products of query, key and value, of the family
/// `family` that the skeletons take. None sums by leaves. Those in bf16 have no
/// norm of their own, but may share one with another product.
template <typename Op, kernel::MatmulFamily family>
static bool isProduct(Operation *op) {
  if (!hasFamily<Op, family>(op))
    return false;
  auto product = dyn_cast<kernel::MatmulOp>(op);
  constexpr bool takesBf16 = family != kernel::MatmulFamily::Gemv;
  // The norm of an input in bf16 is shared, as squares; other inputs have none.
  const Value norm = cast<Op>(op).getNorm(), squares = squaresOf(op);
  const bool takesNorm = !squares
                             ? !norm || !takesBf16
                             : takesBf16 && takesSquares(op) &&
                                   widthOf(squares) * cuda::squareColumns ==
                                       widthOf(op->getOperand(0));
  const bool givesNorm = !product || givesSquares(op);
  return !(product && product.getLeaves()) &&
         getElementTypeOrSelf(op->getOperand(0)).isBF16() == takesBf16 &&
         takesNorm && givesNorm && llvm::all_of(weightsOf(op), isPackable);
}

static bool isOf(Operation *op, kernel::MatmulFamily family) {
  return matmulAttr(op).getFamily() == family;
}
static bool isWgmma(Operation *op) {
  return isOf(op, kernel::MatmulFamily::Wgmma);
}

/// The config of part `part` of gemv.
static cuda::GemvConfig gemvConfigOf(Operation *op, size_t part) {
  const auto [parts, weights] = partsOf(op);
  return gemvConfig(parts[part], weights, matmulAttr(op));
}

static cuda::LaunchShape productShape(Operation *op,
                                      const CudaTargetOptions &options) {
  if (streams(op, options))
    return cuda::launchShape(streamConfig(op, options));
  if (isWgmma(op))
    return cuda::launchShape(wgmmaConfig(op, options));
  if (isOf(op, kernel::MatmulFamily::Gemm))
    return gemmShape(op, options);
  if (isa<kernel::MatmulOp>(op))
    return cuda::launchShape(gemvConfigOf(op, 0));
  return cuda::launchShape(cuda::QkvConfig{
      gemvConfigOf(op, 0), gemvConfigOf(op, 1), gemvConfigOf(op, 2)});
}

/// The input is operand 0, and weights follow.
static std::vector<cuda::MapShape> wgmmaMaps(Operation *op,
                                             const CudaTargetOptions &options) {
  const cuda::WgmmaConfig config = wgmmaConfig(op, options);
  std::vector<cuda::MapShape> maps = {cuda::wgmmaInputMap(config, 0)};
  for (size_t i = 0; i < weightsOf(op).size(); ++i)
    maps.push_back(cuda::wgmmaWeightMap(config, config.weights == 1 ? i : 0,
                                        static_cast<int>(1 + i)));
  return maps;
}

/// The input of a product, rounded or not, as it is or normalised.
template <typename Op> static std::string rowsText(Op op) {
  const int64_t depth = widthOf(op.getInput());
  if (rowFormatOf(op.getInput()) != cuda::RowFormat::F32)
    return "input";
  if (!op.getNorm())
    return llvm::formatv("InputRows<{0}>{{input}", depth);
  return llvm::formatv("NormRows<{0}>{{input, gain, {1}f}", depth,
                       literal(op.getEpsAttr().getValueAsDouble()));
}

/// The parameter that the norm of a product's input is.
template <typename Op> static void addNorm(CudaKernelText &text, Op op) {
  if (op.getNorm())
    text.parameters.push_back({floats, squaresOf(op) ? "squares" : "gain"});
}

/// Adds the parameters by which `splits` blocks share a tile, ahead of the
/// results; gives the arguments that they and squares of the input are.
template <typename Op>
static std::string addShared(CudaKernelText &text, Op op, int splits) {
  std::string args;
  if (splits > 1) {
    const auto count =
        llvm::count_if(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
    text.parameters.insert(text.parameters.end() - count,
                           {{results, "partials"}, {"unsigned *", "counters"}});
    args = ", {partials, counters}";
  }
  if (squaresOf(op))
    args += llvm::formatv("{0}, SquaresNorm<{1}>{{squares, {2}f}",
                          splits > 1 ? "" : ", {}", widthOf(op.getInput()),
                          literal(op.getEpsAttr().getValueAsDouble()));
  return args;
}

/// Makes `text`, which has its parameters, that of a stream or of wgmma, which
/// both copy weights before they wait for earlier launches.
template <typename Op>
static void
setPrologue(CudaKernelText &text, Op op, const CudaTargetOptions &options,
            ArrayRef<std::string> weights, StringRef rows, StringRef epilogue) {
  if (!isWgmma(op)) {
    text.parts += "constexpr StreamConfig config" +
                  configText(streamConfig(op, options)) + ";\n\n";
    text.prologue = llvm::formatv("WeightStream<config> stream({{{0}});\n",
                                  llvm::join(weights, ", "));
    text.body = llvm::formatv("stream.run(rows, {0}, {1});", rows, epilogue);
    return;
  }
  const cuda::WgmmaConfig config = wgmmaConfig(op, options);
  text.parts += "constexpr WgmmaConfig config" + configText(config) + ";\n\n";
  text.maps.push_back("inputMap");
  std::vector<std::string> list;
  for (const std::string &weight : weights) {
    text.maps.push_back(weight + "Map");
    list.push_back(llvm::formatv("{{{0}, &{0}Map}", weight));
  }
  text.prologue =
      "WgmmaProduct<config> product(rows, {" + llvm::join(list, ", ") + "});\n";
  text.body = llvm::formatv("product.run(inputMap, {0}{1});", epilogue,
                            addShared(text, op, config.splits));
}

/// Adds the extra operands of an epilogue; gives the arguments of its functor
/// that they are.
static std::string addExtras(CudaKernelText &text, ValueRange extras) {
  std::string args;
  for (size_t i = 0; i < extras.size(); ++i) {
    const std::string name = "extra" + std::to_string(i);
    text.parameters.push_back({floats, name});
    args += name + ", ";
  }
  return args;
}

/// Adds the result of `op`, which an epilogue of type `type` stores, and those
/// of a next norm, the weights of which addNextNorm() added; gives the
/// epilogue, made of `args`, with them.
static std::string addResults(CudaKernelText &text,
                              kernel::NextNormOpInterface op, StringRef type,
                              const std::string &args) {
  std::string epilogue = llvm::formatv("{0}{{{1}}", type, args);
  const Value result = op->getResult(0);
  text.parameters.push_back(resultOf(result));
  if (!op.getNextNorm())
    return epilogue;
  text.parameters.push_back(resultOf(op.getRounded(), "rounded"));
  text.parameters.push_back(resultOf(op.getSquares(), "nextSquares"));
  return llvm::formatv(
      "ForNextNorm<{0}, {1}, {2}>{{{3}, nextGain, rounded, nextSquares}",
      widthOf(result), type, elementOf(op.getRounded()), epilogue);
}
static void addNextNorm(CudaKernelText &text, kernel::NextNormOpInterface op) {
  if (op.getNextNorm())
    text.parameters.push_back({floats, "nextGain"});
}

static CudaKernelText matmulText(Operation *operation,
                                 const CudaTargetOptions &options) {
  auto op = cast<kernel::MatmulOp>(operation);
  auto nextNorm = cast<kernel::NextNormOpInterface>(operation);
  const size_t count = op.getWeights().size();
  CudaKernelText text;
  text.parameters.push_back(inputOf(op.getInput()));
  std::vector<std::string> weights;
  for (size_t i = 0; i < count; ++i) {
    weights.push_back("weight" + (count == 1 ? "" : std::to_string(i)));
    text.parameters.push_back({packed, weights.back()});
  }
  addNorm(text, op);
  addNextNorm(text, nextNorm);
  const std::string extras = addExtras(text, op.getExtras());
  const std::string rows = rowsText(op);
  const std::string epilogue =
      addResults(text, nextNorm, "Epilogue", extras + "out");
  StringRef outputs = "config.outputs";
  if (streams(op, options) || isWgmma(op)) {
    text.header = isWgmma(op) ? "" : "stream.cuh";
    outputs = isWgmma(op) ? "config.parts[0]" : "config.product.outputs";
    setPrologue(text, op, options, weights, rows, epilogue);
  } else {
    std::string shared;
    if (isOf(op, kernel::MatmulFamily::Gemm)) {
      const cuda::GemmConfig config = gemmConfigs(op, options)[0];
      text.parts = "constexpr GemmConfig config" + configText(config);
      shared = addShared(text, op, config.splits);
    } else {
      text.parts =
          "constexpr GemvConfig config" + configText(gemvConfigOf(op, 0));
    }
    text.parts += ";\n\n";
    text.body = llvm::formatv(
        "{0}<config>(rows, {1}, {{{2}}, {3}{4});",
        kernel::stringifyMatmulFamily(op.getConfigAttr().getFamily()), rows,
        llvm::join(weights, ", "), epilogue, shared);
  }
  text.parts += functorText("Epilogue", op.getEpilogue(), op.getExtras(),
                            "extra", outputs, cudaFunctorStyle,
                            elementOf(op.getResult()).str() + " *");
  return text;
}

/// The config of the cache that `kv` is.
static std::string kvText(Value kv, const CudaTargetOptions &options) {
  return "constexpr KvConfig kv" +
         configText(kvConfig(cast<llama::KVType>(kv.getType()), options)) +
         ";\n";
}

/// Where keys and values go, behind what makes them.
static void addAppendParameters(CudaKernelText &text) {
  llvm::append_range(text.parameters,
                     ArrayRef<Parameter>{{floats, "cosSin"},
                                         {"void *", "pool"},
                                         {numbers, "positions"},
                                         {numbers, "sequences"},
                                         {numbers, "pageTable"},
                                         {results, "rotated"}});
}
static constexpr const char *appendText =
    "{.cosSin = cosSin, .pool = pool, .pageTable = pageTable, .positions = "
    "positions, .sequences = sequences}";

/// The operands of query, key and value that both ops of them begin with.
template <typename Op> static CudaKernelText qkvOperands(Op op) {
  CudaKernelText text;
  text.parameters = {inputOf(op.getInput()),
                     {packed, "query"},
                     {packed, "key"},
                     {packed, "value"}};
  addNorm(text, op);
  return text;
}

/// Adds the config of the products of query, key and value, and the call that
/// makes them.
template <typename Op>
static void addQkv(CudaKernelText &text, Op op,
                   const CudaTargetOptions &options, StringRef epilogue) {
  const std::string rows = rowsText(op);
  if (streams(op, options) || isWgmma(op))
    return setPrologue(text, op, options, {"query", "key", "value"}, rows,
                       epilogue);
  std::string shared;
  auto addConfigs = [&](StringRef type, auto query, auto key, auto value) {
    text.parts += llvm::formatv("constexpr QkvConfig<{0}> config{1};\n", type,
                                configText(cuda::QkvConfig{query, key, value}));
  };
  if (isOf(op, kernel::MatmulFamily::Gemm)) {
    const auto configs = gemmConfigs(op, options);
    addConfigs("GemmConfig", configs[0], configs[1], configs[2]);
    shared = addShared(text, op, configs[0].splits);
  } else {
    addConfigs("GemvConfig", gemvConfigOf(op, 0), gemvConfigOf(op, 1),
               gemvConfigOf(op, 2));
  }
  text.body =
      llvm::formatv("qkv<config>(rows, {0}, {{query, key, value}, {1}{2});",
                    rows, epilogue, shared);
}

static CudaKernelText qkvProductsText(Operation *operation,
                                      const CudaTargetOptions &options) {
  auto op = cast<kernel::QkvProductsOp>(operation);
  CudaKernelText text = qkvOperands(op);
  for (const char *name : {"queryOut", "keyOut", "valueOut"})
    text.parameters.push_back({results, name});
  addQkv(text, op, options,
         llvm::formatv("QkvRows<{0}, {1}, {2}>{{.part = QkvPart::Query, .outs "
                       "= {{queryOut, keyOut, valueOut}}",
                       widthOf(op.getQuery()), widthOf(op.getKey()),
                       widthOf(op.getValue()))
             .str());
  return text;
}

static CudaKernelText qkvText(Operation *operation,
                              const CudaTargetOptions &options) {
  auto op = cast<kernel::QkvOp>(operation);
  CudaKernelText text = qkvOperands(op);
  text.parts = kvText(op.getKv(), options);
  const bool isBiased = !op.getBiases().empty();
  if (isBiased)
    for (const char *name : {"queryBias", "keyBias", "valueBias"})
      text.parameters.push_back({floats, name});
  const StringRef biases =
      isBiased ? ", .biases = {queryBias, keyBias, valueBias}" : "";
  addAppendParameters(text);
  addQkv(text, op, options,
         llvm::formatv("QkvEpilogue<kv, {0}{1}>{{.part = QkvPart::Query, .to = "
                       "{2}, .out = rotated{3}}",
                       widthOf(op.getRotated()), isBiased ? ", true" : "",
                       appendText, biases)
             .str());
  return text;
}

/// Whether the norms of query and key are of more than a head.
static bool hasWideNorms(kernel::RopeAppendOp op) {
  return llvm::any_of(op.getNorms(), [&](Value norm) {
    return widthOf(norm) != op.getKv().getType().getSize();
  });
}

static cuda::LaunchShape ropeAppendShape(Operation *operation,
                                         const CudaTargetOptions &options) {
  auto op = cast<kernel::RopeAppendOp>(operation);
  const int64_t query = widthOf(op.getQuery()), key = widthOf(op.getKey());
  if (!hasWideNorms(op))
    return cuda::ropeAppendShape(kvConfig(op.getKv().getType(), options),
                                 query / op.getKv().getType().getSize());
  return cuda::normRopeShape(query, widthOf(op.getNorms()[0]), key,
                             widthOf(op.getNorms()[1]));
}

static CudaKernelText ropeAppendText(Operation *operation,
                                     const CudaTargetOptions &options) {
  auto op = cast<kernel::RopeAppendOp>(operation);
  CudaKernelText text;
  text.parts = kvText(op.getKv(), options);
  text.parameters = {{floats, "query"}, {floats, "key"}, {floats, "value"}};
  addAppendParameters(text);
  const int64_t width = widthOf(op.getQuery());
  const int64_t heads = width / op.getKv().getType().getSize();
  if (op.getNorms().empty()) {
    text.body =
        llvm::formatv("ropeAppend<kv, {0}>(query, key, value, {1}, rotated);",
                      heads, appendText);
    return text;
  }
  // Behind the other operands: ahead of the page table and the result.
  text.parameters.insert(text.parameters.end() - 2,
                         {{floats, "queryGain"}, {floats, "keyGain"}});
  const std::string eps = literal(op.getEpsAttr().getValueAsDouble());
  if (!hasWideNorms(op)) {
    text.body = llvm::formatv("ropeAppend<kv, {0}>(query, key, value, {1}, "
                              "rotated, HeadNorms{{queryGain, keyGain, {2}f});",
                              heads, appendText, eps);
    return text;
  }
  text.header = "norm_rope.cuh";
  text.body = llvm::formatv(
      "normRopeAppend<kv, {0}, {1}, {2}>({{query, key, value, queryGain, "
      "keyGain, {3}f, {4}, rotated});",
      width, widthOf(op.getNorms()[0]), widthOf(op.getNorms()[1]), eps,
      appendText);
  return text;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static cuda::LaunchShape attentionShape(Operation *op,
                                        const CudaTargetOptions &options) {
  return attentionLaunch(cast<kernel::AttentionOp>(op), options);
}

/// The pool is operand 1.
static std::vector<cuda::MapShape>
unsplitMaps(Operation *operation, const CudaTargetOptions &options) {
  auto op = cast<kernel::AttentionOp>(operation);
  if (!attendsByWgmma(op, options))
    return {};
  return {cuda::wgmmaPoolMap(attentionConfigOf(op, options), 1)};
}

static CudaKernelText attentionText(Operation *operation,
                                    const CudaTargetOptions &options) {
  auto op = cast<kernel::AttentionOp>(operation);
  const bool split =
      op.getConfigAttr().getFamily() == kernel::AttentionFamily::Merged;
  const bool wgmma = attendsByWgmma(op, options);
  const cuda::AttentionConfig config = attentionConfigOf(op, options);
  CudaKernelText text;
  if (wgmma) {
    text.header = "attention_sm90a.cuh";
    text.maps.push_back("poolMap");
  }
  text.parts = "constexpr AttentionConfig config" + configText(config) + ";\n";
  text.parameters = {{floats, "query"},
                     {packed, "pool"},
                     {numbers, "positions"},
                     {numbers, "sequences"},
                     {numbers, "pageTable"}};
  if (split)
    llvm::append_range(
        text.parameters,
        ArrayRef<Parameter>{{results, "partials"}, {"unsigned *", "counters"}});
  text.parameters.push_back(resultOf(op.getResult()));
  text.body = llvm::formatv(
      "{0}AttentionArgs{{.q = query, .pool = pool, .pageTable = pageTable, "
      ".positions = positions, .sequences = sequences, .out = out}{1});",
      split   ? "attentionSplit<config>(rows, "
      : wgmma ? "attentionWgmma<config>(rows, poolMap, "
              : "attention<config>(rows, ",
      split ? ", {partials, counters}" : "");
  return text;
}

//===----------------------------------------------------------------------===//
// Row-wise kernels
//===----------------------------------------------------------------------===//

template <auto shapeOf>
static cuda::LaunchShape fixedShape(Operation *, const CudaTargetOptions &) {
  return shapeOf();
}

static cuda::LaunchShape pointwiseShape(Operation *op,
                                        const CudaTargetOptions &) {
  return cuda::pointwiseShape(widthOf(op->getResult(0)));
}

static CudaKernelText ropeTableText(Operation *operation,
                                    const CudaTargetOptions &) {
  const ElementsAttr frequencies =
      cast<kernel::RopeTableOp>(operation).getFrequencies();
  CudaKernelText text;
  text.parts = frequenciesText(frequencies, "__device__ ");
  text.parameters = {{numbers, "positions"}, {results, "table"}};
  text.body = llvm::formatv("ropeTable<{0}>(positions, frequencies, table);",
                            2 * frequencies.getNumElements());
  return text;
}

static bool isSample(Operation *op) {
  auto sample = dyn_cast<kernel::SampleOp>(op);
  return sample && widthOf(sample.getLogits()) <= maxSampledWidth;
}

static cuda::LaunchShape sampleShape(Operation *op, const CudaTargetOptions &) {
  return cuda::sampleShape(widthOf(cast<kernel::SampleOp>(op).getLogits()));
}

static CudaKernelText sampleText(Operation *op, const CudaTargetOptions &) {
  CudaKernelText text;
  text.parameters = {{floats, "logits"},
                     {"const SamplingParams *", "params"},
                     {"Ranked *", "firsts"},
                     {"unsigned *", "counters"},
                     {"int *", "out"}};
  text.body =
      llvm::formatv("sample<{0}>(logits, params, {{firsts, counters}, out);",
                    widthOf(cast<kernel::SampleOp>(op).getLogits()));
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
  text.parts = "constexpr EmbedConfig config" +
               configText(cuda::EmbedConfig{
                   .format = deviceWeightOf(op.getTable()).format,
                   .tokens = rowsOf(op.getTable()),
                   .width = widthOf(op.getTable()),
                   .isPart = op.getRank() != nullptr}) +
               ";\n";
  text.parameters = {{numbers, "tokens"}, {packed, "table"}};
  if (op.getPositions())
    text.parameters.push_back({numbers, "positions"});
  if (op.getRank())
    text.parameters.push_back({numbers, "rank"});
  text.parameters.push_back({results, "out"});
  text.body = llvm::formatv("embed<config>(tokens, table, out{0});",
                            op.getRank() ? ", rank" : "");
  if (!op.getCosSin())
    return text;
  text.parts +=
      frequenciesText(ElementsAttr(op.getFrequenciesAttr()), "__device__ ");
  text.parameters.push_back({results, "cosSin"});
  text.body +=
      llvm::formatv("\nropeTable<{0}>(positions, frequencies, cosSin);",
                    2 * op.getFrequenciesAttr().getNumElements());
  return text;
}

static bool isRmsNorm(Operation *op) {
  return isa<kernel::RmsNormOp>(op) && givesSquares(op);
}

static cuda::LaunchShape rmsNormShape(Operation *operation,
                                      const CudaTargetOptions &) {
  auto op = cast<kernel::RmsNormOp>(operation);
  return cuda::rmsNormShape(widthOf(op.getInput()), widthOf(op.getWeight()));
}

/// Adds the epilogue of `op`, which may have none, its extra operands and the
/// result to `text`; gives the object that stores an element.
template <typename Op>
static std::string addEpilogue(CudaKernelText &text, Op op) {
  auto nextNorm = cast<kernel::NextNormOpInterface>(op.getOperation());
  addNextNorm(text, nextNorm);
  const std::string extras = addExtras(text, op.getExtras());
  const StringRef element = elementOf(op.getResult());
  const int64_t width = widthOf(op.getResult());
  if (op.getEpilogue().empty())
    return addResults(
        text, nextNorm,
        llvm::formatv("StoreRows<{0}{1}>", width,
                      element == "float" ? "" : ", " + element.str())
            .str(),
        "out");
  text.parts = functorText("Epilogue", op.getEpilogue(), op.getExtras(),
                           "extra", std::to_string(width), cudaFunctorStyle,
                           element.str() + " *");
  return addResults(text, nextNorm, "Epilogue", extras + "out");
}

static CudaKernelText rmsNormText(Operation *operation,
                                  const CudaTargetOptions &) {
  auto op = cast<kernel::RmsNormOp>(operation);
  CudaKernelText text;
  text.parameters = {{floats, "input"}, {floats, "gain"}};
  const std::string epilogue = addEpilogue(text, op);
  text.body = llvm::formatv("rmsNorm<{0}>(input, gain, {1}f, {2});",
                            widthOf(op.getWeight()),
                            literal(op.getEps().convertToDouble()), epilogue);
  return text;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Where the input of each rank is.
static const Parameter inputsOfRanks = {"const float *const *", "inputs"};

/// True of a sum in the order of the ranks.
static bool isAllReduce(Operation *op) {
  auto sum = dyn_cast<kernel::AllReduceOp>(op);
  return sum && !sum.getTree() && givesSquares(op);
}

static CudaKernelText allReduceText(Operation *operation,
                                    const CudaTargetOptions &) {
  auto op = cast<kernel::AllReduceOp>(operation);
  CudaKernelText text;
  text.parameters = {inputsOfRanks};
  const std::string epilogue = addEpilogue(text, op);
  text.body = llvm::formatv("allReduce<{0}, {1}>(inputs, {2});", op.getRanks(),
                            widthOf(op.getInput()), epilogue);
  return text;
}

static cuda::LaunchShape allGatherShape(Operation *op,
                                        const CudaTargetOptions &) {
  return cuda::allGatherShape(
      static_cast<int>(cast<kernel::AllGatherOp>(op).getRanks()));
}

static CudaKernelText allGatherText(Operation *operation,
                                    const CudaTargetOptions &) {
  auto op = cast<kernel::AllGatherOp>(operation);
  CudaKernelText text;
  text.parameters = {inputsOfRanks, {results, "out"}};
  text.body =
      llvm::formatv("allGather<{0}>(inputs, out);", widthOf(op.getInput()));
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

static CudaKernelText pointwiseText(Operation *operation,
                                    const CudaTargetOptions &) {
  auto op = cast<kernel::PointwiseOp>(operation);
  const int64_t width = widthOf(op.getResult());
  CudaKernelText text;
  std::string args;
  for (size_t i = 0; i < op.getInputs().size(); ++i) {
    text.parameters.push_back({floats, "input" + std::to_string(i)});
    args += text.parameters.back().name + ", ";
  }
  text.parameters.push_back(resultOf(op.getResult()));
  text.parts = functorText("Function", op.getBody(), op.getInputs(), "input",
                           std::to_string(width), cudaFunctorStyle,
                           elementOf(op.getResult()).str() + " *");
  text.body = llvm::formatv("pointwise<{0}>(Function{{{1}out});", width, args);
  return text;
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

ArrayRef<CudaFamily> cudaFamilies() {
  using namespace kernel;
  static constexpr auto rowwise = fixedShape<cuda::rowwiseShape>;
  static constexpr CudaFamily families[] = {
      {"all_gather", "rowwise.cuh", isOp<AllGatherOp>, allGatherShape,
       allGatherText},
      {"all_reduce", "rowwise.cuh", isAllReduce, pointwiseShape, allReduceText},
      {"attention", "attention.cuh",
       hasFamily<AttentionOp, AttentionFamily::Unsplit>, attentionShape,
       attentionText, unsplitMaps},
      {"attention_split", "attention.cuh",
       hasFamily<AttentionOp, AttentionFamily::Merged>, attentionShape,
       attentionText},
      {"embed", "rowwise.cuh", isEmbed, rowwise, embedText},
      {"gather_rows", "rowwise.cuh", isOp<GatherRowsOp>, rowwise,
       gatherRowsText},
      {"gemm", "gemm.cuh", isProduct<MatmulOp, MatmulFamily::Gemm>,
       productShape, matmulText},
      {"gemm_wgmma", "gemm_sm90a.cuh", isProduct<MatmulOp, MatmulFamily::Wgmma>,
       productShape, matmulText, wgmmaMaps},
      {"gemv", "gemv.cuh", isProduct<MatmulOp, MatmulFamily::Gemv>,
       productShape, matmulText},
      {"pointwise", "rowwise.cuh", isOp<PointwiseOp>, pointwiseShape,
       pointwiseText},
      {"qkv_gemm", "qkv.cuh", isProduct<QkvOp, MatmulFamily::Gemm>,
       productShape, qkvText},
      {"qkv_gemv", "qkv.cuh", isProduct<QkvOp, MatmulFamily::Gemv>,
       productShape, qkvText},
      {"qkv_wgmma", "gemm_sm90a.cuh", isProduct<QkvOp, MatmulFamily::Wgmma>,
       productShape, qkvText, wgmmaMaps},
      {"qkv_products_gemm", "qkv.cuh",
       isProduct<QkvProductsOp, MatmulFamily::Gemm>, productShape,
       qkvProductsText},
      {"qkv_products_gemv", "qkv.cuh",
       isProduct<QkvProductsOp, MatmulFamily::Gemv>, productShape,
       qkvProductsText},
      {"qkv_products_wgmma", "gemm_sm90a.cuh",
       isProduct<QkvProductsOp, MatmulFamily::Wgmma>, productShape,
       qkvProductsText, wgmmaMaps},
      {"resident", "resident.cuh", isResident, residentShape, residentText},
      {"rms_norm", "rowwise.cuh", isRmsNorm, rmsNormShape, rmsNormText},
      {"rope_append", "heads.cuh", isOp<RopeAppendOp>, ropeAppendShape,
       ropeAppendText},
      {"rope_table", "rowwise.cuh", isOp<RopeTableOp>,
       fixedShape<cuda::ropeTableShape>, ropeTableText},
      {"sample", "sampling.cuh", isSample, sampleShape, sampleText},
  };
  return families;
}

} // namespace llamac
