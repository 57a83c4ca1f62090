//===- TablesTest.cpp - Operands as a table -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/simulator/Support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>

using namespace llamac;
using testing::Each;
using testing::HasSubstr;

/// Runs `kernel` with 40 operands besides `out`.
static absl::Status addUp(Simulator &simulator, const SimModule &module,
                          const char *kernel, DeviceVector<float> &out) {
  constexpr int rows = 100;
  std::vector<std::unique_ptr<DeviceVector<float>>> in;
  SimLaunch launch{kernel, {2}, {64}};
  launch.args = {output(simulator, out)};
  for (int i = 0; i < 40; ++i) {
    in.push_back(std::make_unique<DeviceVector<float>>(rows, 1.0f + i));
    launch.args.push_back(input(simulator, *in.back()));
  }
  launch.rows = rows;
  launch.table = true;
  return simulator.run(module, launch);
}

TEST(SimTable, HasAnyNumberOfOperands) {
  onEverySimulator("Tables.cu", [](Simulator &simulator,
                                   const SimModule &module) {
    DeviceVector<float> out(100, 0.0f);
    ASSERT_EQ(addUp(simulator, module, "sumOfTable", out), absl::OkStatus());
    EXPECT_THAT(out.values(), Each(820.0f));
  });
}

TEST(SimTable, AnOperandBehindItsEndIsOutOfBounds) {
  for (const SimOptions &options : testSchedules(true)) {
    Simulator simulator(options);
    DeviceVector<float> out(100, 0.0f);
    EXPECT_THAT(std::string(addUp(simulator, testModule("Tables.cu", true),
                                  "sumBeyondTable", out)
                                .message()),
                HasSubstr("out of bounds: reads 8 bytes of "));
  }
}
