//===- LoadedPlanTest.cpp - A plan on the devices of its ranks ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/LoadedPlan.h"

#include "runtime/base/Status.h"
#include "runtime/device/HostMemory.h"
#include "runtime/load/PlanMemory.h"
#include "runtime/threads/ThreadPool.h"
#include "tests/engine/toy/ToyModel.h"

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The calls that the fakes of all ranks got.
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
      : HostDevice(
            {.name = "fake",
             .threads = rank + 1,
             .rankLink = together ? RankLink::Waits : RankLink::Lockstep}),
        rank(rank), calls(calls), together(together) {}

  absl::StatusOr<std::unique_ptr<Buffer>> allocate(uint64_t size,
                                                   MemoryUse use) override {
    if (isFull)
      return memoryError("no memory on this rank");
    return HostDevice::allocate(size, use);
  }
  absl::StatusOr<std::unique_ptr<LoadedCode>>
  loadCode(std::shared_ptr<const PlanReader> plan) override {
    return std::make_unique<Code>(*this, std::move(plan));
  }

  ProgramBindings bound;
  bool isFull = false;

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

class LoadedPlanTest : public testing::Test {
protected:
  /// A toy plan on the fakes of two ranks.
  void load(Barrier *together = nullptr) {
    std::vector<std::shared_ptr<Device>> devices;
    for (int rank = 0; rank < 2; ++rank) {
      fakes.push_back(std::make_shared<FakeDevice>(rank, calls, together));
      devices.push_back(fakes.back());
    }
    auto plan = PlanReader::open(file.path());
    ASSERT_TRUE(plan.ok()) << plan.status();
    auto made = LoadedPlan::create(*plan, std::move(devices));
    ASSERT_TRUE(made.ok()) << made.status();
    loaded = *std::move(made);
    ASSERT_TRUE(loaded->loadCode(*plan).ok());
    const absl::Status status = loaded->loadWeights(/*randomSeed=*/1);
    ASSERT_TRUE(status.ok()) << status;
  }

  void allocate() {
    auto made = PlanMemory::create(*loaded);
    ASSERT_TRUE(made.ok()) << made.status();
    memory = *std::move(made);
    ASSERT_TRUE(memory->allocatePools(0).ok());
    ASSERT_TRUE(memory->prepare().ok());
  }

  /// A byte of an input of `rank`.
  uint8_t &input(size_t rank, schema::InputRole role, size_t byte) {
    return static_cast<uint8_t *>(
        fakes[rank]->bound.inputs[static_cast<size_t>(role)])[byte];
  }

  Calls calls;
  std::vector<std::shared_ptr<FakeDevice>> fakes;
  toy::ToyPlanFile file{[](toy::ToyPlan &toy) { toy.plan.ranks = 2; }};
  std::optional<LoadedPlan> loaded;
  std::unique_ptr<PlanMemory> memory;
};

TEST_F(LoadedPlanTest, InputsAreWrittenOnAllRanksAndRankZeroIsRead) {
  load();
  allocate();
  const schema::Operand tokens(schema::OperandKind::Input,
                               static_cast<uint32_t>(schema::InputRole::Tokens),
                               0);
  const std::vector<uint8_t> bytes = {1, 2, 3, 4};
  ASSERT_TRUE(memory->write(tokens, 0, bytes).ok());
  EXPECT_EQ(input(0, schema::InputRole::Tokens, 2), 3);
  EXPECT_EQ(input(1, schema::InputRole::Tokens, 2), 3);
  input(1, schema::InputRole::Tokens, 2) = 9;
  std::vector<uint8_t> staging;
  const auto read = memory->read(tokens, 0, 4, staging);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(1, 2, 3, 4));
}

TEST_F(LoadedPlanTest, EachRankHasMemoryAndANumberOfItsOwn) {
  load();
  allocate();
  const ProgramBindings &first = fakes[0]->bound, &second = fakes[1]->bound;
  EXPECT_NE(first.arena, second.arena);
  EXPECT_NE(first.counters, second.counters);
  ASSERT_FALSE(first.kv.empty());
  for (size_t layer = 0; layer < first.kv.size(); ++layer)
    EXPECT_NE(first.kv[layer], second.kv[layer]);
  EXPECT_EQ(first.weights.size(), second.weights.size());
  EXPECT_NE(first.inputs[0], second.inputs[0]);
  for (uint8_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(input(rank, schema::InputRole::Rank, 0), rank);
}

TEST_F(LoadedPlanTest, RanksThatWaitForEachOtherRunAtTheSameTime) {
  Barrier together(2);
  load(&together);
  allocate();
  PreparedProgram &program = memory->program(0);
  ASSERT_TRUE(program.run({.rows = 1, .outputRows = 1}).ok());
  EXPECT_THAT(calls.made,
              testing::UnorderedElementsAre("run on 0", "run on 1"));
  calls.made.clear();
  ASSERT_TRUE(program.runLaunch(0, {.rows = 1, .outputRows = 1}).ok());
  EXPECT_THAT(calls.made, testing::UnorderedElementsAre("0 on 0", "0 on 1"));

  FakeProgram::fails = true;
  const absl::Status status = program.run({.rows = 1, .outputRows = 1});
  FakeProgram::fails = false;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 is broken"));
}

TEST_F(LoadedPlanTest, OthersRunEachLaunchOnAllRanksBeforeTheNext) {
  load();
  allocate();
  ASSERT_TRUE(memory->program(0).run({.rows = 1, .outputRows = 1}).ok());
  ASSERT_GE(calls.made.size(), 4U);
  for (size_t i = 0; i < calls.made.size(); ++i)
    EXPECT_EQ(calls.made[i], absl::StrCat(i / 2, " on ", i % 2));
}

TEST_F(LoadedPlanTest, MemoryThatOneRankLacksIsAnError) {
  load();
  fakes[1]->isFull = true;
  EXPECT_EQ(exitCode(PlanMemory::create(*loaded).status()), ExitCode::Memory);
  EXPECT_EQ(loaded->describe(), "2 ranks of fake");
  EXPECT_EQ(loaded->threads(), 3);
}

} // namespace
} // namespace llamac
