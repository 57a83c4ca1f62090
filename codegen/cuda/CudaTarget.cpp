//===- CudaTarget.cpp - What the schedule passes are told -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaTarget.h"
#include "codegen/cuda/Configs.h"
#include "codegen/cuda/Resident.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace llamac {

std::optional<cuda::KvFormat> parseCudaKvFormat(StringRef name) {
  const auto *known =
      llvm::find(cuda::kvTypes, parseDataType({name.data(), name.size()}));
  if (known == std::end(cuda::kvTypes))
    return std::nullopt;
  return static_cast<cuda::KvFormat>(known - cuda::kvTypes);
}

FailureOr<CudaTargetOptions> cudaTargetOptions(kernel::TargetAttr attr,
                                               kernel::EmitError emitError) {
  const auto format = parseCudaKvFormat(attr.getKvType());
  if (!format)
    return emitError() << "target " << attr.getName()
                       << ": expected a cache of f16, bf16, q8_0 or fp8, got "
                       << attr.getKvType();
  const StringRef name = attr.getGpu();
  const GpuSpec *gpu = name.empty() ? &defaultGpuSpec()
                                    : findGpuSpec({name.data(), name.size()});
  if (!gpu)
    return emitError() << "target " << attr.getName() << ": expected one of "
                       << gpuNames() << ", got " << name;
  return CudaTargetOptions{.gpu = *gpu,
                           .context = attr.getContextSize(),
                           .kvFormat = *format,
                           .resident = attr.getResident()};
}

cuda::KvConfig kvConfig(llama::KVType kv, const CudaTargetOptions &options) {
  cuda::KvConfig config{.kvHeads = kv.getHeads(),
                        .headSize = kv.getSize(),
                        .pagesPerSequence = 0,
                        .format = options.kvFormat};
  config.pagesPerSequence = cuda::divideUp(options.context, config.pageTokens);
  return config;
}

std::string exceededLimit(const cuda::LaunchShape &shape, const GpuSpec &gpu) {
  const struct {
    const char *what;
    int64_t needs, has;
    const char *of;
  } limits[] = {
      {"bytes of shared memory", shape.sharedBytes, gpu.blockSharedBytes,
       "a block"},
      {"bytes of shared memory", int64_t{shape.minBlocks} * shape.sharedBytes,
       gpu.smSharedBytes, "a multiprocessor"},
      {"threads", shape.threads, gpu.blockThreads, "a block"},
      {"threads", int64_t{shape.minBlocks} * shape.threads, gpu.smThreads,
       "a multiprocessor"},
  };
  for (const auto &limit : limits)
    if (limit.needs > limit.has)
      return llvm::formatv("needs {0} {1}, {2} has {3} for {4}", limit.needs,
                           limit.what, gpu.name, limit.has, limit.of);
  return "";
}

bool overlapsLaunches(const GpuSpec &gpu) { return gpu.capability.major >= 9; }

/// The most rows that gemv takes: it multiplies each weight by every row, which
/// more rows would make slower than reading it.
static constexpr int64_t maxGemvRows = 4;

/// The most rows of a step that attends by splits whatever its rows are, and of
/// one that has a row of each sequence.
static constexpr int64_t maxMixedDecodeRows = 32;
static constexpr int64_t maxDecodeRows = 128;

std::vector<kernel::RowBucket> CudaTarget::rowBuckets() const {
  return {{"decode", 1, 1},
          {"decode2", 2, 2},
          {"decode4", maxGemvRows, maxGemvRows},
          {"decode16", 16, 16},
          {"decode32", maxMixedDecodeRows, maxMixedDecodeRows},
          {"decode64", 64, 64, /*decodeOnly=*/true},
          {"decode128", maxDecodeRows, maxDecodeRows, /*decodeOnly=*/true},
          {"decode256", 256, 256},
          {"prefill512", 512, targetOptions.maxLogitsRows},
          {"prefill", targetOptions.maxRows, targetOptions.maxLogitsRows}};
}

Attribute CudaTarget::chooseConfig(Operation *op, int64_t maxRows) const {
  MLIRContext *context = op->getContext();
  if (hasProducts(op)) {
    auto config = [&](kernel::MatmulFamily family, int64_t rows) {
      return kernel::MatmulConfigAttr::get(context, family, rows, /*tiles=*/{});
    };
    if (maxRows <= maxGemvRows)
      return config(kernel::MatmulFamily::Gemv, maxRows);
    return config(whyNotWgmma(op, targetOptions).empty()
                      ? kernel::MatmulFamily::Wgmma
                      : kernel::MatmulFamily::Gemm,
                  maxRows);
  }
  auto attention = dyn_cast<kernel::AttentionOp>(op);
  if (!attention)
    return {};
  // Few rows, which are mostly of as many sequences, fill a GPU only by
  // split-KV. For more, programs share one kernel.
  if (maxRows > maxDecodeRows)
    return kernel::AttentionConfigAttr::get(
        context, kernel::AttentionFamily::Unsplit, 0, 0, targetOptions.maxRows,
        /*tiles=*/{});
  const cuda::AttentionConfig config =
      splitAttentionConfig(attention, maxRows, targetOptions);
  return kernel::AttentionConfigAttr::get(
      context, kernel::AttentionFamily::Merged, config.splits,
      cuda::attentionPartialFloats(config), maxRows, /*tiles=*/{});
}

bool CudaTarget::roundsInput(Operation *op) const {
  return hasProducts(op) && op->hasAttr("config") &&
         matmulAttr(op).getFamily() != kernel::MatmulFamily::Gemv;
}

Attribute CudaTarget::inputEncoding(Operation *op) const {
  if (!roundsInput(op) || llvm::none_of(weightsOf(op), [](Value weight) {
        return cuda::hasScales(deviceWeightOf(weight).format);
      }))
    return {};
  return kernel::LaneOrderAttr::get(op->getContext());
}

bool CudaTarget::takesSquares(Operation *op) const {
  return llamac::takesSquares(op);
}

int64_t CudaTarget::givesSquares(Operation *op) const {
  return squarePartsOf(op);
}

double CudaTarget::predictedSeconds(Operation *op,
                                    const kernel::CostStep &step) const {
  if (auto resident = dyn_cast<kernel::ResidentOp>(op))
    return residentSeconds(kernel::costOf(op, step, *this),
                           residentPhases(resident), targetOptions.gpu.name);
  const TileModel tiles = tileModelOf(op, targetOptions);
  return tiles.occupancy == 0
             ? 0
             : llamac::predictedSeconds(tiles, geometry(op).items,
                                        kernel::costOf(op, step, *this), step,
                                        targetOptions.gpu.name);
}

double CudaTarget::launchGap() const { return launchGapSeconds; }

std::optional<kernel::Peaks> CudaTarget::peaks(Operation *op) const {
  return peaksOf(targetOptions.gpu.name,
                 tileModelOf(op, targetOptions).usesMatrixUnits);
}

Type CudaTarget::weightElement(Type element) const {
  return llama::elementTypeOf(*element.getContext(),
                              cuda::deviceType(llama::dataTypeOf(element)));
}

int64_t CudaTarget::weightBytes(Type type) const {
  auto tensor = cast<RankedTensorType>(type);
  if (tensor.getRank() != 2)
    return kernel::weightBytes(type);
  return cuda::packedWeightBytes(
      cuda::deviceWeight(llama::dataTypeOf(tensor.getElementType())).format,
      tensor.getDimSize(0), tensor.getDimSize(1));
}

StringRef CudaTarget::familyName(Operation *op) const {
  const CudaFamily *family = findFamily(cudaFamilies(), op);
  return family ? family->name : "";
}

kernel::LaunchGeometry CudaTarget::geometry(Operation *op) const {
  const CudaFamily *family = findFamily(cudaFamilies(), op);
  const cuda::LaunchShape shape = family->shape(op, targetOptions);
  std::vector<kernel::TensorMapGeometry> maps;
  if (family->maps)
    for (const cuda::MapShape &map : family->maps(op, targetOptions))
      maps.push_back({map.operand, map.elementBytes, map.columns, map.rows,
                      map.boxColumns, map.boxRows, map.swizzleBytes});
  return {.items = shape.gridSize,
          .rowBlock = shape.rowBlock,
          .scratch = shape.sharedBytes,
          .threads = shape.threads,
          .cluster = shape.cluster,
          .dependent = overlapsLaunches(targetOptions.gpu) && !isResident(op),
          .workspace = shape.workspaceBytes,
          .counters = shape.counters,
          .resident = isResident(op),
          .maps = std::move(maps)};
}

} // namespace llamac
