//===- Cases.h - Kernels under test -----------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The configs of one model's kernels, compiled by the tests and by Kernels.cu.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_DEVICE_CASES_H
#define LLAMAC_TESTS_CODEGEN_DEVICE_CASES_H

#include "llamac/config.h"

namespace llamac::cuda {

/// The parts of a model and a plan that decide its kernels.
struct ModelCase {
  WeightFormat format;
  KvFormat kvFormat;
  long width;
  long heads;
  long kvHeads;
  long headSize;
  long hidden;
  long vocabulary;
  int maxRows;  ///< Rows of gemv.
  long context; ///< Tokens of a sequence.
  int tileRows; ///< Rows of a tile of gemm.
  int splits = 16;
  int minSplitTokens = 256;
};

namespace cases {

constexpr float eps = 1e-5f;

/// `scale` is 1 / sqrt(headSize), here a power of two near it, so that tests
/// need no square root that constants could not have.
constexpr float attentionScale(long headSize) {
  float scale = 1;
  for (; headSize > 1; headSize /= 4)
    scale /= 2;
  return scale;
}

constexpr KvConfig kv(const ModelCase &model) {
  return {.kvHeads = model.kvHeads,
          .headSize = model.headSize,
          .pagesPerSequence = (model.context + 63) / 64,
          .format = model.kvFormat};
}

constexpr AttentionConfig attention(const ModelCase &model) {
  return {.kv = kv(model),
          .heads = model.heads,
          .scale = attentionScale(model.headSize),
          .splits = model.splits,
          .minSplitTokens = model.minSplitTokens,
          .maxRows = 512};
}

/// A kernel that unpacks blocks has registers for fewer chunks beside many
/// sums.
constexpr int gemvUnroll(const ModelCase &model, int weights) {
  const int sums = model.maxRows * weights;
  if (hasScales(model.format))
    return sums <= 2 ? 4 / weights : sums <= 4 ? 2 : 1;
  return sums <= 4 ? 4 / weights : 2;
}

constexpr GemvConfig gemv(const ModelCase &model, long outputs, long depth,
                          int weights = 1) {
  return {.format = model.format,
          .outputs = outputs,
          .depth = depth,
          .weights = weights,
          .maxRows = model.maxRows,
          .outputsPerWarp =
              model.maxRows == 1 && !hasScales(model.format) ? 4 : 2,
          .unroll = gemvUnroll(model, weights)};
}

/// Warps that share outputs and rows, few that share rows, and many, of which
/// some find no piece of x to copy.
constexpr GemmConfig gemm(const ModelCase &model, long outputs, long depth,
                          int weights = 1) {
  const bool large = model.tileRows >= 128;
  return {.format = model.format,
          .outputs = outputs,
          .depth = depth,
          .weights = weights,
          .input =
              hasScales(model.format) ? RowFormat::LaneBF16 : RowFormat::BF16,
          .tileRows = model.tileRows,
          .warpsAlongRows = large ? 2 : 1,
          .warpsAlongOutputs = large                 ? 4
                               : model.tileRows < 64 ? 8
                                                     : 2,
          .stages = large ? 2 : 3};
}

/// Few blocks, so that each has several units of small models, and stages that
/// are less than a row.
constexpr StreamConfig stream(const ModelCase &model, long outputs, long depth,
                              int weights = 1) {
  StreamConfig config{.product = gemv(model, outputs, depth, weights),
                      .parts = {outputs, 0, 0},
                      .blocks = 3,
                      .stageBytes = model.width < 1024 ? 1024 : 2048};
  config.product.warps = streamWarps;
  if (config.product.maxRows > streamMaxRows)
    config.product.maxRows = streamMaxRows;
  config.product.outputsPerWarp = 2;
  while (streamsByMma(config) && !halvesInputFits(config.product))
    config.product.maxRows /= 2;
  return config;
}

constexpr StreamConfig qkvStream(const ModelCase &model) {
  const long kvWidth = model.kvHeads * model.headSize;
  const long queryWidth = model.heads * model.headSize;
  StreamConfig config = stream(model, queryWidth + 2 * kvWidth, model.width);
  config.parts[0] = queryWidth;
  config.parts[1] = config.parts[2] = kvWidth;
  return config;
}

/// Depth of a product whose rows are several stages of a stream, the last one
/// shorter.
constexpr long deep = 1280;

/// Fewer blocks than a GPU has, so that each makes several tiles.
constexpr WgmmaConfig wgmma(const ModelCase &model, long outputs, long depth,
                            int weights = 1) {
  const bool large = model.tileRows >= 128;
  const bool unpacks = model.format != WeightFormat::BF16;
  WgmmaConfig config{.format = model.format,
                     .parts = {outputs, 0, 0},
                     .depth = depth,
                     .weights = weights,
                     .panels = large ? 2 : weights,
                     .panelOutputs = large && !unpacks ? 128 : 64,
                     .stages = 3,
                     .blocks = 4,
                     .batchRows = !unpacks ? 0
                                  : large  ? 256 / weights
                                           : 32};
  config.cluster = wgmmaTiles(config) > 1 ? 2 : 1;
  return config;
}

template <class Product, class Make>
constexpr QkvConfig<Product> qkv(const ModelCase &model, const Make &make) {
  const long kvWidth = model.kvHeads * model.headSize;
  return {.query = make(model, model.heads * model.headSize, model.width),
          .key = make(model, kvWidth, model.width),
          .value = make(model, kvWidth, model.width)};
}

constexpr QkvConfig<GemvConfig> qkvGemv(const ModelCase &model) {
  return qkv<GemvConfig>(
      model, [](const ModelCase &m, long n, long k) { return gemv(m, n, k); });
}

constexpr QkvConfig<GemmConfig> qkvGemm(const ModelCase &model) {
  return qkv<GemmConfig>(
      model, [](const ModelCase &m, long n, long k) { return gemm(m, n, k); });
}

constexpr WgmmaConfig qkvWgmma(const ModelCase &model) {
  const long kvWidth = model.kvHeads * model.headSize;
  WgmmaConfig config = wgmma(model, model.heads * model.headSize, model.width);
  config.parts[1] = config.parts[2] = kvWidth;
  config.cluster = 2;
  return config;
}

} // namespace cases
} // namespace llamac::cuda

#endif // LLAMAC_TESTS_CODEGEN_DEVICE_CASES_H
