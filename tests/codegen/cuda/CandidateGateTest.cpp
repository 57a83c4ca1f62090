//===- CandidateGateTest.cpp - NVRTC takes the tiles to choose from -------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Variants compile without a warning and without spilling: the first of each
// family; in the exhaustive tier all of them.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/GpuSpec.h"
#include "runtime/plan/PlanReader.h"
#include "tests/Tier.h"
#include "tests/codegen/CompileLogs.h"
#include "tests/codegen/cuda/EmittedModel.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace llamac {
namespace {

class CandidateGateTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    const auto checkpoint =
        openConfig(LLAMAC_SHAPES "/llama-3.2-1b/params.json");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    CompileOptions options;
    options.target = "cuda";
    options.gpu = GetParam();
    options.hasWeights = false;
    const auto compilation = Compilation::create(*checkpoint, options);
    ASSERT_TRUE(compilation.ok()) << compilation.status();
    ASSERT_TRUE((*compilation)->runTo(Phase::Plan).ok());
    const std::string path = folder.file("candidates.plan");
    ASSERT_TRUE((*compilation)
                    ->writePlanFile(path, *checkpoint->fingerprint(), "", {})
                    .ok());
    reader = *PlanReader::open(path);
  }

  TemporaryFolder folder;
  std::shared_ptr<const PlanReader> reader;
};

TEST_P(CandidateGateTest, VariantsCompileWithoutSpilling) {
  const auto logs = CompileLogs::open();
  if (!logs.ok())
    LLAMAC_SKIP(logs.status().message());
  std::set<std::string> families;
  for (const auto &kernel : reader->plan().kernels)
    for (const auto &variant : kernel->variants) {
      if (!families.insert(kernel->family).second && !isExhaustive())
        continue;
      SCOPED_TRACE(variant->symbol + " " + variant->tiles);
      const auto log = logs->compile(
          cudaSource(variant->symbol, variant->source), GetParam());
      ASSERT_TRUE(log.ok()) << log.status();
      EXPECT_EQ(log->kernels.size(), 1U);
      EXPECT_EQ(complaintOf(*log), "");
    }
  EXPECT_GT(families.size(), 4U);
}

TEST_P(CandidateGateTest, SourceAndGeometryAreThoseOfTheTiles) {
  size_t count = 0;
  for (const auto &kernel : reader->plan().kernels)
    for (const auto &variant : kernel->variants) {
      SCOPED_TRACE(variant->symbol + " " + variant->tiles);
      ++count;
      const auto has = [&](const std::string &text) {
        return absl::StrContains(variant->source, text);
      };
      for (const auto &[name, size] :
           std::map<std::string, std::string>(absl::StrSplit(
               absl::StrReplaceAll(variant->tiles, {{"=", " "}}), ' ')))
        EXPECT_TRUE(name == "stream" ? has("WeightStream<") == (size == "1")
                                     : has("." + name + " = " + size));
      EXPECT_TRUE(has(
          absl::StrCat("__launch_bounds__(", variant->geometry->threads, ",")));
      EXPECT_LE(
          variant->geometry->scratchBytes,
          static_cast<uint64_t>(findGpuSpec(GetParam())->blockSharedBytes));
      EXPECT_GT(variant->predicted, 0);
    }
  EXPECT_GT(count, 100U);
}

std::vector<const char *> gpus() {
  if (!isExhaustive())
    return {"sm_80", "sm_90a"};
  return {"sm_80", "sm_89", "sm_90a", "sm_120a"};
}

INSTANTIATE_TEST_SUITE_P(Gpus, CandidateGateTest, testing::ValuesIn(gpus()),
                         [](const auto &info) { return info.param; });

} // namespace
} // namespace llamac
