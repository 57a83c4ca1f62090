//===- ResidentTest.cpp - Steps that are one launch -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The toy model on the fake driver, with a resident step in front of the chain
// of launches that does the same. The test has the kernels: those of the toy
// model, and one that calls them step after step.
//
//===----------------------------------------------------------------------===//

#include "engine/step/Engine.h"
#include "engine/tuner/Tuner.h"
#include "runtime/base/Status.h"
#include "runtime/cpu/KernelAbi.h"
#include "runtime/device/Profile.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/SourceBundle.h"
#include "tests/TemporaryFolder.h"
#include "tests/engine/toy/ToyModel.h"
#include "tests/runtime/cuda/fake_driver/HostKernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <functional>
#include <optional>

using llamac::CpuLaunch;

// ToyKernels.cpp
extern "C" {
void toyRemember(const CpuLaunch *launch);
void toyHash(const CpuLaunch *launch);
void toyLogitsSound(const CpuLaunch *launch);
void toySample(const CpuLaunch *launch);
}

namespace llamac {
namespace {

using fake::HostKernel;
using fake::HostLaunch;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Tokens = std::vector<int32_t>;

/// The operands of the resident step, in order.
enum StepOperand : int {
  TokensIn,
  Positions,
  Sequences,
  PageTable,
  Pool0,
  Pool1,
  Embedding0,
  Embedding1,
  OutputRows,
  Program,
  Params,
  Counter,
  Hashes,
  Logits,
  TokensOut,
  StepOperands
};

constexpr int64_t stepItems = 8;

/// Makes it a plan for cuda, whose sources are names alone.
void makeCuda(toy::ToyPlan &toy) {
  addSampling(toy);
  toy.plan.target = "cuda";
  toy.plan.gpu = "sm_80";
  toy.plan.code.clear();
}

void nameSources(toy::ToyPlan &toy) {
  std::vector<SourceFile> files;
  for (const auto &kernel : toy.plan.kernels) {
    kernel->geometry->threads = 32;
    files.push_back({kernel->symbol + ".cu", "// " + kernel->symbol + "\n"});
  }
  toy.sections[static_cast<size_t>(toy.plan.sourceSection)].bytes =
      joinSources(files);
}

/// Adds the resident step, as the first program.
void addStep(toy::ToyPlan &toy) {
  using schema::InputRole;
  using schema::OperandKind;
  using enum schema::ParamRole;
  auto kernel = std::make_unique<schema::KernelT>();
  kernel->symbol = "toyStep";
  kernel->family = "resident";
  kernel->params = {Activation,    Activation,    Activation, PageTable,
                    AppendedCache, AppendedCache, Weight,     Weight,
                    Activation,    Activation,    Activation, Counters,
                    Result,        Result,        Result};
  kernel->resultRowBytes = {4, toy::vocab * 4, 4};
  kernel->geometry = std::make_unique<schema::GeometryT>();
  kernel->geometry->items = stepItems;
  kernel->geometry->scratchBytes = 100 << 10;
  kernel->geometry->counters = 1;
  kernel->geometry->resident = true;
  toy.plan.counterBytes = 4;

  auto program = std::make_unique<schema::ProgramT>(*toy.plan.programs[0]);
  program->name = "step1";
  auto launch = std::make_unique<schema::LaunchT>();
  launch->kernel = static_cast<uint32_t>(toy.plan.kernels.size());
  launch->label = "step";
  const auto add = [&](OperandKind kind, uint32_t index, uint64_t offset = 0) {
    launch->operands.emplace_back(kind, index, offset);
  };
  const auto addInput = [&](InputRole role) {
    add(OperandKind::Input, static_cast<uint32_t>(role));
  };
  for (const InputRole role : {InputRole::Tokens, InputRole::Positions,
                               InputRole::Sequences, InputRole::PageTable})
    addInput(role);
  for (const OperandKind kind : {OperandKind::Kv, OperandKind::Weight})
    for (const uint32_t layer : {0, 1})
      add(kind, layer);
  addInput(InputRole::OutputRows);
  add(OperandKind::Constant, 2);
  addInput(InputRole::SamplingParams);
  add(OperandKind::Counters, 0);
  add(OperandKind::Arena, 0);
  add(OperandKind::Arena, 0, program->logitsOffset);
  add(OperandKind::Arena, 0, static_cast<uint64_t>(program->tokensOffset));
  program->launches.clear();
  program->launches.push_back(std::move(launch));
  toy.plan.kernels.push_back(std::move(kernel));
  toy.plan.programs.insert(toy.plan.programs.begin(), std::move(program));
}

/// Does all work of a cpu's kernel in one call.
void runAll(CpuKernel kernel, std::vector<void *> operands, long rows,
            long items = 1) {
  std::vector<uint8_t> scratch(toy::logitsBlock * sizeof(float));
  const CpuLaunch launch{operands.data(), rows,           0,
                         rows * items,    scratch.data(), -1};
  kernel(&launch);
}

void runStep(const HostLaunch &launch) {
  const std::vector<void *> &all = launch.operands;
  auto *counter = static_cast<uint32_t *>(all[Counter]);
  EXPECT_EQ(*counter, 0U);
  *counter = 1;
  const auto at = [&](StepOperand operand, int step, int bytes) -> void * {
    return static_cast<uint8_t *>(all[operand]) + int64_t{step} * bytes;
  };
  for (int step = 0; step < std::max(launch.last, 1); ++step) {
    void *token = step == 0 ? all[TokensIn] : at(TokensOut, step - 1, 4);
    void *position = at(Positions, step, 4);
    runAll(toyRemember,
           {token, position, all[Sequences], all[PageTable], all[Pool0],
            all[Embedding0]},
           1);
    runAll(toyRemember,
           {token, position, all[Sequences], all[PageTable], all[Pool1],
            all[Embedding1]},
           1);
    runAll(toyHash,
           {position, all[Sequences], all[PageTable], all[Pool0], all[Pool1],
            all[Hashes]},
           1);
    runAll(toyLogitsSound,
           {all[Hashes], all[OutputRows], all[Program], all[Logits]}, 1,
           toy::vocab / toy::logitsBlock);
    if (launch.last > 0)
      runAll(toySample,
             {all[Logits], at(Params, step, 16), at(TokensOut, step, 4)}, 1);
  }
  *counter = 0;
}

class ResidentTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    // Whoever asks for libcuda.so.1 from now on gets this one.
    void *driver = dlopen(LLAMAC_FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL);
    ASSERT_NE(driver, nullptr) << dlerror();
    setHostKernel = reinterpret_cast<fake::SetHostKernel *>(
        dlsym(driver, "fakeSetHostKernel"));
    recover = reinterpret_cast<void (*)()>(dlsym(driver, "fakeRecover"));
    setenv("LLAMAC_NVRTC_PATH",
           std::filesystem::path(LLAMAC_FAKE_DRIVER).parent_path().c_str(), 1);
  }

  void SetUp() override {
    setenv("XDG_CACHE_HOME", cache.name().c_str(), 1);
    const auto add = [&](const char *name, int operands, CpuKernel kernel,
                         long items = 1) {
      addKernel(name, {operands, false, [=](const HostLaunch &launch) {
                         runAll(kernel, launch.operands, launch.last, items);
                       }});
    };
    add("toyRemember", 6, toyRemember);
    add("toyHash", 6, toyHash);
    add("toyLogits", 4, toyLogitsSound, toy::vocab / toy::logitsBlock);
    add("toySample", 3, toySample);
    addKernel("toyStep", {StepOperands, true, runStep});
  }

  void TearDown() override {
    engine = nullptr;
    model = nullptr;
    recover();
    setHostKernel(nullptr, nullptr);
    for (const char *name : {"LLAMAC_FAKE_COOPERATIVE", "LLAMAC_FAKE_FAILS",
                             "LLAMAC_FAKE_FAULT", "LLAMAC_FAKE_MULTIPROCESSORS",
                             "LLAMAC_FAKE_OCCUPANCY", "LLAMAC_FAKE_SHARED"})
      unsetenv(name);
  }

  void addKernel(const std::string &name, HostKernel kernel) {
    kernel.run = [this, run = kernel.run](const HostLaunch &launch) {
      launches.push_back(launch);
      run(launch);
    };
    setHostKernel(name.c_str(), &kernel);
  }

  absl::Status
  load(const std::function<void(toy::ToyPlan &)> &change = addStep) {
    file.emplace([&](toy::ToyPlan &toy) {
      makeCuda(toy);
      change(toy);
      nameSources(toy);
    });
    auto loaded = Model::load(file->path(),
                              {.threads = 1, .quiet = true, .tuned = false});
    if (!loaded.ok())
      return loaded.status();
    model = *std::move(loaded);
    LLAMAC_ASSIGN_OR_RETURN(engine, Engine::create(model));
    return absl::OkStatus();
  }

  /// Makes the engine one that has `tokens`, without a resident step.
  Sequence begin(const Tokens &tokens) {
    Sequence sequence = *engine->newSequence();
    EXPECT_TRUE(engine
                    ->step({{&sequence, tokens, OutputRows::None}},
                           [](const LogitsRow &) { return absl::OkStatus(); })
                    .ok());
    launches.clear();
    return sequence;
  }

  static Sampler sampler(double temperature = 0) {
    return *Sampler::create(
        {.temperature = temperature, .topK = 50, .seed = 3});
  }

  absl::StatusOr<int32_t> sample(Sequence &sequence, int32_t token,
                                 Sampler &sampler) {
    LLAMAC_ASSIGN_OR_RETURN(
        const auto chosen,
        engine->sample({{&sequence, {&token, 1}, &sampler}}));
    return chosen[0];
  }

  /// `steps` more, one call each.
  Tokens oneByOne(Sequence &sequence, int32_t token, Sampler &sampler,
                  int64_t steps) {
    Tokens tokens;
    for (int64_t i = 0; i < steps; ++i) {
      const auto next = sample(sequence, token, sampler);
      EXPECT_TRUE(next.ok()) << next.status();
      tokens.push_back(token = next.value_or(0));
    }
    return tokens;
  }

  /// At most `steps` in flight, of which `wanted` are taken.
  Tokens inFlight(Sequence &sequence, int32_t token, Sampler &sampler,
                  int64_t steps, size_t wanted) {
    Tokens tokens;
    const absl::Status status =
        engine->decode({{&sequence, token, &sampler}}, steps,
                       [&](absl::Span<const int32_t> chosen) {
                         tokens.push_back(chosen[0]);
                         return tokens.size() < wanted;
                       });
    EXPECT_TRUE(status.ok()) << status;
    return tokens;
  }

  /// The parameter behind the operands of each launch so far of kernel `name`.
  std::vector<int32_t> lastOf(const std::string &name) const {
    std::vector<int32_t> last;
    for (const HostLaunch &launch : launches)
      if (launch.kernel == name)
        last.push_back(launch.last);
    return last;
  }

  static fake::SetHostKernel *setHostKernel;
  static void (*recover)();
  TemporaryFolder cache;
  std::optional<toy::ToyPlanFile> file;
  std::shared_ptr<const Model> model;
  std::unique_ptr<Engine> engine;
  std::vector<HostLaunch> launches;
};

fake::SetHostKernel *ResidentTest::setHostKernel = nullptr;
void (*ResidentTest::recover)() = nullptr;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

TEST_F(ResidentTest, AStepIsOneCooperativeLaunch) {
  ASSERT_TRUE(load().ok());
  const Tokens prompt = toy::cleanTokens(5, 3, 2);
  Sequence sequence = begin(Tokens(prompt.begin(), prompt.end() - 1));
  Sampler greedy = sampler();
  const auto token = sample(sequence, prompt.back(), greedy);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(*token, toy::argmaxAfter(prompt));
  ASSERT_EQ(launches.size(), 1U);
  const HostLaunch &launch = launches[0];
  EXPECT_EQ(launch.kernel, "toyStep");
  EXPECT_TRUE(launch.isCooperative);
  EXPECT_FALSE(launch.overlaps);
  EXPECT_FALSE(launch.isOfGraph);
  EXPECT_EQ(launch.blocks, stepItems);
  EXPECT_EQ(launch.rowBlocks, 1U);
  EXPECT_EQ(launch.threads, 32U);
  EXPECT_EQ(launch.sharedBytes, 100U << 10);
  EXPECT_EQ(launch.last, 1);
}

TEST_F(ResidentTest, AStepWhoseTokenIsNotWantedSamplesNone) {
  ASSERT_TRUE(load().ok());
  const Tokens prompt = toy::cleanTokens(5, 3);
  Sequence sequence = begin(Tokens(prompt.begin(), prompt.end() - 1));
  Tokens best;
  ASSERT_TRUE(engine
                  ->step({{&sequence, {&prompt.back(), 1}}},
                         [&](const LogitsRow &row) {
                           best.push_back(static_cast<int32_t>(
                               std::ranges::max_element(row.values) -
                               row.values.begin()));
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_THAT(best, ElementsAre(toy::argmaxAfter(prompt)));
  EXPECT_THAT(lastOf("toyStep"), ElementsAre(0));
  EXPECT_EQ(launches.size(), 1U);
}

TEST_F(ResidentTest, ARunOfStepsIsOneLaunch) {
  constexpr int64_t steps = 11;
  const Tokens prompt = toy::cleanTokens(4, 9, 1);
  const int32_t first = toy::argmaxAfter(prompt);
  for (const double temperature : {0.0, 1.5}) {
    SCOPED_TRACE(temperature);
    Tokens expected;
    ASSERT_TRUE(load([](toy::ToyPlan &) {}).ok());
    {
      Sampler plain = sampler(temperature);
      Sequence chain = begin(prompt);
      expected = oneByOne(chain, first, plain, steps);
      EXPECT_THAT(lastOf("toyStep"), IsEmpty());
    }
    ASSERT_TRUE(load().ok());
    Sampler ahead = sampler(temperature), one = sampler(temperature);
    Sequence other = begin(prompt), sequence = begin(prompt);
    EXPECT_EQ(inFlight(sequence, first, ahead, steps, steps), expected);
    EXPECT_THAT(lastOf("toyStep"), ElementsAre(4, 4, 1, 1, 1));
    EXPECT_EQ(launches.size(), 5U);
    EXPECT_EQ(oneByOne(other, first, one, steps), expected);
  }
}

TEST_F(ResidentTest, WhatComesAfterAnEndIsAsIfNothingHadRunPastIt) {
  ASSERT_TRUE(load().ok());
  const Tokens prompt = toy::cleanTokens(4, 9, 1);
  const int32_t first = toy::argmaxAfter(prompt);
  Sampler plain = sampler(1.5), ahead = sampler(1.5);
  Sequence one = begin(prompt), two = begin(prompt);
  const Tokens expected = oneByOne(one, first, plain, 12);
  Tokens tokens = {first};
  for (const size_t wanted : {1, 6, 5}) {
    const Tokens next = inFlight(two, tokens.back(), ahead, 13, wanted);
    EXPECT_EQ(next.size(), wanted);
    tokens.insert(tokens.end(), next.begin(), next.end());
  }
  EXPECT_EQ(Tokens(tokens.begin() + 1, tokens.end()), expected);
}

TEST_F(ResidentTest, SeveralSequencesAndPromptsRunAsLaunches) {
  ASSERT_TRUE(load().ok());
  const Tokens prompt = toy::cleanTokens(4, 9, 1);
  const Tokens last = {prompt.back()};
  Sampler greedy = sampler();
  Sequence one = begin({prompt[0], prompt[1], prompt[2]});
  Sequence two = begin({prompt[0], prompt[1], prompt[2]});
  ASSERT_TRUE(
      engine->sample({{&one, last, &greedy}, {&two, last, &greedy}}).ok());
  EXPECT_THAT(lastOf("toyStep"), IsEmpty());
  EXPECT_THAT(lastOf("toyHash"), ElementsAre(2));
}

TEST_F(ResidentTest, AProfileTimesTheLaunch) {
  ASSERT_TRUE(load().ok());
  Sequence sequence = begin({5, 6, 7});
  Sampler greedy = sampler();
  Profile profile(model->plan());
  engine->setProfile(&profile);
  ASSERT_TRUE(sample(sequence, 8, greedy).ok());
  engine->setProfile(nullptr);
  const std::vector<KernelSum> sums = profile.sums();
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].kernel, "toyStep");
  EXPECT_EQ(sums[0].launches, 1);
  EXPECT_THAT(lastOf("toyStep"), ElementsAre(1));
}

TEST_F(ResidentTest, ATunePassesItBy) {
  ASSERT_TRUE(load([](toy::ToyPlan &toy) {
                toy.plan.kernels[1]->tuning = "hash";
                auto variant = std::make_unique<schema::VariantT>();
                variant->symbol = variant->tiles = "toyHash2";
                variant->source = "//";
                variant->geometry = std::make_unique<schema::GeometryT>(
                    *toy.plan.kernels[1]->geometry);
                variant->geometry->threads = 64;
                toy.plan.kernels[1]->variants.push_back(std::move(variant));
                addStep(toy);
              }).ok());
  addKernel("toyHash2", {6, false, [](const HostLaunch &launch) {
                           runAll(toyHash, launch.operands, launch.last);
                         }});
  const auto results =
      tuneModel(model, TuningStore(*tuningStorePath()), {.budget = 1e-3});
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 4U);
  EXPECT_THAT((*results)[0].skipped, HasSubstr("no kernel of it has variants"));
  EXPECT_THAT((*results)[1].skipped, HasSubstr("a resident step takes"));
  EXPECT_THAT((*results)[2].skipped, IsEmpty());
}

//===----------------------------------------------------------------------===//
// GPUs that it does not fit
//===----------------------------------------------------------------------===//

TEST_F(ResidentTest, BlocksAreAsManyAsRunAtOnce) {
  setenv("LLAMAC_FAKE_MULTIPROCESSORS", "3", 1);
  setenv("LLAMAC_FAKE_OCCUPANCY", "2", 1);
  ASSERT_TRUE(load().ok());
  Sequence sequence = begin({5, 6, 7});
  Sampler greedy = sampler();
  ASSERT_TRUE(sample(sequence, 8, greedy).ok());
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_EQ(launches[0].blocks, 6U);
}

TEST_F(ResidentTest, AQuarterOfTheBlocksIsEnough) {
  setenv("LLAMAC_FAKE_MULTIPROCESSORS", "2", 1);
  ASSERT_TRUE(load().ok());
  Sequence sequence = begin({5, 6, 7});
  Sampler greedy = sampler();
  ASSERT_TRUE(sample(sequence, 8, greedy).ok());
  EXPECT_EQ(launches[0].blocks, 2U);
}

struct Unfit {
  const char *name;
  const char *variable;
  const char *value;
  const char *reason;
};

class UnfitTest : public ResidentTest,
                  public testing::WithParamInterface<Unfit> {};

TEST_P(UnfitTest, TheProgramBehindRunsItsSteps) {
  setenv(GetParam().variable, GetParam().value, 1);
  testing::internal::CaptureStderr();
  const absl::Status status = load();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: " + file->path() +
                ": program step1: kernel toyStep: expected a GPU that runs at "
                "least 2 of its 8 blocks at once, of 32 threads and 102400 "
                "bytes of shared memory each, got cuda, Fake GPU, " +
                GetParam().reason + "; program rows1 runs its steps\n");
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(model->plan().programs.size(), 3U);
  EXPECT_EQ(model->plan().programs[0]->name, "rows1");
  const Tokens prompt = toy::cleanTokens(4, 9, 9);
  Sequence sequence = begin(prompt);
  Sampler greedy = sampler();
  const std::vector<int> expected = toy::greedyAfter(prompt, 9);
  EXPECT_EQ(inFlight(sequence, expected[0], greedy, 8, 8),
            Tokens(expected.begin() + 1, expected.end()));
  EXPECT_THAT(lastOf("toyStep"), IsEmpty());
  // The model as compiled has none of them either.
  const auto compiled = model->asCompiled();
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ((*compiled)->plan().programs.size(), 3U);
}

TEST_P(UnfitTest, WithoutAnotherProgramThePlanIsRefused) {
  setenv(GetParam().variable, GetParam().value, 1);
  const absl::Status status = load([](toy::ToyPlan &toy) {
    addStep(toy);
    toy.plan.programs.resize(1);
  });
  EXPECT_EQ(exitCode(status), ExitCode::Device);
  EXPECT_EQ(status.message(),
            file->path() +
                ": program step1: kernel toyStep: expected a GPU that runs at "
                "least 2 of its 8 blocks at once, of 32 threads and 102400 "
                "bytes of shared memory each, got cuda, Fake GPU, " +
                GetParam().reason +
                ", and the plan has no other program for its rows; compile "
                "with --resident-step=off");
}

INSTANTIATE_TEST_SUITE_P(
    Gpus, UnfitTest,
    testing::Values(Unfit{"OneMultiprocessor", "LLAMAC_FAKE_MULTIPROCESSORS",
                          "1", "which runs 1: 1 on each of 1 multiprocessors"},
                    Unfit{"NoRoom", "LLAMAC_FAKE_OCCUPANCY", "0",
                          "which runs 0: 0 on each of 132 multiprocessors"},
                    Unfit{"NoSharedMemory", "LLAMAC_FAKE_SHARED", "102399",
                          "which runs 0: 0 on each of 132 multiprocessors"},
                    Unfit{"NoCooperativeLaunches", "LLAMAC_FAKE_COOPERATIVE",
                          "0", "which has no cooperative launches"}),
    [](const auto &info) { return info.param.name; });

TEST_F(ResidentTest, ADriverThatDoesNotSayWhatFitsIsAnErrorOfTheDevice) {
  setenv("LLAMAC_FAKE_FAILS", "cuOccupancyMaxActiveBlocksPerMultiprocessor", 1);
  const absl::Status status = load();
  EXPECT_EQ(exitCode(status), ExitCode::Device);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kernel toyStep: cuOccupancyMaxActiveBlocksPerMultipro"
                        "cessor: the driver says CUDA_ERROR_UNKNOWN"));
}

TEST_F(ResidentTest, ALaunchThatDoesNotFitAnyMoreSaysWhatToDo) {
  ASSERT_TRUE(load().ok());
  Sequence sequence = begin({5, 6, 7});
  Sampler greedy = sampler();
  setenv("LLAMAC_FAKE_MULTIPROCESSORS", "4", 1);
  const absl::Status status = sample(sequence, 8, greedy).status();
  EXPECT_EQ(exitCode(status), ExitCode::Device);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("kernel toyStep: cuLaunchKernelEx: the driver "
                              "says CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
                    HasSubstr("; compile with --resident-step=off")));
  // Nothing has run: the GPU goes on, and the step may be tried again.
  unsetenv("LLAMAC_FAKE_MULTIPROCESSORS");
  EXPECT_TRUE(model->device().check().ok());
  EXPECT_TRUE(sample(sequence, 8, greedy).ok());
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

constexpr const char *faultOfStep =
    "the driver says CUDA_ERROR_LAUNCH_FAILED (as the fake driver was told); "
    "the blocks of kernel toyStep waited 10 s for each other, or it failed "
    "otherwise: compile with --resident-step=off";

TEST_F(ResidentTest, AFaultIsToldWithItsCauseAndWhatToDo) {
  ASSERT_TRUE(load().ok());
  Sequence sequence = begin({5, 6, 7});
  Sampler greedy = sampler();
  setenv("LLAMAC_FAKE_FAULT", "toyStep", 1);
  const absl::Status status = sample(sequence, 8, greedy).status();
  EXPECT_EQ(exitCode(status), ExitCode::Device);
  EXPECT_EQ(status.message(), std::string("program step1: ") + faultOfStep);
  // So it is from then on: nothing runs on counters that a fault has left.
  EXPECT_EQ(model->device().check(), status);
  EXPECT_EQ(sample(sequence, 8, greedy).status(), status);
  EXPECT_EQ(Engine::create(model).status(), status);
}

TEST_F(ResidentTest, ItIsToldSoWhoeverWaitsForIt) {
  ASSERT_TRUE(load().ok());
  const auto other = *Engine::create(model);
  Sequence sequence = begin({5, 6, 7}), behind = *other->newSequence();
  Sampler greedy = sampler();
  absl::Status status;
  const auto take = [&](absl::Span<const int32_t>) {
    setenv("LLAMAC_FAKE_FAULT", "toyStep", 1);
    // Its launches are behind those in flight of the first one.
    const Tokens prompt = {8, 9};
    if (status.ok())
      status = other->step({{&behind, prompt}},
                           [](const LogitsRow &) { return absl::OkStatus(); });
    return true;
  };
  const absl::Status first =
      engine->decode({{&sequence, 8, &greedy}}, 13, take);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("program rows4: the driver says"));
  EXPECT_THAT(std::string(first.message()), HasSubstr(faultOfStep));
  EXPECT_EQ(model->device().check(), first);
}

TEST_F(ResidentTest, SoIsOneOfStepsInFlight) {
  ASSERT_TRUE(load().ok());
  const Tokens prompt = toy::cleanTokens(4, 9, 9);
  Sequence sequence = begin(prompt);
  Sampler greedy = sampler();
  Tokens tokens;
  const absl::Status status =
      engine->decode({{&sequence, toy::argmaxAfter(prompt), &greedy}}, 13,
                     [&](absl::Span<const int32_t> chosen) {
                       tokens.push_back(chosen[0]);
                       setenv("LLAMAC_FAKE_FAULT", "toyStep", 1);
                       return true;
                     });
  EXPECT_EQ(exitCode(status), ExitCode::Device);
  EXPECT_THAT(std::string(status.message()), HasSubstr(faultOfStep));
  // These tokens are from the run that had been done.
  EXPECT_EQ(tokens.size(), 4U);
  // The step that is to find out whose an error is has the same.
  EXPECT_EQ(sample(sequence, 8, greedy).status(), status);
  EXPECT_EQ(model->device().check(), status);
}

TEST_F(ResidentTest, AFaultOfAnotherKernelSaysNothingOfTheStep) {
  ASSERT_TRUE(load().ok());
  Sequence sequence = begin({5, 6, 7});
  Sampler greedy = sampler();
  ASSERT_TRUE(sample(sequence, 8, greedy).ok());
  setenv("LLAMAC_FAKE_FAULT", "toyHash", 1);
  const Tokens more = {9, 10, 11};
  const absl::Status status =
      engine->sample({{&sequence, more, &greedy}}).status();
  EXPECT_EQ(exitCode(status), ExitCode::Device);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("program rows4: the driver says "
                              "CUDA_ERROR_LAUNCH_FAILED"),
                    Not(HasSubstr("toyStep"))));
}

} // namespace
} // namespace llamac
