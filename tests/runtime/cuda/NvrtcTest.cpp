//===- NvrtcTest.cpp - CUDA source to cubin by NVRTC ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Nvrtc.h"

#include "runtime/base/Status.h"
#include "tests/Tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
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
    ASSERT_EQ(cubin->log.kernels.size(), 1u);
    const KernelResources &resources = cubin->log.kernels[0];
    EXPECT_EQ(resources.name, "twice");
    EXPECT_GT(resources.registers, 0);
    // sm_90 and up may reserve 1 KiB for the system besides.
    EXPECT_EQ(resources.sharedBytes % 1024, 256);
    EXPECT_EQ(resources.spillStoreBytes, 0);
    EXPECT_TRUE(cubin->log.warnings.empty()) << cubin->log.text;
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

TEST_F(NvrtcTest, ReportsSpillsAndWarnings) {
  CudaSource source = twice();
  source.text = R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float *x) {
  int unused = 3;
  float held[96];
  for (int i = 0; i < 96; ++i)
    held[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
  for (int i = 0; i < 96; ++i)
    x[(i * 7 % 96) * 1024 + threadIdx.x] = held[i] * held[95 - i];
}
)";
  const auto cubin = nvrtc.compile(source, "sm_80");
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  ASSERT_EQ(cubin->log.kernels.size(), 1u);
  EXPECT_LE(cubin->log.kernels[0].registers, 32);
  EXPECT_GT(cubin->log.kernels[0].spillStoreBytes, 0);
  EXPECT_GT(cubin->log.kernels[0].spillLoadBytes, 0);
  EXPECT_THAT(cubin->log.warnings,
              testing::Contains(HasSubstr("\"unused\" was declared")));
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

TEST(CompileLogTest, ReadsEveryKernelAndWarning) {
  const CompileLog log = parseCompileLog(
      "a.cu(3): warning #177-D: variable \"u\" was declared\n"
      "Remark: The warnings can be suppressed\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
      "instructions are serialized\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
      "ptxas info    : Function properties for first\n"
      "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 "
      "bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 2048 bytes smem, "
      "544 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes "
      "spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n");
  ASSERT_EQ(log.kernels.size(), 2u);
  EXPECT_EQ(log.kernels[0].name, "first");
  EXPECT_EQ(log.kernels[0].registers, 168);
  EXPECT_EQ(log.kernels[0].sharedBytes, 2048);
  EXPECT_EQ(log.kernels[0].stackBytes, 16);
  EXPECT_EQ(log.kernels[0].spillStoreBytes, 8);
  EXPECT_EQ(log.kernels[0].spillLoadBytes, 12);
  EXPECT_EQ(log.kernels[1].name, "second");
  EXPECT_EQ(log.kernels[1].registers, 8);
  EXPECT_EQ(log.kernels[1].sharedBytes, 0);
  ASSERT_EQ(log.warnings.size(), 2u);
  EXPECT_THAT(log.warnings[0], HasSubstr("#177-D"));
  EXPECT_THAT(log.warnings[1], HasSubstr("C7510"));
}

} // namespace
} // namespace llamac
