//===- RowwiseTest.cpp - Row-wise kernels on the simulator ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelCase.h"

#include <cmath>
#include <cstring>

namespace llamac::cuda {
namespace {

class RowwiseTest : public KernelCaseTest {};

TEST_P(RowwiseTest, EmbedsTokens) {
  const Matrix table = matrix(model.vocabulary, model.width);
  const std::vector<int> ids = {0, static_cast<int>(model.vocabulary) - 1, 7,
                                7};
  DeviceBytes tokens(ids), packed(table.packed);
  DeviceBytes out(ids.size() * model.width * sizeof(float));
  run("embed_tokens", rowwiseShape(), ids.size(),
      {reads(tokens), reads(packed), writes(out)});
  for (size_t r = 0; r < ids.size(); ++r)
    for (int64_t k = 0; k < model.width; ++k) {
      const int64_t at = ids[r] * model.width + k;
      // Products and sums with an offset are rounded.
      ASSERT_NEAR(out.as<float>()[r * model.width + k], table.values[at],
                  0x1p-23 * table.parts[at])
          << "row " << r << " column " << k;
    }
}

TEST_P(RowwiseTest, Normalises) {
  const int64_t rows = 3;
  std::vector<float> x = floats(rows * model.width, 2);
  x[2 * model.width] = NAN;
  const std::vector<float> gain = floats(model.width);
  DeviceBytes input(x), weights(gain), out(x.size() * sizeof(float));
  run("rms_norm", rowwiseShape(), rows,
      {reads(input), reads(weights), writes(out)});
  for (int64_t r = 0; r < rows; ++r) {
    const Doubles expected = normalised(&x[r * model.width], gain);
    for (int64_t k = 0; k < model.width; ++k) {
      const float value = out.as<float>()[r * model.width + k];
      if (r == 2)
        ASSERT_TRUE(std::isnan(value)) << "column " << k;
      else
        ASSERT_NEAR(value, expected[k], 1e-5 * (1 + std::abs(expected[k])))
            << "row " << r << " column " << k;
    }
  }
}

TEST_P(RowwiseTest, GathersRowsAndNumbers) {
  const std::vector<float> x = floats(5 * model.width);
  const std::vector<int> numbers = {10, 11, 12, 13, 14}, wanted = {4, 0, 4};
  DeviceBytes input(x), index(wanted), list(numbers);
  DeviceBytes out(3 * model.width * sizeof(float)), picked(3 * sizeof(int));
  run("gather_rows", rowwiseShape(), 3,
      {reads(input), reads(index), writes(out)});
  run("gather_numbers", rowwiseShape(), 3,
      {reads(list), reads(index), writes(picked)});
  for (int64_t r = 0; r < 3; ++r) {
    EXPECT_EQ(picked.as<int>()[r], 10 + wanted[r]);
    for (int64_t k = 0; k < model.width; ++k)
      ASSERT_EQ(out.as<float>()[r * model.width + k],
                x[wanted[r] * model.width + k]);
  }
}

TEST_P(RowwiseTest, AppliesAFunctionToEveryElement) {
  const std::vector<float> a = floats(2 * model.width);
  const std::vector<float> b = floats(2 * model.width);
  DeviceBytes first(a), second(b), out(a.size() * sizeof(float));
  run("add", pointwiseShape(model.width), 2,
      {reads(first), reads(second), writes(out)});
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(out.as<float>()[i], a[i] + b[i]);
}

TEST_P(RowwiseTest, CosSinCacheOfFarPositions) {
  const std::vector<int> where = {0, 1, 4097, 131071};
  std::vector<double> radians(model.headSize / 2);
  for (size_t i = 0; i < radians.size(); ++i)
    radians[i] = std::pow(500000.0, -2.0 * static_cast<double>(i) /
                                        static_cast<double>(model.headSize));
  DeviceBytes positions(where), frequencies(radians);
  DeviceBytes out(where.size() * model.headSize * sizeof(float));
  run("rope_table", ropeTableShape(), where.size(),
      {reads(positions), reads(frequencies), writes(out)});
  for (size_t r = 0; r < where.size(); ++r)
    for (size_t i = 0; i < radians.size(); ++i) {
      const double angle = where[r] * radians[i];
      const float *cosSinOfPair = out.as<float>() + r * model.headSize + 2 * i;
      ASSERT_NEAR(cosSinOfPair[0], std::cos(angle), 6e-8) << r << " " << i;
      ASSERT_NEAR(cosSinOfPair[1], std::sin(angle), 6e-8) << r << " " << i;
    }
}

TEST_P(RowwiseTest, EmbedsAndMakesTheCosSinCacheInOneLaunch) {
  const Matrix table = matrix(model.vocabulary, model.width);
  const std::vector<int> ids = {3, 0, 5}, where = {0, 90, 131071};
  std::vector<double> radians(model.headSize / 2);
  for (size_t i = 0; i < radians.size(); ++i)
    radians[i] = std::pow(10000.0, -2.0 * static_cast<double>(i) /
                                       static_cast<double>(model.headSize));
  DeviceBytes tokens(ids), packed(table.packed), positions(where),
      frequencies(radians);
  const size_t rowBytes = model.width * sizeof(float);
  const size_t cosSinBytes = model.headSize * sizeof(float);
  DeviceBytes x(ids.size() * rowBytes), cosSin(ids.size() * cosSinBytes);
  run("embed_with_cos_sin", rowwiseShape(), ids.size(),
      {reads(tokens), reads(packed), reads(positions), reads(frequencies),
       writes(x), writes(cosSin)});
  // The two launches give the same bits.
  DeviceBytes alone(x.size()), table2(cosSin.size());
  run("embed_tokens", rowwiseShape(), ids.size(),
      {reads(tokens), reads(packed), writes(alone)});
  run("rope_table", ropeTableShape(), ids.size(),
      {reads(positions), reads(frequencies), writes(table2)});
  EXPECT_EQ(std::memcmp(x.data(), alone.data(), x.size()), 0);
  EXPECT_EQ(std::memcmp(cosSin.data(), table2.data(), cosSin.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, RowwiseTest, testing::ValuesIn(kernelCases()),
                         nameOf);

} // namespace
} // namespace llamac::cuda
