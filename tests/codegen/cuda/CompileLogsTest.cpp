//===- CompileLogsTest.cpp - What NVRTC and ptxas say of kernels ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/codegen/CompileLogs.h"
#include "tests/Tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac {
namespace {

using testing::HasSubstr;

TEST(CompileLogsTest, ReportsSpillsSharedMemoryAndWarnings) {
  const auto logs = CompileLogs::open();
  if (!logs.ok())
    LLAMAC_SKIP(logs.status().message());
  const CudaSource source = {"spills.cu",
                             R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float *x) {
  int unused = 3;
  __shared__ float tile[64];
  float held[96];
  for (int i = 0; i < 96; ++i)
    held[i] = x[i * 1024 + threadIdx.x];
  tile[threadIdx.x % 64] = held[3];
  __syncthreads();
  for (int i = 0; i < 96; ++i)
    x[(i * 7 % 96) * 1024 + threadIdx.x] = held[i] * held[95 - i] + tile[i % 64];
}
)",
                             {}};
  const auto log = logs->compile(source, "sm_80");
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_EQ(log->kernels.size(), 1u);
  EXPECT_EQ(log->kernels[0].name, "spills");
  EXPECT_LE(log->kernels[0].registers, 32);
  EXPECT_EQ(log->kernels[0].sharedBytes, 256);
  EXPECT_GT(log->kernels[0].spillStoreBytes, 0);
  EXPECT_GT(log->kernels[0].spillLoadBytes, 0);
  EXPECT_THAT(log->warnings,
              testing::Contains(HasSubstr("\"unused\" was declared")));
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
