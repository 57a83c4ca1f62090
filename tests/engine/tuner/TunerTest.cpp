//===- TunerTest.cpp - The toy model, tuned -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/tuner/Tuner.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"
#include "tests/engine/toy/ToyModel.h"
#include "tests/runtime/io/TestFiles.h"

#include <chrono>
#include <cstdlib>
#include <thread>

namespace llamac {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Finds variants, other kernels of the toy model, compiled in the plan.
class ToyCompiler final : public VariantCompiler {
public:
  explicit ToyCompiler(const std::string &path)
      : plan(*PlanReader::open(path)) {}

  absl::Status check(const PlanReader &) const override { return checked; }
  absl::StatusOr<std::string>
  compile(absl::Span<const schema::VariantT *const> variants,
          const std::string &, const std::string &) const override {
    for (const schema::VariantT *variant : variants)
      if (variant->symbol == "toyHashUncompiled")
        return internalError("not C++");
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const auto code = plan->bytes(plan->plan().code.front()->section);
    return std::string(code.begin(), code.end());
  }

  absl::Status checked;
  double seconds = 0; ///< The time that it takes.

private:
  std::shared_ptr<const PlanReader> plan;
};

/// The toy model, whose kernel toyHash has variants, and a user's cache.
class TunerTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("XDG_CACHE_HOME", cache.path("").c_str(), /*overwrite=*/1);
    store.emplace(*tuningStorePath());
  }

  void make(const char *symbol, const std::vector<const char *> &variants,
            bool samples = false) {
    file.emplace([&](toy::ToyPlan &toy) {
      schema::KernelT &kernel = *toy.plan.kernels[1];
      if (samples) {
        addSampling(toy);
        toy.plan.kernels[2]->symbol = "toyLogitsSound";
        // Prompts have a kernel of their own, without variants.
        auto &kernels = toy.plan.kernels;
        kernels.push_back(std::make_unique<schema::KernelT>(kernel));
        for (auto &launch : toy.plan.programs.back()->launches)
          if (launch->kernel == 1)
            launch->kernel = static_cast<uint32_t>(kernels.size() - 1);
      }
      kernel.symbol = symbol;
      kernel.tuning = "hash";
      for (const char *other : variants) {
        auto variant = std::make_unique<schema::VariantT>();
        variant->tiles = other;
        variant->symbol = other;
        variant->source = "//";
        variant->geometry =
            std::make_unique<schema::GeometryT>(*kernel.geometry);
        kernel.variants.push_back(std::move(variant));
      }
      toy.plan.generator = "toy";
    });
    compiler.emplace(file->path());
  }

  absl::StatusOr<std::shared_ptr<const Model>>
  load(bool tuned, const VariantCompiler *with) const {
    return Model::load(
        file->path(),
        {.threads = 1, .quiet = true, .tuned = tuned, .compiler = with});
  }

  std::vector<ProgramResult> tune(const TuneOptions &options) {
    const auto results = tuneModel(*load(false, nullptr), *store, options);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *results : std::vector<ProgramResult>();
  }
  std::vector<ProgramResult> tune() {
    return tune({.budget = 1000, .compiler = &*compiler});
  }

  /// The symbol that runs as toyHash of the model as tuned.
  std::string symbolOf(const VariantCompiler *with) const {
    const auto model = load(true, with);
    EXPECT_TRUE(model.ok()) << model.status();
    return (*model)->plan().kernels[1]->symbol;
  }

  TestDirectory cache;
  std::optional<TuningStore> store;
  std::optional<toy::ToyPlanFile> file;
  std::optional<ToyCompiler> compiler;
};

TEST_F(TunerTest, TheFastestIsSelectedAndWhatIsWrongIsRejected) {
  make("toyHashSlow",
       {"toyHashWrong", "toyHashUncompiled", "toyHashMissing", "toyHash"});
  const auto results = tune();
  ASSERT_THAT(results, SizeIs(3));
  for (const ProgramResult &result : results) {
    SCOPED_TRACE(result.step.name);
    EXPECT_TRUE(result.isDecided);
    ASSERT_THAT(result.kernels, SizeIs(1));
    const Choice &hash = result.kernels[0];
    ASSERT_THAT(hash.candidates, SizeIs(5));
    EXPECT_EQ(hash.candidates[hash.selected].config, "toyHash");
    EXPECT_LT(hash.trials.ratioOf(hash.selected).median, 0.9);
    EXPECT_THAT(hash.candidates[1].rejected, HasSubstr("the arena differs"));
    EXPECT_EQ(hash.trials.secondsOf(1), 0);
    EXPECT_THAT(hash.candidates[2].rejected, HasSubstr("not C++"));
    EXPECT_THAT(hash.candidates[3].rejected, HasSubstr("toyHashMissing"));
    EXPECT_THAT(hash.candidates[4].rejected, IsEmpty());
    EXPECT_EQ(result.step.candidates[result.step.selected].config, "tuned");
  }
  // Programs of decode take sequences, that of prefill the tokens of one.
  EXPECT_EQ(results[1].rows, 2);
  EXPECT_EQ(results[2].rows, 8);
  const auto entries = store->entries();
  ASSERT_THAT(*entries, SizeIs(1));
  EXPECT_EQ(entries->front().kernel, "hash");
  EXPECT_EQ(entries->front().config, "toyHash");
  EXPECT_GT(entries->front().defaultSeconds, entries->front().seconds);
  EXPECT_EQ(symbolOf(&*compiler), "toyHash");
}

TEST_F(TunerTest, WhatIsNotFasterIsNotSelected) {
  make("toyHash", {"toyHashSlow"});
  for (const ProgramResult &result : tune()) {
    EXPECT_TRUE(result.isDecided);
    EXPECT_EQ(result.kernels[0].selected, 0U);
    EXPECT_GT(result.kernels[0].trials.ratioOf(1).median, 1.1);
  }
  EXPECT_EQ(store->entries()->front().config, "");
  EXPECT_EQ(symbolOf(&*compiler), "toyHash");
}

TEST_F(TunerTest, WhatIsSlowerAsAnswersRunGoesBackToTheDefaults) {
  make("toyHashSlow", {"toyHashLate"}, /*samples=*/true);
  const auto results = tune();
  ASSERT_THAT(results, SizeIs(3));
  for (size_t i = 0; i < 2; ++i) {
    SCOPED_TRACE(results[i].step.name);
    EXPECT_TRUE(results[i].isDecided);
    EXPECT_LT(results[i].kernels[0].trials.ratioOf(1).median, 0.9);
    EXPECT_GT(results[i].asUsed.trials.ratioOf(1).median, 1.1);
    EXPECT_EQ(results[i].kernels[0].selected, 0U);
    EXPECT_EQ(results[i].step.selected, 0U);
  }
  EXPECT_THAT(results[2].skipped, HasSubstr("variants"));
  EXPECT_EQ(store->entries()->front().config, "");
  EXPECT_EQ(symbolOf(&*compiler), "toyHashSlow");
}

TEST_F(TunerTest, WhatIsFasterAsAnswersRunStays) {
  make("toyHashSlow", {"toyHash"}, /*samples=*/true);
  const auto results = tune();
  ASSERT_THAT(results, SizeIs(3));
  for (size_t i = 0; i < 2; ++i)
    EXPECT_LT(results[i].asUsed.trials.ratioOf(1).median, 0.9);
  EXPECT_EQ(symbolOf(&*compiler), "toyHash");
}

TEST_F(TunerTest, WithoutTimeNothingIsDecidedOrKept) {
  make("toyHashSlow", {"toyHash"});
  const double start = steadySeconds();
  for (const ProgramResult &result :
       tune({.budget = 1e-3, .compiler = &*compiler})) {
    EXPECT_FALSE(result.isDecided);
    EXPECT_THAT(result.kernels[0].candidates[1].rejected,
                HasSubstr("no time was left"));
  }
  EXPECT_LT(steadySeconds() - start, 5);
  for (const ProgramResult &result :
       tune({.compiler = &*compiler, .stop = [] { return true; }}))
    EXPECT_THAT(result.kernels[0].candidates[1].rejected, outOfTime);
  EXPECT_THAT(*store->entries(), IsEmpty());
}

TEST_F(TunerTest, WhatHadNoTimeReplacesNothing) {
  make("toyHashSlow", {"toyHash"});
  // One program has a candidate of the kernel that all of them share.
  compiler->seconds = 2;
  const auto results = tune({.budget = 4, .compiler = &*compiler});
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_EQ(results[0].kernels[0].selected, 1U);
  for (size_t i = 1; i < 3; ++i)
    EXPECT_THAT(results[i].kernels[0].candidates[1].rejected,
                HasSubstr("no time was left"));
  EXPECT_EQ(store->entries()->front().config, "toyHash");
}

TEST_F(TunerTest, WithoutACompilerTheDefaultsRun) {
  make("toyHashSlow", {"toyHash"});
  const auto none = tuneModel(*load(false, nullptr), *store, {});
  EXPECT_EQ(exitCode(none.status()), ExitCode::Usage);
  tune();
  testing::internal::CaptureStderr();
  EXPECT_EQ(symbolOf(nullptr), "toyHashSlow");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: " + file->path() +
                ": tuned configs of 1 kernels need a compiler, which llamac "
                "has and llamac-run has not; the default configs are used\n");
  // Likewise where another llamac made the plan.
  compiler->checked = badPlanError("other\nheaders");
  testing::internal::CaptureStderr();
  EXPECT_EQ(symbolOf(&*compiler), "toyHashSlow");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: other headers; the default configs are used\n");
  const auto other =
      tuneModel(*load(false, nullptr), *store, {.compiler = &*compiler});
  EXPECT_EQ(exitCode(other.status()), ExitCode::BadPlan);
}

TEST_F(TunerTest, AStoreThatCannotBeWrittenToEndsTheTune) {
  make("toyHashSlow", {"toyHash"});
  std::filesystem::remove_all(cache.path("llamac"));
  const auto results = tuneModel(*load(false, nullptr), *store,
                                 {.budget = 1000, .compiler = &*compiler});
  EXPECT_EQ(exitCode(results.status()), ExitCode::Memory) << results.status();
}

} // namespace
} // namespace llamac
