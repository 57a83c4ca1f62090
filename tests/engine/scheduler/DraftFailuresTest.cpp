//===- DraftFailuresTest.cpp - Draft models that fail ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A draft model that fails at any allocation or step is left out with one line,
// and answers are what they are without it.
//
//===----------------------------------------------------------------------===//

#include "engine/scheduler/Scheduler.h"
#include "runtime/base/Status.h"
#include "runtime/cpu/CpuDevice.h"
#include "tests/engine/toy/ToyModel.h"

#include "absl/strings/str_cat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <climits>
#include <thread>

namespace llamac {
namespace {

using toy::cleanTokens;

/// How many allocations and steps of a failing device still succeed, and the
/// error of those behind them.
struct Faults {
  int allocations = INT_MAX, steps = INT_MAX;
  absl::Status status = absl::OkStatus();
  bool haveCome = false;
  std::chrono::milliseconds delay{0}; ///< How long a step takes more.
  int64_t rows = 0;                   ///< Rows of all steps.

  absl::Status next(int &left) {
    if (left-- > 0)
      return absl::OkStatus();
    left = 0;
    haveCome = true;
    return status;
  }
};

Faults faults;

class FailingProgram final : public PreparedProgram {
public:
  FailingProgram(const schema::ProgramT &program,
                 std::unique_ptr<PreparedProgram> sound)
      : PreparedProgram(program), sound(std::move(sound)) {}

  absl::Status run(const StepShape &shape,
                   absl::FunctionRef<void()> meanwhile) override {
    LLAMAC_RETURN_IF_ERROR(faults.next(faults.steps));
    faults.rows += shape.rows;
    std::this_thread::sleep_for(faults.delay);
    return sound->run(shape, meanwhile);
  }
  absl::Status runLaunch(size_t launch, const StepShape &shape) override {
    return sound->runLaunch(launch, shape);
  }

private:
  std::unique_ptr<PreparedProgram> sound;
};

class FailingCode final : public LoadedCode {
public:
  FailingCode(std::shared_ptr<const PlanReader> plan,
              std::unique_ptr<LoadedCode> sound)
      : plan(std::move(plan)), sound(std::move(sound)) {}

  std::string isa() const override { return sound->isa(); }
  absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(size_t program, const ProgramBindings &bindings) override {
    LLAMAC_ASSIGN_OR_RETURN(auto made, sound->prepare(program, bindings));
    return std::make_unique<FailingProgram>(*plan->plan().programs[program],
                                            std::move(made));
  }

private:
  std::shared_ptr<const PlanReader> plan;
  std::unique_ptr<LoadedCode> sound;
};

/// The cpu, with `faults`.
class FailingDevice final : public HostDevice {
public:
  explicit FailingDevice(std::shared_ptr<CpuDevice> cpu)
      : HostDevice({.name = cpu->describe(), .threads = cpu->threads()}),
        cpu(std::move(cpu)) {}

  absl::StatusOr<std::unique_ptr<Buffer>> allocate(uint64_t size,
                                                   MemoryUse use) override {
    LLAMAC_RETURN_IF_ERROR(faults.next(faults.allocations));
    return cpu->allocate(size, use);
  }
  absl::Status forEach(size_t count,
                       absl::FunctionRef<void(size_t)> work) override {
    return cpu->forEach(count, work);
  }
  absl::StatusOr<std::unique_ptr<LoadedCode>>
  loadCode(std::shared_ptr<const PlanReader> plan) override {
    LLAMAC_ASSIGN_OR_RETURN(auto code, cpu->loadCode(plan));
    return std::make_unique<FailingCode>(std::move(plan), std::move(code));
  }

private:
  std::shared_ptr<CpuDevice> cpu;
};

/// Loads a draft model, which names none itself, on a failing device.
absl::StatusOr<std::vector<std::shared_ptr<Device>>>
createDevice(const schema::PlanT & /*plan*/, int threads,
             const ModelOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<CpuDevice> cpu,
                          CpuDevice::create({.threads = threads}));
  if (!options.draft.empty())
    return std::vector<std::shared_ptr<Device>>{std::move(cpu)};
  return std::vector<std::shared_ptr<Device>>{
      std::make_shared<FailingDevice>(std::move(cpu))};
}

constexpr DeviceKind devices[] = {
    {"cpu", "--isa", [](const ModelOptions &) { return false; }, createDevice}};

class DraftFailuresTest : public testing::Test {
protected:
  void SetUp() override {
    faults = {};
    auto loaded = Model::load(file.path(), {.threads = 2,
                                            .devices = devices,
                                            .sequences = sequences,
                                            .draft = file.path()});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    drafted = *std::move(loaded);
    loaded = Model::load(file.path(), {.threads = 2, .sequences = sequences});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    expected = answersOf(*loaded);
  }

  /// The tokens of some answers, which ask for drafts of all kinds.
  static std::vector<std::vector<int32_t>>
  answersOf(std::shared_ptr<const Model> model) {
    auto scheduler = Scheduler::create(std::move(model));
    EXPECT_TRUE(scheduler.ok()) << scheduler.status();
    std::vector<std::vector<int32_t>> answers(5);
    for (size_t i = 0; i < answers.size(); ++i) {
      Request request{.prompt =
                          cleanTokens(4, 5 + 15 * static_cast<int>(i), 12),
                      .options = {.maxTokens = 12},
                      .speculative = std::array{-2, 4, -1, 16, 0}[i]};
      if (i % 2 == 1)
        request.options.sampling = {.temperature = 2, .topK = 6, .seed = i};
      // Answers that repeat themselves, which look-up drafts, too.
      request.options.sampling.logitBias = {{7, i == 2 ? 90.F : 0.F}};
      const auto id =
          (*scheduler)
              ->submit(std::move(request),
                       [&answer = answers[i]](const AnswerPart &part) {
                         answer.insert(answer.end(), part.tokens.begin(),
                                       part.tokens.end());
                         if (part.end)
                           EXPECT_TRUE(part.end->status.ok())
                               << part.end->status;
                       });
      EXPECT_TRUE(id.ok()) << id.status();
    }
    while (!(*scheduler)->isIdle())
      (*scheduler)->step();
    return answers;
  }

  /// Runs with one allocation or step more than before, as `left` says, until
  /// none fails; returns how many runs had a fault.
  int sweep(int Faults::*left, const absl::Status &status) {
    for (int count = 0;; ++count) {
      faults = {.status = status};
      faults.*left = count;
      testing::internal::CaptureStderr();
      const auto answers = answersOf(drafted);
      const std::string warnings = testing::internal::GetCapturedStderr();
      EXPECT_EQ(answers, expected) << count;
      if (!faults.haveCome) {
        EXPECT_EQ(warnings, "");
        return count;
      }
      EXPECT_THAT(warnings,
                  testing::MatchesRegex(absl::StrCat(
                      "warning: the draft model is left out, and answers go on "
                      "without it: [^\n]*",
                      status.message(), "\n")))
          << count;
      if (HasFailure())
        return count;
    }
  }

  /// A step has three output rows, so that one or two are left for drafts.
  static constexpr int64_t sequences = 2;

  toy::ToyPlanFile file{[](toy::ToyPlan &toy) {
    toy.plan.kernels[2]->symbol = "toyLogitsSound";
  }};
  std::shared_ptr<const Model> drafted;
  std::vector<std::vector<int32_t>> expected;
};

TEST_F(DraftFailuresTest, WithoutMemoryForItsEngineItIsLeftOut) {
  // The arena, counters, inputs and the pools of two layers.
  EXPECT_EQ(sweep(&Faults::allocations, memoryError("no memory is left")), 5);
}

TEST_F(DraftFailuresTest, WhereAStepFailsItIsLeftOut) {
  EXPECT_GT(sweep(&Faults::steps, deviceError("the device has failed")), 5);
  EXPECT_GT(sweep(&Faults::steps, memoryError("no page is left")), 5);
}

TEST_F(DraftFailuresTest, ItsStepsCountAsTimeInPrograms) {
  faults.delay = std::chrono::milliseconds(10);
  auto scheduler = Scheduler::create(drafted);
  ASSERT_TRUE(scheduler.ok()) << scheduler.status();
  const auto id = (*scheduler)
                      ->submit({.prompt = cleanTokens(4, 5, 12),
                                .options = {.maxTokens = 12},
                                .speculative = 1},
                               [](const AnswerPart &) {});
  ASSERT_TRUE(id.ok()) << id.status();
  while (!(*scheduler)->isIdle())
    (*scheduler)->step();
  const SchedulerCounts counts = (*scheduler)->counts();
  EXPECT_GT(counts.draftTokens, 0);
  EXPECT_GT(counts.programSeconds, 0.5 * counts.stepSeconds);
}

TEST_F(DraftFailuresTest, AfterLogitsOfNaNItGoesOnBehindThePrompt) {
  const toy::ToyPlanFile poisonous;
  auto model =
      Model::load(poisonous.path(), {.threads = 1, .devices = devices});
  ASSERT_TRUE(model.ok()) << model.status();
  auto drafting = DraftModel::create(*model);
  ASSERT_TRUE(drafting.ok()) << drafting.status();
  const auto sampler = Sampler::create({});
  ASSERT_TRUE(sampler.ok());
  std::vector<int32_t> tokens;
  for (int first = 5; !toy::isPoisoned(tokens); ++first) {
    tokens = cleanTokens(12, first);
    for (int last = 2; last < toy::vocab && !toy::isPoisoned(tokens); ++last)
      tokens.back() = last;
  }
  Drafter drafter;
  const auto draft = [&] {
    faults.rows = 0;
    const DraftWanted wanted{&drafter, tokens, &*sampler, /*most=*/1};
    const auto made = (*drafting)->draft({&wanted, 1});
    EXPECT_TRUE(made.ok()) << made.status();
    return (*made)[0].tokens.size();
  };
  const double before = drafter.acceptance();
  EXPECT_EQ(draft(), 0u);
  EXPECT_EQ(faults.rows, 12);
  EXPECT_LT(drafter.acceptance(), before);
  tokens.push_back(2);
  draft();
  EXPECT_EQ(faults.rows, 1);
}

TEST_F(DraftFailuresTest, WithoutASequenceForAnAnswerItIsLeftOut) {
  auto one = Model::load(file.path(), {.threads = 1, .sequences = 1});
  ASSERT_TRUE(one.ok()) << one.status();
  Speculator speculator(*one);
  const auto sampler = Sampler::create({});
  ASSERT_TRUE(sampler.ok());
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 1, 2};
  AnswerDrafts drafts[3];
  std::vector<DraftedAnswer> answers;
  for (const int asked : {4, -2, -1})
    answers.push_back({&drafts[answers.size()],
                       tokens,
                       /*promptTokens=*/5,
                       &*sampler,
                       {},
                       asked,
                       /*most=*/20});
  for (int64_t rows = 3; rows <= 20; ++rows)
    speculator.recordStep(rows, 1);
  EXPECT_TRUE(speculator.isOn(-2));
  testing::internal::CaptureStderr();
  for (int step = 0; step < 2; ++step) {
    const auto made = speculator.draft(answers, /*rows=*/3, /*mostRows=*/20);
    // Look-up still drafts for those that ask for drafts.
    EXPECT_EQ(made[0], (std::vector<int32_t>{3, 4, 5, 1}));
    EXPECT_EQ(made[1], std::vector<int32_t>());
    EXPECT_THAT(made[2], testing::Not(testing::IsEmpty()));
  }
  EXPECT_FALSE(speculator.isOn(-2));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("warning: the draft model is left out, and "
                                    "answers go on without it: [^\n]+\n"));
}

} // namespace
} // namespace llamac
