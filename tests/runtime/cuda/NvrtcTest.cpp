//===- NvrtcTest.cpp - CUDA source to cubin by NVRTC ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Nvrtc.h"

#include "runtime/base/Status.h"
#include "tests/TemporaryFolder.h"
#include "tests/Tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace llamac {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char *kernel = R"(
#include "scale.cuh"
extern "C" __global__ void __launch_bounds__(64) twice(float *x) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = scale * tile[63 - threadIdx.x];
}
)";

CudaSource twice() {
  return {"twice.cu",
          kernel,
          {{"scale.cuh", "#pragma once\nconstexpr float scale = 2;\n"}}};
}

class NvrtcTest : public testing::Test {
protected:
  void SetUp() override {
    auto opened = Nvrtc::open();
    if (!opened.ok())
      LLAMAC_SKIP(opened.status().message());
    nvrtc = *std::move(opened);
  }

  Nvrtc nvrtc;
};

TEST_F(NvrtcTest, CompilesForEveryArchitecture) {
  for (const char *architecture :
       {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const auto cubin = nvrtc.compile(twice(), architecture);
    ASSERT_TRUE(cubin.ok()) << cubin.status();
    EXPECT_EQ(cubin->image.substr(0, 4), "\177ELF");
    EXPECT_THAT(cubin->log, HasSubstr("entry function 'twice'"));
    EXPECT_THAT(cubin->log, Not(HasSubstr("warning")));
  }
}

TEST_F(NvrtcTest, AnErrorIsOneLineWithFileAndLine) {
  CudaSource source = twice();
  source.text = "extern \"C\" __global__ void f(int *x) {\n  *x = y;\n}\n";
  const absl::Status status = nvrtc.compile(source, "sm_80").status();
  EXPECT_EQ(exitCode(status), ExitCode::Internal);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("twice.cu(2): error: identifier \"y\""));
  EXPECT_THAT(message, HasSubstr("for sm_80"));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

TEST_F(NvrtcTest, AMissingHeaderIsNamed) {
  CudaSource source = twice();
  source.headers.clear();
  EXPECT_THAT(
      std::string(nvrtc.compile(source, "sm_80").status().message()),
      HasSubstr("twice.cu(2): catastrophic error: cannot open source file "
                "\"scale.cuh\""));
}

TEST_F(NvrtcTest, AnUnknownArchitectureIsAnError) {
  const absl::Status status = nvrtc.compile(twice(), "sm_7").status();
  EXPECT_EQ(exitCode(status), ExitCode::Internal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("sm_7"));
}

TEST_F(NvrtcTest, ThreadsMayCompileAtOnce) {
  std::string images[4];
  std::vector<std::thread> threads;
  for (std::string &image : images)
    threads.emplace_back([&] {
      const auto cubin = nvrtc.compile(twice(), "sm_90a");
      if (cubin.ok())
        image = cubin->image;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &image : images) {
    EXPECT_FALSE(image.empty());
    EXPECT_EQ(image, images[0]);
  }
}

TEST(NvrtcOpenTest, AMissingLibraryIsAMissingDevice) {
  const auto opened = Nvrtc::open("/nowhere/libnvrtc.so.13");
  EXPECT_EQ(exitCode(opened.status()), ExitCode::Device);
  const std::string message(opened.status().message());
  EXPECT_THAT(message, HasSubstr("/nowhere/libnvrtc.so.13"));
  EXPECT_THAT(message, HasSubstr("LLAMAC_NVRTC_PATH"));
}

TEST(NvrtcOpenTest, AnotherLibraryIsRefused) {
  const auto opened = Nvrtc::open("libc.so.6");
  EXPECT_EQ(exitCode(opened.status()), ExitCode::Device);
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("without nvrtcVersion"));
}

TEST(NvrtcOpenTest, LooksInTheFoldersOfTheEnvironment) {
  const char *own = std::getenv("LLAMAC_NVRTC_PATH");
  const std::string before = own ? own : "";
  setenv("LLAMAC_NVRTC_PATH", "/packages/nvrtc/lib", 1);
  setenv("CUDA_HOME", "/cuda", 1);
  const std::vector<std::string> paths = libnvrtcSearchPaths();
  setenv("LLAMAC_NVRTC_PATH", before.c_str(), 1); // Empty is none.
  unsetenv("CUDA_HOME");
  EXPECT_EQ(paths.front(), "/packages/nvrtc/lib/libnvrtc.so.13");
  EXPECT_EQ(paths[2], "libnvrtc.so.13");
  EXPECT_THAT(paths, testing::Contains("/cuda/lib64/libnvrtc.so.12"));
}

TEST(NvrtcOpenTest, LooksAmongThePackagesOfPython) {
  const TemporaryFolder environment;
  const std::string folder =
      environment.file("lib/python3.12/site-packages/nvidia/cu13/lib");
  std::filesystem::create_directories(folder);
  setenv("VIRTUAL_ENV", environment.name().c_str(), 1);
  const std::vector<std::string> paths = libnvrtcSearchPaths();
  unsetenv("VIRTUAL_ENV");
  EXPECT_THAT(paths, testing::Contains(folder + "/libnvrtc.so.13"));
}

/// The copy of this program that LooksBesideTheWheelThatItIsIn() runs.
TEST(NvrtcOpenTest, DISABLED_PrintsItsPaths) {
  for (const std::string &path : libnvrtcSearchPaths())
    std::puts(path.c_str());
}

TEST(NvrtcOpenTest, LooksBesideTheWheelThatItIsIn) {
  const TemporaryFolder environment;
  const std::string packages = environment.file("site-packages/");
  const std::string folder = packages + "nvidia/cu13/lib";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file("/proc/self/exe", packages + "program");
  const std::string command =
      packages + "program --gtest_also_run_disabled_tests "
                 "--gtest_filter=NvrtcOpenTest.DISABLED_PrintsItsPaths";
  std::FILE *output = popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), output));
  EXPECT_EQ(pclose(output), 0);
  EXPECT_THAT(text, HasSubstr(folder + "/libnvrtc.so.13\n"));
}

} // namespace
} // namespace llamac
