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

double secondsOf(const schema::TileModel &model, int64_t rows) {
  return predict({product, model, 128}, {rows, rows}, machine).seconds;
}

TEST(CostModelTest, OneRowTakesAsLongAsReadingTheWeights) {
  const schema::TileModel model(0, 8192, 8192, 4);
  const Prediction prediction = predict({product, model, 128}, {1, 1}, machine);
  EXPECT_EQ(prediction.limit, Limit::Memory);
  const double read = ((2 << 20) + (16 << 10)) / machine.bandwidth;
  EXPECT_GE(prediction.seconds, read);
  EXPECT_LE(prediction.seconds, 1.2 * read);
}

TEST(CostModelTest, TooLittleUnderWayWaitsForMemory) {
  EXPECT_GT(secondsOf({0, 8192, 512, 4}, 1),
            2 * secondsOf({0, 8192, 4096, 4}, 1));
}

TEST(CostModelTest, ManyRowsTakeAsLongAsTheArithmetic) {
  const schema::TileModel model(64, 2560, 0, 0);
  EXPECT_EQ(predict({product, model, 128}, {512, 512}, machine).limit,
            Limit::Arithmetic);
}

TEST(CostModelTest, FewRowsTogetherReadTheWeightsOften) {
  EXPECT_GT(secondsOf({8, 2560, 0, 0}, 512), secondsOf({64, 2560, 0, 0}, 512));
}

TEST(CostModelTest, RowsThatTheCoresCacheDoesNotHoldAreReadForEachItem) {
  EXPECT_GT(secondsOf({512, 8192, 0, 0}, 512),
            secondsOf({128, 8192, 0, 0}, 512));
}

TEST(CostModelTest, SmallLaunchesTakeAsLongAsALaunch) {
  const schema::LaunchCost small(64, 64, 0, 64, 0);
  const Prediction prediction =
      predict({small, schema::TileModel(0, 64, 8192, 4), 1}, {1, 1}, machine);
  EXPECT_EQ(prediction.limit, Limit::Launch);
  EXPECT_GE(prediction.seconds, machine.launchSeconds);
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
