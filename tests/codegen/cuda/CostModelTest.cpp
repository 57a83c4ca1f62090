//===- CostModelTest.cpp - Seconds of a launch by its tiles ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CostModel.h"

#include <gtest/gtest.h>

namespace llamac {
namespace {

/// The predicted time of a product with 8192 x 8192 weights of two bytes on an
/// H100, which moves 3.4 MB in its latency; 132 multiprocessors.
double secondsOf(const TileModel &tiles, int64_t blocks, int64_t rows) {
  return predictedSeconds(tiles, blocks,
                          {.weightBytes = 128 << 20, .flops = rows << 27},
                          {.rows = rows, .context = rows}, "sm_90a");
}

TEST(CostModelTest, BlocksHideLatencyTogether) {
  const double enough =
      secondsOf({.bytesInFlight = 16 << 10, .occupancy = 2}, 264, 1);
  EXPECT_GT(secondsOf({.bytesInFlight = 4 << 10, .occupancy = 2}, 264, 1),
            3 * enough);
  // Twice as many at a time make up for half of the bytes.
  const TileModel half{.bytesInFlight = 8 << 10, .occupancy = 4};
  EXPECT_NEAR(secondsOf(half, 528, 1), enough, 0.01 * enough);
  EXPECT_GT(secondsOf(half, 264, 1), 1.5 * enough);
}

TEST(CostModelTest, IdleMultiprocessorsAndSharedMemoryCost) {
  TileModel tiles{.weightRows = 512,
                  .bytesInFlight = 64 << 10,
                  .occupancy = 1,
                  .usesMatrixUnits = true};
  const double full = secondsOf(tiles, 264, 512);
  EXPECT_GT(secondsOf(tiles, 265, 512), 1.3 * full);
  tiles.localBytes = 96;
  EXPECT_GT(secondsOf(tiles, 264, 512), 1.5 * full);
  tiles = {.weightRows = 512, .occupancy = 1, .tiles = 265};
  EXPECT_GT(secondsOf(tiles, 132, 512), 1.3 * full);
}

} // namespace
} // namespace llamac
