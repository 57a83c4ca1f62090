//===- CandidateGateTest.cpp - NVRTC takes the tiles to choose from -------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every variant of a plan compiles without a warning and without spilling: by
// default some of each plan; all of them where LLAMAC_ALL_CANDIDATES is set.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaBackend.h"
#include "compiler/driver/Compiler.h"
#include "frontends/Checkpoint.h"
#include "runtime/base/Status.h"
#include "runtime/cuda/GpuSpec.h"
#include "runtime/cuda/Nvrtc.h"
#include "runtime/plan/PlanReader.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace llamac {
namespace {

struct GateCase {
  const char *shape; ///< A folder of LLAMAC_SHAPES.
  const char *weights;
  const char *architecture;
};

void PrintTo(const GateCase &gate, std::ostream *out) {
  *out << gate.shape << " " << gate.weights << " " << gate.architecture;
}

absl::StatusOr<std::shared_ptr<const PlanReader>> planOf(const GateCase &gate) {
  LLAMAC_ASSIGN_OR_RETURN(
      const Checkpoint checkpoint,
      openConfig(absl::StrCat(LLAMAC_SHAPES "/", gate.shape, "/params.json")));
  CompileOptions options;
  options.target = "cuda";
  options.gpu = gate.architecture;
  options.weightFormat = gate.weights;
  options.hasWeights = false;
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, options));
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Plan));
  const std::string path =
      absl::StrCat(testing::TempDir(), "/candidates-", gate.shape, gate.weights,
                   gate.architecture, ".plan");
  LLAMAC_RETURN_IF_ERROR(compilation->writePlanFile(
      path, *compilation->model().fingerprint(), "", {}));
  return PlanReader::open(path);
}

std::vector<SourceHeader> headers() {
  std::vector<SourceHeader> all;
  for (const KernelHeader &header : CudaBackend({}).headers())
    all.push_back({header.name.str(), header.text.str()});
  return all;
}

/// What is wrong with the machine code of `source`; empty when nothing is.
std::string complaintOf(const Nvrtc &nvrtc, const CudaSource &source,
                        const char *architecture) {
  const auto cubin = nvrtc.compile(source, architecture);
  if (!cubin.ok())
    return std::string(cubin.status().message());
  std::string complaint;
  for (const std::string &warning : cubin->log.warnings)
    absl::StrAppend(&complaint, warning, "\n");
  if (cubin->log.kernels.size() != 1)
    return absl::StrCat(complaint, "expected one kernel, got ",
                        cubin->log.kernels.size());
  const KernelResources &kernel = cubin->log.kernels.front();
  if (kernel.spillStoreBytes + kernel.spillLoadBytes + kernel.stackBytes != 0)
    absl::StrAppend(&complaint, "spills with ", kernel.registers, " registers");
  return complaint;
}

class CandidateGateTest : public testing::TestWithParam<GateCase> {};

TEST_P(CandidateGateTest, EveryVariantCompilesWithoutSpilling) {
  const GateCase &gate = GetParam();
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok())
    GTEST_SKIP() << nvrtc.status().message();
  const auto reader = planOf(gate);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const schema::PlanT &plan = (*reader)->plan();

  struct Job {
    const schema::KernelT *kernel;
    const schema::VariantT *variant;
    std::string complaint;
  };
  std::vector<Job> jobs;
  std::map<std::string, size_t> counts;
  for (const auto &kernel : plan.kernels) {
    std::set<std::string> tiles;
    for (const auto &variant : kernel->variants) {
      jobs.push_back({kernel.get(), variant.get(), ""});
      ++counts[kernel->family];
      EXPECT_TRUE(tiles.insert(variant->tiles).second)
          << kernel->symbol << " has " << variant->tiles << " twice";
    }
  }
  ASSERT_GT(jobs.size(), 100u);
  for (const auto &[family, count] : counts)
    RecordProperty(family, static_cast<int>(count));
  // Some of each family, as kernels and the model's order put them.
  constexpr size_t some = 14;
  const size_t step =
      std::getenv("LLAMAC_ALL_CANDIDATES") ? 1 : jobs.size() / some;

  const std::vector<SourceHeader> all = headers();
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency());
       ++i)
    threads.emplace_back([&] {
      for (size_t at; (at = step * next++) < jobs.size();)
        jobs[at].complaint = complaintOf(
            *nvrtc,
            {jobs[at].variant->symbol + ".cu", jobs[at].variant->source, all},
            gate.architecture);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Job &job : jobs)
    EXPECT_EQ(job.complaint, "")
        << job.kernel->symbol << " " << job.variant->tiles;
}

/// {"unroll", "2"} of "unroll=2 warps=8", and so on.
std::vector<std::pair<std::string, std::string>>
sizesOf(const std::string &tiles) {
  std::vector<std::pair<std::string, std::string>> sizes;
  for (absl::string_view size : absl::StrSplit(tiles, ' '))
    sizes.push_back(absl::StrSplit(size, '='));
  return sizes;
}

TEST_P(CandidateGateTest, SourceAndGeometryAreThoseOfTheTiles) {
  const auto reader = planOf(GetParam());
  ASSERT_TRUE(reader.ok()) << reader.status();
  const GpuSpec &gpu = *findGpuSpec(GetParam().architecture);
  for (const auto &kernel : (*reader)->plan().kernels)
    for (const auto &variant : kernel->variants) {
      SCOPED_TRACE(variant->symbol + " " + variant->tiles);
      for (const auto &[name, size] : sizesOf(variant->tiles)) {
        if (name == "stream") {
          EXPECT_FALSE(absl::StrContains(variant->source, "stream.cuh"));
          continue;
        }
        EXPECT_TRUE(absl::StrContains(variant->source,
                                      absl::StrCat(".", name, " = ", size)));
        if (name == "blockRows") {
          EXPECT_EQ(absl::StrCat(variant->rowBlock), size);
        }
      }
      EXPECT_LE(variant->scratchBytes,
                static_cast<uint64_t>(gpu.blockSharedBytes));
      EXPECT_TRUE(absl::StrContains(
          variant->source,
          absl::StrCat("__launch_bounds__(", variant->threads, ",")));
      ASSERT_TRUE(variant->model);
      EXPECT_GE(variant->model->resident(), 1u);
    }
}

INSTANTIATE_TEST_SUITE_P(Plans, CandidateGateTest, testing::ValuesIn([] {
                           std::vector<GateCase> all;
                           for (const char *gpu :
                                {"sm_90a", "sm_80", "sm_89", "sm_120a"}) {
                             all.push_back({"llama-3.2-1b", "keep", gpu});
                             all.push_back({"llama-3.2-1b", "q4_0", gpu});
                             all.push_back({"llama-3.1-8b", "keep", gpu});
                           }
                           return all;
                         }()),
                         [](const auto &info) {
                           std::string name = absl::StrCat(
                               info.param.shape, "_", info.param.weights, "_",
                               info.param.architecture);
                           for (char &c : name)
                             if (!isalnum(static_cast<unsigned char>(c)))
                               c = '_';
                           return name;
                         });

} // namespace
} // namespace llamac
