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
#include "tests/golden/Golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <thread>

namespace llamac {
namespace {

using testing::HasSubstr;

/// The fake driver's answers (fake_driver/Driver.cpp), for one test.
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

/// The operands that a driver that records was given.
golden::TensorMapCall &lastMap() {
  static golden::TensorMapCall call;
  return call;
}

cuda::Result recordMap(void * /*map*/, int type, uint32_t rank, void * /*base*/,
                       const uint64_t *extents, const uint64_t *strides,
                       const uint32_t *box, const uint32_t *steps,
                       int interleave, int swizzle, int promotion, int fill) {
  lastMap() = {type,
               rank,
               {extents[0], extents[1]},
               {strides[0]},
               {box[0], box[1]},
               {steps[0], steps[1]},
               interleave,
               swizzle,
               promotion,
               fill};
  return 0;
}

TEST_F(DriverTest, MapsAreEncodedAsCutlassDoes) {
  const auto opened = cuda::Driver::open(LLAMAC_FAKE_DRIVER);
  ASSERT_TRUE(opened.ok()) << opened.status();
  cuda::Driver driver = **opened;
  driver.cuTensorMapEncodeTiled = recordMap;
  alignas(16) char matrix = 0;
  for (const golden::TensorMapCall &call :
       {golden::inputMap, golden::inputMapOfTwo, golden::weightMap128,
        golden::weightMap128OfTwo, golden::weightMap64, golden::weightMap32,
        golden::tokenMap64, golden::tokenMap128}) {
    lastMap() = {};
    ASSERT_TRUE(driver.encodeTensorMap(&matrix, golden::shapeOf(call)).ok());
    EXPECT_EQ(lastMap(), call)
        << call.extents[1] << " rows of " << call.extents[0] << " elements";
  }
}

TEST_F(DriverTest, NumbersAndLayoutsAreThoseOfCudaH) {
  EXPECT_EQ(cuda::ClockRate, golden::clockRate);
  EXPECT_EQ(cuda::MultiprocessorCount, golden::multiprocessorCount);
  EXPECT_EQ(cuda::MemoryClockRate, golden::memoryClockRate);
  EXPECT_EQ(cuda::CapabilityMajor, golden::capabilityMajor);
  EXPECT_EQ(cuda::CapabilityMinor, golden::capabilityMinor);
  EXPECT_EQ(cuda::CooperativeLaunch, golden::cooperativeLaunch);
  EXPECT_EQ(cuda::functionSharedBytes, golden::functionSharedBytes);
  EXPECT_EQ(cuda::functionSharedCarveout, golden::functionSharedCarveout);
  EXPECT_EQ(int{cuda::streamNonBlocking}, golden::streamNonBlocking);
  EXPECT_EQ(int{cuda::eventWithoutTime}, golden::eventWithoutTime);
  EXPECT_EQ(int{cuda::eventRecordExternal}, golden::eventRecordExternal);
  EXPECT_EQ(cuda::captureOfThread, golden::captureOfThread);
  using cuda::LaunchAttribute;
  using cuda::LaunchConfig;
  EXPECT_EQ(LaunchAttribute::Cooperative, golden::cooperative);
  EXPECT_EQ(LaunchAttribute::ClusterDimension, golden::clusterDimension);
  EXPECT_EQ(LaunchAttribute::ProgrammaticSerialization,
            golden::programmaticSerialization);
  for (const int fault :
       {golden::errorIllegalAddress, golden::errorLaunchTimeout,
        golden::errorHardwareStack, golden::errorLaunchFailed})
    EXPECT_TRUE(cuda::isFault(fault)) << fault;
  EXPECT_EQ(cuda::errorCooperativeLaunchTooLarge,
            golden::errorCooperativeLaunchTooLarge);
  EXPECT_FALSE(cuda::isFault(golden::errorCooperativeLaunchTooLarge));
  EXPECT_EQ(sizeof(LaunchAttribute), golden::launchAttributeBytes);
  EXPECT_EQ(offsetof(LaunchAttribute, value), golden::launchAttributeValueAt);
  EXPECT_EQ(sizeof(LaunchConfig), golden::launchConfigBytes);
  EXPECT_EQ(offsetof(LaunchConfig, stream), golden::launchConfigStreamAt);
  EXPECT_EQ(offsetof(LaunchConfig, attributes),
            golden::launchConfigAttributesAt);
  EXPECT_EQ(offsetof(LaunchConfig, attributeCount),
            golden::launchConfigCountAt);
  EXPECT_EQ(sizeof(cuda::DeviceTensorMap), golden::tensorMapBytes);
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
  for (const GpuSpec &spec : gpuSpecs())
    EXPECT_NE(findGpuProduct(spec.name), nullptr) << spec.name;
  for (const GpuProduct &product : gpuProducts())
    EXPECT_NE(findGpuSpec(product.gpu), nullptr) << product.name;
}

} // namespace
} // namespace llamac
