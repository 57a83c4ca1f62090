//===- OpRuns.cpp - Every case on every device ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "tests/conformance/Register.h"
#include "tests/conformance/ops/Cases.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <string_view>

namespace llamac::conformance {

// Pairs of row counts that have the same kernel on every target: a device with
// the kernel of the first has that of the second.
static constexpr struct {
  const char *many, *few;
} pairs[] = {
    {"matmul_bf16_r512", "matmul_bf16_r130"},
    {"matmul_q4_0_r100", "matmul_q4_0_r65"},
    {"matmul_gated_norm_q8_0_r100", "matmul_gated_norm_q8_0_r65"},
    {"matmul_gated_norm_bf16_r100", "matmul_gated_norm_bf16_r65"},
    {"rms_norm_w576_r67", "rms_norm_w576_r5"},
};

static const char suitePrefix[] = "Conformance/";

/// The cases that this process runs, on whatever device: --gtest_filter need
/// not take all.
static std::set<std::string> casesToRun() {
  std::set<std::string> cases;
  const testing::UnitTest &all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite &suite = *all.GetTestSuite(i);
    if (!std::string_view(suite.name()).starts_with(suitePrefix))
      continue;
    for (int k = 0; k < suite.total_test_count(); ++k)
      if (const testing::TestInfo &test = *suite.GetTestInfo(k);
          test.should_run())
        cases.insert(test.name());
  }
  for (const auto &[many, few] : pairs)
    if (cases.contains(std::string(rowsPrefix) + many))
      cases.insert({many, few});
  return cases;
}

namespace {

using Loaded = absl::StatusOr<std::unique_ptr<LoadedPrograms>>;

/// Compiles the programs of a model that are to run when the first of its cases
/// does.
class Loader {
public:
  explicit Loader(OpDeviceRow row) : row(std::move(row)) {}

  const OpDeviceRow &device() const { return row; }

  const Loaded &get(const Model &model) {
    auto it = models.find(model.name);
    if (it == models.end())
      it = models
               .emplace(model.name,
                        row.load(model, programsOf(model.name, casesToRun())))
               .first;
    return it->second;
  }

private:
  OpDeviceRow row;
  std::map<std::string, Loaded> models;
};

class OpTest : public testing::Test {
public:
  OpTest(std::shared_ptr<Loader> loader, const OpCase &test)
      : loader(std::move(loader)), test(test) {}

  void TestBody() override;

private:
  std::shared_ptr<Loader> loader;
  const OpCase &test;
};

} // namespace

void OpTest::TestBody() {
  const OpDeviceRow &device = loader->device();
  const Program &program = *test.program;
  const Loaded &loaded = loader->get(program.model);
  if (auto refusal = device.refusals.find(program.model.name);
      refusal != device.refusals.end()) {
    ASSERT_FALSE(loaded.ok()) << "expected to be refused";
    EXPECT_THAT(std::string(loaded.status().message()),
                testing::HasSubstr(refusal->second));
    return;
  }
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const absl::Status reset = (*loaded)->reset();
  if (test.isLarge && exitCode(reset) == ExitCode::Memory)
    GTEST_SKIP() << reset.message();
  ASSERT_EQ(reset, absl::OkStatus());
  const auto expected = test.expected(device.numerics);
  ASSERT_EQ(expected.size(), test.steps.size());
  for (size_t i = 0; i < test.steps.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "step " << i);
    const auto got = (*loaded)->run(program, test.steps[i]);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(mismatch(*got, expected[i], program.outWidth), "");
  }
}

namespace {

/// A row gives the same bits whatever other rows are in the step.
class RowsTest : public testing::Test {
public:
  /// The steps of `few` are rows that `many` begins with.
  RowsTest(std::shared_ptr<Loader> loader, const OpCase &many,
           const OpCase &few)
      : loader(std::move(loader)), many(many), few(few) {}

  void TestBody() override {
    const Loaded &loaded = loader->get(many.program->model);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    std::vector<float> results[2];
    for (const OpCase *test : {&many, &few}) {
      ASSERT_EQ((*loaded)->reset(), absl::OkStatus());
      auto got = (*loaded)->run(*test->program, test->steps[0]);
      ASSERT_TRUE(got.ok()) << got.status();
      results[test == &few] = *std::move(got);
    }
    ASSERT_LT(results[1].size(), results[0].size());
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(),
                          results[1].size() * sizeof(float)),
              0);
  }

private:
  std::shared_ptr<Loader> loader;
  const OpCase &many;
  const OpCase &few;
};

} // namespace

void registerOpTests(const std::vector<OpDeviceRow> &devices) {
  for (const OpDeviceRow &row : devices) {
    auto loader = std::make_shared<Loader>(row);
    for (const OpCase &test : opCases()) {
      // A device's record of accesses takes as much memory again.
      if (row.seesAccesses && (test.isVariant || test.isLarge))
        continue;
      testing::RegisterTest((suitePrefix + row.name).c_str(), test.name.c_str(),
                            nullptr, nullptr, __FILE__, __LINE__,
                            [loader, &test]() -> testing::Test * {
                              return new OpTest(loader, test);
                            });
    }
    for (const auto &[many, few] : pairs)
      testing::RegisterTest((suitePrefix + row.name).c_str(),
                            (std::string(rowsPrefix) + many).c_str(), nullptr,
                            nullptr, __FILE__, __LINE__,
                            [loader, &many = caseNamed(many),
                             &few = caseNamed(few)]() -> testing::Test * {
                              return new RowsTest(loader, many, few);
                            });
  }
}

} // namespace llamac::conformance
