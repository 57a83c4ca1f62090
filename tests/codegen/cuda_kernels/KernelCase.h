//===- KernelCase.h - Small models on the simulator -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fixture that has one small model's kernels, compiled for the simulator, and
// the double-precision mathematics to compare them with.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_DEVICE_KERNELCASE_H
#define LLAMAC_TESTS_CODEGEN_DEVICE_KERNELCASE_H

#include "Cases.h"
#include "Runner.h"

#include "runtime/base/DataType.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace llamac::cuda {

struct SmallModel {
  const char *name;
  DataType type; ///< Stored type of the weights.
  ModelCase model;
};

/// A model and how its kernels are run.
struct KernelCase {
  SmallModel small;
  RunMode mode;
};

using Doubles = std::vector<double>;

/// A matrix [outputs][depth]: its values, and as the kernels read it.
struct Matrix {
  int64_t outputs;
  int64_t depth;
  Doubles values;
  /// |d q| + |m| of each, for weights d q + m: the parts are summed apart. The
  /// same as |w| of formats without m.
  Doubles parts;
  DeviceBytes packed;
};

/// A sum of products, and the sum of their magnitudes, to which rounding
/// errors are proportional.
struct Sum {
  double value = 0;
  double magnitude = 0;
  double parts = 0; ///< The magnitude with Matrix::parts in place of the
                    ///< weights.
};

class KernelCaseTest : public testing::TestWithParam<KernelCase> {
protected:
  void SetUp() override;

  /// Launches kernel `name`; its operands in order.
  void run(const std::string &name, const LaunchShape &shape, int64_t rows,
           const std::vector<Operand> &operands,
           const std::vector<MapShape> &maps = {});

  Matrix matrix(int64_t outputs, int64_t depth);
  std::vector<float> floats(size_t count, float scale = 1);

  /// W x for one output.
  static Sum product(const Matrix &w, int64_t output, const Doubles &x);

  /// x / sqrt(mean(x^2) + eps) * gain.
  static Doubles normalised(const float *x, const std::vector<float> &gain);

  ModelCase model;
  DataType type;
  std::mt19937 random{1234};

private:
  std::unique_ptr<Runner> runner;
};

/// The format of the cache: the value nearest to `value`, its bits, and half
/// the distance to the next, relative to the value.
double roundedToKv(KvFormat format, float value);
uint16_t kvBits(KvFormat format, float value);
double kvValue(KvFormat format, uint16_t bits);
double kvUnit(KvFormat format);

/// Every model in every mode, for INSTANTIATE_TEST_SUITE_P.
std::vector<KernelCase> kernelCases();
std::string nameOf(const testing::TestParamInfo<KernelCase> &info);

} // namespace llamac::cuda

#endif // LLAMAC_TESTS_CODEGEN_DEVICE_KERNELCASE_H
