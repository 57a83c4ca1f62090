//===- EmittedGateTest.cpp - NVRTC takes what is emitted ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every kernel that a published shape's configuration gives compiles without a
// warning and without spilling, its shared memory is there, and its machine
// code keeps to SassRules. The default tier has, for the GPU with the most
// kernels and for the one with the fewest, plain weights and blocks, odd
// shapes, relatives of Llama, kernels with a norm of their own and launches
// that overlap, and one of the kernels that differ in depth alone; the
// exhaustive tier has all of them, and all shapes and formats for all GPUs.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/GpuSpec.h"
#include "runtime/plan/SourceBundle.h"
#include "tests/Tier.h"
#include "tests/codegen/CompileLogs.h"
#include "tests/codegen/cuda/EmittedModel.h"
#include "tests/codegen/cuda/SassRules.h"

#include "absl/strings/str_cat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string_view>
#include <tuple>

namespace llamac {
namespace {

struct GateCase {
  const char *shape;
  const char *weights;
  const char *architecture;
  WantsSass wantsSass = WantsSass::No;
  /// A pass that the kernels are made without.
  const char *withoutPass = nullptr;
  schema::Overlap overlap = schema::Overlap::FromStart;
  /// The format of the cache; of others than f16, kernels that know it alone.
  const char *cache = "f16";

  bool takes(const std::string &kernel) const {
    return std::string_view(cache) == "f16" ||
           kernel.starts_with("attention_") || kernel.starts_with("rope_");
  }
};

void PrintTo(const GateCase &gate, std::ostream *out) {
  *out << gate.shape << " " << gate.weights << " " << gate.architecture << " "
       << (gate.withoutPass ? gate.withoutPass : "") << " "
       << schema::EnumNameOverlap(gate.overlap) << " " << gate.cache;
}

class EmittedGateTest : public testing::TestWithParam<GateCase> {};

/// Says how much more shared memory a kernel takes than `gpu` has, for a block
/// or for as many as the registers are bounded for; empty when there is enough.
/// Dynamic memory, which is aligned to 1,024 bytes, lies behind what the kernel
/// declares.
static std::string missingShared(const KernelResources &kernel,
                                 const std::string &source,
                                 const GpuSpec &gpu) {
  const int dynamic = numberIn(source, R"((\d+) bytes of dynamic shared)");
  const int blocks =
      std::max(1, numberIn(source, R"(__launch_bounds__\(\s*\d+,\s*(\d+)\))"));
  const int bytes = (dynamic ? (kernel.sharedBytes + 1023) / 1024 * 1024
                             : kernel.sharedBytes) +
                    dynamic;
  if (bytes > gpu.blockSharedBytes)
    return absl::StrCat("a block takes ", bytes, " bytes, ", gpu.name, " has ",
                        gpu.blockSharedBytes);
  const int all = blocks * (bytes + GpuSpec::blockReservedBytes);
  if (all > gpu.smSharedBytes)
    return absl::StrCat(blocks, " blocks take ", all, " bytes, ", gpu.name,
                        " has ", gpu.smSharedBytes);
  return "";
}

/// The source of `kernel` without its name, its grid and its depth, which only
/// says how many turns a loop takes.
static std::string withoutDepth(const std::string &kernel,
                                const std::string &source) {
  std::string text = source.substr(source.find("#include"));
  for (size_t at; (at = text.find(kernel)) != std::string::npos;)
    text.erase(at, kernel.size());
  static const std::regex depth(R"(\.depth = \d+)"),
      grid(R"(A grid of \d+ x \d+ blocks)"), space(R"(\s+)");
  text = std::regex_replace(text, depth, "");
  text = std::regex_replace(text, grid, "");
  return std::regex_replace(text, space, "");
}

TEST_P(EmittedGateTest, EveryKernelCompilesWithoutSpilling) {
  const GateCase &gate = GetParam();
  const auto logs = CompileLogs::open();
  if (!logs.ok())
    LLAMAC_SKIP(logs.status().message());
  const EmittedModel model(gate.shape, gate.architecture, gate.weights,
                           gate.withoutPass, "off", gate.cache);
  const std::vector<std::string> kernels = model.kernels();
  ASSERT_GT(kernels.size(), 20u);
  std::set<std::string> seen;
  for (const std::string &kernel : kernels) {
    if (!gate.takes(kernel))
      continue;
    if (!isExhaustive() &&
        !seen.insert(withoutDepth(kernel, model.source(kernel))).second)
      continue;
    SCOPED_TRACE(kernel);
    const auto log = logs->compile(
        cudaSource(kernel, withOverlap(model.source(kernel), gate.overlap)),
        gate.architecture, {}, gate.wantsSass);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(log->kernels.size(), 1u);
    EXPECT_EQ(complaintOf(*log), "");
    EXPECT_EQ(missingShared(log->kernels.front(), model.source(kernel),
                            *findGpuSpec(gate.architecture)),
              "");
    if (gate.wantsSass == WantsSass::No)
      continue;
    const Sass sass = parseSass(log->sass);
    EXPECT_GT(sass.instructions.size(), 20u);
    EXPECT_EQ(brokenSassRules(kernel, model.source(kernel), sass), "");
  }
}

std::vector<GateCase> cases() {
  if (!isExhaustive())
    return {{"llama-3.2-1b", "keep", "sm_90a", WantsSass::Yes},
            {"llama-3.2-1b", "q4_0", "sm_90a", WantsSass::Yes, nullptr,
             schema::Overlap::AfterWait},
            {"gemma-3-1b", "keep", "sm_90a", WantsSass::Yes},
            {"qwen2.5-1.5b", "keep", "sm_80", WantsSass::Yes, "fuse-norm"},
            {"llama-3.2-1b", "keep", "sm_80", WantsSass::Yes, nullptr,
             schema::Overlap::FromStart, "q8_0"}};
  constexpr WantsSass sass = WantsSass::Yes;
  std::vector<GateCase> all;
  for (const GpuSpec &gpu : gpuSpecs()) {
    for (const char *shape :
         {"llama-3.2-1b", "llama-3.1-8b", "llama-3.1-70b", "llama-2-7b",
          "smollm2-135m", "gemma-3-1b", "qwen2.5-1.5b", "qwen3-0.6b"})
      all.push_back({shape, "keep", gpu.name, sass});
    for (const char *weights : {"q8_0", "q4_0", "mxfp8", "fp8"})
      all.push_back({"llama-3.2-1b", weights, gpu.name, sass});
    for (const char *cache : {"q8_0", "fp8"})
      for (const char *shape : {"llama-3.2-1b", "llama-3.1-8b", "qwen3-0.6b"})
        all.push_back({shape, "keep", gpu.name, sass, nullptr,
                       schema::Overlap::FromStart, cache});
    // The largest tiles of unpacked weights.
    if (gpu.tier == KernelTier::Sm90)
      all.push_back({"llama-3.1-8b", "q8_0", gpu.name, sass});
    // The most that is unpacked for one sum, by the kernels of each tier.
    if (gpu.tier == KernelTier::Sm90 || &gpu == &gpuSpecs().front())
      all.push_back({"llama-3.1-8b", "q4_0", gpu.name, sass});
    // Without fuse-qkv there is no plan: no family here rotates and keeps
    // queries and keys alone.
    all.push_back({"llama-3.2-1b", "keep", gpu.name, sass, "fuse-norm"});
    if (gpu.tier == KernelTier::Sm90)
      for (const schema::Overlap overlap :
           {schema::Overlap::AfterWait, schema::Overlap::AtEnd})
        all.push_back(
            {"llama-3.2-1b", "q4_0", gpu.name, sass, nullptr, overlap});
  }
  return all;
}

/// A shape of the tests' inputs, --weights and --kv-type.
using ResidentCase = std::tuple<const char *, const char *, const char *>;
class ResidentGateTest : public testing::TestWithParam<ResidentCase> {};

TEST_P(ResidentGateTest, AStepIsOneKernelWithoutSpilling) {
  const auto logs = CompileLogs::open();
  if (!logs.ok())
    LLAMAC_SKIP(logs.status().message());
  constexpr const char *gpu = "sm_90a", *kernel = "resident_step";
  const auto [shape, weights, cache] = GetParam();
  const EmittedModel model(shape, gpu, weights, nullptr, "on", cache);
  const std::string source = model.source(kernel);
  const auto log =
      logs->compile(cudaSource(kernel, source), gpu, {}, WantsSass::Yes);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_EQ(log->kernels.size(), 1u);
  EXPECT_EQ(complaintOf(*log), "");
  EXPECT_EQ(missingShared(log->kernels.front(), source, *findGpuSpec(gpu)), "");
  const Sass sass = parseSass(log->sass);
  EXPECT_EQ(brokenSassRules(kernel, source, sass), "");
  // The barrier of the steps is there.
  EXPECT_GT(sass.count("MEMBAR"), 0u);
}

std::vector<ResidentCase> residentCases() {
  std::vector<ResidentCase> cases{{"llama-3.1-8b", "q4_0", "f16"},
                                  {"qwen3-0.6b", "keep", "f16"}};
  if (isExhaustive()) {
    cases.emplace_back("llama-3.2-1b", "keep", "f16");
    cases.emplace_back("llama-3.1-8b", "keep", "f16");
    cases.emplace_back("llama-3.1-8b", "keep", "fp8");
    cases.emplace_back("llama-3.2-1b", "q4_0", "q8_0");
    for (const char *shape :
         {"llama-3.1-70b", "llama-2-7b", "smollm2-135m", "qwen2.5-1.5b"})
      for (const char *weights : {"keep", "q4_0"})
        cases.emplace_back(shape, weights, "f16");
    for (const char *weights : {"q8_0", "mxfp8"})
      cases.emplace_back("llama-3.1-8b", weights, "f16");
    cases.emplace_back("llama-3.2-1b", "q4_0", "f16");
    cases.emplace_back("qwen3-0.6b", "q8_0", "f16");
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, ResidentGateTest,
                         testing::ValuesIn(residentCases()));
INSTANTIATE_TEST_SUITE_P(Shapes, EmittedGateTest, testing::ValuesIn(cases()));

} // namespace
} // namespace llamac
