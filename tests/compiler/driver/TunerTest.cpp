//===- TunerTest.cpp - Plans of small models, tuned -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A variant that computes something else, or does not run, is planted by a
// compiler that edits the source of one of them.
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Tuner.h"

#include "compiler/driver/Compiler.h"
#include "compiler/driver/Devices.h"
#include "compiler/driver/PlanCache.h"
#include "compiler/driver/VariantCompilers.h"
#include "runtime/base/Status.h"
#include "runtime/engine/Engine.h"
#include "runtime/plan/SourceBundle.h"
#include "tests/runtime/io/TestFiles.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

namespace llamac {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char *modelConfig = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 331,
  "max_position_embeddings": 1024, "rms_norm_eps": 1e-05,
  "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false,
  "torch_dtype": "bfloat16"})";

/// Changes of the source of the variants whose symbol begins with a text.
using Faults =
    std::vector<std::pair<std::string, std::function<void(std::string &)>>>;

/// Compiles variants, some of them after an edit.
class PlantingCompiler final : public VariantCompiler {
public:
  explicit PlantingCompiler(Faults faults) : faults(std::move(faults)) {}

  absl::StatusOr<std::string> compile(absl::Span<const KernelSource> kernels,
                                      const std::string &target,
                                      const std::string &isa) override {
    std::vector<KernelSource> edited(kernels.begin(), kernels.end());
    for (KernelSource &kernel : edited)
      for (const auto &[symbol, edit] : faults)
        if (absl::StartsWith(kernel.symbol, symbol)) {
          const std::string before = kernel.text;
          edit(kernel.text);
          EXPECT_NE(kernel.text, before) << kernel.symbol;
        }
    return compiler.compile(edited, target, isa);
  }

private:
  Faults faults;
  ClangVariantCompiler compiler;
};

void insertBehind(std::string &source, const std::string &place,
                  const std::string &text) {
  const size_t at = source.find(place);
  if (at != std::string::npos)
    source.insert(at + place.size(), text);
}

constexpr const char *kernelStart = "(const CpuLaunch *launch) {\n";

class TunerTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("XDG_CACHE_HOME", folder.path("cache").c_str(), /*overwrite=*/1);
    path = folder.path("model.plan");
    CompileOptions options;
    options.context = 512;
    compile(options);
  }

  void compile(CompileOptions options, const std::string &model = modelConfig) {
    const std::string config = folder.write("config.json", model);
    auto opened = openConfig(config);
    ASSERT_TRUE(opened.ok()) << opened.status();
    options.hasWeights = false;
    options.weightFormat = "q4_0";
    auto compilation = Compilation::create(*opened, options);
    ASSERT_TRUE(compilation.ok()) << compilation.status();
    const auto times = compileToFile(**compilation, path, /*quiet=*/true);
    ASSERT_TRUE(times.ok()) << times.status();
  }

  /// A smaller model, as the simulator takes its time.
  void compileForSim(CompileOptions options) {
    options.target = "sim";
    options.context = 64;
    options.maxSequences = 1;
    compile(options,
            absl::StrReplaceAll(modelConfig, {{"256", "128"},
                                              {"512", "256"},
                                              {"_layers\": 2", "_layers\": 1"},
                                              {"heads\": 4", "heads\": 2"},
                                              {"heads\": 2", "heads\": 1"}}));
  }

  std::shared_ptr<const Model> load(bool tuned) const {
    auto model = Model::load(path, {.threads = 2,
                                    .devices = allDevices(),
                                    .randomWeights = 7,
                                    .quiet = true,
                                    .tuned = tuned});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }

  std::vector<ProgramTuningResult> tune(VariantCompiler *compiler,
                                        size_t candidates = 2, size_t turns = 1,
                                        bool triesWays = true) {
    TuneOptions options;
    options.budget = 1000; // Never reached, however slow the machine.
    options.candidates = candidates;
    options.turns = turns;
    options.triesWays = triesWays;
    options.compiler = compiler;
    options.store = &store();
    auto results = tuneModel(load(false), options);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results)
                        : std::vector<ProgramTuningResult>();
  }

  TuningStore &store() {
    if (!kept)
      kept = TuningStore::open(*tuningStorePath(), nullptr);
    return *kept;
  }

  /// The candidates of the kernels whose symbol begins with `symbol`, without
  /// the plan's own.
  static std::vector<Candidate>
  candidatesOf(const std::vector<ProgramTuningResult> &results,
               const std::string &symbol) {
    std::vector<Candidate> all;
    for (const ProgramTuningResult &result : results)
      for (const KernelTuningResult &kernel : result.kernels)
        if (absl::StartsWith(kernel.kernel, symbol))
          all.insert(all.end(), kernel.candidates.begin() + 1,
                     kernel.candidates.end());
    return all;
  }

  /// Keeps a variant of every kernel as the pick.
  void pickVariants(const std::string &code = "") {
    const auto model = load(false);
    const schema::PlanT &plan = model->plan();
    ClangVariantCompiler compiler;
    for (size_t i = 0; i < plan.kernels.size(); ++i) {
      if (plan.kernels[i]->variants.empty())
        continue;
      const schema::VariantT &variant = *plan.kernels[i]->variants.back();
      TuningEntry entry;
      entry.tiles = variant.tiles;
      entry.seconds = entry.firstSeconds = 1e-6;
      entry.symbol = variant.symbol;
      entry.code = code.empty()
                       ? *compiler.compile({{variant.symbol, variant.source}},
                                           "cpu", model->code().isa())
                       : code;
      ASSERT_TRUE(store().keep(
          tuningKey(plan, i, model->device().identity(plan)), entry));
    }
  }

  /// The logits behind each of 40 tokens, in one step, and of 3 more.
  static std::vector<float>
  logitsOf(const std::shared_ptr<const Model> &model) {
    auto engine = *Engine::create(model);
    Sequence sequence = *engine->newSequence();
    std::vector<int32_t> tokens;
    for (int i = 0; i < 40; ++i)
      tokens.push_back(i * 7 % 331);
    std::vector<float> all;
    const auto collect = [&](const LogitsRow &row) {
      all.insert(all.end(), row.values.begin(), row.values.end());
      return absl::OkStatus();
    };
    EXPECT_TRUE(engine->step({{&sequence, tokens, Wanted::All}}, collect).ok());
    for (int32_t token : {3, 1, 4})
      EXPECT_TRUE(
          engine->step({{&sequence, {&token, 1}, Wanted::Last}}, collect).ok());
    return all;
  }

  TestDirectory folder;
  std::string path;
  std::unique_ptr<TuningStore> kept;
};

TEST_F(TunerTest, EveryVariantComputesTheSameAndTheChoicesAreKept) {
  ClangVariantCompiler compiler;
  const auto results = tune(&compiler);
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_THAT(
      candidatesOf(results, ""),
      AllOf(Not(IsEmpty()), Each(Field(&Candidate::rejected, IsEmpty()))));
  const auto model = load(false);
  size_t kernels = 0;
  for (const ProgramTuningResult &result : results)
    for (const KernelTuningResult &kernel : result.kernels) {
      ++kernels;
      EXPECT_GT(kernel.seconds[0], 0) << kernel.kernel;
      EXPECT_GT(kernel.seconds[kernel.pick], 0) << kernel.kernel;
    }
  // One for each kernel and one for the way to run each program.
  EXPECT_THAT(store().entries(model->device().identity(model->plan())),
              SizeIs(kernels + results.size()));
}

TEST_F(TunerTest, EveryScheduleGivesTheSameBitsAndIsTimed) {
  ClangVariantCompiler compiler;
  for (const ProgramTuningResult &result : tune(&compiler, 1)) {
    std::vector<std::string> names;
    for (const WayTuningResult &way : result.ways) {
      names.push_back(way.way);
      EXPECT_THAT(way.rejected, IsEmpty()) << result.program << " " << way.way;
      EXPECT_GT(way.seconds, 0) << result.program << " " << way.way;
      EXPECT_GT(way.ratio, 0) << result.program << " " << way.way;
    }
    EXPECT_THAT(names, testing::ElementsAre("", "norm-apart", "qkv-apart"))
        << result.program;
    EXPECT_THAT(names, testing::Contains(result.way));
  }
}

TEST_F(TunerTest, AWrongScheduleIsRejected) {
  PlantingCompiler compiler({{"rms_norm",
                              [&](std::string &source) {
                                insertBehind(source, kernelStart, "return;\n");
                              }},
                             {"rope_append", [&](std::string &source) {
                                insertBehind(source, kernelStart, "not C++;\n");
                              }}});
  for (const ProgramTuningResult &result : tune(&compiler, 1)) {
    ASSERT_THAT(result.ways, SizeIs(3)) << result.program;
    EXPECT_THAT(result.ways[1].rejected, HasSubstr("the logits differ"));
    EXPECT_THAT(result.ways[2].rejected, HasSubstr("error"));
    EXPECT_EQ(result.way, "");
  }
}

TEST_F(TunerTest, LaterTurnsTryWhatDiffersFromThePickInOneTile) {
  ClangVariantCompiler compiler;
  for (const ProgramTuningResult &result : tune(&compiler, 1, 2))
    for (const KernelTuningResult &kernel : result.kernels) {
      // Of one tile there are neighbours left: two candidates beside the own.
      ASSERT_THAT(kernel.candidates, SizeIs(3)) << kernel.kernel;
      EXPECT_GT(kernel.seconds[2], 0) << kernel.kernel;
      const std::string &last = kernel.candidates[2].tiles;
      EXPECT_TRUE(tilesApart(last, "") == 1 ||
                  tilesApart(last, kernel.candidates[1].tiles) == 1)
          << kernel.kernel << " " << last;
    }
}

TEST_F(TunerTest, WrongVariantsAreRejectedHoweverFastTheyAre) {
  // So many layers that the gate leaves some out.
  CompileOptions options;
  options.context = 512;
  compile(options,
          absl::StrReplaceAll(modelConfig, {{"_layers\": 2", "_layers\": 4"}}));
  const std::string sink = "int lanes) const {\n";
  PlantingCompiler compiler({
      {"gemv_feed_forward_w2",
       [&](std::string &source) {
         insertBehind(source, kernelStart, "return;\n");
       }},
      {"gemm_feed_forward_w1", // Without the last panel.
       [&](std::string &source) {
         insertBehind(source, sink,
                      "if (column + 16 >= config.outputs) return;\n");
       }},
      {"gemm_attention_wo", // Wrong for one number of rows alone.
       [&](std::string &source) {
         insertBehind(source, sink, "if (row == 36) return;\n");
       }},
      {"qkv_gemv", // A wrong key.
       [&](std::string &source) {
         const std::string keys = ".key = operand<void>(*launch, 2)";
         const size_t at = source.find(keys);
         ASSERT_NE(at, std::string::npos);
         source.replace(at, keys.size(), ".key = operand<void>(*launch, 3)");
       }},
      {"gemv_output",
       [&](std::string &source) {
         insertBehind(source, kernelStart, "not C++;\n");
       }},
  });
  // Of the plan's own schedule, as others have other kernels.
  const auto results = tune(&compiler, 2, 1, /*triesWays=*/false);
  const auto expectRejected = [&](const std::string &kernel,
                                  const std::string &why) {
    EXPECT_THAT(
        candidatesOf(results, kernel),
        AllOf(Not(IsEmpty()),
              Each(Field(&Candidate::rejected,
                         why.empty() ? IsEmpty()
                                     : testing::Matcher<const std::string &>(
                                           HasSubstr(why))))))
        << kernel;
  };
  expectRejected("gemv_feed_forward_w2", "the arena differs");
  expectRejected("gemm_feed_forward_w1", "the arena differs");
  expectRejected("gemm_attention_wo", "the arena differs");
  expectRejected("qkv_gemv", "the cache differs");
  expectRejected("gemv_output", "error");
  for (const ProgramTuningResult &result : results)
    for (const KernelTuningResult &kernel : result.kernels)
      EXPECT_THAT(kernel.candidates[kernel.pick].rejected, IsEmpty());
  for (const char *sound : {"gemv_attention_wo", "gemm_feed_forward_w2"})
    EXPECT_THAT(candidatesOf(results, sound),
                Each(Field(&Candidate::rejected, IsEmpty())));
}

TEST_F(TunerTest, AVariantThatRacesIsRejectedWhereAccessesAreChecked) {
  for (const bool isChecked : {false, true}) {
    CompileOptions options;
    options.gpu = "sm_80";
    options.simCheck = isChecked;
    compileForSim(options);
    // All threads of a block write to one place. The result is right.
    PlantingCompiler compiler({{"gemv_output", [](std::string &source) {
                                  insertBehind(source, "int rows) {\n",
                                               "LLAMAC_SHARED(raced, int);\n"
                                               "raced = int(threadIdx.x);\n");
                                }}});
    const auto results = tune(&compiler, 1, 1, /*triesWays=*/false);
    EXPECT_THAT(
        candidatesOf(results, "gemv_output"),
        AllOf(Not(IsEmpty()),
              Each(Field(&Candidate::rejected,
                         isChecked ? testing::Matcher<const std::string &>(
                                         HasSubstr("race"))
                                   : IsEmpty()))));
    EXPECT_THAT(
        candidatesOf(results, "gemv_feed_forward"),
        AllOf(Not(IsEmpty()), Each(Field(&Candidate::rejected, IsEmpty()))));
  }
}

TEST(VariantCompilersTest, APlanOfAnotherGeneratorIsABadPlan) {
  for (const char *target : {"cpu", "sim", "cuda"}) {
    schema::PlanT plan;
    plan.target = target;
    plan.generator = generatorOf(target);
    EXPECT_TRUE(checkGenerator("m.plan", plan).ok()) << target;
    for (const std::string &other : {std::string(), std::string("0123abcd")}) {
      plan.generator = other;
      const absl::Status status = checkGenerator("m.plan", plan);
      EXPECT_EQ(exitCode(status), ExitCode::BadPlan) << target;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("m.plan: generator: expected "),
                        HasSubstr(other.empty() ? "got none" : other),
                        HasSubstr("compile it again")));
    }
  }
  EXPECT_NE(generatorOf("cpu"), generatorOf("cuda"));
}

TEST_F(TunerTest, WithoutACompilerOrTimeNothingIsKept) {
  TuneOptions options;
  options.store = &store();
  const absl::Status status = tuneModel(load(false), options).status();
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_THAT(std::string(status.message()), HasSubstr("llamac tune"));

  ClangVariantCompiler compiler;
  const std::atomic<bool> stop{true};
  options.compiler = &compiler;
  options.stop = &stop;
  const auto results = tuneModel(load(false), options);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(store().entries(), IsEmpty());
}

TEST_F(TunerTest, ARunTakesThePicksAndGivesTheSameLogits) {
  pickVariants();
  const auto untuned = load(false), tuned = load(true);
  size_t picked = 0;
  for (const auto &kernel : tuned->plan().kernels)
    picked += absl::StrContains(kernel->symbol, "_v") ? 1 : 0;
  EXPECT_EQ(picked, 11U);
  for (const auto &kernel : untuned->plan().kernels)
    EXPECT_THAT(kernel->symbol, Not(HasSubstr("_v")));
  EXPECT_EQ(logitsOf(tuned), logitsOf(untuned));

  // Another number of threads is another device.
  const auto other =
      Model::load(path, {.threads = 1, .randomWeights = 7, .quiet = true});
  ASSERT_TRUE(other.ok()) << other.status();
  for (const auto &kernel : (*other)->plan().kernels)
    EXPECT_THAT(kernel->symbol, Not(HasSubstr("_v")));
}

/// Keeps `way` for every program of `model`, with `code` of its kernels.
void keepWay(TuningStore &store, const Model &model, const std::string &way,
             const std::string &code) {
  const schema::PlanT &plan = model.plan();
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    TuningEntry entry;
    entry.tiles = way;
    entry.seconds = entry.firstSeconds = 1e-3;
    entry.symbol = way;
    entry.code = code;
    ASSERT_TRUE(
        store.keep(wayKey(plan, i, model.device().identity(plan)), entry));
  }
}

size_t launchesOf(const Model &model) {
  size_t count = 0;
  for (const auto &program : model.plan().programs)
    count += program->launches.size();
  return count;
}

TEST_F(TunerTest, ARunTakesTheScheduleAndGivesTheSameLogits) {
  const auto untuned = load(false);
  const schema::ScheduleT &schedule = *untuned->plan().schedules.front();
  ASSERT_EQ(schedule.name, "norm-apart");
  std::vector<KernelSource> sources;
  for (const auto &kernel : schedule.kernels)
    sources.push_back({kernel->symbol, kernel->source});
  ClangVariantCompiler compiler;
  keepWay(store(), *untuned, "norm-apart",
          *compiler.compile(sources, "cpu", untuned->code().isa()));
  const auto tuned = load(true);
  // Two norms for each layer and one for the head, in both programs.
  EXPECT_EQ(launchesOf(*tuned), launchesOf(*untuned) + 2 * (2 * 2 + 1));
  EXPECT_EQ(logitsOf(tuned), logitsOf(untuned));

  // With tiles besides: the kernels that both have, and those of the schedule.
  pickVariants();
  EXPECT_EQ(logitsOf(load(true)), logitsOf(untuned));
}

TEST_F(TunerTest, AScheduleWithoutCodeIsCompiledAfterAnImport) {
  const auto untuned = load(false);
  keepWay(store(), *untuned, "qkv-apart", "");
  EXPECT_EQ(launchesOf(*load(true)), launchesOf(*untuned));
  ClangVariantCompiler compiler;
  const auto count = compileStored(*untuned, store(), compiler);
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, 2);
  const auto tuned = load(true);
  EXPECT_GT(launchesOf(*tuned), launchesOf(*untuned));
  EXPECT_EQ(logitsOf(tuned), logitsOf(untuned));
}

TEST_F(TunerTest, AScheduleThatThePlanDoesNotHaveIsNotTaken) {
  const auto untuned = load(false);
  keepWay(store(), *untuned, "head-apart", "code");
  EXPECT_EQ(launchesOf(*load(true)), launchesOf(*untuned));
}

/// The plan of `model`, whose launches begin as `overlap` says, with the code
/// that this takes.
static absl::StatusOr<std::shared_ptr<const PlanReader>>
withOverlaps(const Model &model, schema::Overlap overlap) {
  const std::vector<ProgramPick> picks(model.plan().programs.size(),
                                       {std::nullopt, overlap});
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const PlanReader> run,
                          model.planReader()->withSchedules(picks));
  const size_t own = model.plan().kernels.size();
  const auto &kernels = run->plan().kernels;
  std::vector<KernelPick> code(kernels.size());
  if (overlap == schema::Overlap::None) {
    EXPECT_EQ(kernels.size(), own);
    return run->withPicks(code);
  }
  // Where the next launch begins elsewhere, all kernels are compiled anew.
  EXPECT_GT(kernels.size(), own);
  std::vector<KernelSource> sources;
  for (const SourceFile &file : splitSources(model.source()))
    if (absl::EndsWith(file.name, ".cu"))
      sources.push_back({file.name.substr(0, file.name.size() - 3),
                         withOverlap(file.text, overlap)});
  ClangVariantCompiler compiler;
  LLAMAC_ASSIGN_OR_RETURN(std::string compiled,
                          compiler.compile(sources, "sim", model.code().isa()));
  const auto shared = std::make_shared<const std::string>(std::move(compiled));
  for (size_t i = own; i < kernels.size(); ++i) {
    EXPECT_EQ(kernels[i]->overlap, overlap);
    code[i].code = shared;
  }
  return run->withPicks(code);
}

TEST_F(TunerTest, EveryOverlapGivesTheSameLogitsInAnyOrderOnTheSimulator) {
  CompileOptions options;
  options.simCheck = true;
  compileForSim(options);
  const auto own = Model::load(path, {.threads = 2,
                                      .devices = allDevices(),
                                      .simSchedule = "random:3",
                                      .randomWeights = 7,
                                      .quiet = true,
                                      .tuned = false});
  ASSERT_TRUE(own.ok()) << own.status();
  const auto expected = logitsOf(*own);
  for (const auto overlap : {schema::Overlap::AfterWait, schema::Overlap::AtEnd,
                             schema::Overlap::None}) {
    SCOPED_TRACE(schema::EnumNameOverlap(overlap));
    const auto run = withOverlaps(**own, overlap);
    ASSERT_TRUE(run.ok()) << run.status();
    const auto other = (*own)->withPlan(*run);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(logitsOf(*other), expected);
  }
}

TEST_F(TunerTest, PicksWhoseCodeCannotBeOpenedAreAWarning) {
  pickVariants("no machine code");
  testing::internal::CaptureStderr();
  const auto model = load(true);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("warning: "),
                    HasSubstr("what was tuned for the plan is not used")));
  ASSERT_TRUE(model);
  EXPECT_EQ(logitsOf(model), logitsOf(load(false)));
}

} // namespace
} // namespace llamac
