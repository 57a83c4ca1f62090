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

#include <gtest/gtest.h>
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

} // namespace llamac::conformance
