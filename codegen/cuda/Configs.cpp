//===- Configs.cpp - What the kernels of an op are made with --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Configs.h"

#include "codegen/cuda/ConfigFields.h"
#include "codegen/cuda/Occupancy.h"

#include "mlir/IR/TypeUtilities.h"

#include "absl/strings/str_cat.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace mlir;

namespace llamac {

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

std::string cuda::enumeratorText(WeightFormat format) {
  for (const DataTypeInfo &info : dataTypes())
    if (weightFormat(info.type) == format && !isRounded(info.type))
      return absl::StrCat("WeightFormat::", info.id);
  llvm_unreachable("every format is that of an element type");
}

std::string cuda::enumeratorText(KvFormat format) {
  return absl::StrCat("KvFormat::", dataTypeInfo(dataTypeOf(format)).id);
}

std::string cuda::enumeratorText(RowFormat format) {
  return format == RowFormat::F32    ? "RowFormat::F32"
         : format == RowFormat::BF16 ? "RowFormat::BF16"
                                     : "RowFormat::LaneBF16";
}

cuda::RowFormat rowFormatOf(Value rows) {
  const auto type = cast<RankedTensorType>(rows.getType());
  if (!type.getElementType().isBF16())
    return cuda::RowFormat::F32;
  return isa_and_nonnull<kernel::LaneOrderAttr>(type.getEncoding())
             ? cuda::RowFormat::LaneBF16
             : cuda::RowFormat::BF16;
}

cuda::DeviceWeight deviceWeightOf(Value weight) {
  return cuda::deviceWeight(llama::dataTypeOf(weight));
}

bool isPackable(Value weight) {
  return cuda::isPackableDepth(deviceWeightOf(weight).format, widthOf(weight));
}

int64_t rowsOf(Value weight) {
  return cast<RankedTensorType>(weight.getType()).getDimSize(0);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

SmallVector<Value> weightsOf(Operation *op) {
  if (auto product = dyn_cast<kernel::MatmulOp>(op))
    return llvm::to_vector(product.getWeights());
  assert(hasProducts(op));
  return llvm::to_vector(op->getOperands().slice(1, 3)); // Behind the input.
}

kernel::MatmulConfigAttr matmulAttr(Operation *op) {
  return cast<kernel::MatmulConfigAttr>(op->getAttr("config"));
}

std::pair<SmallVector<Value>, int> partsOf(Operation *op) {
  SmallVector<Value> weights = weightsOf(op);
  if (!isa<kernel::MatmulOp>(op))
    return {weights, 1};
  return {{weights.front()}, static_cast<int>(weights.size())};
}

/// The fewest rows that a batch has, and the most: of those that have weights
/// in bf16 as the operand A, and that share norms.
static constexpr int64_t minBatchRows = 16, maxBatchRows = 128;

/// Whether `op` has products whose kernels may share a norm with another op.
static bool isBatchProduct(Operation *op) {
  if (!hasProducts(op) || !op->hasAttr("config"))
    return false;
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  return attr.getFamily() != kernel::MatmulFamily::Gemv &&
         attr.getRowBlock() <= maxBatchRows;
}

bool takesSquares(Operation *op) {
  return isBatchProduct(op) &&
         widthOf(op->getOperand(0)) % cuda::squareColumns == 0;
}

int64_t squarePartsOf(Operation *op) {
  if (!isa<kernel::NextNormOpInterface>(op))
    return 0;
  if (auto product = dyn_cast<kernel::MatmulOp>(op);
      product && (!isBatchProduct(op) || product.getWeights().size() != 1))
    return 0;
  // A norm of parts of rows has a block for each of them, and a warp of it the
  // columns of a square.
  auto norm = dyn_cast<kernel::RmsNormOp>(op);
  const int64_t width = widthOf(op->getResult(0));
  const int64_t part = norm ? widthOf(norm.getWeight()) : width;
  return part % cuda::squareColumns == 0 ? width / cuda::squareColumns : 0;
}

static bool areOfOneFormat(ArrayRef<Value> weights) {
  return llvm::all_equal(llvm::map_range(
      weights, [](Value weight) { return deviceWeightOf(weight).format; }));
}

// More rows or weights keep more sums in registers, which leaves fewer for
// loads in flight.
cuda::GemvConfig gemvConfig(Value weight, size_t weights,
                            kernel::MatmulConfigAttr attr) {
  cuda::GemvConfig config{.format = deviceWeightOf(weight).format,
                          .outputs = rowsOf(weight),
                          .depth = widthOf(weight),
                          .weights = static_cast<int>(weights),
                          .maxRows = static_cast<int>(attr.getRowBlock())};
  while (config.unroll > 1 && config.maxRows * config.weights * config.unroll >
                                  maxUnrolledSums(config.format))
    config.unroll /= 2;
  setTiles(config, attr);
  return config;
}

static constexpr const char *differentFormats =
    "its matrices are of different formats";

static std::string noKernels(const char *of, const GpuSpec &gpu) {
  return llvm::formatv("there are no kernels {0} for {1}", of, gpu.name);
}

/// Whether a product streams unless its tiles say otherwise. With two and four
/// rows of input, loads of floats into registers are faster: a tuner on an H100
/// found 3 to 19 %.
static bool streamsByDefault(Operation *op) {
  return matmulAttr(op).getRowBlock() == 1 ||
         cuda::hasScales(deviceWeightOf(weightsOf(op).front()).format);
}

std::string whyNotStreams(Operation *op, const CudaTargetOptions &options) {
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  // Later GPUs have the instructions too; what is best there was not measured.
  if (options.gpu.tier != KernelTier::Sm90)
    return noKernels("that stream", options.gpu);
  if (attr.getFamily() != kernel::MatmulFamily::Gemv ||
      attr.getRowBlock() > cuda::streamMaxRows)
    return "it has too many rows";
  if (tileOf(attr, "stream", streamsByDefault(op)) == 0)
    return "its tiles say so";
  if (!areOfOneFormat(weightsOf(op)))
    return differentFormats;
  const cuda::StreamConfig config = streamConfig(op, options);
  if (cuda::streamsByMma(config) && !cuda::halvesInputFits(config.product))
    return llvm::formatv("an input of {0} x {1} does not fit into shared "
                         "memory beside the weights",
                         config.product.maxRows, config.product.depth);
  return "";
}

bool streams(Operation *op, const CudaTargetOptions &options) {
  return whyNotStreams(op, options).empty();
}

bool nextBeginsLate(Operation *op, const CudaTargetOptions &options) {
  if (!hasProducts(op))
    return false;
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  return attr.getFamily() == kernel::MatmulFamily::Gemv &&
         attr.getRowBlock() > 1 && !streams(op, options);
}

cuda::StreamConfig streamConfig(Operation *op,
                                const CudaTargetOptions &options) {
  const auto [parts, weights] = partsOf(op);
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  cuda::StreamConfig config{.product = gemvConfig(parts.front(), weights, attr),
                            .parts = {},
                            .blocks = options.gpu.multiprocessors};
  config.product.outputs = 0;
  for (auto [i, part] : llvm::enumerate(parts)) {
    config.parts[i] = rowsOf(part);
    config.product.outputs += rowsOf(part);
  }
  config.product.warps = cuda::streamWarps;
  setTiles(config, attr);
  return config;
}

std::string whyNotWgmma(Operation *op, const CudaTargetOptions &options) {
  const SmallVector<Value> weights = weightsOf(op);
  if (options.gpu.tier != KernelTier::Sm90)
    return noKernels("by wgmma", options.gpu);
  if (!llvm::all_of(weights, isPackable))
    return "the depth is not a multiple of what is copied";
  return areOfOneFormat(weights) ? "" : differentFormats;
}

/// Shared memory besides the stages: their barriers, and what a norm takes that
/// is shared with another product, up to the alignment of the stages; and what
/// each block takes of a multiprocessor's.
static int besideStages(const cuda::WgmmaConfig &config, int64_t rows) {
  constexpr int barrierBytes = 256;
  const int ofNorm = rows <= maxBatchRows ? cuda::wgmmaExchangeBytes(config) +
                                                cuda::wgmmaScalesBytes(config)
                                          : 0;
  return static_cast<int>(cuda::roundUp(barrierBytes + ofNorm, 1024));
}
static constexpr int blockBytes = 1024;

/// While one stage of a ring is multiplied, two are on their way. More than
/// `mostStages` are more than memory delivers within its latency.
static constexpr int fewestStages = 3, mostStages = 8;

static int stagesOf(const cuda::WgmmaConfig &config, int64_t rows,
                    const GpuSpec &gpu) {
  const int shared = std::min<int>(
      gpu.blockSharedBytes,
      gpu.smSharedBytes / cuda::wgmmaMinBlocks(config) - blockBytes);
  return std::min(mostStages, (shared - besideStages(config, rows)) /
                                  cuda::wgmmaStageBytes(config));
}

/// Gives `config` the stages that its panels leave room for, and the blocks
/// among which its tiles of at most `rows` rows are partitioned.
static void partitionWgmmaTiles(cuda::WgmmaConfig &config, int64_t rows,
                                const GpuSpec &gpu) {
  const int64_t items = cuda::divideUp(rows, cuda::wgmmaTileRows(config)) *
                        config.splits *
                        cuda::roundUp(cuda::wgmmaTiles(config), config.cluster);
  config.blocks = static_cast<int>(std::min<int64_t>(
      gpu.multiprocessors * cuda::wgmmaMinBlocks(config), items));
  config.stages = stagesOf(config, rows, gpu);
}

static cuda::WgmmaConfig wgmmaProduct(cuda::WeightFormat format,
                                      ArrayRef<int64_t> outputs, int64_t depth,
                                      int weights) {
  cuda::WgmmaConfig config{
      .format = format, .parts = {}, .depth = depth, .weights = weights};
  std::copy(outputs.begin(), outputs.end(), config.parts);
  return config;
}

/// Columns of a product of wgmma.
static constexpr int64_t maxColumns = 256;

/// How many blocks may share the depth of a tile.
static constexpr int splitKCounts[] = {1, 2, 3, 4, 6, 8};

static int64_t slicesOfSplit(const cuda::WgmmaConfig &config) {
  return cuda::divideUp(cuda::divideUp(config.depth, cuda::productSlice),
                        config.splits);
}

/// A slice of a tile of prompts takes as long as its outputs, four cycles of
/// the tensor cores each, and as copying its rows of the input, which is worth
/// about 128 outputs where L2 gives 30 bytes a cycle to each multiprocessor.
/// Sums of several splits are stored, and read by the last block, at 40 bytes a
/// cycle. Tiles are made in waves.
static int64_t timeOf(const cuda::WgmmaConfig &config, int64_t rows,
                      const GpuSpec &gpu) {
  const int64_t tiles = cuda::divideUp(rows, cuda::wgmmaRows) *
                        cuda::wgmmaTiles(config) * config.splits;
  const int64_t waves = cuda::divideUp(tiles, gpu.multiprocessors);
  const int64_t outputs = int64_t{config.panels} * config.panelOutputs;
  constexpr int64_t mergeOfOutput = cuda::wgmmaRows * 4 / 40 / 4;
  return waves *
         (slicesOfSplit(config) * (outputs + 128) +
          (config.splits > 1 ? (config.splits + 1) * outputs * mergeOfOutput
                             : 0));
}

/// A slice of a tile of which weights are the operand A takes what it copies,
/// at what L2 gives all blocks together and one alone, 4,000 and 40 bytes a
/// cycle, or what the tensor cores take, which blocks of a multiprocessor
/// share. A tile that begins costs as much as 16 KB, and what adds up sums
/// another 32 KB.
static int64_t batchTimeOf(const cuda::WgmmaConfig &config, int64_t rows) {
  const int64_t bytesOfCycle = std::min(40, std::max(1, 4000 / config.blocks));
  const int64_t copied = cuda::wgmmaInputBytes(config) / config.cluster +
                         config.panels * cuda::wgmmaPackedBytes(config);
  const int64_t multiplied = int64_t{config.panels} * config.batchRows / 2 *
                             (cuda::productSlice / 16) *
                             cuda::wgmmaMinBlocks(config);
  const int64_t items = cuda::divideUp(rows, config.batchRows) * config.splits *
                        cuda::roundUp(cuda::wgmmaTiles(config), config.cluster);
  return cuda::divideUp(items, config.blocks) *
         (slicesOfSplit(config) * std::max(copied / bytesOfCycle, multiplied) +
          (16 + (config.splits > 1 ? 32 : 0)) * 1024 / bytesOfCycle);
}

bool isLegalWgmma(const cuda::WgmmaConfig &config) {
  // A lane that has the sums of two weights has no registers to merge them too.
  const bool spills = config.splits > 1 && config.weights == 2 &&
                      config.batchRows == maxColumns / 2;
  return !spills && config.stages >= fewestStages &&
         (config.cluster == 1 || cuda::wgmmaTiles(config) > 1) &&
         config.splits <= cuda::mostSplits(config.format, config.depth);
}

cuda::WgmmaConfig chooseWgmmaTiles(cuda::WeightFormat format,
                                   ArrayRef<int64_t> outputs, int64_t depth,
                                   int weights, int64_t rows,
                                   const GpuSpec &gpu) {
  const bool rowsAreA =
      rows > maxBatchRows && format == cuda::WeightFormat::BF16;
  // A lane has the sums of both weights.
  const int batchRows =
      rowsAreA
          ? 0
          : static_cast<int>(std::clamp<int64_t>(
                llvm::PowerOf2Ceil(rows), minBatchRows, maxColumns / weights));
  cuda::WgmmaConfig best = wgmmaProduct(format, outputs, depth, weights);
  int64_t bestTime = INT64_MAX;
  // The largest tiles come first: of equals they read the least.
  for (const int splits : splitKCounts)
    for (const auto &[panels, panelOutputs] :
         {std::pair(2, 128), std::pair(1, 128), std::pair(2, 64),
          std::pair(1, 64)}) {
      if (panels < weights || (!rowsAreA && panelOutputs != 64))
        continue;
      cuda::WgmmaConfig config = best;
      config.panels = panels;
      config.panelOutputs = panelOutputs;
      config.batchRows = batchRows;
      config.splits = splits;
      // From 64 rows of a batch on x is as much as the weights.
      const bool shares = rowsAreA || batchRows >= 64;
      config.cluster = shares && cuda::wgmmaTiles(config) > 1 ? 2 : 1;
      partitionWgmmaTiles(config, rows, gpu);
      if (!isLegalWgmma(config))
        continue;
      const int64_t time =
          rowsAreA ? timeOf(config, rows, gpu) : batchTimeOf(config, rows);
      if (time < bestTime) {
        best = config;
        bestTime = time;
      }
    }
  return best;
}

cuda::WgmmaConfig wgmmaConfig(Operation *op, const CudaTargetOptions &options) {
  const auto [parts, weights] = partsOf(op);
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  const int64_t rows = attr.getRowBlock();
  cuda::WgmmaConfig config =
      chooseWgmmaTiles(deviceWeightOf(parts.front()).format,
                       llvm::to_vector(llvm::map_range(parts, rowsOf)),
                       widthOf(parts.front()), weights, rows, options.gpu);
  setTiles(config, attr);
  partitionWgmmaTiles(config, rows, options.gpu);
  return config;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// But for what the op's own config says.
static cuda::AttentionConfig
plainAttentionConfig(kernel::AttentionOp op, bool isSplit,
                     const CudaTargetOptions &options) {
  const AttentionShape shape = attentionShapeOf(op);
  cuda::AttentionConfig config{.kv = kvConfig(shape.kv, options),
                               .heads = shape.heads,
                               .scale = shape.scale,
                               .window = static_cast<int>(shape.window),
                               .exp = shape.exp,
                               .result = rowFormatOf(op.getResult())};
  if (!isSplit && op.getConfigAttr())
    config.maxRows = static_cast<int>(op.getConfigAttr().getRows());
  // Two tiles of small heads are fewer bytes than memory delivers within its
  // latency; as many blocks as split attention has fit beside them.
  if (options.gpu.tier == KernelTier::Sm90 && config.kv.headSize <= 64)
    config.stages = 4;
  // Queries of large heads leave few registers; two tiles are worth more than
  // these, and one of them is all that fits into some GPUs beside what kernels
  // declare, up to the alignment of the tiles: the flag of the last block to
  // come, or the runs.
  const bool sharesQueries = isSplit && config.kv.headSize > 128;
  auto fits = [&] {
    const int bytes =
        isSplit ? cuda::attentionSplitShape(config, 1).sharedBytes + 1024
                : cuda::attentionShape(config, 1).sharedBytes +
                      cuda::attentionRunBytes(config);
    return bytes <= options.gpu.blockSharedBytes;
  };
  config.sharedQueries = sharesQueries;
  if (!fits())
    config.sharedQueries = false;
  if (!fits()) {
    config.sharedQueries = sharesQueries;
    config.stages = 1;
  }
  return config;
}

int64_t occupancyOf(const cuda::LaunchShape &shape, int registers,
                    const GpuSpec &gpu) {
  const int most = gpu.smRegisters / (shape.threads * shape.minBlocks);
  return std::max(
      1, residentBlocks(gpu, {.registers = std::clamp(registers, 32, most),
                              .threads = shape.threads,
                              .sharedBytes = shape.sharedBytes}));
}

int64_t attentionOccupancy(const cuda::LaunchShape &shape, const GpuSpec &gpu) {
  constexpr int registers = 168; // Attention of heads of 128 takes so many.
  return occupancyOf(shape, registers, gpu);
}

/// Blocks of split attention for `rows` rows that `gpu` has at a time. Beside
/// one of one row there is space on a multiprocessor for the products ahead and
/// behind, whose weights are copied meanwhile.
static int64_t attentionPlaces(const cuda::AttentionConfig &config,
                               int64_t rows, const GpuSpec &gpu) {
  if (rows == 1 && overlapsLaunches(gpu))
    return gpu.multiprocessors;
  return gpu.multiprocessors *
         attentionOccupancy(cuda::attentionSplitShape(config, 1), gpu);
}

/// The parts of its keys that a row with a long context has, where all rows
/// together have `tiles` tiles of query heads, for `places` blocks at a time:
/// as many as fill these once. Of more rows, which may be of unlike lengths,
/// each still has a few: so many that the fewest blocks wait for the last ones.
static int64_t splitsByWaves(int64_t tiles, int64_t places) {
  constexpr int64_t few = 8, some = 16;
  constexpr int64_t most = 64; // A merge has the states of 32 in a register.
  if (places / tiles >= few)
    return std::min(places / tiles, most);
  auto isFuller = [&](int64_t splits, int64_t than) {
    return splits * cuda::divideUp(than * tiles, places) >=
           than * cuda::divideUp(splits * tiles, places);
  };
  int64_t best = few;
  for (int64_t splits = few + 1; splits <= some; ++splits)
    if (isFuller(splits, best))
      best = splits;
  return best;
}

cuda::AttentionConfig splitAttentionConfig(kernel::AttentionOp op, int64_t rows,
                                           const CudaTargetOptions &options) {
  cuda::AttentionConfig config =
      plainAttentionConfig(op, /*isSplit=*/true, options);
  const int64_t longest =
      config.window ? std::min<int64_t>(options.context,
                                        config.window + cuda::keyTile - 1)
                    : options.context;
  config.splits = static_cast<int>(
      std::min(splitsByWaves(rows * cuda::attentionTiles(config),
                             attentionPlaces(config, rows, options.gpu)),
               cuda::divideUp(longest, config.minSplitTokens)));
  return config;
}

cuda::AttentionConfig attentionConfigOf(kernel::AttentionOp op,
                                        const CudaTargetOptions &options) {
  const kernel::AttentionConfigAttr attr = op.getConfigAttr();
  const bool isSplit = attr.getFamily() == kernel::AttentionFamily::Merged;
  cuda::AttentionConfig config = plainAttentionConfig(op, isSplit, options);
  if (isSplit)
    config.splits = static_cast<int>(attr.getSplits());
  setTiles(config, attr);
  return config;
}

cuda::LaunchShape attentionLaunch(kernel::AttentionOp op,
                                  const CudaTargetOptions &options) {
  const cuda::AttentionConfig config = attentionConfigOf(op, options);
  const kernel::AttentionConfigAttr attr = op.getConfigAttr();
  const int64_t rows = std::max<int64_t>(1, attr.getRows());
  if (attr.getFamily() == kernel::AttentionFamily::Merged)
    return cuda::attentionSplitShape(
        config, std::min(rows * cuda::attentionTiles(config) * config.splits,
                         attentionPlaces(config, rows, options.gpu)));
  cuda::LaunchShape shape = attendsByWgmma(op, options)
                                ? cuda::wgmmaAttentionShape(config, 1)
                                : cuda::attentionShape(config, 1);
  shape.gridSize = std::min(rows * config.kv.kvHeads,
                            options.gpu.multiprocessors *
                                attentionOccupancy(shape, options.gpu));
  return shape;
}

bool attendsByWgmma(kernel::AttentionOp op, const CudaTargetOptions &options) {
  return options.gpu.tier == KernelTier::Sm90 &&
         op.getConfigAttr().getFamily() == kernel::AttentionFamily::Unsplit &&
         cuda::takesWgmmaAttention(attentionConfigOf(op, options));
}

//===----------------------------------------------------------------------===//
// Selected configs, and why nothing faster
//===----------------------------------------------------------------------===//

/// The tiles of one product, or of query, key and value.
static Tiles productTiles(Operation *op, const CudaTargetOptions &options) {
  const auto [parts, weights] = partsOf(op);
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  switch (attr.getFamily()) {
  case kernel::MatmulFamily::Gemv: {
    if (!streams(op, options))
      return sizesOf(gemvConfig(parts.front(), weights, attr));
    const cuda::StreamConfig config = streamConfig(op, options);
    Tiles sizes = sizesOf(config);
    // All that a stream has of a gemv's.
    sizes.insert(sizes.begin(),
                 {{"maxRows", config.product.maxRows},
                  {"outputsPerWarp", config.product.outputsPerWarp}});
    return sizes;
  }
  case kernel::MatmulFamily::Gemm:
    return sizesOf(gemmConfigs(op, options)[0]);
  case kernel::MatmulFamily::Wgmma:
    return sizesOf(wgmmaConfig(op, options));
  }
  llvm_unreachable("no other family");
}

Tiles CudaTarget::tiles(Operation *op) const {
  const CudaTargetOptions &options = targetOptions;
  if (hasProducts(op))
    return productTiles(op, options);
  auto attention = dyn_cast<kernel::AttentionOp>(op);
  if (!attention)
    return {};
  if (attendsByWgmma(attention, options))
    return {{"stages", cuda::wgmmaAttentionStages}};
  const cuda::AttentionConfig config = attentionConfigOf(attention, options);
  if (attention.getConfigAttr().getFamily() == kernel::AttentionFamily::Merged)
    return sizesOf(config);
  return {{"stages", config.stages}}; // Its keys are not split.
}

/// Why a product does not stream or use wgmma, on a GPU of Sm90.
static std::string productSlowPath(Operation *op,
                                   const CudaTargetOptions &options) {
  const kernel::MatmulFamily family = matmulAttr(op).getFamily();
  if (family == kernel::MatmulFamily::Gemm)
    return "not by wgmma: " + whyNotWgmma(op, options);
  if (family != kernel::MatmulFamily::Gemv)
    return "";
  if (!streamsByDefault(op))
    return "";
  if (const std::string why = whyNotStreams(op, options); !why.empty())
    return "not streamed: " + why;
  const cuda::StreamConfig config = streamConfig(op, options);
  const cuda::GemvConfig &product = config.product;
  if (!cuda::streamsByMma(config) && cuda::streamInputBytes(config) == 0)
    return llvm::formatv("its input is not kept in shared memory: {0} x {1} "
                         "numbers have more than {2} bytes",
                         product.maxRows, product.depth,
                         cuda::streamInputLimit);
  return "";
}

/// Why attention for many rows does not go by wgmma on a GPU that has it.
static std::string whyNotWgmma(const cuda::AttentionConfig &config) {
  const int64_t size = config.kv.headSize;
  if (hasBlocks(config.kv.format))
    return "keys and values are widened from 8 bits";
  if (size != 64 && size != 128)
    return llvm::formatv("heads are of {0}, expected 64 or 128", size);
  return llvm::formatv(
      "{0} query heads have one key head, expected at most {1}",
      cuda::attentionGroup(config), cuda::wgmmaRows);
}

static std::string attentionSlowPath(kernel::AttentionOp op,
                                     const CudaTargetOptions &options) {
  const cuda::AttentionConfig config = attentionConfigOf(op, options);
  const int64_t size = config.kv.headSize;
  if (op.getConfigAttr().getFamily() == kernel::AttentionFamily::Merged)
    return config.stages > 1
               ? ""
               : llvm::formatv("a single stage: two of heads of {0} do not fit "
                               "into {1} bytes of shared memory",
                               size, options.gpu.blockSharedBytes)
                     .str();
  if (options.gpu.tier == KernelTier::Sm90 && !attendsByWgmma(op, options))
    return "not by wgmma: " + whyNotWgmma(config);
  if (cuda::hasSharedQueries(config))
    return llvm::formatv("queries in shared memory: those of heads of {0} "
                         "leave no registers for their sums",
                         size);
  return "";
}

std::vector<std::string> CudaTarget::slowPaths(Operation *op) const {
  const CudaTargetOptions &options = targetOptions;
  std::vector<std::string> all;
  auto add = [&](std::string why) {
    if (!why.empty() && !llvm::is_contained(all, why))
      all.push_back(std::move(why));
  };
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType());
        type && type.getRank() == 2 && type.hasStaticShape())
      if (const Type element = type.getElementType(),
          read = weightElement(element);
          read != element)
        add(llvm::formatv(
            "its matrices are read as {0}: there are no kernels for {1}",
            llama::elementTypeName(read), llama::elementTypeName(element)));
  const bool isProduct = hasProducts(op);
  auto attention = dyn_cast<kernel::AttentionOp>(op);
  if (isProduct && options.gpu.tier == KernelTier::Sm90)
    add(productSlowPath(op, options));
  if (attention)
    add(attentionSlowPath(attention, options));
  // Hopper and later have faster instructions than those of Ampere.
  if ((isProduct || attention) && options.gpu.tier == KernelTier::Sm80 &&
      options.gpu.capability.major >= 9)
    add(llvm::formatv("a kernel of sm_80: there are none by the instructions "
                      "of {0}",
                      options.gpu.name));
  return all;
}

} // namespace llamac
