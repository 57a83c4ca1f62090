//===- PlanBytesTest.cpp - What a step of decode reads --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan says of each launch how many bytes it moves. A step of decode has to
// read every weight and the keys and values so far, and should hardly read
// more.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compiler.h"
#include "frontends/Checkpoint.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/PlanReader.h"
#include "tests/TemporaryFolder.h"

#include "absl/strings/str_cat.h"

#include <gtest/gtest.h>
#include <set>

namespace llamac {
namespace {

struct Shape {
  const char *name;
  const char *weights;
};

void PrintTo(const Shape &shape, std::ostream *out) {
  *out << shape.name << " " << shape.weights;
}

class PlanBytesTest : public testing::TestWithParam<Shape> {};

/// The plan of a published shape, without weights.
absl::StatusOr<std::shared_ptr<const PlanReader>> planOf(const Shape &shape) {
  LLAMAC_ASSIGN_OR_RETURN(
      const Checkpoint checkpoint,
      openConfig(absl::StrCat(LLAMAC_SHAPES "/", shape.name, "/params.json")));
  CompileOptions options;
  options.target = "cuda";
  options.gpu = "sm_90a";
  options.weightFormat = shape.weights;
  options.hasWeights = false;
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, options));
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Plan));
  // The reader keeps the file mapped.
  const TemporaryFolder folder;
  const std::string path = folder.file("bytes.plan");
  LLAMAC_RETURN_IF_ERROR(compilation->writePlanFile(
      path, *compilation->model().fingerprint(), "", {}));
  return PlanReader::open(path);
}

/// Bytes that the weights which `program` names take on the GPU, each once: all
/// of a matrix but for an embedding alone, which gives one row.
uint64_t weightBytes(const schema::PlanT &plan,
                     const schema::ProgramT &program) {
  std::set<uint32_t> read;
  for (const auto &launch : program.launches)
    for (const schema::Operand &operand : launch->operands)
      if (operand.kind() == schema::OperandKind::Weight &&
          plan.kernels[launch->kernel]->family != "embed")
        read.insert(operand.index());
  uint64_t bytes = 0;
  for (const uint32_t number : read) {
    const schema::WeightT &weight = *plan.weights[number];
    bytes += packedBytes(weight);
  }
  return bytes;
}

TEST_P(PlanBytesTest, AStepReadsWeightsAndKeysAndLittleElse) {
  const auto reader = planOf(GetParam());
  ASSERT_TRUE(reader.ok()) << reader.status();
  const schema::PlanT &plan = (*reader)->plan();
  const schema::ProgramT &decode = *plan.programs.front();
  ASSERT_EQ(decode.maxRows, 1);
  for (const uint64_t context : {1, 128, 8192}) {
    uint64_t moved = 0;
    for (const auto &launch : decode.launches) {
      const schema::LaunchCost *cost = plan.kernels[launch->kernel]->cost.get();
      ASSERT_TRUE(cost);
      moved +=
          cost->weightBytes() + cost->rowBytes() + cost->keyBytes() * context;
    }
    const uint64_t keys =
        plan.kv->pageBytes / static_cast<uint64_t>(plan.kv->pageTokens) *
        static_cast<uint64_t>(plan.config->numLayers) * context;
    const uint64_t least = weightBytes(plan, decode) + keys;
    EXPECT_GE(moved, least);
    EXPECT_LE(static_cast<double>(moved), 1.02 * static_cast<double>(least))
        << "after " << context << " tokens";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PlanBytesTest,
                         testing::Values(Shape{"llama-3.2-1b", "keep"},
                                         Shape{"llama-3.2-1b", "q4_0"},
                                         Shape{"llama-3.1-8b", "q8_0"}));

} // namespace
} // namespace llamac
