//===- CompileGateTest.cpp - Kernels of real models compile ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every family in every format of weights and cache, for the shapes of models
// that people run, by NVRTC for every GPU that is named: no warning, no spilled
// register, and no more shared memory than the GPU has. Two GPUs that are much
// like others have two of the shapes, or all with LLAMAC_ALL_CANDIDATES in the
// environment. What is emitted for these models is held to the same in
// tests/codegen/cuda.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "Source.h"

#include "runtime/cuda/GpuSpec.h"
#include "runtime/cuda/Nvrtc.h"

#include "absl/strings/str_cat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

namespace llamac {

static void PrintTo(const GpuSpec &gpu, std::ostream *out) { *out << gpu.name; }

namespace cuda {
namespace {

/// A program: a model in one format.
struct Program {
  const char *name;
  ModelCase model;
  bool productsOnly = false; ///< The other kernels are those of another.
  /// Whether it is compiled for a GPU that is much like another, too.
  bool everywhere = false;
};

constexpr Program programs[] = {
    {"1B bf16, 8 rows, large tiles",
     {WeightFormat::BF16, KvFormat::F16, 2048, 32, 8, 64, 8192, 128256, 8,
      16384, 128},
     true},
    {"70B Q8_0",
     {WeightFormat::Q8_0, KvFormat::F16, 8192, 64, 8, 128, 28672, 128256, 1,
      8192, 64},
     false,
     true},
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
     true},
    {"a vocabulary of an odd size and a head size of 40, 8 rows",
     {WeightFormat::BF16, KvFormat::F16, 1280, 32, 8, 40, 3456, 32001, 8, 2048,
      64}},
};

/// Dynamic shared memory of the kernels that have some, by name.
std::map<std::string, int> dynamicBytes(const ModelCase &model) {
  const AttentionConfig attention = cases::attention(model);
  const long queryWidth = model.heads * model.headSize;
  auto gemm = [&](long outputs, long depth, int weights = 1) {
    return gemmShape(cases::gemm(model, outputs, depth, weights)).sharedBytes;
  };
  auto stream = [&](long outputs, long depth, int weights = 1) {
    return streamShape(cases::stream(model, outputs, depth, weights))
        .sharedBytes;
  };
  auto wgmma = [&](long outputs, long depth, int weights = 1) {
    return wgmmaShape(cases::wgmma(model, outputs, depth, weights)).sharedBytes;
  };
  return {{"gemm_qkv", gemmShape(cases::qkvGemm(model)).sharedBytes},
          {"gemm_out", gemm(model.width, queryWidth)},
          {"gemm_up", gemm(model.hidden, model.width, 2)},
          {"gemm_down", gemm(model.width, model.hidden)},
          {"gemm_head", gemm(model.vocabulary, model.width)},
          {"gemm_deep", gemm(model.width, cases::deep)},
          {"stream_qkv", streamShape(cases::qkvStream(model)).sharedBytes},
          {"stream_out", stream(model.width, queryWidth)},
          {"stream_up", stream(model.hidden, model.width, 2)},
          {"stream_down", stream(model.width, model.hidden)},
          {"stream_head", stream(model.vocabulary, model.width)},
          {"stream_deep", stream(model.width, cases::deep)},
          {"wgmma_qkv", wgmmaShape(cases::qkvWgmma(model)).sharedBytes},
          {"wgmma_out", wgmma(model.width, queryWidth)},
          {"wgmma_up", wgmma(model.hidden, model.width, 2)},
          {"wgmma_down", wgmma(model.width, model.hidden)},
          {"wgmma_deep", wgmma(model.width, cases::deep)},
          {"wgmma_head", wgmma(model.vocabulary, model.width)},
          {"attention_wgmma", wgmmaAttentionShape(attention).sharedBytes},
          {"attention_whole", attentionShape(attention).sharedBytes},
          {"attention_split", attentionSplitShape(attention).sharedBytes}};
}

/// Threads of the streams, by name.
std::map<std::string, int> streamThreads(const ModelCase &model) {
  auto stream = [&](long outputs, long depth, int weights = 1) {
    return streamShape(cases::stream(model, outputs, depth, weights)).threads;
  };
  return {{"stream_qkv", streamShape(cases::qkvStream(model)).threads},
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

/// What is wrong with a program on an architecture; empty when nothing is.
std::string problems(const Nvrtc &nvrtc, const Program &program,
                     const GpuSpec &gpu) {
  std::vector<std::string> options = {
      absl::StrCat("-DLLAMAC_MODEL=", modelLiteral(program.model))};
  if (program.productsOnly)
    options.emplace_back("-DLLAMAC_PRODUCTS_ONLY");
  const bool isSm90a = gpu.name == std::string("sm_90a");
  const auto cubin = nvrtc.compile(source(), gpu.name, options);
  if (!cubin.ok())
    return std::string(cubin.status().message());
  std::string found;
  for (const std::string &warning : cubin->log.warnings)
    absl::StrAppend(&found, warning, "\n");
  size_t kernels = program.productsOnly ? 18 : 28;
  if (gpu.capability.major >= 9)
    kernels += 6; // Streams.
  if (isSm90a)
    kernels += program.productsOnly ? 6 : 7; // Products, attention by wgmma.
  if (cubin->log.kernels.size() != kernels)
    absl::StrAppend(&found, "expected ", kernels, " kernels, got ",
                    cubin->log.kernels.size(), "\n");
  std::map<std::string, int> dynamic = dynamicBytes(program.model);
  const std::map<std::string, int> threads = streamThreads(program.model);
  for (const KernelResources &kernel : cubin->log.kernels) {
    const int shared = kernel.sharedBytes + dynamic[kernel.name];
    if (kernel.spillStoreBytes + kernel.spillLoadBytes + kernel.stackBytes != 0)
      absl::StrAppend(&found, kernel.name, " spills ", kernel.spillStoreBytes,
                      " bytes and keeps ", kernel.stackBytes,
                      " on the stack\n");
    if (shared > gpu.blockSharedBytes)
      absl::StrAppend(&found, kernel.name, " needs ", shared,
                      " bytes of shared memory, ", gpu.name, " has ",
                      gpu.blockSharedBytes, "\n");
    // Two of them share a multiprocessor.
    if (const auto stream = threads.find(kernel.name);
        stream != threads.end() &&
        (shared > streamSharedBytes ||
         roundUp(kernel.registers, 8) * stream->second > gpu.smRegisters / 2))
      absl::StrAppend(&found, kernel.name, " is more than half of ", gpu.name,
                      ": ", shared, " bytes of shared memory, ",
                      kernel.registers, " registers a thread\n");
  }
  return found;
}

class CompileGateTest : public testing::TestWithParam<GpuSpec> {};

TEST_P(CompileGateTest, KernelsOfRealModelsFit) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok())
    GTEST_SKIP() << nvrtc.status().message();
  const std::string name = GetParam().name;
  const bool some = (name == "sm_86" || name == "sm_100a") &&
                    !std::getenv("LLAMAC_ALL_CANDIDATES");
  std::string found[std::size(programs)];
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  const unsigned count = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < count; ++i)
    threads.emplace_back([&] {
      for (size_t at; (at = next++) < std::size(programs);)
        if (!some || programs[at].everywhere)
          found[at] = problems(*nvrtc, programs[at], GetParam());
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t at = 0; at < std::size(programs); ++at)
    EXPECT_EQ(found[at], "") << programs[at].name << " for " << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(Architectures, CompileGateTest,
                         testing::ValuesIn(gpuSpecs()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace cuda
} // namespace llamac
