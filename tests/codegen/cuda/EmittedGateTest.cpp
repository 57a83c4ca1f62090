//===- EmittedGateTest.cpp - NVRTC takes what is emitted ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every kernel that a published shape's configuration gives compiles without a
// warning and without spilling, for every GPU that is named. With
// LLAMAC_ALL_CANDIDATES in its environment the program itself (ctest knows
// some) takes all shapes for all of them.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compiler.h"
#include "frontends/Checkpoint.h"
#include "runtime/cuda/GpuSpec.h"
#include "runtime/cuda/Nvrtc.h"
#include "runtime/plan/SourceBundle.h"

#include "absl/strings/str_cat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace llamac {
namespace {

struct GateCase {
  const char *shape; ///< A folder of LLAMAC_SHAPES.
  const char *file;
  const char *weights;
  const char *architecture;
  /// A pass that the kernels are made without, as those of other schedules.
  const char *withoutPass = nullptr;
  schema::Overlap overlap = schema::Overlap::FromStart;
};

std::string read(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void PrintTo(const GateCase &gate, std::ostream *out) {
  *out << gate.shape << " " << gate.weights << " " << gate.architecture << " "
       << (gate.withoutPass ? gate.withoutPass : "") << " "
       << schema::EnumNameOverlap(gate.overlap);
}

class EmittedGateTest : public testing::TestWithParam<GateCase> {};

TEST_P(EmittedGateTest, EveryKernelCompilesWithoutSpilling) {
  const GateCase &gate = GetParam();
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok())
    GTEST_SKIP() << nvrtc.status().message();
  const auto checkpoint =
      openConfig(absl::StrCat(LLAMAC_SHAPES "/", gate.shape, "/", gate.file));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
  CompileOptions options;
  options.target = "cuda";
  options.gpu = gate.architecture;
  options.weightFormat = gate.weights;
  if (gate.withoutPass)
    options.skipPasses = {gate.withoutPass};
  auto compilation = Compilation::create(*checkpoint, options);
  ASSERT_TRUE(compilation.ok()) << compilation.status().ToString();
  ASSERT_TRUE((*compilation)->runTo(Phase::Emit).ok());
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      absl::StrCat("emitted-", gate.shape, "-", gate.weights, "-",
                   gate.architecture, "-",
                   gate.withoutPass ? gate.withoutPass : "", "-",
                   schema::EnumNameOverlap(gate.overlap));
  std::filesystem::remove_all(folder);
  ASSERT_TRUE((*compilation)->writeSourceFiles(folder.string()).ok());

  std::vector<SourceHeader> headers;
  for (const auto &entry :
       std::filesystem::directory_iterator(folder / "llamac"))
    headers.push_back(
        {absl::StrCat("llamac/", entry.path().filename().string()),
         read(entry.path())});
  std::vector<CudaSource> sources;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".cu")
      sources.push_back({entry.path().filename().string(),
                         withOverlap(read(entry.path()), gate.overlap),
                         headers});
  ASSERT_GT(sources.size(), 20u);

  std::vector<std::string> found(sources.size());
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency());
       ++i)
    threads.emplace_back([&] {
      for (size_t at; (at = next++) < sources.size();) {
        const auto cubin = nvrtc->compile(sources[at], gate.architecture);
        if (!cubin.ok()) {
          found[at] = std::string(cubin.status().message());
          continue;
        }
        for (const std::string &warning : cubin->log.warnings)
          absl::StrAppend(&found[at], warning, "\n");
        if (cubin->log.kernels.size() != 1)
          absl::StrAppend(&found[at], "expected one kernel, got ",
                          cubin->log.kernels.size(), "\n");
        for (const KernelResources &kernel : cubin->log.kernels)
          if (kernel.spillStoreBytes + kernel.spillLoadBytes +
                  kernel.stackBytes !=
              0)
            absl::StrAppend(&found[at], kernel.name, " spills\n");
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t at = 0; at < sources.size(); ++at)
    EXPECT_EQ(found[at], "") << sources[at].name;
}

/// Every shape as it is published, and one in the block formats, for every GPU;
/// of those that are much like another, fewer unless LLAMAC_ALL_CANDIDATES is
/// set.
std::vector<GateCase> cases() {
  std::vector<GateCase> all;
  for (const GpuSpec &gpu : gpuSpecs()) {
    const std::string name = gpu.name;
    if ((name == "sm_86" || name == "sm_100a") &&
        !std::getenv("LLAMAC_ALL_CANDIDATES")) {
      all.push_back({"llama-3.1-8b", "params.json", "keep", gpu.name});
      all.push_back({"llama-3.2-1b", "params.json", "q4_0", gpu.name});
      continue;
    }
    for (const char *shape :
         {"llama-3.2-1b", "llama-3.1-8b", "llama-3.1-70b", "llama-2-7b"})
      all.push_back({shape, "params.json", "keep", gpu.name});
    all.push_back({"smollm2-135m", "config.json", "keep", gpu.name});
    for (const char *weights : {"q8_0", "q4_0", "mxfp8"})
      all.push_back({"llama-3.2-1b", "params.json", weights, gpu.name});
    // The largest tiles of unpacked weights.
    if (gpu.tier == KernelTier::Sm90)
      all.push_back({"llama-3.1-8b", "params.json", "q8_0", gpu.name});
    // The most that is unpacked for one sum, by the kernels of each tier.
    if (gpu.tier == KernelTier::Sm90 || &gpu == &gpuSpecs().front())
      all.push_back({"llama-3.1-8b", "params.json", "q4_0", gpu.name});
    // What the tuner may choose for whole steps. Without fuse-qkv there is no
    // plan: no family here turns and keeps queries and keys alone.
    all.push_back(
        {"llama-3.2-1b", "params.json", "keep", gpu.name, "fuse-norm"});
    if (gpu.tier == KernelTier::Sm90)
      for (const schema::Overlap overlap :
           {schema::Overlap::AfterWait, schema::Overlap::AtEnd})
        all.push_back({"llama-3.2-1b", "params.json", "q4_0", gpu.name, nullptr,
                       overlap});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, EmittedGateTest, testing::ValuesIn(cases()), [](const auto &info) {
      std::string name = absl::StrCat(info.param.shape, "_", info.param.weights,
                                      "_", info.param.architecture);
      if (info.param.withoutPass)
        absl::StrAppend(&name, "_without_", info.param.withoutPass);
      if (info.param.overlap != schema::Overlap::FromStart)
        absl::StrAppend(&name, "_",
                        schema::EnumNameOverlap(info.param.overlap));
      for (char &c : name)
        if (!isalnum(static_cast<unsigned char>(c)))
          c = '_';
      return name;
    });

} // namespace
} // namespace llamac
