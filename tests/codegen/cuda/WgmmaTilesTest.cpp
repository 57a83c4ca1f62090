//===- WgmmaTilesTest.cpp - Tiles fit and fill a GPU ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Configs.h"
#include "tests/golden/Golden.h"

#include <gtest/gtest.h>

using namespace llamac;

using cuda::WeightFormat;

static cuda::WgmmaConfig choose(std::initializer_list<int64_t> outputs,
                                int64_t depth, int weights, int64_t rows,
                                WeightFormat format = WeightFormat::BF16) {
  return chooseWgmmaTiles(format, outputs, depth, weights, rows,
                          defaultGpuSpec());
}

TEST(WgmmaTilesTest, FewTilesAreMadeSmallOrShareTheirDepth) {
  // Llama 3.2 1B, 512 rows: 64 tiles of 128 outputs, of which two blocks have
  // half of the depth each, rather than 32 of 256.
  const cuda::WgmmaConfig out = choose({2048}, 2048, 1, 512);
  EXPECT_EQ(cuda::wgmmaTileOutputs(out), 128);
  EXPECT_EQ(out.splits, 2);
  EXPECT_EQ(out.blocks, 128);
  // Llama 3.1 8B, 256 rows: 32 tiles with a depth of 14,336, and 2,048 rows,
  // whose tiles are enough.
  EXPECT_EQ(choose({4096}, 14336, 1, 256).splits, 4);
  EXPECT_EQ(choose({4096}, 14336, 1, 2048).splits, 1);
  // Query, key and value together.
  EXPECT_EQ(cuda::wgmmaTileOutputs(choose({2048, 512, 512}, 2048, 1, 512)),
            128);
}

TEST(WgmmaTilesTest, ManyTilesAreLarge) {
  EXPECT_EQ(cuda::wgmmaTileOutputs(choose({128256}, 2048, 1, 512)), 256);
  const cuda::WgmmaConfig up = choose({8192}, 2048, 2, 512);
  EXPECT_EQ(up.panels, 2);
  EXPECT_EQ(cuda::wgmmaTileOutputs(up), 128);
}

TEST(WgmmaTilesTest, PackedWeightsAreTheOperandAOfPromptsToo) {
  const cuda::WgmmaConfig q4 =
      choose({128256}, 2048, 1, 512, WeightFormat::Q4_0);
  EXPECT_EQ(q4.batchRows, 256);
  EXPECT_EQ(cuda::wgmmaTileOutputs(q4), 128);
  // A lane has the sums of both weights.
  EXPECT_EQ(choose({8192}, 2048, 2, 512, WeightFormat::Q4_0).batchRows, 128);
}

TEST(WgmmaTilesTest, EveryChoiceFits) {
  for (const WeightFormat format :
       {WeightFormat::F16, WeightFormat::BF16, WeightFormat::Q8_0,
        WeightFormat::Q4_0, WeightFormat::Q4_1, WeightFormat::Q6_K,
        WeightFormat::Q2_K, WeightFormat::MXFP8, WeightFormat::FP8})
    for (const int64_t outputs : {8, 64, 65, 200, 2048, 5120, 128256})
      for (const int weights : {1, 2})
        for (const int64_t rows : {16, 129, 512, 4096}) {
          SCOPED_TRACE(testing::Message()
                       << outputs << " outputs of " << weights
                       << " weights of format " << static_cast<int>(format)
                       << ", " << rows << " rows");
          const cuda::WgmmaConfig config =
              choose({outputs}, 2048, weights, rows, format);
          EXPECT_GE(config.panels, weights);
          EXPECT_GE(config.stages, 3);
          EXPECT_LE(cuda::launchShape(config).sharedBytes + 1024,
                    defaultGpuSpec().blockSharedBytes);
          EXPECT_GT(config.blocks, 0);
          EXPECT_EQ(config.blocks % config.cluster, 0);
          const bool shares = config.batchRows == 0 || config.batchRows >= 64;
          EXPECT_EQ(config.cluster,
                    shares && cuda::wgmmaTiles(config) > 1 ? 2 : 1);
        }
}

static cuda::WgmmaConfig chooseBatch(int64_t outputs, int64_t depth,
                                     int weights, int64_t rows,
                                     WeightFormat format = WeightFormat::BF16) {
  return chooseWgmmaTiles(format, outputs, depth, weights, rows,
                          defaultGpuSpec());
}

TEST(WgmmaTilesTest, BlocksShareTheDepthOfABatchWhereTilesAreFewer) {
  // Llama 3.1 8B: wo, and the classifier, whose tiles are enough.
  EXPECT_GT(chooseBatch(4096, 4096, 1, 16).splits, 1);
  EXPECT_EQ(chooseBatch(128256, 4096, 1, 16).splits, 1);
}

TEST(WgmmaTilesTest, BatchesOfManyRowsShareTheirInput) {
  EXPECT_EQ(chooseBatch(4096, 4096, 1, 32).cluster, 1);
  EXPECT_EQ(chooseBatch(4096, 4096, 1, 64).cluster, 2);
  EXPECT_EQ(chooseBatch(64, 4096, 1, 64).cluster, 1);
}

TEST(WgmmaTilesTest, EveryChoiceForABatchFits) {
  for (int i = 0; i <= static_cast<int>(WeightFormat::FP8); ++i)
    for (const int64_t outputs : {8, 64, 65, 200, 1536, 4096, 28672, 128256})
      for (const int64_t depth : {64, 576, 2048, 14336})
        for (const int weights : {1, 2})
          for (const int64_t rows : {16, 32, 64, 128}) {
            SCOPED_TRACE(testing::Message()
                         << outputs << " outputs and a depth of " << depth
                         << " of " << weights << " weights of format " << i
                         << ", " << rows << " rows");
            const cuda::WgmmaConfig config = chooseBatch(
                outputs, depth, weights, rows, static_cast<WeightFormat>(i));
            EXPECT_EQ(config.batchRows, rows);
            EXPECT_TRUE(isLegalWgmma(config));
            EXPECT_LE(cuda::launchShape(config).sharedBytes + 1024,
                      defaultGpuSpec().blockSharedBytes);
            EXPECT_GT(config.blocks, 0);
            EXPECT_EQ(config.blocks % config.cluster, 0);
          }
}

/// The box and the row of a map that the kernels want, against CUTLASS's.
static void expectMap(const cuda::MapShape &map,
                      const golden::TensorMapCall &call) {
  const TensorMapShape expected = golden::shapeOf(call);
  EXPECT_EQ(static_cast<uint32_t>(map.elementBytes), expected.elementBytes);
  EXPECT_EQ(static_cast<uint64_t>(map.columns), expected.columns);
  EXPECT_EQ(static_cast<uint64_t>(map.columns * map.elementBytes),
            expected.rowBytes);
  EXPECT_EQ(static_cast<uint32_t>(map.boxColumns), expected.boxColumns);
  EXPECT_EQ(static_cast<uint32_t>(map.boxRows), expected.boxRows);
  EXPECT_EQ(static_cast<uint32_t>(map.swizzleBytes), expected.swizzleBytes);
  if (map.rows > 0)
    EXPECT_EQ(static_cast<uint64_t>(map.rows), expected.rows);
}

TEST(WgmmaTilesTest, MapsAreThoseThatCutlassMakes) {
  cuda::WgmmaConfig config{
      .format = WeightFormat::BF16, .parts = {8192}, .depth = 2048};
  expectMap(cuda::wgmmaWeightMap(config, 0, 1), golden::weightMap128);
  expectMap(cuda::wgmmaInputMap(config, 0), golden::inputMap);
  config.cluster = 2;
  expectMap(cuda::wgmmaInputMap(config, 0), golden::inputMapOfTwo);
  expectMap(cuda::wgmmaWeightMap(config, 0, 1), golden::weightMap128OfTwo);
  for (const long head : {64, 128}) {
    const cuda::AttentionConfig attention{
        .kv = {.kvHeads = 8, .headSize = head, .pagesPerSequence = 64},
        .heads = 32,
        .scale = 1};
    expectMap(cuda::wgmmaPoolMap(attention, 1),
              head == 64 ? golden::tokenMap64 : golden::tokenMap128);
  }
}

TEST(WgmmaTilesTest, TilesOfEveryFormatFitIntoTheBoxOfAMap) {
  for (int i = 0; i <= static_cast<int>(WeightFormat::FP8); ++i) {
    const auto format = static_cast<WeightFormat>(i);
    SCOPED_TRACE(i);
    const cuda::WgmmaConfig config{
        .format = format, .parts = {8200}, .depth = 2048, .panelOutputs = 64};
    const cuda::MapShape map = cuda::wgmmaWeightMap(config, 0, 1);
    const TensorMapShape shape{
        .elementBytes = static_cast<uint32_t>(map.elementBytes),
        .columns = static_cast<uint64_t>(map.columns),
        .rows = static_cast<uint64_t>(map.rows),
        .rowBytes = static_cast<uint64_t>(map.columns * map.elementBytes),
        .boxColumns = static_cast<uint32_t>(map.boxColumns),
        .boxRows = static_cast<uint32_t>(map.boxRows),
        .swizzleBytes = static_cast<uint32_t>(map.swizzleBytes)};
    EXPECT_EQ(problemOf(shape), "");
    EXPECT_EQ(shape.boxBytes(),
              static_cast<uint64_t>(cuda::wgmmaPackedBytes(config)));
    // Copies go to multiples of 128 bytes.
    EXPECT_EQ(cuda::wgmmaPackedBytes(config) % 128, 0);
    EXPECT_EQ(
        shape.rows * shape.rowBytes,
        static_cast<uint64_t>(cuda::packedWeightBytes(format, 8200, 2048)));
  }
}
