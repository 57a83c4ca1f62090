//===- OccupancyTest.cpp - Against the occupancy tables -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Occupancy.h"

#include <gtest/gtest.h>

namespace llamac {
namespace {

const GpuSpec &hopper() { return *findGpuSpec("sm_90a"); }

TEST(OccupancyTest, ThreadsAndBlocksAreLimits) {
  EXPECT_EQ(residentBlocks(hopper(), {16, 1024, 0}), 2);
  EXPECT_EQ(residentBlocks(hopper(), {16, 32, 0}), 32);
  EXPECT_EQ(residentBlocks(*findGpuSpec("sm_86"), {16, 32, 0}), 16);
  EXPECT_EQ(residentBlocks(*findGpuSpec("sm_89"), {16, 512, 0}), 3);
}

TEST(OccupancyTest, RegistersAreGivenByTheWarpInEachPart) {
  // 128 registers: 4,096 a warp, four of which fill a part of 16,384.
  EXPECT_EQ(residentBlocks(hopper(), {128, 256, 0}), 2);
  EXPECT_EQ(residentBlocks(hopper(), {128, 512, 0}), 1);
  EXPECT_EQ(residentBlocks(hopper(), {129, 512, 0}), 0);
  // 33 registers take as many as 40.
  EXPECT_EQ(residentBlocks(hopper(), {33, 1024, 0}), 1);
  EXPECT_EQ(residentBlocks(hopper(), {32, 1024, 0}), 2);
}

TEST(OccupancyTest, SharedMemoryCostsAKilobyteABlock) {
  EXPECT_EQ(residentBlocks(hopper(), {32, 128, 113 * 1024}), 2);
  EXPECT_EQ(residentBlocks(hopper(), {32, 128, 113 * 1024 + 1}), 1);
  EXPECT_EQ(residentBlocks(hopper(), {32, 128, 227 * 1024}), 1);
  EXPECT_EQ(residentBlocks(hopper(), {32, 128, 227 * 1024 + 1}), 0);
}

TEST(OccupancyTest, BlocksOfTwoKernelsShareOneMultiprocessor) {
  const BlockResources half{128, 256, 96 * 1024}, more{168, 384, 200 * 1024};
  EXPECT_TRUE(fitTogether(hopper(), {half, half}));
  EXPECT_FALSE(fitTogether(hopper(), {half, half, half}));
  EXPECT_TRUE(fitTogether(hopper(), {more}));
  EXPECT_FALSE(fitTogether(hopper(), {half, more}));
}

} // namespace
} // namespace llamac
