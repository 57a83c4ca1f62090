//===- CpuDeviceTest.cpp - Plans run by the host's cores ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/CpuDevice.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/MachineLimits.h"
#include "runtime/threads/Topology.h"
#include "tests/engine/toy/ToyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>
#include <unistd.h>

namespace llamac {
namespace {

using testing::HasSubstr;

TEST(CpuDeviceTest, TakesTheCoresOfTheProcessByDefault) {
  const auto device = CpuDevice::create();
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->threads(), usablePhysicalCores());
  EXPECT_EQ((*device)->isaLimit(), hostIsaLevel());
}

TEST(CpuDeviceTest, ALowerLevelCanBeForced) {
  EXPECT_EQ((*CpuDevice::create({1, "portable"}))->isaLimit(),
            IsaLevel::Portable);
  setenv("LLAMAC_ISA", "portable", 1);
  EXPECT_EQ((*CpuDevice::create({1, ""}))->isaLimit(), IsaLevel::Portable);
  setenv("LLAMAC_ISA", "pdp11", 1);
  EXPECT_EQ(exitCode(CpuDevice::create({1, ""}).status()), ExitCode::Usage);
  unsetenv("LLAMAC_ISA");
  const auto wrong = CpuDevice::create({1, "pdp11"});
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("portable, x86-64-v3"));
}

TEST(CpuDeviceTest, AForkedChildIsRefusedAndEnds) {
  auto device = *CpuDevice::create({2, ""});
  ASSERT_EQ(device->threads(), 2);
  auto child = [&] {
    alarm(10); // Or it would hang.
    const absl::Status status = device->run([](int) {});
    device.reset();
    std::fputs(std::string(status.message()).c_str(), stderr);
    std::exit(static_cast<int>(exitCode(status)));
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(7),
              "load the model in the child");
  EXPECT_TRUE(device->run([](int) {}).ok());
}

TEST(CpuDeviceTest, WithoutMoreThreadsThoseThatThereAreRunAll) {
  auto underLimit = [] {
    // No address space is left for stacks, but for those of threads that were.
    const rlimit none = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_AS, &none);
    const auto device = *CpuDevice::create({64, ""});
    std::atomic<int> calls{0};
    const bool ran = device->run([&](int) { ++calls; }).ok();
    _exit(ran && device->threads() < 64 && calls == device->threads() ? 0 : 1);
  };
  EXPECT_EXIT(underLimit(), testing::ExitedWithCode(0), "");
}

TEST(CpuDeviceTest, MemoryIsZeroAndAligned) {
  const auto device = *CpuDevice::create({1, ""});
  for (const uint64_t size : {1, 100, 5 << 20}) {
    for (const MemoryUse use : {MemoryUse::Sparse, MemoryUse::Dense}) {
      const auto buffer = *device->allocate(size, use);
      const auto *bytes = static_cast<const uint8_t *>(buffer->address());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
      EXPECT_TRUE(std::all_of(bytes, bytes + size,
                              [](uint8_t byte) { return byte == 0; }));
    }
  }
  EXPECT_EQ((*device->allocate(0))->size(), 0u);
}

TEST(CpuDeviceTest, TooMuchMemoryIsAnErrorWithTheNumber) {
  const auto device = *CpuDevice::create({1, ""});
  const auto buffer = device->allocate(uint64_t{1} << 60);
  EXPECT_EQ(exitCode(buffer.status()), ExitCode::Memory);
  EXPECT_THAT(std::string(buffer.status().message()),
              HasSubstr("1152921504606846976 bytes"));
}

TEST(CpuDeviceTest, CopiesStayInside) {
  const auto device = *CpuDevice::create({1, ""});
  const auto buffer = *device->allocate(16);
  const std::vector<uint8_t> bytes = {1, 2, 3, 4};
  std::vector<uint8_t> staging;
  ASSERT_TRUE(device->write(*buffer, 12, bytes).ok());
  const auto back = device->read(*buffer, 12, 4, staging);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(std::equal(back->begin(), back->end(), bytes.begin()));
  EXPECT_FALSE(device->write(*buffer, 13, bytes).ok());
  EXPECT_FALSE(device->read(*buffer, ~uint64_t{0}, 2, staging).ok());
}

TEST(CpuDeviceTest, SharedBytesAreUsedInPlace) {
  const auto device = *CpuDevice::create({1, ""});
  const std::vector<uint8_t> bytes(100, 7);
  EXPECT_EQ(device->share(bytes)->address(), bytes.data());
}

TEST(CpuDeviceTest, AStepThatDoesNotFitItsProgramIsABug) {
  const toy::ToyPlanFile file;
  const auto device = *CpuDevice::create({2, ""});
  const auto plan = *PlanReader::open(file.path());
  const auto code = device->loadCode(plan);
  ASSERT_TRUE(code.ok()) << code.status();
  std::vector<std::vector<uint64_t>> memory;
  auto zeros = [&] {
    return static_cast<void *>(memory.emplace_back(1024, 0).data());
  };
  ProgramBindings bindings;
  bindings.arena = zeros();
  bindings.weights = {zeros(), zeros()};
  bindings.kv = {zeros(), zeros()};
  for (int role = 0; role <= static_cast<int>(schema::InputRole::MAX); ++role)
    bindings.inputs.push_back(zeros());
  bindings.constants.assign(7, zeros());
  const auto program = (*code)->prepare(1, bindings);
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE((*program)->run({4, 2}).ok());
  // All threads run kernels.
  EXPECT_TRUE(
      (*program)->run({4, 2}, [] { FAIL() << "no time is left over"; }).ok());
  EXPECT_TRUE((*program)->run({1, 0}).ok());
  EXPECT_TRUE((*program)->runLaunch(3, {1, 0}).ok()); // No outputs.
  EXPECT_EQ(exitCode((*program)->runLaunch(4, {1, 0})), ExitCode::Internal);
  EXPECT_EQ(exitCode((*program)->runLaunch(0, {5, 0})), ExitCode::Internal);
  for (const StepShape shape :
       {StepShape{0, 0}, StepShape{5, 1}, StepShape{4, 3}, StepShape{4, -1}})
    EXPECT_EQ(exitCode((*program)->run(shape)), ExitCode::Internal);
}

TEST(CpuDevice, RatesAreMeasuredAtEveryLevelOfTheMachine) {
  for (const IsaLevel level : isaLevels()) {
    if (level > hostIsaLevel())
      break;
    const auto device = CpuDevice::create(
        {.threads = 2, .isa = std::string(isaLevelName(level))});
    ASSERT_TRUE(device.ok()) << device.status();
    for (const auto &rate : {f32Rate(**device), int8Rate(**device)})
      EXPECT_TRUE(rate.ok() && std::isfinite(*rate) && *rate > 0)
          << isaLevelName(level);
  }
}

} // namespace
} // namespace llamac
