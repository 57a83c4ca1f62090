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

#include "codegen/OpShapes.h"
#include "codegen/ScalarRenderer.h"
#include "codegen/SourceText.h"
#include "codegen/cpu/CpuTarget.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace llamac {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static constexpr const char *kernelHead =
    "extern \"C\" void {0}(const CpuLaunch *launch) {{\n";

/// A kernel that has parts of its own stands with them in a namespace of its
/// name; its own name is extern "C" all the same.
static void openParts(StringRef symbol, llvm::raw_ostream &os) {
  os << "namespace " << symbol << " {\n";
}
static void closeParts(StringRef symbol, llvm::raw_ostream &os) {
  os << "} // namespace " << symbol << "\n";
}

/// "operand<float>(*launch, 3)".
static std::string operand(StringRef type, size_t index) {
  return llvm::formatv("operand<{0}>(*launch, {1})", type, index);
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

/// PanelFormat's enumerators by the name of the element type.
struct FormatRow {
  StringRef element;
  PanelFormat format;
  StringRef enumerator;
};
static constexpr FormatRow formatRows[] = {
    {"f32", PanelFormat::F32, "F32"},    {"f16", PanelFormat::F16, "F16"},
    {"bf16", PanelFormat::BF16, "BF16"}, {"q8_0", PanelFormat::Q8_0, "Q8_0"},
    {"q4_0", PanelFormat::Q4_0, "Q4_0"}, {"q4_1", PanelFormat::Q4_1, "Q4_1"},
    {"q5_0", PanelFormat::Q5_0, "Q5_0"}, {"q5_1", PanelFormat::Q5_1, "Q5_1"},
    {"q4_k", PanelFormat::Q4_K, "Q4_K"}, {"q5_k", PanelFormat::Q5_K, "Q5_K"},
    {"q6_k", PanelFormat::Q6_K, "Q6_K"}, {"mxfp8", PanelFormat::MXFP8, "MXFP8"},
};

static const FormatRow &formatRow(Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  StringRef name = llama::elementTypeName(type.getElementType());
  for (const FormatRow &row : formatRows)
    if (row.element == name)
      return row;
  llvm_unreachable("the verifier admits no other element type");
}

PanelFormat panelFormatOf(Value weight) { return formatRow(weight).format; }

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Of the product with `weight`, [outputs, depth].
static cpu::MatmulConfig matmulConfig(Value weight, size_t weights,
                                      kernel::MatmulConfigAttr attr) {
  ArrayRef<int64_t> shape = cast<ShapedType>(weight.getType()).getShape();
  cpu::MatmulConfig config{.format = formatRow(weight).format,
                           .outputs = shape[0],
                           .depth = shape[1],
                           .weights = static_cast<int>(weights)};
  if (attr.getFamily() == kernel::MatmulFamily::Gemv)
    config.maxRows = attr.getRowBlock();
  config.panels = tileOf(attr, "panels");
  config.ahead = tileOf(attr, "ahead");
  config.rowBlock = tileOf(attr, "rowBlock");
  return config;
}

static cpu::MatmulConfig matmulConfig(kernel::MatmulOp op) {
  return matmulConfig(op.getWeights()[0], op.getWeights().size(),
                      op.getConfigAttr());
}

static cpu::LaunchShape gemvShape(Operation *op, const CpuTargetOptions &) {
  return cpu::gemvShape(matmulConfig(cast<kernel::MatmulOp>(op)));
}
static cpu::LaunchShape gemmShape(Operation *op, const CpuTargetOptions &) {
  return cpu::gemmShape(matmulConfig(cast<kernel::MatmulOp>(op)));
}

/// The config of a product as a designated initialiser; `weight` is its first.
static std::string matmulText(Value weight, const cpu::MatmulConfig &config,
                              kernel::MatmulFamily family) {
  std::string text = llvm::formatv(
      "{{.format = PanelFormat::{0}, .outputs = {1}, .depth = {2}",
      formatRow(weight).enumerator, config.outputs, config.depth);
  if (config.weights != 1)
    text += llvm::formatv(", .weights = {0}", config.weights);
  if (family == kernel::MatmulFamily::Gemv)
    text += llvm::formatv(", .maxRows = {0}", config.maxRows);
  const std::pair<const char *, int64_t> tiles[] = {
      {"panels", config.panels},
      {"ahead", config.ahead},
      {"rowBlock", config.rowBlock}};
  for (const auto &[name, size] : tiles)
    if (size)
      text += llvm::formatv(", .{0} = {1}", name, size);
  return text + "}";
}

/// The prologue of a product: the rows of its input, operand 0, as they are or
/// normalised by the weight at operand `norm`.
template <typename Op> static std::string rowsText(Op op, size_t norm) {
  const int64_t depth = widthOf(op.getInput());
  if (!op.getNormWeight())
    return llvm::formatv("InputRows<{0}>{{{1}}", depth, operand("float", 0));
  return llvm::formatv("NormRows<{0}>{{{1}, {2}, {3}f}", depth,
                       operand("float", 0), operand("float", norm),
                       literal(op.getEpsAttr().getValueAsDouble()));
}

/// The epilogue as a functor: loads its extras, stores one vector of outputs.
static void emitSink(kernel::MatmulOp op, llvm::raw_ostream &os) {
  const size_t weights = op.getWeights().size();
  std::vector<std::string> names;
  os << "struct Sink {\n";
  for (size_t i = 0; i < op.getExtras().size(); ++i)
    os << "const float *extra" << i << ";\n";
  os << "float *out;\n";
  os << "void operator()(long row, long column";
  for (size_t i = 0; i < weights; ++i) {
    names.push_back(weights == 1 ? "acc" : "acc" + std::to_string(i));
    os << ", F32x16 " << names.back();
  }
  os << ", int lanes) const {\n";
  os << "const long at = row * config.outputs + column;\n";
  for (size_t i = 0; i < op.getExtras().size(); ++i) {
    names.push_back("x" + std::to_string(i));
    os << "const F32x16 " << names.back() << " = load16(extra" << i
       << " + at, lanes);\n";
  }
  std::string result = renderScalars(op.getEpilogue(), "F32x16", names, os);
  os << "store16(out + at, " << result << ", lanes);\n}\n};\n";
}

static void emitMatmul(Operation *operation, StringRef symbol,
                       const CpuTargetOptions &, llvm::raw_ostream &os) {
  auto op = cast<kernel::MatmulOp>(operation);
  const kernel::MatmulFamily family = op.getConfigAttr().getFamily();
  openParts(symbol, os);
  os << "constexpr MatmulConfig config"
     << matmulText(op.getWeights()[0], matmulConfig(op), family) << ";\n";
  emitSink(op, os);

  size_t next = 1;
  std::string weights;
  for (size_t i = 0; i < op.getWeights().size(); ++i)
    weights += (i ? ", " : "") + operand("void", next++);
  const std::string rows = rowsText(op, next);
  next += op.getNormWeight() ? 1 : 0;
  std::string sink;
  for (size_t i = 0; i < op.getExtras().size(); ++i)
    sink += operand("float", next++) + ", ";
  sink += operand("float", next);
  os << llvm::formatv(kernelHead, symbol);
  os << llvm::formatv("{0}<config>(*launch, {1}, {{{2}}, Sink{{{3}});\n}\n",
                      kernel::stringifyMatmulFamily(family), rows, weights,
                      sink);
  closeParts(symbol, os);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static StringRef enumeratorOf(cpu::KvFormat format) {
  switch (format) {
  case cpu::KvFormat::F32:
    return "F32";
  case cpu::KvFormat::F16:
    return "F16";
  case cpu::KvFormat::BF16:
    return "BF16";
  case cpu::KvFormat::Q8_0:
    return "Q8_0";
  }
  llvm_unreachable("no other format");
}

static std::string kvText(const cpu::KvConfig &kv) {
  return llvm::formatv("{{.kvHeads = {0}, .headSize = {1}, .pagesPerSequence = "
                       "{2}, .pageTokens = {3}, .format = KvFormat::{4}}",
                       kv.kvHeads, kv.headSize, kv.pagesPerSequence,
                       kv.pageTokens, enumeratorOf(kv.format));
}

static std::string attentionText(const cpu::AttentionConfig &config) {
  std::string text =
      llvm::formatv("AttentionConfig{{.kv = {0}, .heads = {1}, .scale = {2}f",
                    kvText(config.kv), config.heads, literal(config.scale));
  if (config.vectors != cpu::AttentionConfig{}.vectors)
    text += llvm::formatv(", .vectors = {0}", config.vectors);
  return text + "}";
}

/// Of attention, or of the merge behind it.
template <typename Op>
static cpu::AttentionConfig configOf(Op op, const CpuTargetOptions &options) {
  const AttentionShape shape = attentionShapeOf(op);
  cpu::AttentionConfig config{.kv = kvConfig(shape.kv, options),
                              .heads = shape.heads,
                              .scale = shape.scale};
  config.vectors = tileOf(op.getConfigAttr(), "vectors", config.vectors);
  return config;
}

static cpu::LaunchShape wholeShape(Operation *op,
                                   const CpuTargetOptions &options) {
  return cpu::attentionShape(configOf(cast<kernel::AttentionOp>(op), options));
}
static cpu::LaunchShape splitShape(Operation *op,
                                   const CpuTargetOptions &options) {
  return cpu::attentionSplitShape(
      configOf(cast<kernel::AttentionOp>(op), options));
}
static cpu::LaunchShape mergeShape(Operation *op,
                                   const CpuTargetOptions &options) {
  return cpu::attentionMergeShape(
      configOf(cast<kernel::AttentionMergeOp>(op), options));
}

static void emitAttention(Operation *operation, StringRef symbol,
                          const CpuTargetOptions &options,
                          llvm::raw_ostream &os) {
  auto op = cast<kernel::AttentionOp>(operation);
  os << llvm::formatv(kernelHead, symbol);
  os << llvm::formatv(
      "{0}<{1}>(*launch, AttentionArgs{{.q = {2}, .pool = {3}, .pageTable = "
      "{4}, .positions = {5}, .sequences = {6}, .out = {7}});\n}\n",
      op.getConfigAttr().getFamily() == kernel::AttentionFamily::SplitKv
          ? "attentionSplit"
          : "attention",
      attentionText(configOf(op, options)), operand("float", 0),
      operand("void", 1), operand("int", 4), operand("int", 2),
      operand("int", 3), operand("float", 5));
}

static void emitMerge(Operation *operation, StringRef symbol,
                      const CpuTargetOptions &options, llvm::raw_ostream &os) {
  auto op = cast<kernel::AttentionMergeOp>(operation);
  os << llvm::formatv(kernelHead, symbol);
  os << llvm::formatv("attentionMerge<{0}>(*launch, {1}, {2}, {3});\n}\n",
                      attentionText(configOf(op, options)), operand("float", 0),
                      operand("int", 1), operand("float", 2));
}

//===----------------------------------------------------------------------===//
// Rotary embedding and the append
//===----------------------------------------------------------------------===//

/// Where keys and values go. Operands from `table` on are the table of angles,
/// the layer's pool, positions, sequences and the page table.
static std::string appendText(size_t table) {
  return llvm::formatv("{{.table = {0}, .pool = {1}, .pageTable = {2}, "
                       ".positions = {3}, .sequences = {4}}",
                       operand("float", table), operand("void", table + 1),
                       operand("int", table + 4), operand("int", table + 2),
                       operand("int", table + 3));
}

static cpu::RopeConfig ropeConfig(kernel::RopeAppendOp op,
                                  const CpuTargetOptions &options) {
  auto kv = cast<llama::KVType>(op.getKv().getType());
  return {.kv = kvConfig(kv, options),
          .heads = widthOf(op.getQuery()) / kv.getSize()};
}

static cpu::LaunchShape ropeAppendShape(Operation *op,
                                        const CpuTargetOptions &options) {
  return cpu::ropeAppendShape(
      ropeConfig(cast<kernel::RopeAppendOp>(op), options));
}

static void emitRopeAppend(Operation *operation, StringRef symbol,
                           const CpuTargetOptions &options,
                           llvm::raw_ostream &os) {
  const cpu::RopeConfig config =
      ropeConfig(cast<kernel::RopeAppendOp>(operation), options);
  os << llvm::formatv(kernelHead, symbol);
  os << llvm::formatv(
      "ropeAppend<RopeConfig{{.kv = {0}, .heads = {1}}>(*launch, RopeArgs{{"
      ".q = {2}, .k = {3}, .v = {4}, .to = {5}, .out = {6}});\n}\n",
      kvText(config.kv), config.heads, operand("float", 0), operand("float", 1),
      operand("float", 2), appendText(3), operand("float", 8));
}

static cpu::QkvConfig qkvConfig(kernel::QkvOp op,
                                const CpuTargetOptions &options) {
  kernel::MatmulConfigAttr attr = op.getConfigAttr();
  return {.query = matmulConfig(op.getQueryWeight(), 1, attr),
          .key = matmulConfig(op.getKeyWeight(), 1, attr),
          .value = matmulConfig(op.getValueWeight(), 1, attr),
          .kv = kvConfig(cast<llama::KVType>(op.getKv().getType()), options)};
}

static cpu::LaunchShape qkvGemvShape(Operation *op,
                                     const CpuTargetOptions &options) {
  return cpu::gemvShape(qkvConfig(cast<kernel::QkvOp>(op), options));
}
static cpu::LaunchShape qkvGemmShape(Operation *op,
                                     const CpuTargetOptions &options) {
  return cpu::gemmShape(qkvConfig(cast<kernel::QkvOp>(op), options));
}

static void emitQkv(Operation *operation, StringRef symbol,
                    const CpuTargetOptions &options, llvm::raw_ostream &os) {
  auto op = cast<kernel::QkvOp>(operation);
  const cpu::QkvConfig config = qkvConfig(op, options);
  const kernel::MatmulFamily family = op.getConfigAttr().getFamily();
  openParts(symbol, os);
  os << llvm::formatv("constexpr QkvConfig config{{.query = {0}, .key = {1}, "
                      ".value = {2}, .kv = {3}};\n",
                      matmulText(op.getQueryWeight(), config.query, family),
                      matmulText(op.getKeyWeight(), config.key, family),
                      matmulText(op.getValueWeight(), config.value, family),
                      kvText(config.kv));
  const size_t table = op.getNormWeight() ? 5 : 4;
  os << llvm::formatv(kernelHead, symbol);
  os << llvm::formatv(
      "{0}<config>(*launch, {1}, QkvArgs{{.query = {2}, .key = {3}, .value = "
      "{4}, .to = {5}, .out = {6}});\n}\n",
      family == kernel::MatmulFamily::Gemv ? "qkvGemv" : "qkvGemm",
      rowsText(op, 4), operand("void", 1), operand("void", 2),
      operand("void", 3), appendText(table), operand("float", table + 5));
  closeParts(symbol, os);
}

static cpu::LaunchShape ropeTableShape(Operation *, const CpuTargetOptions &) {
  return cpu::ropeTableShape();
}

static void emitRopeTable(Operation *operation, StringRef symbol,
                          const CpuTargetOptions &, llvm::raw_ostream &os) {
  auto op = cast<kernel::RopeTableOp>(operation);
  openParts(symbol, os);
  os << "// Radians per position.\nconstexpr double frequencies[] = {";
  llvm::interleaveComma(op.getFrequencies().getValues<double>(), os,
                        [&](double value) { os << literal(value); });
  os << "};\n" << llvm::formatv(kernelHead, symbol);
  os << llvm::formatv("ropeTable<{0}>(*launch, {1}, frequencies, {2});\n}\n",
                      2 * op.getFrequencies().getNumElements(),
                      operand("int", 0), operand("float", 1));
  closeParts(symbol, os);
}

//===----------------------------------------------------------------------===//
// Row-wise kernels
//===----------------------------------------------------------------------===//

static cpu::LaunchShape rowwiseShape(Operation *, const CpuTargetOptions &) {
  return cpu::rowwiseShape();
}

/// Angles are a launch of their own, which runs beside.
static bool isEmbed(Operation *op) {
  auto embed = dyn_cast<kernel::EmbedOp>(op);
  return embed && !embed.getCosSin();
}

static cpu::EmbedConfig embedConfig(kernel::EmbedOp op) {
  return {.format = formatRow(op.getTable()).format,
          .width = widthOf(op.getTable())};
}

static cpu::LaunchShape embedShape(Operation *op, const CpuTargetOptions &) {
  return cpu::embedShape(embedConfig(cast<kernel::EmbedOp>(op)));
}

static void emitEmbed(Operation *operation, StringRef symbol,
                      const CpuTargetOptions &, llvm::raw_ostream &os) {
  auto op = cast<kernel::EmbedOp>(operation);
  os << llvm::formatv(kernelHead, symbol);
  os << llvm::formatv("embed<EmbedConfig{{.format = PanelFormat::{0}, "
                      ".width = {1}}>(*launch, {2}, {3}, {4});\n}\n",
                      formatRow(op.getTable()).enumerator,
                      widthOf(op.getTable()), operand("int", 0),
                      operand("void", 1), operand("float", 2));
}

static void emitRmsNorm(Operation *operation, StringRef symbol,
                        const CpuTargetOptions &, llvm::raw_ostream &os) {
  auto op = cast<kernel::RmsNormOp>(operation);
  os << llvm::formatv(kernelHead, symbol);
  os << llvm::formatv(
      "rmsNorm<{0}>(*launch, {1}, {2}, {3}f, {4});\n}\n",
      widthOf(op.getInput()), operand("float", 0), operand("float", 1),
      literal(op.getEps().convertToDouble()), operand("float", 2));
}

static void emitGatherRows(Operation *operation, StringRef symbol,
                           const CpuTargetOptions &, llvm::raw_ostream &os) {
  auto op = cast<kernel::GatherRowsOp>(operation);
  os << llvm::formatv(kernelHead, symbol);
  // Positions and sequences are rows of one number.
  const bool isVector =
      cast<ShapedType>(op.getInput().getType()).getRank() == 1;
  const char *element = isVector ? "int" : "float";
  os << llvm::formatv("gatherRows<{0}>(*launch, {1}, {2}, {3});\n}\n",
                      isVector ? 1 : widthOf(op.getInput()),
                      operand(element, 0), operand("int", 1),
                      operand(element, 2));
}

static void emitPointwise(Operation *operation, StringRef symbol,
                          const CpuTargetOptions &, llvm::raw_ostream &os) {
  auto op = cast<kernel::PointwiseOp>(operation);
  const int64_t width = widthOf(op.getResult());
  std::vector<std::string> names;
  std::string members, loads, args;
  for (size_t i = 0; i < op.getInputs().size(); ++i) {
    names.push_back("x" + std::to_string(i));
    members += llvm::formatv("const float *input{0};\n", i);
    loads +=
        llvm::formatv("const F32x16 x{0} = load16(input{0} + at, lanes);\n", i);
    args += operand("float", i) + ", ";
  }
  args += operand("float", op.getInputs().size());
  openParts(symbol, os);
  os << "struct Function {\n"
     << members << "float *out;\n"
     << "void operator()(long row, long column, int lanes) const {\n"
     << "const long at = row * " << width << " + column;\n"
     << loads;
  std::string result = renderScalars(op.getBody(), "F32x16", names, os);
  os << "store16(out + at, " << result << ", lanes);\n}\n};\n";
  os << llvm::formatv(kernelHead, symbol);
  os << llvm::formatv("pointwise<{0}>(*launch, Function{{{1}});\n}\n", width,
                      args);
  closeParts(symbol, os);
}

//===----------------------------------------------------------------------===//
// Tiles to choose from
//===----------------------------------------------------------------------===//

/// The most scratch that a choice may take of a thread.
static constexpr int64_t mostScratch = 4 << 20;

/// Of a launch of one row that multiplies by `weights` matrices at a time.
/// `config` is what the op has. A choice names only what sets it apart: what
/// the op does not name, neither does a choice of the size that stands without
/// (with AVX-512).
static std::vector<Tiles> gemvTiles(const cpu::MatmulConfig &config) {
  std::vector<Tiles> choices;
  // With more rows the tiles of prefill serve.
  if (config.maxRows > 1)
    return choices;
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
      const bool isOwn = panels == (config.panels ? config.panels : all) &&
                         ahead == cpu::prefetchDistance(config);
      if (!isOwn)
        choices.push_back(std::move(tiles));
    }
  return choices;
}

/// Of a launch of many rows, of which it takes `rowBlock` together; `scratchOf`
/// gives the scratch of another number.
static std::vector<Tiles>
gemmTiles(int64_t rowBlock, llvm::function_ref<int64_t(int64_t)> scratchOf) {
  std::vector<Tiles> choices;
  for (int64_t rows : {16, 32, 48, 64, 96, 128, 192, 256})
    if (rows != rowBlock && scratchOf(rows) <= mostScratch)
      choices.push_back({{"rowBlock", rows}});
  return choices;
}

static std::vector<Tiles> matmulTiles(Operation *operation,
                                      const CpuTargetOptions &) {
  const cpu::MatmulConfig config =
      matmulConfig(cast<kernel::MatmulOp>(operation));
  if (hasFamily<kernel::MatmulOp, kernel::MatmulFamily::Gemv>(operation))
    return gemvTiles(config);
  return gemmTiles(cpu::gemmRowBlock(config), [&](int64_t rows) {
    return cpu::gemmShape(config, rows).scratchBytes;
  });
}

static std::vector<Tiles> qkvTiles(Operation *operation,
                                   const CpuTargetOptions &options) {
  const cpu::QkvConfig config =
      qkvConfig(cast<kernel::QkvOp>(operation), options);
  if (hasFamily<kernel::QkvOp, kernel::MatmulFamily::Gemv>(operation))
    return gemvTiles(config.query);
  return gemmTiles(cpu::gemmRowBlock(config), [&](int64_t rows) {
    cpu::QkvConfig other = config;
    other.query.rowBlock = other.key.rowBlock = other.value.rowBlock = rows;
    return cpu::gemmShape(other).scratchBytes;
  });
}

static std::vector<Tiles> wholeTiles(Operation *operation,
                                     const CpuTargetOptions &options) {
  const cpu::AttentionConfig config =
      configOf(cast<kernel::AttentionOp>(operation), options);
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
  static constexpr CpuFamily families[] = {
      {"attention", "attention.h",
       hasFamily<AttentionOp, AttentionFamily::Unsplit>, wholeShape,
       emitAttention, wholeTiles},
      {"attention_merge", "attention.h", isOp<AttentionMergeOp>, mergeShape,
       emitMerge},
      {"attention_split", "attention.h",
       hasFamily<AttentionOp, AttentionFamily::SplitKv>, splitShape,
       emitAttention},
      {"embed", "rowwise.h", isEmbed, embedShape, emitEmbed},
      {"gather_rows", "rowwise.h", isOp<GatherRowsOp>, rowwiseShape,
       emitGatherRows},
      {"gemm", "matmul.h", hasFamily<MatmulOp, MatmulFamily::Gemm>, gemmShape,
       emitMatmul, matmulTiles},
      {"gemv", "matmul.h", hasFamily<MatmulOp, MatmulFamily::Gemv>, gemvShape,
       emitMatmul, matmulTiles},
      {"pointwise", "rowwise.h", isOp<PointwiseOp>, rowwiseShape,
       emitPointwise},
      {"qkv_gemm", "qkv.h", hasFamily<QkvOp, MatmulFamily::Gemm>, qkvGemmShape,
       emitQkv, qkvTiles},
      {"qkv_gemv", "qkv.h", hasFamily<QkvOp, MatmulFamily::Gemv>, qkvGemvShape,
       emitQkv, qkvTiles},
      {"rms_norm", "rowwise.h", isOp<RmsNormOp>, rowwiseShape, emitRmsNorm},
      {"rope_append", "rope.h", isOp<RopeAppendOp>, ropeAppendShape,
       emitRopeAppend},
      {"rope_table", "rope.h", isOp<RopeTableOp>, ropeTableShape,
       emitRopeTable},
  };
  return families;
}

} // namespace llamac
