//===- ModelTest.cpp - A plan, loaded and ready to run --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/step/Model.h"

#include "runtime/base/Status.h"
#include "tests/engine/toy/ToyModel.h"
#include "tests/frontends/tokenizer/TokenizerFixtures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using toy::ToyPlan;
using toy::ToyPlanFile;

static absl::Status loadStatus(const std::function<void(ToyPlan &)> &change,
                               const ModelOptions &options = {.threads = 1}) {
  ToyPlanFile file(change);
  return Model::load(file.path(), options).status();
}

TEST(ModelTest, KnowsItsPlan) {
  ToyPlanFile file;
  const auto model = Model::load(file.path(), {.threads = 3});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->context(), toy::context);
  EXPECT_EQ((*model)->config().vocabSize, toy::vocab);
  EXPECT_EQ((*model)->device().threads(), 3);
  EXPECT_EQ((*model)->code().isa(), "portable");
  EXPECT_THAT((*model)->stopIds(), testing::ElementsAre(1));
  EXPECT_GT((*model)->loadTimes().all(), 0);
}

TEST(ModelTest, PromptsBeginAsTheModelIsUsedTo) {
  ToyPlanFile file;
  const auto model = Model::load(file.path(), {.threads = 1});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(*(*model)->encode("cab"), ElementsAre(0, 4, 2, 3));
  EXPECT_THAT(*(*model)->encode("a</s>"), ElementsAre(0, 2, 1));
  ToyPlanFile bare([](ToyPlan &toy) { toy.plan.tokenizer->addBos = false; });
  const auto other = Model::load(bare.path(), {.threads = 1});
  EXPECT_THAT(*(*other)->encode("cab"), ElementsAre(4, 2, 3));
}

TEST(ModelTest, AnotherTargetIsADeviceError) {
  const absl::Status status =
      loadStatus([](ToyPlan &toy) { toy.plan.target = "tpu"; });
  EXPECT_EQ(exitCode(status), ExitCode::Device);
  EXPECT_THAT(std::string(status.message()), HasSubstr("got tpu"));
}

TEST(ModelTest, CodeForNoLevelOfThisMachineIsADeviceError) {
  for (const char *isa : {"x86-64-v9", "armv9"}) {
    const absl::Status status =
        loadStatus([&](ToyPlan &toy) { toy.plan.code[0]->isa = isa; });
    EXPECT_EQ(exitCode(status), ExitCode::Device);
    EXPECT_THAT(std::string(status.message()), HasSubstr(isa));
  }
  EXPECT_EQ(exitCode(loadStatus([](ToyPlan &toy) { toy.plan.code.clear(); })),
            ExitCode::Device);
}

TEST(ModelTest, CodeThatIsNoSharedObjectIsABadPlan) {
  const absl::Status status =
      loadStatus([](ToyPlan &toy) { toy.sections[3].bytes = "no ELF"; });
  EXPECT_EQ(exitCode(status), ExitCode::BadPlan);
  EXPECT_THAT(std::string(status.message()), HasSubstr("section 3"));
}

TEST(ModelTest, AKernelThatIsMissingIsABadPlan) {
  const absl::Status status =
      loadStatus([](ToyPlan &toy) { toy.plan.kernels[1]->symbol = "nowhere"; });
  EXPECT_EQ(exitCode(status), ExitCode::BadPlan);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nowhere"));
}

TEST(ModelTest, ATokenizerThatIsNoneIsABadPlan) {
  EXPECT_EQ(exitCode(loadStatus(
                [](ToyPlan &toy) { toy.sections[4].bytes = "no blob"; })),
            ExitCode::BadPlan);
}

TEST(ModelTest, ATemplateThatDoesNotParseIsNoErrorOfTheModel) {
  EXPECT_TRUE(loadStatus([](ToyPlan &toy) {
                test::GgufFixture fixture;
                fixture.chatTemplates["default"] = "{% if %}";
                toy.sections[4].bytes = *buildGgufBlob(fixture.vocabulary());
              }).ok());
}

TEST(ModelTest, OptionsThatCannotBeAreUsageErrors) {
  EXPECT_EQ(exitCode(loadStatus({}, {.threads = -1})), ExitCode::Usage);
  EXPECT_EQ(exitCode(loadStatus({}, {.threads = 100000})), ExitCode::Usage);
  EXPECT_EQ(exitCode(loadStatus({}, {.threads = 1, .isa = "z80"})),
            ExitCode::Usage);
}

} // namespace
} // namespace llamac
