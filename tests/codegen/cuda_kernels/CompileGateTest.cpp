//===- CompileGateTest.cpp - Kernels of real models compile ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every family in every format of weights and cache, for the shapes of models
// that people run, by NVRTC: no warning, no spilled register, and no more
// shared memory than the GPU has. The exhaustive tier compiles all for all. The
// default tier compiles for the GPU with the most kernels those of which
// EmittedGateTest has nothing that is emitted, and some for the oldest.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "Source.h"

#include "runtime/cuda/GpuSpec.h"
#include "tests/Tier.h"
#include "tests/codegen/CompileLogs.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace llamac {

static void PrintTo(const GpuSpec &gpu, std::ostream *out) { *out << gpu.name; }

namespace cuda {
namespace {

/// A program: a model in one format.
struct Program {
  const char *name;
  ModelCase model;
  /// The other kernels are those of another program.
  bool productsOnly = false;
  /// GPUs for which the default tier compiles it. What is emitted for models in
  /// the other formats is compiled in that of EmittedGateTest.
  std::vector<std::string> byDefault = {};
};

void PrintTo(const Program &program, std::ostream *out) {
  *out << program.name;
}

const Program programs[] = {
    {"1B bf16, 8 rows, large tiles",
     {WeightFormat::BF16, KvFormat::F16, 2048, 32, 8, 64, 8192, 128256, 8,
      16384, 128},
     true},
    {"70B Q8_0",
     {WeightFormat::Q8_0, KvFormat::F16, 8192, 64, 8, 128, 28672, 128256, 1,
      8192, 64},
     false,
     {"sm_80", "sm_90a"}},
    {"8B MXFP8, 2 rows",
     {WeightFormat::MXFP8, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 2,
      8192, 64},
     true},
    {"8B Q4_0, 2 rows",
     {WeightFormat::Q4_0, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 2,
      8192, 64},
     true},
    {"Llama 2 7B F16, BF16 cache",
     {WeightFormat::F16, KvFormat::BF16, 4096, 32, 32, 128, 11008, 32000, 1,
      4096, 64}},
    {"SmolLM2 Q4_1, 4 rows",
     {WeightFormat::Q4_1, KvFormat::F16, 576, 9, 3, 64, 1536, 49152, 4, 8192,
      64},
     false,
     {"sm_90a"}},
    {"a vocabulary of an odd size and a head size of 40, F16, BF16 cache, "
     "8 rows",
     {WeightFormat::F16, KvFormat::BF16, 1280, 32, 8, 40, 3456, 32001, 8, 2048,
      64},
     false,
     {"sm_90a"}},
    {"the same in BF16, F16 cache",
     {WeightFormat::BF16, KvFormat::F16, 1280, 32, 8, 40, 3456, 32001, 8, 2048,
      64}},
    {"1B Q5_0, 4 rows",
     {WeightFormat::Q5_0, KvFormat::F16, 2048, 32, 8, 64, 8192, 128256, 4,
      16384, 64},
     true},
    {"8B Q5_1, 2 rows",
     {WeightFormat::Q5_1, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 2,
      8192, 128},
     true},
    {"8B Q2_K, 4 rows",
     {WeightFormat::Q2_K, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 4,
      8192, 128},
     true,
     {"sm_90a"}},
    {"8B Q3_K",
     {WeightFormat::Q3_K, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 1,
      8192, 128},
     true},
    {"8B Q4_K",
     {WeightFormat::Q4_K, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 1,
      8192, 128},
     true},
    {"1B Q5_K, 4 rows",
     {WeightFormat::Q5_K, KvFormat::F16, 2048, 32, 8, 64, 8192, 128256, 4,
      16384, 128},
     true},
    {"8B Q6_K, 2 rows",
     {WeightFormat::Q6_K, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 2,
      8192, 128},
     true,
     {"sm_80", "sm_90a"}},
    {"70B IQ4_NL",
     {WeightFormat::IQ4_NL, KvFormat::F16, 8192, 64, 8, 128, 28672, 128256, 1,
      8192, 128},
     true},
    {"8B IQ4_XS, 4 rows",
     {WeightFormat::IQ4_XS, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 4,
      8192, 128},
     true,
     {"sm_90a"}},
    {"8B MXFP4",
     {WeightFormat::MXFP4, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 1,
      8192, 128},
     true},
    {"8B FP8",
     {WeightFormat::FP8, KvFormat::F16, 4096, 32, 8, 128, 14336, 128256, 1,
      8192, 128},
     true},
};

/// Dynamic shared memory of the kernels that have some, by name.
std::map<std::string, int> dynamicBytes(const ModelCase &model) {
  const AttentionConfig attention = cases::attention(model);
  const long queryWidth = model.heads * model.headSize;
  auto gemm = [&](long outputs, long depth, int weights = 1) {
    return launchShape(cases::gemm(model, outputs, depth, weights)).sharedBytes;
  };
  auto stream = [&](long outputs, long depth, int weights = 1) {
    return launchShape(cases::stream(model, outputs, depth, weights))
        .sharedBytes;
  };
  auto wgmma = [&](long outputs, long depth, int weights = 1) {
    return launchShape(cases::wgmma(model, outputs, depth, weights))
        .sharedBytes;
  };
  return {{"gemm_qkv", launchShape(cases::qkvGemm(model)).sharedBytes},
          {"gemm_out", gemm(model.width, queryWidth)},
          {"gemm_up", gemm(model.hidden, model.width, 2)},
          {"gemm_down", gemm(model.width, model.hidden)},
          {"gemm_head", gemm(model.vocabulary, model.width)},
          {"stream_qkv", launchShape(cases::qkvStream(model)).sharedBytes},
          {"stream_out", stream(model.width, queryWidth)},
          {"stream_up", stream(model.hidden, model.width, 2)},
          {"stream_down", stream(model.width, model.hidden)},
          {"stream_head", stream(model.vocabulary, model.width)},
          {"stream_deep", stream(model.width, cases::deep)},
          {"wgmma_qkv", launchShape(cases::qkvWgmma(model)).sharedBytes},
          {"wgmma_out", wgmma(model.width, queryWidth)},
          {"wgmma_up", wgmma(model.hidden, model.width, 2)},
          {"wgmma_down", wgmma(model.width, model.hidden)},
          {"wgmma_deep", wgmma(model.width, cases::deep)},
          {"wgmma_head", wgmma(model.vocabulary, model.width)},
          {"attention_wgmma", wgmmaAttentionShape(attention, 1).sharedBytes},
          {"attention_whole", attentionShape(attention, 1).sharedBytes},
          {"attention_split", attentionSplitShape(attention, 1).sharedBytes}};
}

/// Threads of the streams, by name.
std::map<std::string, int> streamThreads(const ModelCase &model) {
  auto stream = [&](long outputs, long depth, int weights = 1) {
    return launchShape(cases::stream(model, outputs, depth, weights)).threads;
  };
  return {{"stream_qkv", launchShape(cases::qkvStream(model)).threads},
          {"stream_out", stream(model.width, model.heads * model.headSize)},
          {"stream_up", stream(model.hidden, model.width, 2)},
          {"stream_down", stream(model.width, model.hidden)},
          {"stream_head", stream(model.vocabulary, model.width)},
          {"stream_deep", stream(model.width, cases::deep)}};
}

CudaSource source() {
  CudaSource source{"Kernels.cu", readFile("Kernels.cu"), {}};
  source.headers = {
      {"Cases.h", readFile("Cases.h")},
#include "DeviceHeaders.inc"
  };
  return source;
}

/// The faults of a program on an architecture; empty when nothing is.
std::string problems(const CompileLogs &logs, const Program &program,
                     const GpuSpec &gpu) {
  std::vector<std::string> options = {
      absl::StrCat("-DLLAMAC_MODEL=", modelLiteral(program.model))};
  if (program.productsOnly)
    options.emplace_back("-DLLAMAC_PRODUCTS_ONLY");
  const bool isSm90a = gpu.name == std::string("sm_90a");
  const bool runsStreams = gpu.tier == KernelTier::Sm90;
  const auto log = logs.compile(source(), gpu.name, options);
  if (!log.ok())
    return std::string(log.status().message());
  std::string found = complaintOf(*log);
  size_t kernels = program.productsOnly ? 11 : 21;
  if (gpu.capability.major >= 9)
    kernels += 6; // Streams.
  if (isSm90a)
    kernels += program.productsOnly ? 6 : 7; // Products, attention by wgmma.
  if (log->kernels.size() != kernels)
    absl::StrAppend(&found, "expected ", kernels, " kernels, got ",
                    log->kernels.size(), "\n");
  std::map<std::string, int> dynamic = dynamicBytes(program.model);
  const std::map<std::string, int> threads = streamThreads(program.model);
  for (const KernelResources &kernel : log->kernels) {
    // Later GPUs compile streams, and run none.
    if (threads.contains(kernel.name) && !runsStreams)
      continue;
    const int shared = kernel.sharedBytes + dynamic[kernel.name];
    if (shared > gpu.blockSharedBytes)
      absl::StrAppend(&found, kernel.name, " needs ", shared,
                      " bytes of shared memory, ", gpu.name, " has ",
                      gpu.blockSharedBytes, "\n");
    // Two of them share a multiprocessor, unless their input is deep.
    if (const auto stream = threads.find(kernel.name);
        stream != threads.end() &&
        dynamic[kernel.name] <= streamRingBytes + 48 * 1024 &&
        (2 * (shared + 1024) > gpu.smSharedBytes ||
         roundUp(kernel.registers, 8) * stream->second > gpu.smRegisters / 2))
      absl::StrAppend(&found, kernel.name, " is more than half of ", gpu.name,
                      ": ", shared, " bytes of shared memory, ",
                      kernel.registers, " registers a thread\n");
  }
  return found;
}

using Gate = std::tuple<GpuSpec, Program>;

class CompileGateTest : public testing::TestWithParam<Gate> {};

TEST_P(CompileGateTest, KernelsOfRealModelsFit) {
  const auto logs = CompileLogs::open();
  if (!logs.ok())
    LLAMAC_SKIP(logs.status().message());
  const auto &[gpu, program] = GetParam();
  EXPECT_EQ(problems(*logs, program, gpu), "");
}

std::vector<Gate> gates() {
  std::vector<Gate> all;
  for (const GpuSpec &gpu : gpuSpecs())
    for (const Program &program : programs)
      if (isExhaustive() ||
          absl::c_linear_search(program.byDefault, std::string(gpu.name)))
        all.emplace_back(gpu, program);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Architectures, CompileGateTest,
                         testing::ValuesIn(gates()));

} // namespace
} // namespace cuda
} // namespace llamac
