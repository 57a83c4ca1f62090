//===- MatmulTest.cpp - Products against double precision -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each case at each level: results near those in double precision, and the
// same bits in every form, batch and range.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "Oracle.h"
#include "Support.h"

#include "runtime/packing/PanelPacking.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace llamac;
using namespace llamac::testing;

namespace {
struct MatmulCase {
  std::string level;
  DataType type;
  std::string format;
  long n;
  long k;
  bool exact = false;

  std::string suffix() const {
    return (exact ? "_exact_" : "_") + format + "_" + std::to_string(n) + "_" +
           std::to_string(k);
  }
};

void PrintTo(const MatmulCase &c, std::ostream *out) {
  *out << c.level << c.suffix();
}

// Stored rows, their values and their packed form.
struct Weight {
  std::vector<std::vector<double>> values;
  std::vector<uint8_t> stored;
  AlignedBytes packed;

  Weight(const MatmulCase &c, std::mt19937 &random)
      : stored(oracle::randomWeights(c.type, c.n, c.k, random)),
        packed(packedBytes(c.type, c.n, c.k)) {
    pack(c);
  }

  void pack(const MatmulCase &c) {
    values.clear();
    for (long r = 0; r < c.n; ++r)
      values.push_back(oracle::dequantizeRow(
          c.type, c.k, stored.data() + r * dataTypeBytes(c.type, c.k)));
    packRows(c.type, c.n, c.k, 0, panelCount(c.n), stored.data(),
             packed.data());
  }
};

struct Expected {
  double value;
  double tolerance;
};

class Matmul : public ::testing::TestWithParam<MatmulCase> {
protected:
  const MatmulCase &c = GetParam();
  KernelUnit unit{c.level};
  std::mt19937 random{7};

  cpu::MatmulConfig config(int weights) const {
    return cpu::cases::matmul(panelFormat(c.type), c.n, c.k, weights, c.exact);
  }

  /// Rows with a block of zeros and a value that dwarfs its block.
  std::vector<float> inputs(long rows) {
    std::vector<float> x = oracle::randomFloats(rows * c.k, 1, random);
    for (long r = 0; r < rows; r += 3)
      std::fill_n(x.begin() + r * c.k, std::min(c.k, 32L), 0.0f);
    for (long r = 1; r < rows; r += 3)
      x[r * c.k + c.k / 2] = 300;
    return x;
  }

  /// The product of one weight row with x, and how far off a kernel may be:
  /// rounding in f32 and, for formats multiplied as integers, six standard
  /// deviations of rounding x to 8 bits in blocks.
  Expected product(const std::vector<double> &w, const double *x) const {
    double sum = 0, size = 0, variance = 0;
    for (long i = 0; i < c.k; ++i) {
      sum += w[i] * x[i];
      size += std::abs(w[i] * x[i]);
    }
    if (cpu::usesInt8(panelFormat(c.type), c.exact))
      for (long b = 0; b < c.k; b += 32) {
        double range = 0, squares = 0;
        for (long i = b; i < b + 32; ++i) {
          range = std::max(range, std::abs(x[i]));
          squares += w[i] * w[i];
        }
        variance += squares * range / 127 * range / 127 / 12;
      }
    return {sum, 6 * std::sqrt(variance) + 4e-6 * size + 1e-7};
  }

  std::vector<float> runOne(const std::string &family, cpu::LaunchShape shape,
                            const Weight &weight, const std::vector<float> &x,
                            long rows, std::vector<float> residual,
                            long step = 0, bool backwards = false) const {
    unit.run(family + c.suffix(), shape, rows,
             {x.data(), weight.packed.data(), residual.data()}, step,
             backwards);
    return residual;
  }
};
} // namespace

TEST_P(Matmul, MatchesDoublePrecisionAndAddsTheResidual) {
  Weight weight(c, random);
  for (long rows : {1L, 3L, 130L}) {
    std::vector<float> x = inputs(rows);
    std::vector<float> residual = oracle::randomFloats(rows * c.n, 1, random);
    std::vector<float> y =
        runOne("gemm", gemmShape(config(1)), weight, x, rows, residual);
    std::vector<double> exact(x.begin(), x.end());
    for (long t = 0; t < rows; ++t)
      for (long r = 0; r < c.n; ++r) {
        auto [value, tolerance] = product(weight.values[r], &exact[t * c.k]);
        ASSERT_NEAR(y[t * c.n + r], value + residual[t * c.n + r], tolerance)
            << "row " << t << " of " << rows << ", output " << r;
      }
  }
}

TEST_P(Matmul, RowsDoNotDependOnFormBatchOrRanges) {
  Weight weight(c, random);
  long rows = 130;
  std::vector<float> x = inputs(rows);
  std::vector<float> zero(rows * c.n, 0.0f);
  std::vector<float> batch =
      runOne("gemm", gemmShape(config(1)), weight, x, rows, zero);
  EXPECT_EQ(batch, runOne("gemm", gemmShape(config(1)), weight, x, rows, zero,
                          1, /*backwards=*/true));
  EXPECT_EQ(batch,
            runOne("gemm", gemmShape(config(1)), weight, x, rows, zero, 3));
  for (long count = 1; count <= 33; ++count) {
    std::vector<float> some(zero.begin(), zero.begin() + count * c.n);
    std::vector<float> expected(batch.begin(), batch.begin() + count * c.n);
    for (long step : {0, 1, 2, 3}) {
      if (count == 1)
        EXPECT_EQ(expected, runOne("gemv", gemvShape(config(1)), weight, x, 1,
                                   some, step))
            << "in ranges of " << step;
      EXPECT_EQ(expected, runOne("gemm", gemmShape(config(1)), weight, x, count,
                                 some, step))
          << count << " rows in ranges of " << step;
    }
  }
}

TEST_P(Matmul, TwoWeightsShareANormalisedInput) {
  Weight gate(c, random), up(c, random);
  std::vector<float> norm = oracle::randomFloats(c.k, 1, random);
  long rows = 5;
  std::vector<float> x = inputs(rows);
  std::vector<float> y(rows * c.n, NAN), one(c.n, NAN);
  unit.run(
      "gemm2" + c.suffix(), gemmShape(config(2)), rows,
      {x.data(), norm.data(), gate.packed.data(), up.packed.data(), y.data()},
      2);
  for (long t = 0; t < rows; ++t) {
    double squares = 0;
    for (long i = 0; i < c.k; ++i)
      squares += double(x[t * c.k + i]) * x[t * c.k + i];
    double scale = 1 / std::sqrt(squares / c.k + cpu::cases::eps);
    std::vector<double> normal(c.k);
    for (long i = 0; i < c.k; ++i)
      normal[i] = x[t * c.k + i] * scale * norm[i];
    for (long r = 0; r < c.n; ++r) {
      auto [a, errorA] = product(gate.values[r], normal.data());
      auto [b, errorB] = product(up.values[r], normal.data());
      double silu = a / (1 + std::exp(-a));
      double error = 1.1 * errorA * std::abs(b) + std::abs(silu) * errorB +
                     1.1 * errorA * errorB;
      ASSERT_NEAR(y[t * c.n + r], silu * b,
                  error + 1e-5 * std::abs(silu * b) + 1e-6)
          << "row " << t << ", output " << r;
    }
    unit.run("gemv2" + c.suffix(), gemvShape(config(2)), 1,
             {x.data() + t * c.k, norm.data(), gate.packed.data(),
              up.packed.data(), one.data()});
    EXPECT_EQ(one, std::vector<float>(y.begin() + t * c.n,
                                      y.begin() + (t + 1) * c.n));
  }
}

TEST_P(Matmul, NonFiniteInputsShowInEveryOutput) {
  Weight weight(c, random);
  long rows = 3;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (float bad : {infinity, -infinity, std::nanf("")}) {
    std::vector<float> x = oracle::randomFloats(rows * c.k, 1, random);
    std::vector<float> zero(rows * c.n, 0.0f);
    std::vector<float> clean =
        runOne("gemm", gemmShape(config(1)), weight, x, rows, zero);
    x[c.k + c.k / 3] = bad;
    std::vector<float> y =
        runOne("gemm", gemmShape(config(1)), weight, x, rows, zero);
    for (long r = 0; r < c.n; ++r) {
      EXPECT_FALSE(std::isfinite(y[c.n + r])) << "output " << r;
      EXPECT_EQ(y[r], clean[r]);
      EXPECT_EQ(y[2 * c.n + r], clean[2 * c.n + r]);
    }
    std::vector<float> row(x.begin() + c.k, x.begin() + 2 * c.k);
    y = runOne("gemv", gemvShape(config(1)), weight, row, 1,
               std::vector<float>(c.n, 0.0f));
    for (long r = 0; r < c.n; ++r)
      EXPECT_FALSE(std::isfinite(y[r])) << "output " << r;
  }
}

TEST_P(Matmul, EmbeddingReadsRowsOfThePackedTable) {
  Weight weight(c, random);
  std::vector<int> tokens = {0, int(c.n - 1), int(c.n / 2), 0, int(c.n / 3)};
  long rows = static_cast<long>(tokens.size());
  std::vector<float> out(rows * c.k, NAN);
  unit.run("embed" + c.suffix(), cpu::rowwiseShape(), rows,
           {tokens.data(), weight.packed.data(), out.data()}, 1);
  for (long t = 0; t < rows; ++t)
    for (long i = 0; i < c.k; ++i) {
      double value = weight.values[tokens[t]][i];
      ASSERT_NEAR(out[t * c.k + i], value, 1e-6 * std::abs(value) + 2e-6)
          << "token " << tokens[t] << ", element " << i;
    }
}

// Six bits, four and a sign, -128 and the like: every code a format has.
TEST_P(Matmul, ExtremeCodesAreExact) {
  Weight weight(c, random);
  if (c.type == DataType::Q8_0) {
    for (size_t i = 0; i < weight.stored.size(); ++i)
      if (i % 34 >= 2)
        weight.stored[i] = i % 3 ? 0x80 : 0x7f;
    weight.pack(c);
  }
  // Activations that 8 bits hold exactly.
  std::vector<float> x(c.k);
  for (long i = 0; i < c.k; ++i)
    x[i] = i % 32 == 0 ? 127.0f : float(i * 37 % 255 - 127);
  std::vector<double> exact(x.begin(), x.end());
  std::vector<float> y = runOne("gemv", gemvShape(config(1)), weight, x, 1,
                                std::vector<float>(c.n, 0.0f));
  for (long r = 0; r < c.n; ++r) {
    double sum = 0, size = 0;
    for (long i = 0; i < c.k; ++i) {
      sum += weight.values[r][i] * exact[i];
      size += std::abs(weight.values[r][i] * exact[i]);
    }
    EXPECT_NEAR(y[r], sum, 4e-6 * size) << "output " << r;
  }
}

static std::vector<MatmulCase> matmulCases() {
  std::vector<MatmulCase> all;
  for (const std::string &level : hostLevels()) {
#define LLAMAC_CASE(format, n, k)                                              \
  all.push_back({level, DataType::format, #format, n, k});
    LLAMAC_BYTE_MATMUL_CASES(LLAMAC_CASE)
#define LLAMAC_EXACT_CASE(format, n, k)                                        \
  all.push_back({level, DataType::format, #format, n, k, /*exact=*/true});
    if (level != amxModel) {
      LLAMAC_FLOAT_MATMUL_CASES(LLAMAC_CASE)
      LLAMAC_EXACT_MATMUL_CASES(LLAMAC_EXACT_CASE)
    }
#undef LLAMAC_CASE
#undef LLAMAC_EXACT_CASE
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Levels, Matmul, ::testing::ValuesIn(matmulCases()),
                         [](const auto &info) {
                           return info.param.level + info.param.suffix();
                         });

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

namespace {
class Leaves : public Matmul {
protected:
  static constexpr long rows = 37;
  std::vector<float> x = inputs(rows);
  Weight weight{c, random};

  /// Sums over part `part` of `parts` of k, by the kernel `family` for so many.
  std::vector<float> ofPart(const std::string &family, long count, long parts,
                            long part) const {
    const long k = c.k / parts;
    const int64_t whole = dataTypeBytes(c.type, c.k);
    const int64_t bytes = dataTypeBytes(c.type, k);
    std::vector<uint8_t> stored(c.n * bytes);
    for (long r = 0; r < c.n; ++r)
      std::copy_n(weight.stored.begin() + r * whole + part * bytes, bytes,
                  stored.begin() + r * bytes);
    AlignedBytes packed(packedBytes(c.type, c.n, k));
    packRows(c.type, c.n, k, 0, panelCount(c.n), stored.data(), packed.data());
    std::vector<float> columns(count * k);
    for (long t = 0; t < count; ++t)
      std::copy_n(x.begin() + t * c.k + part * k, k, columns.begin() + t * k);
    const cpu::MatmulConfig config =
        cpu::cases::leavesOfPart(panelFormat(c.type), c.n, c.k, parts);
    std::vector<float> y(count * c.n, NAN);
    unit.run(family + "OfPart" + std::to_string(parts) + c.suffix(),
             family == "gemv" ? gemvShape(config) : gemmShape(config), count,
             {columns.data(), packed.data(), y.data()}, /*step=*/2);
    return y;
  }

  /// The sums of all parts, added by a binary tree.
  std::vector<float> ofParts(const std::string &family, long count,
                             long parts) const {
    std::vector<std::vector<float>> sums;
    for (long part = 0; part < parts; ++part)
      sums.push_back(ofPart(family, count, parts, part));
    for (long step = 1; step < parts; step *= 2)
      for (long part = 0; part < parts; part += 2 * step)
        for (long i = 0; i < count * c.n; ++i)
          sums[part][i] += sums[part + step][i];
    return sums.front();
  }
};
} // namespace

// One, two and eight ranks give the same: the result of a leaf depends on
// nothing else.
TEST_P(Leaves, OfAnyPartsAreTheSameTree) {
  const std::vector<float> whole = ofParts("gemm", rows, 1);
  EXPECT_EQ(whole, ofParts("gemm", rows, 2));
  EXPECT_EQ(whole, ofParts("gemm", rows, 8));
  const std::vector<float> first(whole.begin(), whole.begin() + c.n);
  for (long parts : {1, 2, 8})
    EXPECT_EQ(first, ofParts("gemv", 1, parts)) << parts << " parts";
}

static std::vector<MatmulCase> leafCases() {
  std::vector<MatmulCase> all;
  for (const std::string &level : hostLevels()) {
#define LLAMAC_CASE(format, n, k)                                              \
  all.push_back({level, DataType::format, #format, n, k});
    LLAMAC_BYTE_LEAF_CASES(LLAMAC_CASE)
    if (level != amxModel) {
      LLAMAC_FLOAT_LEAF_CASES(LLAMAC_CASE)
    }
#undef LLAMAC_CASE
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Levels, Leaves, ::testing::ValuesIn(leafCases()),
                         [](const auto &info) {
                           return info.param.level + info.param.suffix();
                         });
