//===- CpuTarget.cpp - What the schedule passes are told ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuTarget.h"

#include "runtime/cpu/IsaLevel.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace llamac {

FailureOr<CpuTargetOptions> cpuTargetOptions(kernel::TargetAttr attr,
                                             kernel::EmitError emitError) {
  const auto format = parseCpuKvFormat(attr.getKvType());
  if (!format)
    return emitError() << "target cpu: expected a cache of f16, bf16, f32 or "
                          "q8_0, got "
                       << attr.getKvType();
  std::optional<Processor> processor = Processor::Generic;
  if (const StringRef name = attr.getTuneCpu(); !name.empty())
    processor = parseProcessor({name.data(), name.size()});
  if (!processor)
    return emitError() << "target cpu: expected one of " << processorNames()
                       << ", got " << attr.getTuneCpu();
  for (StringRef level : llvm::split(attr.getIsa(), ","))
    if (!attr.getIsa().empty() && !parseIsaLevel({level.data(), level.size()}))
      return emitError() << "target cpu: expected levels of " << isaLevelNames()
                         << ", got " << level;
  return CpuTargetOptions{.context = attr.getContextSize(),
                          .kvFormat = *format,
                          .tuneFor = *processor,
                          .exact = attr.getExact()};
}

cpu::KvConfig kvConfig(llama::KVType kv, const CpuTargetOptions &options) {
  cpu::KvConfig config{.kvHeads = kv.getHeads(),
                       .headSize = kv.getSize(),
                       .pagesPerSequence = 0,
                       .format = options.kvFormat};
  config.pagesPerSequence =
      (options.context + config.pageTokens - 1) / config.pageTokens;
  return config;
}

/// The most rows whose attention is split-KV: rows of many sequences, at
/// positions that differ, and a chunk of a prompt beside them.
static constexpr int64_t maxSplitRows = 32;

// Products of more than one row are the same kernels in every program, so that
// a bucket costs only its launches; buckets differ in attention.
std::vector<kernel::RowBucket> CpuTarget::rowBuckets() const {
  return {{"decode", 1, 1},
          {"decode32", maxSplitRows, maxSplitRows},
          {"prefill", targetOptions.maxPrefill, targetOptions.maxLogitsRows}};
}

// A top-k of all the keys of a split would drop nothing.
int64_t CpuTarget::mostTopK() const {
  return cpu::AttentionConfig{}.splitTokens - 1;
}

/// The tiles of a product of one row by `weights` matrices at a time, each of
/// panels of `format` and `depth`: how many panels to unroll over and the
/// prefetch distance. docs/performance.md has the figures that decide.
static DictionaryAttr rowTiles(MLIRContext *context,
                               const CpuTargetOptions &options,
                               PanelFormat format, int64_t depth,
                               int64_t weights) {
  // `panels` counts those of all weights together.
  auto tiles = [&](int64_t panels, int64_t ahead) {
    return tilesAttr(
        context,
        {{"panels", std::max<int64_t>(1, panels / weights)}, {"ahead", ahead}});
  };
  // Each block in two places, which are two streams.
  const bool inTwoPlaces =
      format == PanelFormat::Q5_K || format == PanelFormat::Q6_K;
  switch (options.tuneFor) {
  case Processor::Generic:
    return {};
  case Processor::Zen3: {
    if (!cpu::usesInt8(format, options.exact))
      return tiles(cpu::mostPanels, 128);
    // One panel at a time is one stream, two are new streams with each panel.
    constexpr int64_t shortPanel = 12 << 10;
    const bool single = inTwoPlaces || panelBytes(format, depth) < shortPanel;
    return tiles(single ? 1 : 2, 2048);
  }
  case Processor::Zen4:
    // The hardware prefetches streams: a prefetch within the block is best.
    return inTwoPlaces ? tilesAttr(context, {{"ahead", 1024}}) : tiles(1, 128);
  }
  llvm_unreachable("no such processor");
}

Attribute CpuTarget::chooseConfig(Operation *op, int64_t maxRows) const {
  MLIRContext *context = op->getContext();
  if (hasProducts(op)) {
    const bool one = maxRows == 1;
    auto product = dyn_cast<kernel::MatmulOp>(op);
    const auto weights =
        static_cast<int64_t>(product ? product.getWeights().size() : 1);
    Value weight = op->getOperand(1); // The first one, behind the input.
    return kernel::MatmulConfigAttr::get(
        context, one ? kernel::MatmulFamily::Gemv : kernel::MatmulFamily::Gemm,
        one ? 1 : 0,
        one ? rowTiles(context, targetOptions, panelFormatOf(weight),
                       cast<ShapedType>(weight.getType()).getDimSize(1),
                       weights)
            : DictionaryAttr());
  }
  if (auto attention = dyn_cast<kernel::AttentionOp>(op)) {
    // Few rows leave threads without work unless the keys are split.
    if (maxRows > maxSplitRows)
      return kernel::AttentionConfigAttr::get(
          context, kernel::AttentionFamily::Unsplit, 0, 0, /*rows=*/0,
          /*tiles=*/{});
    auto kv = cast<llama::KVType>(attention.getKv().getType());
    const cpu::AttentionConfig config{
        .kv = kvConfig(kv, targetOptions), .heads = kv.getHeads(), .scale = 1};
    return kernel::AttentionConfigAttr::get(
        context, kernel::AttentionFamily::SplitKv, cpu::attentionSplits(config),
        cpu::attentionPartialFloats(config), /*rows=*/0, /*tiles=*/{});
  }
  return {};
}

std::vector<Attribute> CpuTarget::otherConfigs(Operation *op) const {
  const CpuFamily *family = findFamily(cpuFamilies(), op);
  std::vector<Attribute> configs;
  if (family && family->tiles)
    for (const Tiles &tiles : family->tiles(op, targetOptions))
      configs.push_back(withTiles(op, tiles));
  return configs;
}

StringRef CpuTarget::familyName(Operation *op) const {
  const CpuFamily *family = findFamily(cpuFamilies(), op);
  return family ? family->name : "";
}

kernel::LaunchGeometry CpuTarget::geometry(Operation *op) const {
  const cpu::LaunchShape shape =
      findFamily(cpuFamilies(), op)->shape(op, targetOptions);
  return {shape.items, shape.rowBlock, shape.scratchBytes};
}

bool CpuTarget::hasInt8Products(Operation *op) const {
  // The first weight is behind the input.
  return hasProducts(op) &&
         cpu::usesInt8(panelFormatOf(op->getOperand(1)), targetOptions.exact);
}

} // namespace llamac
