//===- Resident.cpp - The kernel of a whole step --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The launch's operands are one table of addresses: those of the op, of which
// the layers' stand layer by layer, then the page table, the counters, the
// logits and the tokens.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Resident.h"

#include "codegen/SourceText.h"
#include "codegen/cuda/ConfigFields.h"
#include "codegen/cuda/Configs.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <functional>

using namespace mlir;

namespace llamac {

template <typename... Args>
static std::string textOf(const char *pattern, const Args &...args) {
  return llvm::formatv(pattern, args...).str();
}

/// Whether `op` is no phase of its own: attention does it for what it reads.
static bool isOfAttention(Operation *op) {
  return isa<kernel::RopeAppendOp>(op);
}

/// The words that the values of `op` take, as the row of its first result has
/// them: those of query, key and value lie together.
static int64_t wordsOf(Operation *op) {
  if (isOfAttention(op))
    return 0;
  if (isa<kernel::QkvOp, kernel::QkvProductsOp>(op)) {
    int64_t words = 0;
    for (Value weight : weightsOf(op))
      words += rowsOf(weight);
    return words;
  }
  return widthOf(op->getResult(0));
}

namespace {

/// The phases of a step, in order.
struct Phases {
  kernel::ResidentOp step;
  kernel::EmbedOp embed;
  kernel::PointwiseOp scaled; ///< Scales the embedding; null where nothing
                              ///< does.
  SmallVector<kernel::RopeTableOp> tables; ///< Besides the embedding's.
  kernel::LayersOp layers;
  SmallVector<Operation *> ofLayer;
  kernel::MatmulOp head;
  kernel::SampleOp sample;

  explicit Phases(kernel::ResidentOp step) : step(step) {
    Block &body = step.getBody().front();
    for (Operation &op : body.without_terminator())
      llvm::TypeSwitch<Operation *>(&op)
          .Case([&](kernel::EmbedOp op) { embed = op; })
          .Case([&](kernel::PointwiseOp op) { scaled = op; })
          .Case([&](kernel::RopeTableOp op) { tables.push_back(op); })
          .Case([&](kernel::LayersOp op) { layers = op; })
          .Case([&](kernel::MatmulOp op) { head = op; })
          .Case([&](kernel::SampleOp op) { sample = op; });
    if (layers)
      for (Operation &op : layers.getBody().front().without_terminator())
        ofLayer.push_back(&op);
  }

  /// Whether they are one embedding, scaled or not, more cos/sin caches,
  /// layers, a product and sampling.
  bool areAll() {
    if (scaled && (!embed || scaled.getInputs().size() != 1 ||
                   scaled.getInputs()[0] != embed.getResult()))
      return false;
    const size_t others = step.getBody().front().getOperations().size() -
                          tables.size() - (scaled ? 1 : 0);
    constexpr size_t least = 5; // With the terminator.
    return embed && layers && head && sample && others == least;
  }

  SmallVector<Operation *> products() {
    SmallVector<Operation *> list;
    llvm::copy_if(ofLayer, std::back_inserter(list), hasProducts);
    list.push_back(head);
    return list;
  }

  SmallVector<kernel::AttentionOp> attentions() {
    SmallVector<kernel::AttentionOp> list;
    for (Operation *op : ofLayer)
      if (auto attention = dyn_cast<kernel::AttentionOp>(op))
        list.push_back(attention);
    return list;
  }

  /// Whether the layers have another one each.
  bool isEach(Value value) {
    auto argument = cast<BlockArgument>(value);
    return argument.getOwner() == &layers.getBody().front() &&
           argument.getArgNumber() >= layers.getFirstEach();
  }

  /// The operands of the step that the layers have each for itself.
  SmallVector<Value> eachOfStep() {
    SmallVector<Value> given;
    llvm::copy_if(layers.getEach(), std::back_inserter(given),
                  llvm::IsaPred<BlockArgument>);
    return given;
  }

  /// The number of a cos/sin cache that is ahead of the layers; nothing for
  /// another value.
  std::optional<int> tableNumber(Value table) {
    if (table == embed.getCosSin())
      return 0;
    const auto *found = llvm::find_if(tables, [&](kernel::RopeTableOp op) {
      return op.getResult() == table;
    });
    if (found == tables.end())
      return std::nullopt;
    return static_cast<int>(found - tables.begin()) + 1;
  }

  /// The numbers of `table`, a value of the layers, by layer.
  SmallVector<int> tablesOf(Value table) {
    SmallVector<int> numbers;
    for (uint64_t layer = 0; layer < layers.getCount(); ++layer)
      numbers.push_back(*tableNumber(layers.getOperandOf(
          cast<BlockArgument>(table), static_cast<int64_t>(layer))));
    return numbers;
  }

  /// The number of `value` among the op's operands; of a value of the layers,
  /// of the first one.
  int operand(Value value) {
    auto argument = cast<BlockArgument>(value);
    if (argument.getOwner() == &step.getBody().front())
      return static_cast<int>(argument.getArgNumber());
    return operand(layers.getOperandOf(argument, 0));
  }
};

} // namespace

/// Why there is no phase for `op` of a layer, or the product behind them; empty
/// where there is.
static std::string whyNoPhase(Operation *op, bool isHead,
                              const CudaTargetOptions &options) {
  if (auto attention = dyn_cast<kernel::AttentionOp>(op)) {
    if (attention.getConfigAttr().getFamily() !=
        kernel::AttentionFamily::Merged)
      return "attention is not split";
    if (!isa_and_nonnull<kernel::QkvOp, kernel::RopeAppendOp>(
            attention.getQuery().getDefiningOp()))
      return "attention reads queries that no product makes";
    const int64_t size = attention.getKv().getType().getSize();
    if (size > 128 || size % 16 != 0)
      return textOf("heads of {0} are no multiple of 16 up to 128", size);
    return "";
  }
  if (auto rope = dyn_cast<kernel::RopeAppendOp>(op)) {
    auto products = rope.getQuery().getDefiningOp<kernel::QkvProductsOp>();
    if (!products || rope.getKey() != products.getKey() ||
        rope.getValue() != products.getValue())
      return "query, key and value are products of their own";
    const int64_t head = rope.getKv().getType().getSize();
    for (Value norm : rope.getNorms())
      if (widthOf(norm) != head)
        return textOf("query and key have norms of {0}, heads have {1}",
                      widthOf(norm), head);
    return "";
  }
  if (!isa<kernel::MatmulOp, kernel::QkvOp, kernel::QkvProductsOp>(op))
    return textOf("{0} is no phase of one", op->getName());
  if (!streams(op, options))
    return "a product does not stream";
  const cuda::StreamConfig config = streamConfig(op, options);
  if (!cuda::streamsByMma(config) && config.product.outputsPerWarp != 2)
    return "a product has other tiles";
  // Outputs come in pairs, and are read four at a time.
  const int unit = isHead ? 2 : 4;
  for (const long part : config.parts)
    if (part % unit != 0)
      return textOf("a width of {0} is no multiple of {1}", part, unit);
  return "";
}

/// Whether the weights of `op`, a product, are of a block format.
static bool isByMma(Operation *op, const CudaTargetOptions &options) {
  return cuda::streamsByMma(streamConfig(op, options));
}

static cuda::ResidentConfig residentConfig(kernel::ResidentOp op,
                                           const CudaTargetOptions &options);

std::string CudaTarget::whyNotResident(Operation *operation) const {
  auto op = cast<kernel::ResidentOp>(operation);
  const CudaTargetOptions &options = targetOptions;
  if (options.gpu.tier != KernelTier::Sm90)
    return textOf("{0} has none", options.gpu.name);
  Phases phases(op);
  if (!phases.areAll() || !phases.embed.getCosSin() || phases.embed.getRank())
    return "it is not an embedding, layers, a product and sampling";
  if (widthOf(phases.sample.getLogits()) > maxSampledWidth ||
      widthOf(phases.sample.getLogits()) % 2 != 0)
    return "its logits cannot be sampled";
  if (widthOf(phases.embed.getResult()) % 4 != 0)
    return "its widths are no multiples of 4";
  if (phases.products().size() > cuda::residentProducts)
    return "it has too many products";
  if (phases.attentions().size() != 1)
    return "a layer has not one attention";
  if (!phases.head.getExtras().empty())
    return "its logits are more than a product";
  for (Operation *phase : phases.ofLayer)
    if (std::string why = whyNoPhase(phase, /*isHead=*/false, options);
        !why.empty())
      return why;
  for (Operation *phase : phases.ofLayer)
    for (Value operand : phase->getOperands())
      if (const auto type = dyn_cast<RankedTensorType>(operand.getType());
          isa<BlockArgument>(operand) && !phases.isEach(operand) &&
          (!type || (type.getRank() == 2 && type.hasStaticShape())))
        return "its layers share weights or a cache";
  if (std::string why = whyNoPhase(phases.head, /*isHead=*/true, options);
      !why.empty())
    return why;
  for (Operation *product : phases.products())
    if (isByMma(product, options) != isByMma(phases.head, options))
      return "some weights are floats, others of a block format";
  for (Value value : phases.layers.getEach())
    if (!isa<BlockArgument>(value) && !phases.tableNumber(value))
      return "its layers take what launches ahead of them make";
  // The operands of the layers follow each other.
  const SmallVector<Value> each = phases.eachOfStep();
  for (auto [i, value] : llvm::enumerate(each))
    if (phases.operand(value) != phases.operand(each[0]) + static_cast<int>(i))
      return "its layers share what they are given";
  if (residentConfig(op, options).stages == 0)
    return "its inputs leave no room for weights in shared memory";
  return "";
}

/// The config of `op`, for any number of stages. Beside what lives through a
/// step, registers hold the queries of small heads alone.
static cuda::AttentionConfig
residentAttention(kernel::AttentionOp op, const CudaTargetOptions &options) {
  cuda::AttentionConfig config = attentionConfigOf(op, options);
  config.sharedQueries = config.kv.headSize > 64;
  return config;
}

/// All but the stages, of which it has none.
static cuda::ResidentConfig
configWithoutStages(Phases &phases, const CudaTargetOptions &options) {
  cuda::ResidentConfig config{
      .layers = static_cast<int>(phases.layers.getCount()),
      .layerPointers = static_cast<int>(phases.eachOfStep().size() /
                                        phases.layers.getCount()),
      .wordsBefore = static_cast<long>(wordsOf(phases.embed)),
      .blocks = options.gpu.multiprocessors,
      .stages = 0};
  int64_t area = 0;
  for (Operation *op : phases.products()) {
    cuda::ResidentProduct &product = config.products[config.count++];
    product.stream = streamConfig(op, options);
    for (auto [i, weight] : llvm::enumerate(weightsOf(op)))
      product.matrices[i] = phases.operand(weight);
    area = std::max<int64_t>(area, cuda::residentInputBytes(product.stream));
  }
  config.layerEnd = config.count - 1;
  for (Operation *op : phases.ofLayer)
    config.layerWords += wordsOf(op);
  cuda::AttentionConfig attention =
      residentAttention(phases.attentions().front(), options);
  attention.stages = 1;
  config.headSize = static_cast<int>(attention.kv.headSize);
  config.tables = static_cast<int>(phases.tables.size()) + 1;
  config.partialWords = cuda::residentPartialWords(attention);
  area = std::max<int64_t>(area, cuda::residentAttentionBytes(attention));
  constexpr int64_t samplingBytes = 28 * 1024; // SampleMemory.
  config.areaBytes =
      static_cast<int>(cuda::roundUp(std::max(area, samplingBytes), 128));
  return config;
}

/// Bytes that wait in a ring, on the average of all the weights of a layer: a
/// stage may have less than it holds.
static double bytesHeld(const cuda::ResidentConfig &config) {
  double bytes = 0, stages = 0;
  for (int i = 0; i < config.layerEnd; ++i) {
    const cuda::StreamConfig &stream = config.products[i].stream;
    const int64_t row =
        cuda::unitBytes(stream.product.format, stream.product.depth);
    const auto units = static_cast<double>(cuda::streamUnits(stream));
    bytes += units * static_cast<double>(row * stream.product.weights *
                                         cuda::residentUnitRows(config));
    stages += units * static_cast<double>(cuda::divideUp(
                          row, cuda::residentSegment(config, stream)));
  }
  return bytes / stages * config.stages;
}

/// A stage has whole turns of a warp for each row, or whole groups of tiles. It
/// has the largest of the sizes with which about as many bytes wait, since each
/// stage costs barriers. A config without stages finds no room for them.
static cuda::ResidentConfig residentConfig(kernel::ResidentOp op,
                                           const CudaTargetOptions &options) {
  Phases phases(op);
  // The memory that arrivesLast() declares comes first, and then the rest,
  // which is aligned.
  constexpr int declared = 1024;
  const cuda::ResidentConfig without = configWithoutStages(phases, options);
  const bool byMma = cuda::residentByMma(without);
  const int leastStages = byMma ? 4 : 2;
  const int smallest = byMma ? 8 : 4, largest = byMma ? 24 : 8; // KB
  std::vector<cuda::ResidentConfig> configs;
  for (int size = largest; size >= smallest; size -= byMma ? 1 : 4) {
    cuda::ResidentConfig config = without;
    config.stageBytes = size * 1024;
    int needed = 0;
    for (const auto &product : ArrayRef(config.products, config.count))
      needed =
          std::max(needed, cuda::residentStageBytes(config, product.stream));
    if (needed > config.stageBytes)
      continue;
    config.stageBytes = static_cast<int>(cuda::roundUp(needed, 128));
    config = cuda::withStages(config, options.gpu.blockSharedBytes - declared);
    if (config.stages >= leastStages)
      configs.push_back(config);
  }
  if (configs.empty())
    return without;
  constexpr double about = 0.88;
  double most = 0;
  for (const cuda::ResidentConfig &config : configs)
    most = std::max(most, bytesHeld(config));
  return *llvm::find_if(configs, [&](const cuda::ResidentConfig &config) {
    return bytesHeld(config) >= about * most;
  });
}

/// With as many tiles of keys at a time as the area holds.
static cuda::AttentionConfig attentionOf(kernel::AttentionOp op,
                                         const cuda::ResidentConfig &config,
                                         const CudaTargetOptions &options) {
  cuda::AttentionConfig attention = residentAttention(op, options);
  do
    if (cuda::residentAttentionBytes(attention) <= config.areaBytes)
      return attention;
  while (--attention.stages > 1);
  return attention;
}

int64_t residentPhases(kernel::ResidentOp op) {
  Phases phases(op);
  const auto ofLayer =
      llvm::count_if(phases.ofLayer, std::not_fn(isOfAttention));
  return static_cast<int64_t>(phases.layers.getCount()) * ofLayer + 1;
}

bool isResident(Operation *op) { return isa<kernel::ResidentOp>(op); }

cuda::LaunchShape residentShape(Operation *op,
                                const CudaTargetOptions &options) {
  return cuda::launchShape(
      residentConfig(cast<kernel::ResidentOp>(op), options));
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {

/// Writes the kernel of one step.
class ResidentWriter {
public:
  ResidentWriter(kernel::ResidentOp op, const CudaTargetOptions &options)
      : phases(op), options(options), config(residentConfig(op, options)) {}

  CudaKernelText write();

private:
  /// The address of operand `index` of the op, or of what a launch has besides.
  static std::string address(StringRef type, int64_t index) {
    return textOf("static_cast<{0} *>(table.at[{1}])", type, index);
  }
  std::string address(StringRef type, Value value) {
    const int index = phases.operand(value);
    if (!phases.isEach(value))
      return address(type, index);
    return textOf("static_cast<{0} *>(table.at[{1} + {2} * layer])", type,
                  index, config.layerPointers);
  }

  /// The row of words that `value` is.
  std::string rowOf(Value value) const { return rows.lookup(value); }
  void declare(Operation *op, const std::string &name, int64_t offset);

  std::string inputOf(Value input, Value norm, FloatAttr eps);
  template <typename Op>
  void writeQkv(Op op, int number, Value cache, const std::string &out,
                const std::string &cosSin, ValueRange biases);
  std::string angles(Value table);
  void writeProduct(Operation *op, int number);
  void writeAttention(kernel::AttentionOp op);
  void writeLayer();

  Phases phases;
  const CudaTargetOptions &options;
  const cuda::ResidentConfig config;
  CudaKernelText text;
  llvm::DenseMap<Value, std::string> rows;
};

} // namespace

std::string ResidentWriter::inputOf(Value input, Value norm, FloatAttr eps) {
  const int64_t depth = widthOf(input);
  if (!norm)
    return textOf("WordInput<{0}>{{{1}}", depth, rowOf(input));
  return textOf("WordNorm<{0}>{{{1}, {2}, {3}f}", depth, rowOf(input),
                address("const float", norm), literal(eps.getValueAsDouble()));
}

/// The cos/sin cache of the layer.
std::string ResidentWriter::angles(Value table) {
  const SmallVector<int> numbers = phases.tablesOf(table);
  if (llvm::all_equal(numbers))
    return textOf("step.cosSin({0})", numbers[0]);
  text.parts += "__device__ constexpr unsigned char tableOfLayer[] = {";
  for (const int number : numbers)
    text.parts += std::to_string(number) + ", ";
  text.parts += "};\n";
  return "step.cosSin(tableOfLayer[layer])";
}

/// The products of query, key and value, which are rotated by the cache
/// `cosSin`, unless it is empty, behind their biases.
template <typename Op>
void ResidentWriter::writeQkv(Op op, int number, Value cache,
                              const std::string &out, const std::string &cosSin,
                              ValueRange biases) {
  const std::string kv = textOf("kv{0}", number);
  text.parts += textOf(
      "constexpr KvConfig {0}{1};\n", kv,
      configText(kvConfig(cast<llama::KVType>(cache.getType()), options)));
  std::string args;
  if (!cosSin.empty())
    args += ", .cosSin = " + cosSin;
  if (!biases.empty()) {
    args += ", .biases = {";
    for (Value bias : biases)
      args += address("const float", bias) + ", ";
    args += "}";
  }
  const char *flags = cosSin.empty()   ? ", false"
                      : biases.empty() ? ""
                                       : ", true, true";
  text.body +=
      textOf("step.product<{0}>({1}, QkvWords<{2}, {3}{4}>{{.part = "
             "QkvPart::Query, .out = {5}{6}});\n",
             number, inputOf(op.getInput(), op.getNorm(), op.getEpsAttr()), kv,
             rowsOf(op.getQueryWeight()), flags, out, args);
}

void ResidentWriter::writeProduct(Operation *op, int number) {
  if (auto qkv = dyn_cast<kernel::QkvOp>(op))
    return writeQkv(qkv, number, qkv.getKv(), rowOf(qkv.getRotated()),
                    angles(qkv.getTable()), qkv.getBiases());
  if (auto qkv = dyn_cast<kernel::QkvProductsOp>(op)) {
    auto rope = cast<kernel::RopeAppendOp>(*qkv.getQuery().user_begin());
    return writeQkv(qkv, number, rope.getKv(), rowOf(qkv.getQuery()), "", {});
  }
  auto product = cast<kernel::MatmulOp>(op);
  const bool isHead = op == phases.head;
  const std::string functor = textOf("Epilogue{0}", number);
  text.parts +=
      functorText(functor, product.getEpilogue(), product.getExtras(), "extra",
                  std::to_string(widthOf(product.getResult())),
                  cudaFunctorStyle, isHead ? "float *" : "WordRow", "WordRow");
  std::string args;
  for (Value extra : product.getExtras())
    args += (cast<ShapedType>(extra.getType()).getRank() == 1
                 ? address("const float", extra)
                 : rowOf(extra)) +
            ", ";
  std::string epilogue = textOf("{0}{{{1}{2}}", functor, args,
                                isHead ? "logits" : rowOf(product.getResult()));
  if (isHead)
    epilogue = textOf("step.findsFirst({0})", epilogue);
  text.body += textOf(
      "step.product<{0}>({1}, {2});\n", number,
      inputOf(product.getInput(), product.getNorm(), product.getEpsAttr()),
      epilogue);
}

void ResidentWriter::writeAttention(kernel::AttentionOp op) {
  text.parts += textOf("constexpr AttentionConfig attentionConfig{0};\n",
                       configText(attentionOf(op, config, options)));
  const auto inputs = phases.step.getInputs().size();
  Operation *maker = op.getQuery().getDefiningOp();
  std::string heads = "AreRotated{}";
  Value query = op.getQuery(), cache;
  if (auto rope = dyn_cast<kernel::RopeAppendOp>(maker)) {
    const std::string cosSin = angles(rope.getTable());
    heads = rope.getNorms().empty()
                ? textOf("RotatesHeads<NoHeadNorms>{{{{}, {0}}", cosSin)
                : textOf("RotatesHeads<HeadNorms>{{{{{0}, {1}, {2}f}, {3}}",
                         address("const float", rope.getNorms()[0]),
                         address("const float", rope.getNorms()[1]),
                         literal(rope.getEpsAttr().getValueAsDouble()), cosSin);
    query = rope.getQuery();
    cache = rope.getKv();
  } else {
    cache = cast<kernel::QkvOp>(maker).getKv();
  }
  text.body +=
      textOf("step.attend<attentionConfig>(layer, {0}, {1}, {2}, {3}, {4});\n",
             rowOf(query), heads, address("void", cache),
             address("const int", static_cast<int64_t>(inputs)),
             rowOf(op.getResult()));
}

/// Declares the row of the words of `op`, `offset` words on in its layer.
void ResidentWriter::declare(Operation *op, const std::string &name,
                             int64_t offset) {
  text.body +=
      textOf("const WordRow {0} = step.ofLayer(layer, {1});\n", name, offset);
  rows[op->getResult(0)] = name;
}

void ResidentWriter::writeLayer() {
  kernel::LayersOp layers = phases.layers;
  Block &body = layers.getBody().front();
  llvm::DenseMap<Value, int64_t> offsets;
  int64_t words = 0;
  for (Operation *op : phases.ofLayer) {
    offsets[op->getResult(0)] = words;
    words += wordsOf(op);
  }
  text.body +=
      textOf("for (int layer = 0; layer < config.layers; ++layer) {{\n");
  Operation *end = body.getTerminator();
  for (auto [i, first] : llvm::enumerate(layers.getCarried())) {
    const std::string name = textOf("before{0}", i);
    text.body += textOf("const WordRow {0} = layer == 0 ? {1} : "
                        "step.ofLayer(layer - 1, {2});\n",
                        name, rowOf(first), offsets.at(end->getOperand(i)));
    rows[body.getArgument(layers.getShared().size() + i)] = name;
  }
  int values = 0;
  for (Operation *op : phases.ofLayer)
    if (!isOfAttention(op))
      declare(op, textOf("x{0}", values++), offsets.at(op->getResult(0)));
  int number = 0;
  for (Operation *op : phases.ofLayer)
    if (auto attention = dyn_cast<kernel::AttentionOp>(op))
      writeAttention(attention);
    else if (!isOfAttention(op))
      writeProduct(op, number++);
  text.body += "}\n";
  for (size_t i = 0; i < layers.getCarried().size(); ++i)
    rows[layers.getResult(i)] = textOf("step.ofLayer(config.layers - 1, {0})",
                                       offsets.at(end->getOperand(i)));
}

CudaKernelText ResidentWriter::write() {
  kernel::EmbedOp embed = phases.embed;
  const auto inputs = static_cast<int64_t>(phases.step.getInputs().size());
  const int64_t counters = inputs + 1, logits = inputs + 2, tokens = inputs + 3;
  text.table = tokens + 1;
  text.parts = "constexpr ResidentConfig config" + configText(config) + ";\n";
  text.parts += "constexpr EmbedConfig embedding" +
                configText(cuda::EmbedConfig{
                    .format = deviceWeightOf(embed.getTable()).format,
                    .tokens = rowsOf(embed.getTable()),
                    .width = widthOf(embed.getTable())}) +
                ";\n";
  SmallVector<ElementsAttr> frequencies{embed.getFrequenciesAttr()};
  for (kernel::RopeTableOp table : phases.tables)
    frequencies.push_back(table.getFrequenciesAttr());
  text.parts += frequenciesText(frequencies, "__device__ ");
  text.body =
      textOf("auto *logits = {0};\n"
             "ResidentStep<config> step(table.at, {1}, steps);\n"
             "do {{\n"
             "const WordRow embedded = step.before(0);\n"
             "step.begin<embedding>({2}, {3}, {4}, {5}, frequencies, "
             "{6}{{embedded});\n",
             address("float", logits), address("unsigned", counters),
             address("const int", embed.getTokens()),
             address("const int", embed.getPositions()),
             address("const int", phases.attentions().front().getSequences()),
             address("const void", embed.getTable()),
             phases.scaled ? "Scaled" : "StoreWords");
  if (kernel::PointwiseOp scaled = phases.scaled)
    text.parts += functorText("Scaled", scaled.getBody(), {}, "",
                              std::to_string(widthOf(embed.getResult())),
                              cudaFunctorStyle, "WordRow");
  rows[phases.scaled ? phases.scaled.getResult() : embed.getResult()] =
      "embedded";
  writeLayer();
  writeProduct(phases.head, config.layerEnd);
  text.body +=
      textOf("} while (step.end<{0}>(logits, {1}, {2}));\n"
             "step.finish();",
             widthOf(phases.sample.getLogits()),
             address("const SamplingParams", phases.sample.getParams()),
             address("int", tokens));
  return std::move(text);
}

CudaKernelText residentText(Operation *op, const CudaTargetOptions &options) {
  return ResidentWriter(cast<kernel::ResidentOp>(op), options).write();
}

} // namespace llamac
