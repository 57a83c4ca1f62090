//===- OpsTest.cpp - Every case on every device ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Register.h"
#include "tests/conformance/ops/Cases.h"

#include "compiler/driver/Compiler.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

namespace llamac::conformance {

//===----------------------------------------------------------------------===//
// The cases
//===----------------------------------------------------------------------===//

OpCase oneStep(const std::string &name, std::shared_ptr<const Program> program,
               Step step,
               std::function<std::vector<ExpectedRow>(const Numerics &)> rows) {
  return {name,
          std::move(program),
          {std::move(step)},
          [rows = std::move(rows)](const Numerics &numerics) {
            return std::vector<std::vector<ExpectedRow>>{rows(numerics)};
          }};
}

Model plainModel() { return {"plain", 4, 2, 16, 64}; }

std::string frequenciesText(const std::vector<double> &frequencies) {
  std::string list;
  for (const double frequency : frequencies)
    absl::StrAppendFormat(&list, "%s%.17e", list.empty() ? "" : ", ",
                          frequency);
  return absl::StrFormat("dense<[%s]> : tensor<%dxf64>", list,
                         frequencies.size());
}

const std::vector<OpCase> &opCases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> list;
    addRowwiseCases(list);
    addMatmulCases(list);
    addAttentionCases(list);
    addSamplingCases(list);
    return list;
  }();
  return cases;
}

/// The programs of the cases of one model, each with the rows of its steps.
static std::vector<ProgramUse> programsOf(const std::string &model) {
  std::vector<ProgramUse> uses;
  for (const OpCase &test : opCases()) {
    if (test.program->model.name != model)
      continue;
    auto use = std::find_if(uses.begin(), uses.end(), [&](const auto &known) {
      return known.program == test.program;
    });
    if (use == uses.end())
      use = uses.insert(uses.end(), {test.program, {}});
    for (const Step &step : test.steps)
      use->rows.push_back(step.rows());
  }
  return uses;
}

//===----------------------------------------------------------------------===//
// Running them
//===----------------------------------------------------------------------===//

/// Where `got` is not what it should be; empty when it is.
static std::string mismatch(const std::vector<float> &got,
                            const std::vector<ExpectedRow> &expected,
                            int64_t width) {
  // Devices may give 0 for numbers that fp32 has with fewer digits only.
  constexpr double smallest = 0x1p-126;
  if (got.size() != expected.size() * width)
    return absl::StrFormat("%d numbers, expected %d", got.size(),
                           expected.size() * width);
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t row = i / width, column = i % width;
    const Expected &number = expected[row][column];
    // An output that depends on a NaN or an infinity is not finite either.
    const bool agrees =
        std::isfinite(number.value)
            ? std::abs(got[i] - number.value) <= number.bound + smallest
            : !std::isfinite(got[i]);
    if (!agrees && !number.isOpen)
      return absl::StrFormat("row %d column %d is %g, expected %g within %g",
                             row, column, got[i], number.value, number.bound);
  }
  return {};
}

namespace {

using Loaded = absl::StatusOr<std::unique_ptr<LoadedPrograms>>;

/// Compiles the programs of a model when the first of its cases runs.
class Loader {
public:
  explicit Loader(OpDeviceRow row) : row(std::move(row)) {}

  const OpDeviceRow &device() const { return row; }

  const Loaded &get(const Model &model) {
    auto it = models.find(model.name);
    if (it == models.end())
      it = models.emplace(model.name, row.load(model, programsOf(model.name)))
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
  ASSERT_EQ((*loaded)->reset(), absl::OkStatus());
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

static const OpCase &caseNamed(const std::string &name) {
  const auto test =
      std::find_if(opCases().begin(), opCases().end(),
                   [&](const OpCase &known) { return known.name == name; });
  if (test == opCases().end()) {
    ADD_FAILURE() << "no case is called " << name;
    std::abort();
  }
  return *test;
}

void registerOpTests() {
  for (const OpDeviceRow &row : opDevices()) {
    auto loader = std::make_shared<Loader>(row);
    for (const OpCase &test : opCases()) {
      if (row.seesAccesses && test.isVariant)
        continue;
      testing::RegisterTest(("Conformance/" + row.name).c_str(),
                            test.name.c_str(), nullptr, nullptr, __FILE__,
                            __LINE__, [loader, &test]() -> testing::Test * {
                              return new OpTest(loader, test);
                            });
    }
    // Of the same range of row counts on every target.
    static constexpr struct {
      const char *many, *few;
    } pairs[] = {
        {"matmul_bf16_r130", "matmul_bf16_r9"},
        {"matmul_q4_0_r65", "matmul_q4_0_r9"},
        {"matmul_gated_norm_q8_0_r65", "matmul_gated_norm_q8_0_r9"},
        {"matmul_gated_norm_bf16_r65", "matmul_gated_norm_bf16_r9"},
        {"rms_norm_w576_r67", "rms_norm_w576_r5"},
    };
    for (const auto &[many, few] : pairs)
      testing::RegisterTest(("Conformance/" + row.name).c_str(),
                            (std::string("rows_by_themselves_") + many).c_str(),
                            nullptr, nullptr, __FILE__, __LINE__,
                            [loader, &many = caseNamed(many),
                             &few = caseNamed(few)]() -> testing::Test * {
                              return new RowsTest(loader, many, few);
                            });
  }
}

//===----------------------------------------------------------------------===//
// The list is whole
//===----------------------------------------------------------------------===//

TEST(ConformanceCases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const OpCase &test : opCases())
    EXPECT_TRUE(names.insert(test.name).second) << test.name;
}

TEST(ConformanceCases, UseEveryOpOfTheKernelDialect) {
  // The merge is made by choose-kernels, behind attention of few rows.
  std::string bodies = "kernel.attention_merge ";
  for (const OpCase &test : opCases())
    bodies += test.program->body + "\n";
  const std::unique_ptr<mlir::MLIRContext> context = createContext();
  for (const mlir::RegisteredOperationName &op :
       context->getRegisteredOperations())
    if (op.getDialectNamespace() == "kernel")
      EXPECT_NE(bodies.find(op.getStringRef().str() + " "), std::string::npos)
          << op.getStringRef().str() << " has no case";
}

TEST(ConformanceCases, AreRunOnEveryDeviceByCtest) {
  std::vector<std::string> names;
  for (const OpDeviceRow &row : opDevices())
    names.push_back(row.name);
  EXPECT_EQ(absl::StrJoin(names, " "), LLAMAC_CONFORMANCE_DEVICES);
}

// What a wrong kernel would give, as far as a wrong op of the interpreter gives
// it, is out of the bounds of every device.
TEST(ConformanceCases, FindAWrongOp) {
  static constexpr struct {
    const char *name;
    const char *right, *wrong; ///< In the program's text.
  } plants[] = {
      {"matmul_residual_q8_0_normal_r67", "arith.addf", "arith.subf"},
      {"matmul_gated_norm_q4_0_r3", "%s, %b", "%a, %b"},
      {"rms_norm_w72_small", "1.0e-5", "1.1e-5"},
      {"pointwise_gated_w8_r66", "arith.mulf %s, %q", "arith.mulf %p, %q"},
      {"rope_table_of_wanted_rows", "3.16227", "3.16228"},
      {"qkv_mixed", "1.00000000000000000e+00", "1.10000000000000000e+00"},
      {"qkv_attention_mixed", "scale = 2.5", "scale = 2.7"},
      {"attention_gqa2_h16_prompt", "scale = 2.50", "scale = 2.55"},
  };
  const std::vector<OpDeviceRow> devices = opDevices();
  for (const auto &[name, right, wrong] : plants) {
    SCOPED_TRACE(name);
    const OpCase &test = caseNamed(name);
    const auto planted = std::make_shared<Program>(*test.program);
    const size_t at = planted->body.find(right);
    ASSERT_NE(at, std::string::npos);
    planted->body.replace(at, std::string(right).size(), wrong);
    const auto loaded = loadOnReference(planted->model, {{planted, {}}});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    std::vector<std::vector<float>> results;
    for (const Step &step : test.steps) {
      auto got = (*loaded)->run(*planted, step);
      ASSERT_TRUE(got.ok()) << got.status();
      results.push_back(*std::move(got));
    }
    for (const OpDeviceRow &device : devices) {
      const auto expected = test.expected(device.numerics);
      bool found = false;
      for (size_t i = 0; i < results.size(); ++i)
        found |= !mismatch(results[i], expected[i], planted->outWidth).empty();
      EXPECT_TRUE(found) << "not found within the bounds of " << device.name;
    }
  }
}

} // namespace llamac::conformance
