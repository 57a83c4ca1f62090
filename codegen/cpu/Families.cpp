//===- Families.cpp - The list of cpu kernel families ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments of a kernel stand in the order that lower-to-plan gives them: the
// op's operands, the page table when the op touches the cache, its results.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/ConfigFields.h"
#include "codegen/cpu/CpuTarget.h"

#include "absl/strings/str_cat.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace llamac {

/// Argument `index` of a launch: "operand<float>(*launch, 3)".
static std::string argument(StringRef type, size_t index) {
  return llvm::formatv("operand<{0}>(*launch, {1})", type, index);
}
static std::string argument(StringRef type, OpOperand &operand) {
  return argument(type, operand.getOperandNumber());
}
static std::string floats(OpOperand &operand) {
  return argument("float", operand);
}
static std::string ints(OpOperand &operand) { return argument("int", operand); }
static std::string bytes(OpOperand &operand) {
  return argument("void", operand);
}

/// The page table of the cache that `op` reads or writes: it is the argument
/// behind the operands.
static std::string pageTable(Operation *op) {
  return argument("int", op->getNumOperands());
}

/// Result number `result` of `op`: what a launch writes comes last.
static std::string resultOf(Operation *op, size_t result = 0,
                            StringRef type = "float") {
  const bool hasPages =
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<llama::KVType>);
  return argument(type, op->getNumOperands() + hasPages + result);
}

/// Rows of floats in `operands`, and the result of `op` behind them.
static std::string pointersText(Operation *op, MutableOperandRange operands) {
  std::vector<std::string> pointers;
  for (OpOperand &operand : operands)
    pointers.push_back(floats(operand));
  pointers.push_back(resultOf(op));
  return "{" + llvm::join(pointers, ", ") + "}";
}

static constexpr FunctorStyle functorStyle = {
    "",
    "F32x16",
    "void",
    ", int lanes",
    "const long at = row * {1} + column;\n",
    "load16({0} + at, lanes)",
    "load16({0} + column, lanes)",
    "store16({0} + at, {2}, lanes)"};

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

std::string enumeratorText(PanelFormat format) {
  return absl::StrCat("PanelFormat::",
                      dataTypeInfo(static_cast<DataType>(format)).id);
}

/// The element types of caches, in the order of KvFormat.
static constexpr DataType kvTypes[] = {DataType::F32, DataType::F16,
                                       DataType::BF16, DataType::Q8_0};

DataType cpu::dataTypeOf(KvFormat format) {
  return kvTypes[static_cast<size_t>(format)];
}

std::optional<cpu::KvFormat> parseCpuKvFormat(StringRef name) {
  const auto *known =
      llvm::find(kvTypes, parseDataType({name.data(), name.size()}));
  if (known == std::end(kvTypes))
    return std::nullopt;
  return static_cast<cpu::KvFormat>(known - kvTypes);
}

std::string cpu::enumeratorText(KvFormat format) {
  return absl::StrCat("KvFormat::", dataTypeInfo(dataTypeOf(format)).id);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static cpu::MatmulConfig matmulConfig(Value weight, size_t weights,
                                      kernel::MatmulConfigAttr attr,
                                      const CpuTargetOptions &options) {
  ArrayRef<int64_t> shape = cast<ShapedType>(weight.getType()).getShape();
  cpu::MatmulConfig config{.format = panelFormatOf(weight),
                           .outputs = shape[0],
                           .depth = shape[1],
                           .weights = static_cast<int>(weights),
                           .exact = options.exact};
  setTiles(config, attr);
  return config;
}

static cpu::MatmulConfig configOf(kernel::MatmulOp op,
                                  const CpuTargetOptions &options) {
  cpu::MatmulConfig config = matmulConfig(
      op.getWeights()[0], op.getWeights().size(), op.getConfigAttr(), options);
  config.leaves = static_cast<long>(op.getLeaves().value_or(1));
  return config;
}

template <typename Op>
  requires requires(Op op) { op.getQueryWeight(); }
static cpu::QkvConfig configOf(Op op, const CpuTargetOptions &options) {
  kernel::MatmulConfigAttr attr = op.getConfigAttr();
  cpu::QkvConfig config{
      .query = matmulConfig(op.getQueryWeight(), 1, attr, options),
      .key = matmulConfig(op.getKeyWeight(), 1, attr, options),
      .value = matmulConfig(op.getValueWeight(), 1, attr, options)};
  if constexpr (std::is_same_v<Op, kernel::QkvOp>) {
    config.kv = kvConfig(cast<llama::KVType>(op.getKv().getType()), options);
    config.biased = !op.getBiases().empty();
  }
  return config;
}

static bool isF32(Type type) {
  return isa<llama::KVType>(type) || getElementTypeOrSelf(type).isF32();
}
static bool givesF32(Operation *op) {
  return llvm::all_of(op->getResultTypes(), isF32);
}

/// True of an `Op` whose results are in f32.
template <typename Op> static bool isRowwise(Operation *op) {
  return isa<Op>(op) && givesF32(op);
}

/// True of products of the family `family` that the kernels are for: of inputs,
/// results and norms in f32, whose norms are their own.
template <typename Op, kernel::MatmulFamily family>
static bool isProduct(Operation *op) {
  return hasFamily<Op, family>(op) && !squaresOf(op) &&
         isF32(op->getOperand(0).getType()) && givesF32(op);
}

/// The shape of a gemv launch: one product, or query, key and value.
template <typename Op>
static cpu::LaunchShape gemvShape(Operation *op,
                                  const CpuTargetOptions &options) {
  return cpu::gemvShape(configOf(cast<Op>(op), options));
}
template <typename Op>
static cpu::LaunchShape gemmShape(Operation *op,
                                  const CpuTargetOptions &options) {
  return cpu::gemmShape(configOf(cast<Op>(op), options));
}

/// The prologue of a product: the rows of its input as they are or normalised.
template <typename Op> static std::string rowsText(Op op) {
  const int64_t depth = widthOf(op.getInput());
  const std::string input = floats(op.getInputMutable());
  if (!op.getNorm())
    return llvm::formatv("InputRows<{0}>{{{1}}", depth, input);
  return llvm::formatv("NormRows<{0}>{{{1}, {2}, {3}f}", depth, input,
                       floats(op.getNormMutable()[0]),
                       literal(op.getEpsAttr().getValueAsDouble()));
}

static CpuKernelText matmulText(Operation *operation,
                                const CpuTargetOptions &options) {
  auto op = cast<kernel::MatmulOp>(operation);
  const kernel::MatmulFamily family = op.getConfigAttr().getFamily();
  std::vector<std::string> matrices;
  for (OpOperand &weight : op.getWeightsMutable())
    matrices.push_back(bytes(weight));
  return {"constexpr MatmulConfig config" + configText(configOf(op, options)) +
              ";\n" +
              functorText("Epilogue", op.getEpilogue(), op.getExtras(), "extra",
                          "config.outputs", functorStyle),
          llvm::formatv("{0}<config>(*launch, {1}, {{{2}}, Epilogue{3});",
                        kernel::stringifyMatmulFamily(family), rowsText(op),
                        llvm::join(matrices, ", "),
                        pointersText(op, op.getExtrasMutable()))};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The config of attention, or of the merge behind it.
template <typename Op>
static cpu::AttentionConfig attentionConfig(Op op,
                                            const CpuTargetOptions &options) {
  const AttentionShape shape = attentionShapeOf(op);
  cpu::AttentionConfig config{.kv = kvConfig(shape.kv, options),
                              .heads = shape.heads,
                              .scale = shape.scale,
                              .window = shape.window};
  setTiles(config, op.getConfigAttr());
  config.exp = shape.exp;
  if (op.getConfigAttr().getFamily() == kernel::AttentionFamily::SplitKv)
    config.topK = shape.topK;
  return config;
}

template <typename Op, auto shapeOf>
static cpu::LaunchShape attentionShape(Operation *op,
                                       const CpuTargetOptions &options) {
  return shapeOf(attentionConfig(cast<Op>(op), options));
}

template <typename Op>
static std::string attentionConfigText(Op op, const CpuTargetOptions &options) {
  return "AttentionConfig" + configText(attentionConfig(op, options));
}

static CpuKernelText attentionText(Operation *operation,
                                   const CpuTargetOptions &options) {
  auto op = cast<kernel::AttentionOp>(operation);
  const bool isSplit =
      op.getConfigAttr().getFamily() == kernel::AttentionFamily::SplitKv;
  return {"", llvm::formatv(
                  "{0}<{1}>(*launch, AttentionArgs{{.q = {2}, .pool = {3}, "
                  ".pageTable = {4}, .positions = {5}, .sequences = {6}, .out "
                  "= {7}});",
                  isSplit ? "attentionSplit" : "attention",
                  attentionConfigText(op, options),
                  floats(op.getQueryMutable()), bytes(op.getKvMutable()),
                  pageTable(op), ints(op.getPositionsMutable()),
                  ints(op.getSequencesMutable()), resultOf(op))};
}

static CpuKernelText mergeText(Operation *operation,
                               const CpuTargetOptions &options) {
  auto op = cast<kernel::AttentionMergeOp>(operation);
  return {"", llvm::formatv("attentionMerge<{0}>(*launch, {1}, {2}, {3});",
                            attentionConfigText(op, options),
                            floats(op.getPartialsMutable()),
                            ints(op.getPositionsMutable()), resultOf(op))};
}

//===----------------------------------------------------------------------===//
// Rotary embedding and the append
//===----------------------------------------------------------------------===//

/// Where keys and values go.
template <typename Op> static std::string appendText(Op op) {
  return llvm::formatv("{{.cosSin = {0}, .pool = {1}, .pageTable = {2}, "
                       ".positions = {3}, .sequences = {4}}",
                       floats(op.getTableMutable()), bytes(op.getKvMutable()),
                       pageTable(op), ints(op.getPositionsMutable()),
                       ints(op.getSequencesMutable()));
}

static CpuKernelText ropeAppendText(Operation *operation,
                                    const CpuTargetOptions &options) {
  auto op = cast<kernel::RopeAppendOp>(operation);
  auto kv = cast<llama::KVType>(op.getKv().getType());
  cpu::RopeConfig config{.kv = kvConfig(kv, options),
                         .heads = widthOf(op.getQuery()) / kv.getSize()};
  std::string gains;
  if (FloatAttr eps = op.getEpsAttr()) {
    config.queryNorm = widthOf(op.getNorms()[0]);
    config.keyNorm = widthOf(op.getNorms()[1]);
    gains = llvm::formatv(", .queryGain = {0}, .keyGain = {1}, .eps = {2}f",
                          floats(op.getNormsMutable()[0]),
                          floats(op.getNormsMutable()[1]),
                          literal(eps.getValueAsDouble()));
  }
  return {"", llvm::formatv(
                  "ropeAppend<RopeConfig{0}>(*launch, RopeArgs{{.q = {1}, .k = "
                  "{2}, .v = {3}, .to = {4}, .out = {5}{6}});",
                  configText(config), floats(op.getQueryMutable()),
                  floats(op.getKeyMutable()), floats(op.getValueMutable()),
                  appendText(op), resultOf(op), gains)};
}

/// The definition of the config of query, key and value.
template <typename Op>
static std::string qkvConfigText(Op op, const CpuTargetOptions &options) {
  return "constexpr QkvConfig config" + configText(configOf(op, options)) +
         ";\n";
}

/// The skeleton of query, key and value.
template <typename Op> static const char *qkvSkeleton(Op op) {
  return op.getConfigAttr().getFamily() == kernel::MatmulFamily::Gemv
             ? "qkvGemv"
             : "qkvGemm";
}

static CpuKernelText qkvProductsText(Operation *operation,
                                     const CpuTargetOptions &options) {
  auto op = cast<kernel::QkvProductsOp>(operation);
  return {qkvConfigText(op, options),
          llvm::formatv("{0}<config>(*launch, {1}, QkvProductsArgs{{.query = "
                        "{2}, .key = {3}, .value = {4}, .outs = {{{5}, {6}, "
                        "{7}}});",
                        qkvSkeleton(op), rowsText(op),
                        bytes(op.getQueryWeightMutable()),
                        bytes(op.getKeyWeightMutable()),
                        bytes(op.getValueWeightMutable()), resultOf(op, 0),
                        resultOf(op, 1), resultOf(op, 2))};
}

static CpuKernelText qkvText(Operation *operation,
                             const CpuTargetOptions &options) {
  auto op = cast<kernel::QkvOp>(operation);
  std::string biases;
  if (MutableOperandRange operands = op.getBiasesMutable(); !operands.empty())
    biases = llvm::formatv(", .biases = {{{0}, {1}, {2}}", floats(operands[0]),
                           floats(operands[1]), floats(operands[2]));
  return {qkvConfigText(op, options),
          llvm::formatv(
              "{0}<config>(*launch, {1}, QkvArgs{{.query = {2}, .key = {3}, "
              ".value = {4}, .to = {5}, .out = {6}{7}});",
              qkvSkeleton(op), rowsText(op), bytes(op.getQueryWeightMutable()),
              bytes(op.getKeyWeightMutable()),
              bytes(op.getValueWeightMutable()), appendText(op), resultOf(op),
              biases)};
}

template <auto shapeOf>
static cpu::LaunchShape fixedShape(Operation *, const CpuTargetOptions &) {
  return shapeOf();
}

static CpuKernelText ropeTableText(Operation *operation,
                                   const CpuTargetOptions &) {
  auto op = cast<kernel::RopeTableOp>(operation);
  const ElementsAttr frequencies = op.getFrequencies();
  return {frequenciesText(frequencies),
          llvm::formatv("ropeTable<{0}>(*launch, {1}, frequencies, {2});",
                        2 * frequencies.getNumElements(),
                        ints(op.getPositionsMutable()), resultOf(op))};
}

//===----------------------------------------------------------------------===//
// Row-wise kernels
//===----------------------------------------------------------------------===//

/// The cos/sin cache is a launch of its own, which runs at the same time.
static bool isEmbed(Operation *op) {
  auto embed = dyn_cast<kernel::EmbedOp>(op);
  return embed && !embed.getCosSin();
}

static CpuKernelText embedText(Operation *operation, const CpuTargetOptions &) {
  auto op = cast<kernel::EmbedOp>(operation);
  cpu::EmbedConfig config{.format = panelFormatOf(op.getTable()),
                          .width = widthOf(op.getTable())};
  std::string rank;
  if (op.getRank()) {
    config.rows = cast<ShapedType>(op.getTable().getType()).getDimSize(0);
    rank = ", " + ints(op.getRankMutable()[0]);
  }
  return {"", llvm::formatv("embed<EmbedConfig{0}>(*launch, {1}, {2}, {3}{4});",
                            configText(config), ints(op.getTokensMutable()),
                            bytes(op.getTableMutable()), resultOf(op), rank)};
}

namespace {
/// How a launch stores each element: a functor's definition, and an object of
/// it.
struct EpilogueText {
  std::string definition;
  std::string object;
};
} // namespace

/// The epilogue of `op`, which may have none.
template <typename Op> static EpilogueText epilogueText(Op op) {
  const int64_t width = widthOf(op.getResult());
  const std::string arguments = pointersText(op, op.getExtrasMutable());
  if (op.getEpilogue().empty())
    return {"", llvm::formatv("StoreRows<{0}>", width).str() + arguments};
  return {functorText("Epilogue", op.getEpilogue(), op.getExtras(), "extra",
                      std::to_string(width), functorStyle),
          "Epilogue" + arguments};
}

static CpuKernelText rmsNormText(Operation *operation,
                                 const CpuTargetOptions &) {
  auto op = cast<kernel::RmsNormOp>(operation);
  const EpilogueText epilogue = epilogueText(op);
  return {
      epilogue.definition,
      llvm::formatv("rmsNorm<{0}, {1}>(*launch, {2}, {3}, {4}f, {5});",
                    widthOf(op.getInput()), widthOf(op.getWeight()),
                    floats(op.getInputMutable()), floats(op.getWeightMutable()),
                    literal(op.getEps().convertToDouble()), epilogue.object)};
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Where the input of each rank is.
template <typename Op> static std::string inputsOfRanks(Op op) {
  return argument("const float *", op.getInputMutable());
}

static CpuKernelText allReduceText(Operation *operation,
                                   const CpuTargetOptions &) {
  auto op = cast<kernel::AllReduceOp>(operation);
  const EpilogueText epilogue = epilogueText(op);
  return {epilogue.definition,
          llvm::formatv("allReduce<{0}, {1}{2}>(*launch, {3}, {4});",
                        op.getRanks(), widthOf(op.getInput()),
                        op.getTree() ? ", /*tree=*/true" : "",
                        inputsOfRanks(op), epilogue.object)};
}

static cpu::LaunchShape allGatherShape(Operation *op,
                                       const CpuTargetOptions &) {
  return cpu::allGatherShape(
      static_cast<long>(cast<kernel::AllGatherOp>(op).getRanks()));
}

static CpuKernelText allGatherText(Operation *operation,
                                   const CpuTargetOptions &) {
  auto op = cast<kernel::AllGatherOp>(operation);
  return {"", llvm::formatv("allGather<{0}, {1}>(*launch, {2}, {3});",
                            op.getRanks(), widthOf(op.getInput()),
                            inputsOfRanks(op), resultOf(op))};
}

static CpuKernelText gatherRowsText(Operation *operation,
                                    const CpuTargetOptions &) {
  auto op = cast<kernel::GatherRowsOp>(operation);
  // Positions and sequences are rows of one number.
  const bool isVector =
      cast<ShapedType>(op.getInput().getType()).getRank() == 1;
  const char *element = isVector ? "int" : "float";
  return {"",
          llvm::formatv("gatherRows<{0}>(*launch, {1}, {2}, {3});",
                        isVector ? 1 : widthOf(op.getInput()),
                        argument(element, op.getInputMutable()),
                        ints(op.getRowsMutable()), resultOf(op, 0, element))};
}

static CpuKernelText pointwiseText(Operation *operation,
                                   const CpuTargetOptions &) {
  auto op = cast<kernel::PointwiseOp>(operation);
  const int64_t width = widthOf(op.getResult());
  return {functorText("Function", op.getBody(), op.getInputs(), "input",
                      std::to_string(width), functorStyle),
          llvm::formatv("pointwise<{0}>(*launch, Function{1});", width,
                        pointersText(op, op.getInputsMutable()))};
}

//===----------------------------------------------------------------------===//
// Tiles to choose from
//===----------------------------------------------------------------------===//

/// The most scratch that a choice may take of a thread.
static constexpr int64_t mostScratch = 4 << 20;

/// The tile choices for a launch of one row that multiplies by `weights`
/// matrices at a time, for an op with `config`. A choice names only what
/// differs from the default (with AVX-512), or from what the op names.
static std::vector<Tiles> gemvTiles(const cpu::MatmulConfig &config) {
  std::vector<Tiles> choices;
  const int64_t all = cpu::mostPanels / config.weights;
  cpu::MatmulConfig unnamed = config;
  unnamed.ahead = 0;
  for (int64_t panels = 1; panels <= all; panels *= 2)
    for (int64_t ahead : {128, 1024, 2048}) {
      Tiles tiles;
      if (config.panels != 0 || panels != all)
        tiles.push_back({"panels", panels});
      if (config.ahead != 0 || ahead != cpu::prefetchDistance(unnamed))
        tiles.push_back({"ahead", ahead});
      const bool isSelected = panels == (config.panels ? config.panels : all) &&
                              ahead == cpu::prefetchDistance(config);
      if (!isSelected)
        choices.push_back(std::move(tiles));
    }
  return choices;
}

/// The tile choices for one product, or for query, key and value.
template <typename Op>
static std::vector<Tiles> productTiles(Operation *operation,
                                       const CpuTargetOptions &options) {
  auto op = cast<Op>(operation);
  const auto config = configOf(op, options);
  if (op.getConfigAttr().getFamily() == kernel::MatmulFamily::Gemv) {
    if constexpr (requires { config.query; })
      return gemvTiles(config.query);
    else
      return gemvTiles(config);
  }
  std::vector<Tiles> choices;
  for (int64_t rows : {16, 32, 48, 64, 96, 128, 192, 256})
    if (rows != cpu::gemmRowBlock(config) &&
        cpu::gemmShape(config, rows).scratchBytes <= mostScratch)
      choices.push_back({{"rowBlock", rows}});
  return choices;
}

static std::vector<Tiles> unsplitTiles(Operation *operation,
                                       const CpuTargetOptions &options) {
  const cpu::AttentionConfig config =
      attentionConfig(cast<kernel::AttentionOp>(operation), options);
  std::vector<Tiles> choices;
  int64_t before = 0;
  for (int64_t vectors : {16, 32, 64, 128}) {
    cpu::AttentionConfig other = config;
    other.vectors = vectors;
    // Large groups make the same tile of several sizes.
    const int64_t rows = cpu::attentionTileRows(other);
    if (rows != before && rows != cpu::attentionTileRows(config))
      choices.push_back({{"vectors", vectors}});
    before = rows;
  }
  return choices;
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

ArrayRef<CpuFamily> cpuFamilies() {
  using namespace kernel;
  static constexpr auto rowwise = fixedShape<cpu::rowwiseShape>;
  static constexpr CpuFamily families[] = {
      {"all_gather", "rowwise.h", isOp<AllGatherOp>, allGatherShape,
       allGatherText},
      {"all_reduce", "rowwise.h", isRowwise<AllReduceOp>, rowwise,
       allReduceText},
      {"attention", "attention.h",
       hasFamily<AttentionOp, AttentionFamily::Unsplit>,
       attentionShape<AttentionOp, cpu::attentionShape>, attentionText,
       unsplitTiles},
      {"attention_merge", "attention.h", isOp<AttentionMergeOp>,
       attentionShape<AttentionMergeOp, cpu::attentionMergeShape>, mergeText},
      {"attention_split", "attention.h",
       hasFamily<AttentionOp, AttentionFamily::SplitKv>,
       attentionShape<AttentionOp, cpu::attentionSplitShape>, attentionText},
      {"embed", "rowwise.h", isEmbed, rowwise, embedText},
      {"gather_rows", "rowwise.h", isOp<GatherRowsOp>, rowwise, gatherRowsText},
      {"gemm", "matmul.h", isProduct<MatmulOp, MatmulFamily::Gemm>,
       gemmShape<MatmulOp>, matmulText, productTiles<MatmulOp>},
      {"gemv", "matmul.h", isProduct<MatmulOp, MatmulFamily::Gemv>,
       gemvShape<MatmulOp>, matmulText, productTiles<MatmulOp>},
      {"pointwise", "rowwise.h", isRowwise<PointwiseOp>, rowwise,
       pointwiseText},
      {"qkv_gemm", "qkv.h", isProduct<QkvOp, MatmulFamily::Gemm>,
       gemmShape<QkvOp>, qkvText, productTiles<QkvOp>},
      {"qkv_gemv", "qkv.h", isProduct<QkvOp, MatmulFamily::Gemv>,
       gemvShape<QkvOp>, qkvText, productTiles<QkvOp>},
      {"qkv_products_gemm", "qkv.h",
       isProduct<QkvProductsOp, MatmulFamily::Gemm>, gemmShape<QkvProductsOp>,
       qkvProductsText, productTiles<QkvProductsOp>},
      {"qkv_products_gemv", "qkv.h",
       isProduct<QkvProductsOp, MatmulFamily::Gemv>, gemvShape<QkvProductsOp>,
       qkvProductsText, productTiles<QkvProductsOp>},
      {"rms_norm", "rowwise.h", isRowwise<RmsNormOp>, rowwise, rmsNormText},
      {"rope_append", "rope.h", isOp<RopeAppendOp>, rowwise, ropeAppendText},
      {"rope_table", "rope.h", isOp<RopeTableOp>,
       fixedShape<cpu::ropeTableShape>, ropeTableText},
  };
  return families;
}

} // namespace llamac
