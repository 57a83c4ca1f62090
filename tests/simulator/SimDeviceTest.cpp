//===- SimDeviceTest.cpp - Memory as checked plans see it -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/SimDevice.h"
#include "runtime/base/Status.h"
#include "simulator/SimCode.h"
#include "tests/TemporaryFolder.h"
#include "tests/engine/toy/ToyModel.h"
#include "tests/simulator/Support.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace llamac;
using testing::ElementsAre;
using testing::HasSubstr;

static constexpr int32_t vectorLength = 300;

static absl::Span<const uint8_t> bytesOf(const std::vector<float> &values) {
  return {reinterpret_cast<const uint8_t *>(values.data()),
          values.size() * sizeof(float)};
}

namespace {

/// out = a + b on a device that checks.
class SimDeviceTest : public testing::Test {
protected:
  void SetUp() override {
    out = *device.allocate(vectorLength * sizeof(float));
    a = *device.allocate(vectorLength * sizeof(float));
    device.rename(out->address(), "the sum");
    device.rename(a->address(), "the left");
    b = device.share(bytesOf(ones));
  }

  absl::Status add(Buffer &to, absl::Span<uint8_t> undefined = {}) {
    const SimLaunch launch{.kernel = "vectorAdd",
                           .grid = {3},
                           .block = {128},
                           .args = {to.address(), a->address(), b->address()},
                           .rows = vectorLength};
    return device.run(testModule("Kernels.cu", /*checked=*/true), {launch},
                      undefined);
  }

  SimDevice device{{.checked = true}};
  const std::vector<float> ones = std::vector<float>(vectorLength, 1.0F);
  std::unique_ptr<Buffer> out, a, b;
};

} // namespace

TEST_F(SimDeviceTest, RunsOnWhatTheHostWrote) {
  ASSERT_TRUE(device.write(*a, 0, bytesOf(ones)).ok());
  ASSERT_TRUE(add(*out).ok());
  std::vector<uint8_t> staging;
  const auto got = device.read(*out, 4, 8, staging);
  ASSERT_TRUE(got.ok()) << got.status();
  float pair[2];
  std::memcpy(pair, got->data(), sizeof pair);
  EXPECT_EQ(pair[0], 2.0F);
  EXPECT_EQ(pair[1], 2.0F);
}

TEST_F(SimDeviceTest, UninitialisedReadsNameTheBuffer) {
  ASSERT_TRUE(device.write(*a, 0, bytesOf(ones).first(400)).ok());
  const absl::Status status = add(*out);
  EXPECT_EQ(exitCode(status), ExitCode::Device);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("uninitialised: reads 4 bytes of 'the left' at byte "
                        "400 of 1200, which was never written"));
}

TEST_F(SimDeviceTest, MessagesNameThePartOfABuffer) {
  device.rename(static_cast<uint8_t *>(a->address()) + 256, "the middle");
  device.rename(static_cast<uint8_t *>(a->address()) + 1000, "the end");
  ASSERT_TRUE(device.write(*a, 0, bytesOf(ones).first(400)).ok());
  EXPECT_THAT(std::string(add(*out).message()),
              HasSubstr("'the middle' at byte 144 of 744"));
}

TEST_F(SimDeviceTest, TheArenaIsUninitialisedAtEachStep) {
  ASSERT_TRUE(device.write(*a, 0, bytesOf(ones)).ok());
  ASSERT_TRUE(add(*a).ok());
  ASSERT_TRUE(add(*a).ok());
  EXPECT_THAT(
      std::string(
          add(*a, {static_cast<uint8_t *>(a->address()), a->size()}).message()),
      HasSubstr("of 'the left' at byte 0 of 1200, which was never written"));
}

TEST_F(SimDeviceTest, SharedMemoryIsReadOnly) {
  ASSERT_TRUE(device.write(*a, 0, bytesOf(ones)).ok());
  device.rename(b->address(), "a weight");
  EXPECT_THAT(std::string(add(*b).message()), HasSubstr("'a weight'"));
}

TEST_F(SimDeviceTest, FreedMemoryIsOutOfBounds) {
  ASSERT_TRUE(device.write(*a, 0, bytesOf(ones)).ok());
  const std::unique_ptr<Buffer> gone =
      std::make_unique<Buffer>(out->address(), out->size());
  out.reset();
  EXPECT_THAT(std::string(add(*gone).message()), HasSubstr("out of bounds"));
}

//===----------------------------------------------------------------------===//
// Resident kernels
//===----------------------------------------------------------------------===//

static constexpr uint64_t counterCount = 2;

/// A plan for sim whose only kernel is residentStep of Tables.cu, of at most
/// five blocks.
static toy::ToyPlan residentPlan(SimFlavour flavour) {
  toy::ToyPlan toy = toy::makeToyPlan();
  schema::PlanT &plan = toy.plan;
  plan.target = "sim";
  plan.counterBytes = counterCount * sizeof(uint32_t);
  const absl::StatusOr<std::string> object =
      compileForSim({{"Tables.cu", readTestSource("Tables.cu")}}, flavour);
  EXPECT_TRUE(object.ok()) << object.status();
  toy.sections[plan.code[0]->section].bytes = *object;
  plan.code[0]->isa = std::string(simCodeName(flavour));

  auto kernel = std::make_unique<schema::KernelT>();
  kernel->symbol = "residentStep";
  kernel->family = "step";
  kernel->params = {schema::ParamRole::Result, schema::ParamRole::Counters};
  kernel->resultRowBytes = {5 * sizeof(float)};
  kernel->geometry = std::make_unique<schema::GeometryT>();
  kernel->geometry->items = 5;
  kernel->geometry->threads = 32;
  kernel->geometry->counters = counterCount;
  kernel->geometry->resident = true;
  plan.kernels.clear();
  plan.kernels.push_back(std::move(kernel));

  auto launch = std::make_unique<schema::LaunchT>();
  launch->label = "step";
  launch->operands = {schema::Operand(schema::OperandKind::Arena, 0, 0),
                      schema::Operand(schema::OperandKind::Counters, 0, 0)};
  plan.programs.resize(1);
  plan.programs[0]->launches.clear();
  plan.programs[0]->launches.push_back(std::move(launch));
  return toy;
}

/// The output of the blocks of a resident kernel in a step of `shape`.
static std::vector<float> runResident(const SimDeviceOptions &options,
                                      const StepShape &shape) {
  const TemporaryFolder folder;
  const std::string path = folder.file("resident.plan");
  const absl::Status written = toy::writeToyPlan(
      residentPlan(options.checked ? SimFlavour::Checked : SimFlavour::Fast),
      path);
  EXPECT_TRUE(written.ok()) << written;
  const auto plan = PlanReader::open(path);
  EXPECT_TRUE(plan.ok()) << plan.status();

  SimDevice device(options);
  const auto arena = *device.allocate((*plan)->plan().programs[0]->arenaBytes);
  const std::vector<uint8_t> zeros(counterCount * sizeof(uint32_t));
  const auto counters = *device.allocate(zeros.size());
  EXPECT_TRUE(device.write(*counters, 0, zeros).ok());
  const auto code = device.loadCode(*plan);
  EXPECT_TRUE(code.ok()) << code.status();
  ProgramBindings bindings;
  bindings.arena = arena->address();
  bindings.counters = counters->address();
  const auto program = (*code)->prepare(0, bindings);
  EXPECT_TRUE(program.ok()) << program.status();
  const absl::Status status = (*program)->run(shape);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE((*program)->runLaunch(0, shape).ok());
  const auto *values = static_cast<const float *>(arena->address());
  return {values, values + 3};
}

TEST(SimDeviceResident, RunsAsFewBlocksAsItIsTold) {
  const StepShape shape{.rows = 1, .outputRows = 1};
  for (const bool checked : {false, true}) {
    EXPECT_THAT(runResident({.checked = checked}, shape),
                ElementsAre(103, 103, 103));
    EXPECT_THAT(runResident({.checked = checked, .residentBlocks = 9}, shape),
                ElementsAre(105, 105, 105))
        << "it has five";
  }
}

TEST(SimDeviceResident, TakesNoStepThatSamplesWhereNoneIsAskedFor) {
  EXPECT_THAT(runResident({}, {.rows = 1, .outputRows = 1, .samples = false}),
              ElementsAre(3, 3, 3));
}

TEST(SimScheduleTest, IsKnownByName) {
  EXPECT_EQ(parseSimSchedule("forward")->schedule, SimSchedule::Forward);
  EXPECT_EQ(parseSimSchedule("reverse")->schedule, SimSchedule::Reverse);
  EXPECT_EQ(parseSimSchedule("random")->seed, 0U);
  const auto seeded = parseSimSchedule("random:17");
  EXPECT_EQ(seeded->schedule, SimSchedule::Random);
  EXPECT_EQ(seeded->seed, 17U);
  EXPECT_EQ(parseSimSchedule("stalled")->schedule, SimSchedule::Stalled);
  EXPECT_EQ(parseSimSchedule("stalled")->seed, 0U);
  EXPECT_EQ(parseSimSchedule("stalled:5")->schedule, SimSchedule::Stalled);
  EXPECT_EQ(parseSimSchedule("stalled:5")->seed, 5U);
  for (const char *wrong :
       {"", "Forward", "random:", "random:-1", "random:x", "random5",
        "random:99999999999999999999", "stalled:", "stalled:x", "forward:1"})
    EXPECT_EQ(exitCode(parseSimSchedule(wrong).status()), ExitCode::Usage)
        << wrong;
}
