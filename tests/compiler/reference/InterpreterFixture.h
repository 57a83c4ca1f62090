//===- InterpreterFixture.h - Runs functions of test IR ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_COMPILER_REFERENCE_INTERPRETERFIXTURE_H
#define LLAMAC_TESTS_COMPILER_REFERENCE_INTERPRETERFIXTURE_H

#include "compiler/reference/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace llamac::reference {

/// Runs functions given as text; a test class loads the dialects they use and
/// supplies their weights.
class InterpreterFixture : public testing::Test {
protected:
  explicit InterpreterFixture(unsigned seed) : generator(seed) {}

  /// Rows of a weight, as a WeightReader gives them.
  virtual absl::Status readWeight(const Weight &weight, int64_t first,
                                  int64_t count, float *out) = 0;

  /// Changes a module that was parsed before it runs.
  virtual void prepare(mlir::ModuleOp parsed) {}

  /// Runs `func.func @f(parameters) -> results { body }`.
  absl::StatusOr<std::vector<ValuePtr>> tryRun(const std::string &signature,
                                               const std::string &body,
                                               std::vector<Value> arguments) {
    const std::string text = "!kv = !llama.kv<heads = 1, size = 2>\n"
                             "func.func @f" +
                             signature + " {\n" + body + "\n}";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << "does not parse:\n" << text;
      return absl::InternalError("no module");
    }
    prepare(*module);
    auto interpreter =
        Interpreter::create(module->lookupSymbol<mlir::func::FuncOp>("f"));
    if (!interpreter.ok())
      return interpreter.status();
    std::vector<ValuePtr> values;
    for (Value &argument : arguments)
      values.push_back(std::make_shared<Value>(std::move(argument)));
    auto reader = [this](const Weight &weight, int64_t first, int64_t count,
                         float *out) {
      return readWeight(weight, first, count, out);
    };
    WeightStore store(reader, 1 << 20);
    Parallel parallel(2);
    return interpreter->run(std::move(values), store, parallel);
  }

  Tensor run(const std::string &signature, const std::string &body,
             std::vector<Value> arguments) {
    auto results = tryRun(signature, body, std::move(arguments));
    if (!results.ok()) {
      ADD_FAILURE() << results.status().ToString();
      return Tensor();
    }
    return std::get<Tensor>(*results->front());
  }

  Tensor random(std::vector<int64_t> shape) {
    Tensor tensor(std::move(shape));
    for (float &x : tensor.data)
      x = std::normal_distribution<float>()(generator);
    return tensor;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::mt19937 generator;
};

/// Expects every element within `tolerance` of the largest expected one.
inline void expectNear(const std::vector<float> &got,
                       const std::vector<double> &expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0;
  for (double x : expected)
    largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance * largest) << "element " << i;
}

} // namespace llamac::reference

#endif // LLAMAC_TESTS_COMPILER_REFERENCE_INTERPRETERFIXTURE_H
