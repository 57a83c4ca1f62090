//===- OpsTest.cpp - What is promised of the cases ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/Cases.h"

#include "compiler/driver/Compiler.h"

#include "absl/strings/str_join.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <set>

namespace llamac::conformance {

//===----------------------------------------------------------------------===//
// The list is whole
//===----------------------------------------------------------------------===//

TEST(ConformanceCases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const OpCase &test : opCases())
    EXPECT_TRUE(names.insert(test.name).second) << test.name;
}

TEST(ConformanceCases, UseEveryOpOfTheKernelDialect) {
  // The merge is made by choose-kernels, behind attention of few rows. A step
  // in one launch is a whole model's: tests/e2e/test_resident.py has it.
  std::string bodies =
      "kernel.attention_merge kernel.resident kernel.layers kernel.return ";
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

// The results of a wrong op of the interpreter, which stands for a wrong
// kernel, are out of the bounds of every device.
TEST(ConformanceCases, FindAWrongOp) {
  static constexpr struct {
    const char *name;
    const char *right, *wrong; ///< In the program's text.
  } plants[] = {
      {"matmul_residual_q8_0_normal_r67", "arith.addf", "arith.subf"},
      {"matmul_gated_norm_q4_0_r3", "%s, %b", "%a, %b"},
      {"rms_norm_w72_small", "1.0e-5", "1.1e-5"},
      {"all_reduce_bf16_w72_over2_added_r7", "arith.addf", "arith.subf"},
      {"pointwise_gated_w8_r66", "arith.mulf %s, %q", "arith.mulf %p, %q"},
      {"rope_table_of_wanted_rows", "3.16227", "3.16228"},
      {"qkv_mixed", "1.00000000000000000e+00", "1.10000000000000000e+00"},
      {"qkv_attention_mixed", "scale = 2.5", "scale = 2.7"},
      {"qkv_products_key_bf16_r4", "1.0e-5", "1.0e-2"},
      {"rope_append_apart_norm4_mixed", "1.0e-5", "1.0e-2"},
      {"attention_gqa2_h16_prompt", "scale = 2.50", "scale = 2.55"},
  };
  const std::vector<OpDeviceRow> devices = opDevices();
  for (const auto &[name, right, wrong] : plants) {
    SCOPED_TRACE(name);
    const OpCase &test = caseNamed(name);
    const auto seeded = std::make_shared<Program>(*test.program);
    const size_t at = seeded->body.find(right);
    ASSERT_NE(at, std::string::npos);
    seeded->body.replace(at, std::string(right).size(), wrong);
    const auto loaded = loadOnReference(seeded->model, {{seeded, {}}});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    std::vector<std::vector<float>> results;
    for (const Step &step : test.steps) {
      auto got = (*loaded)->run(*seeded, step);
      ASSERT_TRUE(got.ok()) << got.status();
      results.push_back(*std::move(got));
    }
    for (const OpDeviceRow &device : devices) {
      const auto expected = test.expected(device.numerics);
      bool found = false;
      for (size_t i = 0; i < results.size(); ++i)
        found |= !mismatch(results[i], expected[i], seeded->outWidth).empty();
      EXPECT_TRUE(found) << "not found within the bounds of " << device.name;
    }
  }
}

// Approximate instructions of a GPU give 0 where fp32 has fewer digits.
TEST(ConformanceCases, BearAReciprocalThatIsFlushed) {
  const auto flush = [](double value) {
    return std::abs(value) < std::numeric_limits<float>::min() ? 0 : value;
  };
  for (const bool isGelu : {false, true}) {
    const OpCase &test = caseNamed(isGelu ? "pointwise_gelu_w202_r66"
                                          : "pointwise_gated_w202_r66");
    const std::vector<float> &a = test.steps[0].inputs.at("a");
    const std::vector<float> &b = test.steps[0].inputs.at("b");
    std::vector<float> right(a.size()), wrong(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = a[i];
      const double u =
          std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      const double reciprocal = 1 / (1 + std::exp(isGelu ? -2 * u : -x));
      right[i] = static_cast<float>(flush(flush(reciprocal) * x * b[i]));
      // Many times what may be lost.
      const bool isLost = right[i] == 0 && flush(reciprocal * x * b[i]) != 0;
      wrong[i] =
          isLost ? static_cast<float>(9 * flushError * x * b[i]) : right[i];
    }
    EXPECT_NE(wrong, right) << "the case has no such number";
    const auto expected = test.expected(opDevices()[0].numerics);
    EXPECT_EQ(mismatch(right, expected[0], test.program->outWidth), "");
    EXPECT_NE(mismatch(wrong, expected[0], test.program->outWidth), "");
  }
}

} // namespace llamac::conformance
