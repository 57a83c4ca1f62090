//===- CostModelTest.cpp - Seconds of a launch by its tiles ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/CostModel.h"

#include <gtest/gtest.h>

namespace llamac {
namespace {

constexpr MachineSpec machine{.bandwidth = 32e9,
                              .operations = 200e9,
                              .sharedBandwidth = 80e9,
                              .latency = 100e-9,
                              .unitBytes = 2 << 20,
                              .units = 2,
                              .launchSeconds = 2e-6};

// A product with a matrix of 2048 x 2048 weights of half a byte.
const schema::LaunchCost product(2 << 20, 16 << 10, 0, 8 << 20, 0);

/// Tiles of a core's kernel.
schema::TileModel onCore(uint64_t weightRows, uint64_t rowBytes,
                         uint64_t flightBytes, uint64_t chains) {
  return {weightRows, rowBytes, flightBytes, chains, 0, 0, 0, 0, false};
}

double secondsOf(const schema::TileModel &model, int64_t rows) {
  return predict({product, model, 128}, {rows, rows}, machine).seconds;
}

TEST(CostModelTest, OneRowTakesAsLongAsReadingTheWeights) {
  const schema::TileModel model = onCore(0, 8192, 8192, 4);
  const Prediction prediction = predict({product, model, 128}, {1, 1}, machine);
  EXPECT_EQ(prediction.limit, Limit::Memory);
  const double read = ((2 << 20) + (16 << 10)) / machine.bandwidth;
  EXPECT_GE(prediction.seconds, read);
  EXPECT_LE(prediction.seconds, 1.2 * read);
}

TEST(CostModelTest, TooLittleUnderWayWaitsForMemory) {
  EXPECT_GT(secondsOf(onCore(0, 8192, 512, 4), 1),
            2 * secondsOf(onCore(0, 8192, 4096, 4), 1));
}

TEST(CostModelTest, AUnitThatReadsOneStreamFetchesItByItself) {
  MachineSpec one = machine;
  one.readStreams = one.busyChains = 1;
  auto seconds = [&](uint64_t flightBytes, uint64_t chains) {
    return predict({product, onCore(0, 8192, flightBytes, chains), 128}, {1, 1},
                   one)
        .seconds;
  };
  EXPECT_EQ(seconds(128, 1), seconds(4096, 1));
  EXPECT_GT(seconds(8192, 4), 1.5 * seconds(128, 1));
}

TEST(CostModelTest, ManyRowsTakeAsLongAsTheArithmetic) {
  const schema::TileModel model = onCore(64, 2560, 0, 0);
  EXPECT_EQ(predict({product, model, 128}, {512, 512}, machine).limit,
            Limit::Arithmetic);
}

TEST(CostModelTest, FewRowsTogetherReadTheWeightsOften) {
  EXPECT_GT(secondsOf(onCore(8, 2560, 0, 0), 512),
            secondsOf(onCore(64, 2560, 0, 0), 512));
}

TEST(CostModelTest, RowsThatTheCoresCacheDoesNotHoldAreReadForEachItem) {
  EXPECT_GT(secondsOf(onCore(512, 8192, 0, 0), 512),
            secondsOf(onCore(128, 8192, 0, 0), 512));
}

TEST(CostModelTest, SmallLaunchesTakeAsLongAsALaunch) {
  const schema::LaunchCost small(64, 64, 0, 64, 0);
  const Prediction prediction =
      predict({small, onCore(0, 64, 8192, 4), 1}, {1, 1}, machine);
  EXPECT_EQ(prediction.limit, Limit::Launch);
  EXPECT_GE(prediction.seconds, machine.launchSeconds);
}

constexpr MachineSpec gpu{.bandwidth = 4e12,
                          .operations = 60e12,
                          .sharedBandwidth = 7e12,
                          .latency = 700e-9,
                          .unitBytes = 256 << 10,
                          .units = 100,
                          .launchSeconds = 2e-6,
                          .matrixOperations = 900e12,
                          .localBandwidth = 30e12};

/// Tiles of a GPU's kernel.
struct Blocks {
  uint64_t weightRows = 0;
  uint64_t rowBytes = 0;
  uint64_t flightBytes = 64 << 10;
  uint64_t resident = 2;
  uint64_t tiles = 0;
  uint64_t itemKeys = 0;
  uint64_t localBytes = 0;
};

// A matrix of 8192 x 8192 weights of two bytes; keys of 1 KB.
Prediction predictOnGpu(const Blocks &blocks, int64_t items, int64_t rows,
                        int64_t context = 1, bool attends = false) {
  const schema::LaunchCost matrix(128 << 20, 64 << 10, 0, 128 << 20, 0);
  const schema::LaunchCost attention(0, 8 << 10, 1 << 10, 0, 8 << 10);
  const schema::TileModel model(
      blocks.weightRows, blocks.rowBytes, blocks.flightBytes, 0,
      blocks.resident, blocks.tiles, blocks.itemKeys, blocks.localBytes, true);
  return predict({attends ? attention : matrix, model, items},
                 {rows, std::max(rows, context)}, gpu);
}

TEST(CostModelTest, BlocksAtWorkHideLatencyTogether) {
  // 2.8 MB are bandwidth times latency: 200 blocks need 14 KB each.
  const double enough = predictOnGpu({.flightBytes = 16 << 10}, 200, 1).seconds;
  EXPECT_GT(predictOnGpu({.flightBytes = 4 << 10}, 200, 1).seconds, 3 * enough);
  // Twice as many at a time make up for half of the bytes.
  EXPECT_NEAR(
      predictOnGpu({.flightBytes = 8 << 10, .resident = 4}, 400, 1).seconds,
      enough, 0.01 * enough);
  // As do not those that there are not.
  EXPECT_GT(
      predictOnGpu({.flightBytes = 8 << 10, .resident = 4}, 200, 1).seconds,
      1.5 * enough);
}

TEST(CostModelTest, ARoundThatIsNotFullLeavesMultiprocessorsIdle) {
  const Blocks blocks{.weightRows = 512, .resident = 1};
  const Prediction full = predictOnGpu(blocks, 200, 512);
  EXPECT_EQ(full.limit, Limit::Arithmetic);
  EXPECT_GT(predictOnGpu(blocks, 201, 512).seconds, 1.3 * full.seconds);
  // Likewise of tiles that are dealt out to blocks that stay.
  EXPECT_GT(
      predictOnGpu({.weightRows = 512, .resident = 1, .tiles = 201}, 100, 512)
          .seconds,
      1.3 * full.seconds);
}

TEST(CostModelTest, SmallTilesWaitForTheSharedCacheOrSharedMemory) {
  EXPECT_EQ(
      predictOnGpu({.weightRows = 16, .rowBytes = 32 << 10}, 128, 1024).limit,
      Limit::SharedCache);
  EXPECT_GT(
      predictOnGpu({.weightRows = 128, .localBytes = 96}, 100, 512).seconds,
      1.5 * predictOnGpu({.weightRows = 128, .localBytes = 36}, 100, 512)
                .seconds);
}

TEST(CostModelTest, KeysThatAreDealtOutFillTheGpu) {
  Blocks blocks{
      .weightRows = 1, .flightBytes = 16 << 10, .tiles = 8, .itemKeys = 4096};
  const double few = predictOnGpu(blocks, 128, 1, 32768, true).seconds;
  blocks.itemKeys = 256;
  EXPECT_LT(predictOnGpu(blocks, 128, 1, 32768, true).seconds, few);
}

TEST(CostModelTest, EveryMachineThatPlansNameIsKnown) {
  EXPECT_EQ(nominalMachine("cpu", "").units, 1);
  EXPECT_EQ(nominalMachine("cuda", "sm_80").units, 108);
  EXPECT_EQ(nominalMachine("sim", "sm_90a").units, 132);
  // One that is not: the plan's default.
  EXPECT_EQ(nominalMachine("cuda", "sm_999").units, 132);
}

} // namespace
} // namespace llamac
