//===- SimDeviceTest.cpp - Memory as checked plans see it -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/sim/SimDevice.h"
#include "runtime/base/Status.h"
#include "tests/codegen/sim/Support.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace llamac;
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
    b = *device.share(bytesOf(ones));
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

TEST(SimScheduleTest, IsKnownByName) {
  EXPECT_EQ(parseSimSchedule("forward")->schedule, SimSchedule::Forward);
  EXPECT_EQ(parseSimSchedule("reverse")->schedule, SimSchedule::Reverse);
  EXPECT_EQ(parseSimSchedule("random")->seed, 0U);
  const auto seeded = parseSimSchedule("random:17");
  EXPECT_EQ(seeded->schedule, SimSchedule::Random);
  EXPECT_EQ(seeded->seed, 17U);
  for (const char *wrong : {"", "Forward", "random:", "random:-1", "random:x",
                            "random:99999999999999999999"})
    EXPECT_EQ(exitCode(parseSimSchedule(wrong).status()), ExitCode::Usage)
        << wrong;
}
