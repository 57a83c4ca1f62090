//===- TunerTest.cpp - Plans of small models, tuned -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Tuner.h"

#include "compiler/driver/Compiler.h"
#include "compiler/driver/Devices.h"
#include "compiler/driver/KernelVariants.h"
#include "compiler/driver/PlanCache.h"
#include "runtime/engine/Engine.h"
#include "runtime/plan/SourceBundle.h"
#include "tests/runtime/engine/ToyModel.h"
#include "tests/runtime/io/TestFiles.h"

#include "absl/strings/match.h"

#include <cstdlib>

namespace llamac {
namespace {

using testing::HasSubstr;

class CompiledTunerTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("XDG_CACHE_HOME", folder.path("cache").c_str(), /*overwrite=*/1);
  }

  /// Compiles a model of one layer.
  void compile(const std::string &target, int64_t context,
               SourceEdit edit = {}) {
    auto opened = openConfig(folder.write("config.json", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "intermediate_size": 256, "vocab_size": 331,
      "max_position_embeddings": 1024, "rms_norm_eps": 1e-05,
      "hidden_act": "silu", "tie_word_embeddings": false,
      "torch_dtype": "bfloat16"})"));
    ASSERT_TRUE(opened.ok()) << opened.status();
    CompileOptions options;
    options.target = target;
    options.simCheck = target == "sim";
    options.context = context;
    options.maxSequences = 1;
    options.hasWeights = false;
    options.weightFormat = "q4_0";
    auto compilation = Compilation::create(*opened, options);
    ASSERT_TRUE(compilation.ok()) << compilation.status();
    if (edit)
      (*compilation)->editSource(std::move(edit));
    const auto times = compileToFile(**compilation, path, /*quiet=*/true);
    ASSERT_TRUE(times.ok()) << times.status();
  }

  std::shared_ptr<const Model> load(bool tuned,
                                    const std::string &simSchedule = "") const {
    auto model = Model::load(path, {.threads = 2,
                                    .devices = allDevices(),
                                    .simSchedule = simSchedule,
                                    .randomWeights = 7,
                                    .quiet = true,
                                    .tuned = tuned,
                                    .compiler = &compiler});
    EXPECT_TRUE(model.ok()) << model.status();
    return *model;
  }

  /// The logits behind each of 20 tokens, in one step, and of 2 more.
  static std::vector<float>
  logitsOf(const std::shared_ptr<const Model> &model) {
    auto engine = *Engine::create(model);
    Sequence sequence = *engine->newSequence();
    std::vector<int32_t> tokens;
    for (int i = 0; i < 20; ++i)
      tokens.push_back(i * 7 % 331);
    std::vector<float> all;
    const auto collect = [&](const LogitsRow &row) {
      all.insert(all.end(), row.values.begin(), row.values.end());
      return absl::OkStatus();
    };
    EXPECT_TRUE(engine->step({{&sequence, tokens, Wanted::All}}, collect).ok());
    for (int32_t token : {3, 1})
      EXPECT_TRUE(
          engine->step({{&sequence, {&token, 1}, Wanted::Last}}, collect).ok());
    return all;
  }

  TestDirectory folder;
  std::string path = folder.path("model.plan");
  ClangVariantCompiler compiler;
};

TEST_F(CompiledTunerTest, VariantsPassTheGateAndARunTakesThem) {
  compile("cpu", 512);
  const auto untuned = load(false);
  const schema::PlanT &plan = untuned->plan();
  const auto store =
      *TuningStore::open(*tuningStorePath(), [](absl::string_view) { FAIL(); });
  const auto results =
      tuneModel(untuned, *store,
                {.budget = 1000, .candidates = 1, .compiler = &compiler});
  ASSERT_TRUE(results.ok()) << results.status();
  for (const ProgramResult &result : *results) {
    EXPECT_TRUE(result.isDecided) << result.step.name;
    for (const Choice &kernel : result.kernels)
      for (size_t k = 0; k < kernel.candidates.size(); ++k) {
        EXPECT_EQ(kernel.candidates[k].rejected, "") << kernel.name;
        EXPECT_GT(kernel.trials.secondsOf(k), 0) << kernel.name;
      }
  }
  // One variant of every kernel, whatever was found.
  auto entries = *store->entries(untuned->device().identity(plan));
  size_t tuned = 0;
  for (const auto &kernel : plan.kernels)
    for (TuningEntry &entry : entries)
      if (entry.kernel == kernel->tuning) {
        entry.config = kernel->variants.front()->tiles;
        ++tuned;
      }
  EXPECT_EQ(tuned, entries.size());
  EXPECT_GT(tuned, 8U);
  ASSERT_TRUE(store->keep(entries).ok());
  const auto other = load(true);
  size_t selected = 0;
  for (const auto &kernel : other->plan().kernels)
    selected += absl::StrContains(kernel->symbol, "_v");
  EXPECT_EQ(selected, tuned);
  EXPECT_EQ(logitsOf(other), logitsOf(untuned));
  EXPECT_EQ(logitsOf(*other->asCompiled()), logitsOf(untuned));
}

TEST_F(CompiledTunerTest, EveryOverlapGivesTheSameLogitsOnTheSimulator) {
  compile("sim", 64);
  const std::vector<float> expected = logitsOf(load(false));
  for (const auto overlap :
       {schema::Overlap::AfterWait, schema::Overlap::AtEnd}) {
    compile("sim", 64, [&](llvm::StringRef, const std::string &text) {
      return withOverlap(text, overlap);
    });
    EXPECT_EQ(logitsOf(load(false, "random:3")), expected)
        << schema::EnumNameOverlap(overlap);
  }
}

TEST(ClangVariantCompilerTest, APlanOfAnotherGeneratorIsABadPlan) {
  const auto check = [](const std::string &target, const std::string &by) {
    const toy::ToyPlanFile file([&](toy::ToyPlan &toy) {
      toy.plan.target = target;
      toy.plan.generator = by;
      for (const auto &program : toy.plan.programs)
        for (const auto &launch : program->launches)
          launch->threads = target == "cpu" ? 0 : 32;
    });
    return ClangVariantCompiler().check(**PlanReader::open(file.path()));
  };
  for (const char *target : {"cpu", "sim"}) {
    EXPECT_TRUE(check(target, generatorOf(target)).ok());
    for (const char *other : {"", "0123abcd"}) {
      const absl::Status status = check(target, other);
      EXPECT_EQ(exitCode(status), ExitCode::BadPlan);
      EXPECT_THAT(std::string(status.message()),
                  testing::AllOf(HasSubstr("generator: expected "),
                                 HasSubstr("compile it again")));
    }
  }
  EXPECT_NE(generatorOf("cpu"), generatorOf("sim"));
}

} // namespace
} // namespace llamac
