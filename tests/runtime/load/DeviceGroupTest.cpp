//===- DeviceGroupTest.cpp - The devices of all ranks as one --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/DeviceGroup.h"

#include "runtime/base/Status.h"
#include "runtime/device/HostMemory.h"
#include "runtime/threads/ThreadPool.h"
#include "tests/engine/toy/ToyModel.h"

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The calls of the fakes of all ranks.
struct Calls {
  void add(std::string call) {
    const std::lock_guard<std::mutex> lock(mutex);
    made.push_back(std::move(call));
  }
  std::mutex mutex;
  std::vector<std::string> made;
};

class FakeProgram final : public PreparedProgram {
public:
  FakeProgram(const schema::ProgramT &program, int rank, Calls &calls,
              Barrier *together)
      : PreparedProgram(program), rank(rank), calls(calls), together(together) {
  }
  absl::Status run(const StepShape &, absl::FunctionRef<void()>) override {
    // Hangs unless all ranks run at the same time.
    together->arriveAndWait();
    calls.add(absl::StrCat("run on ", rank));
    return rank == 1 && fails ? deviceError("rank 1 is broken")
                              : absl::OkStatus();
  }
  absl::Status runLaunch(size_t launch, const StepShape &) override {
    if (together)
      together->arriveAndWait();
    calls.add(absl::StrCat(launch, " on ", rank));
    return absl::OkStatus();
  }
  static inline bool fails = false;

private:
  const int rank;
  Calls &calls;
  Barrier *together;
};

/// A device of a rank that keeps what it was bound to.
class FakeDevice final : public HostDevice {
public:
  FakeDevice(int rank, Calls &calls, Barrier *together)
      : rank(rank), calls(calls), together(together) {}

  std::string describe() const override { return "fake"; }
  int threads() const override { return rank + 1; }
  bool waitsForRanks() const override { return together != nullptr; }
  absl::StatusOr<std::unique_ptr<Buffer>> allocate(uint64_t size) override {
    if (size == refused)
      return memoryError("no memory on this rank");
    return HostDevice::allocate(size);
  }
  absl::StatusOr<std::unique_ptr<LoadedCode>>
  loadCode(std::shared_ptr<const PlanReader> plan) override {
    return std::make_unique<Code>(*this, std::move(plan));
  }

  ProgramBindings bound;
  uint64_t refused = 0;

private:
  class Code final : public LoadedCode {
  public:
    Code(FakeDevice &device, std::shared_ptr<const PlanReader> plan)
        : device(device), plan(std::move(plan)) {}
    std::string isa() const override { return "fake"; }
    absl::StatusOr<std::unique_ptr<PreparedProgram>>
    prepare(size_t program, const ProgramBindings &bindings) override {
      device.bound = bindings;
      return std::make_unique<FakeProgram>(*plan->plan().programs[program],
                                           device.rank, device.calls,
                                           device.together);
    }

  private:
    FakeDevice &device;
    std::shared_ptr<const PlanReader> plan;
  };

  const int rank;
  Calls &calls;
  Barrier *together;
};

class DeviceGroupTest : public testing::Test {
protected:
  void makeGroup(Barrier *together = nullptr) {
    std::vector<std::shared_ptr<Device>> devices;
    for (int rank = 0; rank < 2; ++rank) {
      fakes.push_back(std::make_shared<FakeDevice>(rank, calls, together));
      devices.push_back(fakes.back());
    }
    auto made = groupDevices(std::move(devices));
    ASSERT_TRUE(made.ok()) << made.status();
    group = *made;
  }

  std::unique_ptr<Buffer> allocate(uint64_t size) {
    auto buffer = group->allocate(size);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    return *std::move(buffer);
  }

  /// The first program of a toy plan for two ranks, bound to `bindings`.
  std::unique_ptr<PreparedProgram> prepare(const ProgramBindings &bindings) {
    auto plan = PlanReader::open(file.path());
    EXPECT_TRUE(plan.ok()) << plan.status();
    auto loaded = group->loadCode(*plan);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    code = *std::move(loaded);
    auto program = code->prepare(0, bindings);
    EXPECT_TRUE(program.ok()) << program.status();
    return *std::move(program);
  }

  Calls calls;
  std::vector<std::shared_ptr<FakeDevice>> fakes;
  std::shared_ptr<Device> group;
  std::unique_ptr<LoadedCode> code;
  toy::ToyPlanFile file;
};

TEST_F(DeviceGroupTest, WhatIsWrittenIsOnAllRanksAndRankZeroIsRead) {
  makeGroup();
  const auto buffer = allocate(64);
  const std::vector<uint8_t> bytes = {1, 2, 3};
  ASSERT_TRUE(group->write(*buffer, 5, bytes).ok());

  ProgramBindings bindings;
  bindings.arena = buffer->address();
  bindings.inputs.resize(static_cast<size_t>(schema::InputRole::MAX) + 1);
  const auto program = prepare(bindings);
  EXPECT_EQ(fakes[0]->bound.arena, buffer->address());
  EXPECT_NE(fakes[1]->bound.arena, buffer->address());
  auto *other = static_cast<uint8_t *>(fakes[1]->bound.arena);
  EXPECT_EQ(other[7], 3);
  other[7] = 9;
  std::vector<uint8_t> staging;
  const auto read = group->read(*buffer, 5, 3, staging);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(1, 2, 3));
}

TEST_F(DeviceGroupTest, EachRankHasItsOwnAddressesAndNumber) {
  makeGroup();
  const auto inputs = allocate(128), arena = allocate(64);
  std::vector<std::vector<std::unique_ptr<Buffer>>> parts;
  for (const auto &fake : fakes) {
    auto part = fake->allocate(16);
    ASSERT_TRUE(part.ok());
    parts.emplace_back().push_back(*std::move(part));
  }
  void *const second = parts[1][0]->address();
  const auto weights = group->joinWeights(std::move(parts));
  ASSERT_TRUE(weights.ok()) << weights.status();

  ProgramBindings bindings;
  bindings.arena = arena->address();
  bindings.weights = {weights->front()->address()};
  // Inputs lie in one buffer.
  bindings.inputs = {inputs->address(),
                     static_cast<uint8_t *>(inputs->address()) + 96};
  bindings.inputs.resize(static_cast<size_t>(schema::InputRole::MAX) + 1);
  const auto program = prepare(bindings);
  for (int rank = 0; rank < 2; ++rank) {
    const ProgramBindings &own = fakes[rank]->bound;
    EXPECT_EQ(static_cast<uint8_t *>(own.inputs[1]) -
                  static_cast<uint8_t *>(own.inputs[0]),
              96);
    EXPECT_EQ(*static_cast<const int32_t *>(
                  own.inputs[static_cast<size_t>(schema::InputRole::Rank)]),
              rank);
    EXPECT_EQ(own.kv.size(), 0U);
    EXPECT_EQ(own.counters, nullptr);
  }
  EXPECT_EQ(fakes[0]->bound.weights[0], weights->front()->address());
  EXPECT_EQ(fakes[1]->bound.weights[0], second);
}

TEST_F(DeviceGroupTest, RanksThatWaitForEachOtherRunAtTheSameTime) {
  Barrier together(2);
  makeGroup(&together);
  ProgramBindings bindings;
  bindings.inputs.resize(static_cast<size_t>(schema::InputRole::MAX) + 1);
  const auto program = prepare(bindings);
  ASSERT_TRUE(program->run({.rows = 1, .outputRows = 1}).ok());
  EXPECT_THAT(calls.made,
              testing::UnorderedElementsAre("run on 0", "run on 1"));
  calls.made.clear();
  ASSERT_TRUE(program->runLaunch(0, {.rows = 1, .outputRows = 1}).ok());
  EXPECT_THAT(calls.made, testing::UnorderedElementsAre("0 on 0", "0 on 1"));

  FakeProgram::fails = true;
  const absl::Status status = program->run({.rows = 1, .outputRows = 1});
  FakeProgram::fails = false;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 is broken"));
}

TEST_F(DeviceGroupTest, OthersRunEachLaunchOnAllRanksBeforeTheNext) {
  makeGroup();
  ProgramBindings bindings;
  bindings.inputs.resize(static_cast<size_t>(schema::InputRole::MAX) + 1);
  const auto program = prepare(bindings);
  ASSERT_TRUE(program->run({.rows = 1, .outputRows = 1}).ok());
  ASSERT_GE(calls.made.size(), 4U);
  for (size_t i = 0; i < calls.made.size(); ++i)
    EXPECT_EQ(calls.made[i], absl::StrCat(i / 2, " on ", i % 2));
}

TEST_F(DeviceGroupTest, MemoryThatOneRankLacksIsAnError) {
  makeGroup();
  fakes[1]->refused = 4096;
  const auto buffer = group->allocate(4096);
  EXPECT_EQ(exitCode(buffer.status()), ExitCode::Memory);
  EXPECT_EQ(group->describe(), "2 ranks of fake");
  EXPECT_EQ(group->threads(), 3);
}

} // namespace
} // namespace llamac
