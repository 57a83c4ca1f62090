//===- DriverTest.cpp - The GPU at hand, and those that are named ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library that stands in for the driver says what GPU there is.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Driver.h"

#include "runtime/base/Status.h"
#include "runtime/cuda/CudaDevice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace llamac {
namespace {

using testing::HasSubstr;

/// What the fake driver (fake_driver/Driver.cpp) answers, for one test.
class DriverTest : public testing::Test {
protected:
  void TearDown() override {
    unsetenv("LLAMAC_FAKE_CAPABILITY");
    unsetenv("LLAMAC_FAKE_FAILS");
    unsetenv("LLAMAC_FAKE_MEMORY");
  }
};

TEST_F(DriverTest, AGpuIsAskedForItsCapability) {
  setenv("LLAMAC_FAKE_CAPABILITY", "8.6,9.0", 1);
  for (const int index : {0, 1}) {
    const auto capability = gpuCapability(index, LLAMAC_FAKE_DRIVER);
    ASSERT_TRUE(capability.ok()) << capability.status();
    EXPECT_EQ(capability->major, index == 0 ? 8 : 9);
    EXPECT_EQ(capability->minor, index == 0 ? 6 : 0);
  }
}

TEST_F(DriverTest, AGpuThatIsNotThereIsAnErrorOfTheUser) {
  setenv("LLAMAC_FAKE_CAPABILITY", "8.6,9.0", 1);
  for (const int index : {2, -1}) {
    const auto capability = gpuCapability(index, LLAMAC_FAKE_DRIVER);
    EXPECT_EQ(exitCode(capability.status()), ExitCode::Usage);
    EXPECT_THAT(std::string(capability.status().message()),
                HasSubstr("--gpu-index: expected 0 to 1, the GPUs of this "
                          "machine, got " +
                          std::to_string(index)));
  }
}

TEST_F(DriverTest, AFunctionThatFailsIsNamedWithItsError) {
  setenv("LLAMAC_FAKE_CAPABILITY", "8.6", 1);
  for (const char *function :
       {"cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute"}) {
    setenv("LLAMAC_FAKE_FAILS", function, 1);
    const auto capability = gpuCapability(0, LLAMAC_FAKE_DRIVER);
    EXPECT_EQ(exitCode(capability.status()), ExitCode::Device);
    EXPECT_THAT(
        std::string(capability.status().message()),
        HasSubstr(
            std::string(function) +
            ": the driver says CUDA_ERROR_UNKNOWN (as the fake driver was "
            "told)"));
  }
}

TEST_F(DriverTest, LimitsAreMeasuredFromAnyThread) {
  setenv("LLAMAC_FAKE_MEMORY", "600000000", 1); // Little to copy.
  const auto device =
      CudaDevice::create({.threads = 1, .driver = LLAMAC_FAKE_DRIVER});
  ASSERT_TRUE(device.ok()) << device.status();
  std::thread([&] {
    const auto limits = (*device)->measureLimits();
    ASSERT_TRUE(limits.ok()) << limits.status();
    ASSERT_TRUE(limits->has_value());
    EXPECT_GT((*limits)->bandwidth, 0);
  }).join();
}

TEST_F(DriverTest, ALibraryThatIsMissingOrNoDriverIsAnErrorOfTheDevice) {
  const auto missing = gpuCapability(0, "libcuda-that-is-not-there.so.1");
  EXPECT_EQ(exitCode(missing.status()), ExitCode::Device);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("libcuda-that-is-not-there.so.1: expected"));
  const auto other = gpuCapability(0, "libm.so.6");
  EXPECT_EQ(exitCode(other.status()), ExitCode::Device);
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("got a library without cuInit"));
}

TEST(GpuSpecTest, CodeOfANearOlderGpuOfTheGenerationServesWhereItMay) {
  auto nameFor = [](int major, int minor) {
    const GpuSpec *spec = gpuSpecFor({major, minor});
    return spec ? std::string(spec->name) : "none";
  };
  for (const GpuSpec &spec : gpuSpecs())
    EXPECT_EQ(nameFor(spec.capability.major, spec.capability.minor), spec.name);
  EXPECT_EQ(nameFor(8, 7), "sm_86");
  EXPECT_EQ(nameFor(7, 5), "none");
  // Code for sm_100a and sm_120a runs on these alone.
  EXPECT_EQ(nameFor(10, 3), "none");
  EXPECT_EQ(nameFor(12, 1), "none");
}

TEST(GpuSpecTest, AGpuIsFoundByItsName) {
  EXPECT_EQ(findGpuSpec("sm_86")->blockSharedBytes, 99 * 1024);
  EXPECT_EQ(findGpuSpec("sm_9"), nullptr);
  EXPECT_EQ(gpuNames(), "sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a");
}

} // namespace
} // namespace llamac
