//===- TunerTest.cpp - What a plan holds for tuning -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compiler.h"
#include "compiler/driver/Devices.h"
#include "compiler/driver/PlanCache.h"
#include "compiler/trial/KernelVariants.h"
#include "engine/step/Engine.h"
#include "runtime/plan/SourceBundle.h"
#include "tests/engine/toy/ToyModel.h"
#include "tests/runtime/io/TestFiles.h"

namespace llamac {
namespace {

/// The logits of some tokens by a model of one layer, compiled and run on the
/// simulator, whose launches overlap as `overlap` says.
std::vector<float> logitsOf(schema::Overlap overlap) {
  const TestDirectory folder;
  auto opened = openConfig(folder.write("config.json", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "intermediate_size": 256, "vocab_size": 331,
      "max_position_embeddings": 1024, "rms_norm_eps": 1e-05,
      "hidden_act": "silu", "tie_word_embeddings": false,
      "torch_dtype": "bfloat16"})"));
  EXPECT_TRUE(opened.ok()) << opened.status();
  CompileOptions options;
  options.target = "sim";
  options.simCheck = true;
  options.context = 64;
  options.maxSequences = 1;
  options.hasWeights = false;
  auto compilation = Compilation::create(*opened, options);
  EXPECT_TRUE(compilation.ok()) << compilation.status();
  (*compilation)->editSource([&](llvm::StringRef, const std::string &text) {
    return withOverlap(text, overlap);
  });
  const std::string path = folder.path("model.plan");
  const auto times = compileToFile(**compilation, path, /*quiet=*/true);
  EXPECT_TRUE(times.ok()) << times.status();
  const auto model = Model::load(path, {.threads = 2,
                                        .devices = allDevices(),
                                        .simSchedule = "random:3",
                                        .randomWeights = 7,
                                        .quiet = true,
                                        .tuned = false});
  EXPECT_TRUE(model.ok()) << model.status();
  auto engine = *Engine::create(*model);
  Sequence sequence = *engine->newSequence();
  std::vector<float> all;
  for (const std::vector<int32_t> &tokens :
       {std::vector<int32_t>{5, 9, 2, 77, 30, 200, 8}, {3}})
    EXPECT_TRUE(engine
                    ->step({{&sequence, tokens, OutputRows::All}},
                           [&](const LogitsRow &row) {
                             all.insert(all.end(), row.values.begin(),
                                        row.values.end());
                             return absl::OkStatus();
                           })
                    .ok());
  return all;
}

TEST(OverlapsOnTheSimulatorTest, GiveTheSameLogitsInAnyOrder) {
  const std::vector<float> expected = logitsOf(schema::Overlap::FromStart);
  EXPECT_EQ(expected.size(), 8U * 331);
  EXPECT_EQ(logitsOf(schema::Overlap::AfterWait), expected);
  EXPECT_EQ(logitsOf(schema::Overlap::AtEnd), expected);
}

TEST(ClangVariantCompilerTest, APlanOfAnotherGeneratorIsABadPlan) {
  for (const std::string &generator : {generatorOf("cpu"), std::string()}) {
    const toy::ToyPlanFile file(
        [&](toy::ToyPlan &toy) { toy.plan.generator = generator; });
    const absl::Status status =
        ClangVariantCompiler().check(**PlanReader::open(file.path()));
    EXPECT_EQ(status.ok(), !generator.empty()) << status;
    if (generator.empty())
      EXPECT_EQ(exitCode(status), ExitCode::BadPlan);
  }
  EXPECT_NE(generatorOf("cpu"), generatorOf("sim"));
}

} // namespace
} // namespace llamac
