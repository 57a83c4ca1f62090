//===- OverlapTest.cpp - Launches that overlap, as they are emitted -------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of what codegen/cuda/kernels/chain.cuh asks of every kernel, read off
// the source that is emitted for published shapes and the launches of their
// plans; and whether the kernels of a step of decode leave space for the next
// one.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaBackend.h"
#include "codegen/cuda/Occupancy.h"
#include "ir/plan/Plan.h"
#include "tests/Tier.h"
#include "tests/codegen/CompileLogs.h"
#include "tests/codegen/cuda/EmittedModel.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace llamac {
namespace {

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

/// A plan's record of a kernel.
struct KernelUse {
  std::set<size_t> weights; ///< Parameters that are one in every launch.
  std::set<bool> dependent; ///< Whether its launches are dependent.
  size_t operands = 0;      ///< Parameters before the maps.
  std::vector<size_t> maps; ///< The operands that have one, map by map.
};

std::map<std::string, KernelUse> usesOf(mlir::ModuleOp module) {
  std::map<std::string, KernelUse> uses;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto launch : program.getOps<plan::LaunchOp>()) {
      std::set<size_t> weights;
      for (auto [i, arg] : llvm::enumerate(launch.getArgs()))
        if (arg.getDefiningOp<plan::WeightOp>())
          weights.insert(i);
      auto [use, isNew] = uses.try_emplace(launch.getKernel().str(),
                                           KernelUse{weights, {}, 0, {}});
      use->second.operands = launch.getArgs().size();
      use->second.maps.clear();
      plan::KernelOp kernel = launch.getKernelOp();
      for (plan::TensorMapAttr map : kernel.getTensorMaps())
        use->second.maps.push_back(static_cast<size_t>(map.getOperand()));
      EXPECT_EQ(use->second.weights, weights);
      use->second.dependent.insert(kernel.getGeometry().getDependent());
    }
  return uses;
}

/// The rule that the source of `kernel` breaks; empty when none.
std::string brokenRule(const std::string &source, const std::string &kernel,
                       const KernelUse &use) {
  // The file's last function is the kernel. Tensor maps among its parameters
  // are in parentheses.
  static const std::regex form(
      R"((\w+)\(((?:[^()]|\([^()]*\))*)\)\s*\{\s*((?:.|\n)*)\}\s*$)");
  const size_t start = source.rfind("extern \"C\" __global__");
  if (start == std::string::npos)
    return "no kernel";
  std::string text = source.substr(start);
  text = text.substr(text.find(kernel + "("));
  std::smatch parts;
  if (!std::regex_match(text, parts, form))
    return "no function";
  const std::string body = parts[3];

  const std::string wait = "waitForLaunches();";
  const size_t at = body.find(wait);
  const bool waits = at != std::string::npos;
  if (use.dependent != std::set<bool>{waits})
    return waits ? "it waits, and a launch is not dependent"
                 : "a launch is dependent, and it does not wait";
  if (!waits)
    return "";
  if (body.find(wait, at + 1) != std::string::npos)
    return "it waits twice";
  static const std::regex ahead(
      R"(letNextLaunchBegin\(\);\s*((WeightStream<config> stream\(\{[\w\s,]*\}\)|)"
      R"(WgmmaProduct<config> product\(\s*rows,\s*\{[\w\s,{}&]*\}\));\s*)?)");
  const std::string before = body.substr(0, at);
  const std::string begin = "letNextLaunchBegin();";
  const bool isLate = body.find(begin, at) != std::string::npos;
  if (isLate ? !before.empty() : !std::regex_match(before, ahead))
    return "what stands before the wait is more than a stream of weights";
  std::istringstream names(parts[2]);
  std::string parameter;
  for (size_t i = 0; std::getline(names, parameter, ','); ++i) {
    std::string name = parameter.substr(parameter.find_last_of(" *(") + 1);
    if (name.back() == ')')
      name.pop_back();
    // Maps follow the operands, and then the rows, which are a number.
    if (i == use.operands + use.maps.size())
      break;
    const size_t operand = i < use.operands ? i : use.maps[i - use.operands];
    if (!use.weights.count(operand) &&
        std::regex_search(before, std::regex("\\b" + name + "\\b")))
      return "before the wait it names " + name + ", which is no weight";
  }
  return "";
}

using Shape = std::tuple<const char *, const char *>;

class OverlapTest : public testing::TestWithParam<Shape> {};

TEST_P(OverlapTest, EveryKernelWaitsBeforeItTouchesMoreThanWeights) {
  const auto [shape, weights] = GetParam();
  for (const char *gpu : {"sm_89", "sm_90a"}) {
    const EmittedModel model(shape, gpu, weights);
    size_t waiting = 0, ahead = 0, products = 0;
    for (const auto &[kernel, use] : usesOf(model.module())) {
      const std::string source = model.source(kernel);
      EXPECT_EQ(brokenRule(source, kernel, use), "") << kernel << ", " << gpu;
      waiting += source.find("waitForLaunches();") != std::string::npos;
      ahead += source.find("WeightStream<config> stream(") != std::string::npos;
      products +=
          source.find("WgmmaProduct<config> product(") != std::string::npos;
    }
    const bool overlaps = std::string(gpu) == "sm_90a";
    EXPECT_EQ(waiting != 0, overlaps);
    EXPECT_EQ(ahead != 0, overlaps);
    EXPECT_EQ(products != 0, overlaps);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, OverlapTest,
                         testing::Values(Shape{"llama-3.2-1b", "keep"},
                                         Shape{"llama-3.2-1b", "q4_0"},
                                         Shape{"llama-3.1-8b", "q8_0"},
                                         Shape{"smollm2-135m", "keep"}),
                         [](const auto &info) {
                           return absl::StrReplaceAll(
                               absl::StrCat(std::get<0>(info.param), "_",
                                            std::get<1>(info.param)),
                               {{"-", "_"}, {".", "_"}});
                         });

TEST(OverlapRules, FindWhatBreaksThem) {
  const EmittedModel model("smollm2-135m", "sm_90a");
  const std::string kernel = "gemv_attention_wo_n576_k576_bf16";
  const KernelUse use = usesOf(model.module()).at(kernel);
  const std::string right = model.source(kernel);
  ASSERT_EQ(brokenRule(right, kernel, use), "");
  auto edited = [&](const std::string &from, const std::string &to) {
    EXPECT_NE(right.find(from), std::string::npos) << from;
    return brokenRule(absl::StrReplaceAll(right, {{from, to}}), kernel, use);
  };
  EXPECT_EQ(edited("waitForLaunches();", ""),
            "a launch is dependent, and it does not wait");
  EXPECT_EQ(edited("stream({weight})", "stream({input})"),
            "before the wait it names input, which is no weight");
  EXPECT_EQ(edited("letNextLaunchBegin();", "letNextLaunchBegin(); *out = 0;"),
            "what stands before the wait is more than a stream of weights");
  EXPECT_EQ(edited("stream.run(", "waitForLaunches(); stream.run("),
            "it waits twice");
  const std::string product = "gemm_wgmma_attention_wo_n576_k576_bf16_m512";
  const KernelUse mapped = usesOf(model.module()).at(product);
  const std::string source = model.source(product);
  EXPECT_EQ(brokenRule(source, product, mapped), "");
  EXPECT_EQ(
      brokenRule(absl::StrReplaceAll(source, {{"&weightMap", "&inputMap"}}),
                 product, mapped),
      "before the wait it names inputMap, which is no weight");
  KernelUse apart = use;
  apart.dependent = {false};
  EXPECT_EQ(brokenRule(right, kernel, apart),
            "it waits, and a launch is not dependent");
}

//===----------------------------------------------------------------------===//
// Space
//===----------------------------------------------------------------------===//

class OverlapRoomTest : public testing::TestWithParam<const char *> {};

TEST_P(OverlapRoomTest, TwoConsecutiveKernelsOfDecodeShareAMultiprocessor) {
  const auto logs = CompileLogs::open();
  if (!logs.ok())
    LLAMAC_SKIP(logs.status().message());
  const EmittedModel model("llama-3.2-1b", "sm_90a", GetParam());
  const GpuSpec &gpu = *findGpuSpec("sm_90a");
  std::map<std::string, BlockResources> known;
  auto resources = [&](plan::LaunchOp launch) {
    const std::string kernel = launch.getKernel().str();
    const auto [place, isNew] = known.try_emplace(kernel);
    if (!isNew)
      return place->second;
    const auto log =
        logs->compile(cudaSource(kernel, model.source(kernel)), "sm_90a");
    EXPECT_TRUE(log.ok()) << log.status();
    if (log.ok() && log->kernels.size() == 1) {
      const KernelResources &found = log->kernels.front();
      const plan::GeometryAttr geometry = launch.getKernelOp().getGeometry();
      place->second = {found.registers, static_cast<int>(geometry.getThreads()),
                       found.sharedBytes +
                           static_cast<int>(geometry.getScratch())};
    }
    EXPECT_GT(place->second.registers, 0) << kernel;
    return place->second;
  };
  auto decode = model.module().lookupSymbol<plan::ProgramOp>("decode");
  std::vector<plan::LaunchOp> launches;
  for (auto launch : decode.getOps<plan::LaunchOp>())
    launches.push_back(launch);
  ASSERT_EQ(launches.size(), 5 * 16 + 3);
  auto expectTogether = [&](size_t first, size_t count) {
    std::vector<BlockResources> blocks;
    std::string names;
    for (size_t i = first; i < first + count; ++i) {
      blocks.push_back(resources(launches[i]));
      absl::StrAppend(&names, launches[i].getKernel().str(), " (",
                      blocks.back().registers, " registers, ",
                      blocks.back().sharedBytes, " bytes) ");
    }
    EXPECT_TRUE(fitTogether(gpu, blocks)) << names;
  };
  // The last one, which samples, has nothing to do before its wait: beside a
  // head of 288 threads its 1,024 find no space.
  const bool isNarrow = std::string(GetParam()) != "keep";
  for (size_t i = 0; i + 1 < launches.size() - isNarrow; ++i)
    expectTogether(i, 2);
  // The short ones of a layer, behind the embedding: query, key and value,
  // attention, its output; and with these gate and up. The ninth warps of
  // narrow streams may all fall into one part of a multiprocessor.
  if (!isNarrow)
    for (size_t layer = 0; layer < 16; ++layer)
      for (size_t first : {1, 2})
        expectTogether(5 * layer + first, 3);
}

INSTANTIATE_TEST_SUITE_P(Weights, OverlapRoomTest,
                         testing::Values("keep", "q4_0", "q8_0"),
                         [](const auto &info) { return info.param; });

/// A family that disagrees with lower-to-plan on a kernel's parameters.
TEST(KernelParameters, AreThoseThatThePlanDeclares) {
  const EmittedModel model("llama-3.2-1b", "sm_90a");
  auto kernel = *model.module().getOps<plan::KernelOp>().begin();
  kernel.setParams(kernel.getParams().drop_back());
  std::string message;
  mlir::ScopedDiagnosticHandler handler(kernel.getContext(),
                                        [&](mlir::Diagnostic &diagnostic) {
                                          message = diagnostic.str();
                                          return mlir::success();
                                        });
  EXPECT_TRUE(mlir::failed(
      CudaBackend({}).emit({kernel}, {}, SourceLayout::AsWritten)));
  EXPECT_THAT(message, testing::HasSubstr("parameters of kernel"));
}

TEST(StreamedKernels, SayWhatToDoOnAnOlderGpu) {
  const auto logs = CompileLogs::open();
  if (!logs.ok())
    LLAMAC_SKIP(logs.status().message());
  const EmittedModel model("smollm2-135m", "sm_90a");
  const std::string kernel = "gemv_attention_wo_n576_k576_bf16";
  const auto log =
      logs->compile(cudaSource(kernel, model.source(kernel)), "sm_89");
  ASSERT_FALSE(log.ok());
  EXPECT_NE(std::string(log.status().message())
                .find("compile it with --gpu for the GPU at hand"),
            std::string::npos)
      << log.status();
}

} // namespace
} // namespace llamac
