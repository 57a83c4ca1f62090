//===- KernelsTest.cpp - Right kernels give right values ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels.cu against plain C++, fast and checked, under every schedule. The
// numbers are small integers, so that sums are exact in any order.
//
//===----------------------------------------------------------------------===//

#include "runtime/formats/FloatBits.h"
#include "tests/simulator/Support.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

using namespace llamac;

static std::vector<float> numbers(size_t count, int seed = 0) {
  std::vector<float> result(count);
  for (size_t i = 0; i < count; ++i)
    result[i] = static_cast<float>(
                    (i * (7 + static_cast<size_t>(seed)) + i / 11) % 17) -
                8;
  return result;
}

/// Runs `body` on a simulator of every kind.
template <typename Body> static void onEverySimulator(Body body) {
  onEverySimulator("Kernels.cu", body);
}

TEST(SimKernels, OnlyTheBlocksThatAreNamedRun) {
  constexpr int rows = 1024;
  const std::vector<float> a = numbers(rows), b = numbers(rows, 1);
  onEverySimulator([&](Simulator &simulator, const SimModule &module) {
    DeviceVector<float> left(a), right(b), out(rows, 100.0f);
    SimLaunch launch{"vectorAdd", {8}, {128}};
    launch.args = {output(simulator, out), input(simulator, left, "a"),
                   input(simulator, right, "b")};
    launch.rows = rows;
    launch.blocks = {7, 2};
    ASSERT_TRUE(simulator.run(module, launch).ok());
    const std::vector<float> got = out.values();
    for (int i = 0; i < rows; ++i) {
      const bool runs = i / 128 == 7 || i / 128 == 2;
      ASSERT_EQ(got[i], runs ? a[i] + b[i] : 100.0f) << "element " << i;
    }
  });
}

TEST(SimKernels, VectorAdd) {
  constexpr int rows = 1000;
  const std::vector<float> a = numbers(rows), b = numbers(rows, 1);
  std::vector<float> expected(rows);
  for (int i = 0; i < rows; ++i)
    expected[i] = a[i] + b[i];
  onEverySimulator([&](Simulator &simulator, const SimModule &module) {
    DeviceVector<float> left(a), right(b), out(rows, 0.0f);
    SimLaunch launch{"vectorAdd", {8}, {128}};
    launch.args = {output(simulator, out), input(simulator, left, "a"),
                   input(simulator, right, "b")};
    launch.rows = rows;
    ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
    EXPECT_EQ(out.values(), expected);
  });
}

TEST(SimKernels, SumsOfBlocks) {
  constexpr int rows = 700, blocks = 6;
  const std::vector<float> values = numbers(rows);
  std::vector<float> expected(blocks);
  for (int i = 0; i < rows; ++i)
    expected[i / 128] += values[i];
  for (const char *kernel : {"blockSum", "warpSum"})
    onEverySimulator([&](Simulator &simulator, const SimModule &module) {
      DeviceVector<float> in(values), out(blocks, 0.0f);
      SimLaunch launch{kernel, {blocks}, {128}};
      launch.args = {output(simulator, out), input(simulator, in)};
      launch.rows = rows;
      ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
      EXPECT_EQ(out.values(), expected) << kernel;
    });
}

TEST(SimKernels, TransposesByTiles) {
  constexpr int rows = 64, columns = 96;
  const std::vector<float> values = numbers(rows * columns);
  std::vector<float> expected(rows * columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      expected[j * rows + i] = values[i * columns + j];
  onEverySimulator([&](Simulator &simulator, const SimModule &module) {
    DeviceVector<float> in(values), out(rows * columns, 0.0f);
    SimLaunch launch{"transpose", {columns / 32, rows / 32}, {32, 8}};
    launch.args = {output(simulator, out), input(simulator, in)};
    launch.rows = rows;
    ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
    EXPECT_EQ(out.values(), expected);
  });
}

TEST(SimKernels, CopyPipelines) {
  // The second one wants whole tiles.
  for (const auto &[kernel, rows] : {std::pair("copyPipeline", 1001),
                                     {"copyPipeline", 3},
                                     {"bulkPipeline", 1280}}) {
    const std::vector<float> values = numbers(rows);
    std::vector<float> expected(values);
    for (float &value : expected)
      value *= 2;
    onEverySimulator([&](Simulator &simulator, const SimModule &module) {
      DeviceVector<float> in(values), out(rows, 0.0f);
      SimLaunch launch{kernel, {}, {64}, 2048};
      launch.args = {output(simulator, out), input(simulator, in)};
      launch.rows = rows;
      ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
      EXPECT_EQ(out.values(), expected) << kernel;
    });
  }
}

TEST(SimKernels, MatrixTileByTensorCores) {
  constexpr int depth = 96;
  const std::vector<float> a = numbers(64 * depth), b = numbers(depth * 64, 1);
  std::vector<float> expected(64 * 64);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j)
      for (int k = 0; k < depth; ++k)
        expected[i * 64 + j] += a[i * depth + k] * b[k * 64 + j];
  auto asBf16 = [](const std::vector<float> &values) {
    std::vector<uint16_t> result(values.size());
    std::transform(values.begin(), values.end(), result.begin(), f32ToBf16);
    return result;
  };
  onEverySimulator([&](Simulator &simulator, const SimModule &module) {
    DeviceVector<uint16_t> left(asBf16(a)), right(asBf16(b));
    DeviceVector<float> out(64 * 64, 0.0f);
    SimLaunch launch{"mmaTile", {}, {128}, 2 * (64 * 40 + 32 * 72) * 2};
    launch.args = {output(simulator, out), input(simulator, left, "a"),
                   input(simulator, right, "b")};
    launch.rows = depth;
    ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
    EXPECT_EQ(out.values(), expected);
  });
}

TEST(SimKernels, LastArriverAddsUpAndResets) {
  constexpr int rows = 500;
  const std::vector<float> values = numbers(rows);
  const float expected = std::accumulate(values.begin(), values.end(), 0.0f);
  onEverySimulator([&](Simulator &simulator, const SimModule &module) {
    DeviceVector<float> in(values), partial(16, 0.0f), out(1, 0.0f);
    DeviceVector<uint32_t> counter(1, 0u);
    simulator.memory().add("counter", counter.data(), counter.bytes());
    SimLaunch launch{"lastArriver", {8}, {64}};
    launch.args = {output(simulator, out), input(simulator, in),
                   output(simulator, partial, "partial"), counter.data()};
    launch.rows = rows;
    // The second launch finds the counter as the first one did.
    for (int repeat = 0; repeat < 2; ++repeat) {
      ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
      EXPECT_EQ(out.values()[0], expected);
      EXPECT_EQ(counter.values()[0], 0u);
    }
  });
}

TEST(SimKernels, BlocksOfACooperativeLaunchWaitForEachOther) {
  constexpr int blocks = 12, rows = blocks * 32;
  const std::vector<float> values = numbers(rows);
  std::vector<float> expected(values);
  std::rotate(expected.begin(), expected.begin() + 32, expected.end());
  onEverySimulator(
      "Kernels.cu",
      [&](Simulator &simulator, const SimModule &module) {
        DeviceVector<float> in(values), middle(rows, 0.0f), out(rows, 0.0f);
        DeviceVector<uint32_t> counter(1, 0u);
        simulator.memory().add("counter", counter.data(), counter.bytes());
        SimLaunch launch{"gridNeighbour", {blocks}, {32}};
        launch.args = {output(simulator, out), input(simulator, in),
                       output(simulator, middle, "middle"), counter.data()};
        launch.rows = rows;
        launch.cooperative = true;
        ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
        EXPECT_EQ(out.values(), expected);
      },
      /*together=*/true);
}

TEST(SimKernels, BlocksThatAreNotResidentAreNotWaitedForInVain) {
  SimOptions options;
  options.hostThreads = 1;
  Simulator simulator(options);
  std::vector<float> in(64), middle(64), out(64);
  std::vector<uint32_t> counter(1);
  SimLaunch launch{"gridNeighbour", {2}, {32}};
  launch.args = {out.data(), in.data(), middle.data(), counter.data()};
  launch.rows = 64;
  const absl::Status status =
      simulator.run(testModule("Kernels.cu", false), launch);
  EXPECT_NE(status.message().find("deadlock: it polls at Kernels.cu:"),
            absl::string_view::npos)
      << status;
}

TEST(SimKernels, WarpsHandOverByNamedBarriers) {
  constexpr int rows = 160;
  const std::vector<float> values = numbers(rows);
  std::vector<float> expected(rows);
  for (int i = 0; i < rows; ++i) {
    const float value = values[i / 32 * 32 + 31 - i % 32];
    expected[i] = value * value + 1;
  }
  onEverySimulator([&](Simulator &simulator, const SimModule &module) {
    DeviceVector<float> in(values), out(rows, 0.0f);
    SimLaunch launch{"handOver", {}, {64}};
    launch.args = {output(simulator, out), input(simulator, in)};
    launch.rows = rows;
    ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
    EXPECT_EQ(out.values(), expected);
  });
}

TEST(SimKernels, LaunchesThatNoGpuTakesAreRefused) {
  Simulator simulator(SimOptions{});
  const SimModule &module = testModule("Kernels.cu", false);
  auto errorOf = [&](const SimLaunch &launch) {
    return std::string(simulator.run(module, launch).message());
  };
  EXPECT_EQ(errorOf({"vectorAdd", {1}, {1025}}),
            "kernel vectorAdd: a launch of 1 blocks of 1025 threads; expected "
            "at least one of each and at most 1024 threads");
  EXPECT_EQ(errorOf({"vectorAdd", {0}, {32}}),
            "kernel vectorAdd: a launch of 0 blocks of 32 threads; expected at "
            "least one of each and at most 1024 threads");
  EXPECT_EQ(errorOf({"vectorAdd", {1}, {32}, 240000}),
            "kernel vectorAdd: needs 240000 B of shared memory, a block has "
            "232448 B");
  EXPECT_EQ(errorOf({"noSuchKernel", {1}, {32}}),
            "Kernels.cu: expected a kernel noSuchKernel, got none; compile it "
            "again");
}

TEST(SimKernels, CheckedLaunchesGiveTheSameErrorEachTime) {
  SimOptions options;
  options.checked = true;
  options.schedule = SimSchedule::Random;
  options.seed = 5;
  std::string first;
  for (int repeat = 0; repeat < 3; ++repeat) {
    Simulator simulator(options);
    // Behind what is known of `out` is none of the others.
    std::vector<float> out(1000), a(1000), b(1000);
    simulator.memory().add("out", out.data(), 2400, SimContents::Undefined);
    simulator.memory().add("a", a.data(), 4000, SimContents::ReadOnly);
    simulator.memory().add("b", b.data(), 4000, SimContents::ReadOnly);
    SimLaunch launch{"vectorAdd", {8}, {128}};
    launch.args = {out.data(), a.data(), b.data()};
    launch.rows = 1000;
    const std::string error(
        simulator.run(testModule("Kernels.cu", true), launch).message());
    // Where the buffers are is the host's affair; which thread is not.
    const std::string thread = error.substr(error.find("(kernel"));
    EXPECT_NE(error.find("out of bounds: writes 4 bytes of"), std::string::npos)
        << error;
    if (repeat == 0)
      first = thread;
    EXPECT_EQ(thread, first);
  }
}
