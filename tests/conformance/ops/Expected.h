//===- Expected.h - What ops should give, in doubles ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle: the formulas of the ops as plain loops in double precision, on
// the values that the stored bytes of weights stand for. Every result carries
// how far a device may be off, given what its Numerics say:
//
//   - sums in fp32, in any order, are off by a share of the sum of magnitudes;
//   - errors of single terms (rounded weights and activations) are independent
//     of each other, so their sum has the root of the sum of squares as its
//     size; six times that does not happen by chance.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_EXPECTED_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_EXPECTED_H

#include "tests/conformance/ops/OpDevice.h"

#include <map>
#include <utility>

namespace llamac::conformance {

/// A number that a device should give.
struct Expected {
  double value = 0;    ///< Not finite: it must not be finite either.
  double bound = 0;    ///< How far it may be off.
  bool isOpen = false; ///< Nothing is promised.
};
using ExpectedRow = std::vector<Expected>;

/// fp32 sums: a share of the sum of magnitudes; rounding once: of the value.
inline constexpr double sumError = 0x1p-19;
inline constexpr double roundError = 0x1p-22;

/// Devices may give 0 for a number that fp32 has with fewer digits only, also
/// for one that others multiply after it.
inline constexpr double flushError = 0x1p-126;

/// Activations as a test made them.
enum class Activations {
  Grid,   ///< Exact in bf16, and in 8 bits by blocks: see gridFloats().
  Normal, ///< Any numbers.
};

/// Multiples of 1/64 up to 127/64, which one of each 32 has: exact in every
/// format that activations are rounded to.
std::vector<float> gridFloats(int64_t rows, int64_t width, uint32_t seed);

/// Normal values times `scale`.
std::vector<float> normalFloats(int64_t count, uint32_t seed, float scale = 1);

/// A matrix of weights, its values in doubles.
class Matrix {
public:
  Matrix(const StoredWeight &weight, const Numerics &numerics, int64_t rows)
      : type(weight.type), outputs(weight.rows), depth(weight.cols),
        values(weight.values()), numerics(numerics), stepRows(rows) {}

  /// Output `n` of the product with `x`, in a step of as many rows as given.
  Expected times(int64_t n, const std::vector<double> &x,
                 Activations activations) const;

  /// All outputs.
  ExpectedRow times(const std::vector<double> &x,
                    Activations activations) const;

private:
  DataType type;
  int64_t outputs, depth;
  std::vector<double> values;
  const Numerics &numerics;
  int64_t stepRows;
};

/// Row `row` of `width` numbers.
std::vector<double> rowOf(const std::vector<float> &values, int64_t row,
                          int64_t width);

/// The epsilon of every norm in the cases' IR.
inline constexpr double normEps = 1e-5;

/// x / sqrt(mean(x^2) + eps) * gain.
std::vector<double> normalised(const std::vector<double> &x,
                               const std::vector<double> &gain, double eps);

/// Numbers that are exact but for being rounded once.
ExpectedRow roundedOnce(const std::vector<double> &values);

/// silu(gate) * up.
Expected gated(const Expected &gate, const Expected &up);

/// Rotates the pairs of each head by position * frequency.
ExpectedRow rotated(const ExpectedRow &row, int32_t position,
                    const std::vector<double> &frequencies);

/// Where `got`, rows of `width` numbers, is not what it should be; empty when
/// it is.
std::string mismatch(const std::vector<float> &got,
                     const std::vector<ExpectedRow> &expected, int64_t width);

/// The keys and values of a model's sequences, and attention over them.
class CacheOracle {
public:
  CacheOracle(const Model &model, const Numerics &numerics)
      : model(model), numerics(numerics) {}

  /// Adds the next position of a sequence. `isExact`: a cache of floats holds
  /// the numbers as they are.
  void append(int32_t sequence, ExpectedRow key, ExpectedRow value,
              bool isExact);

  /// softmax(scale q k) v for a query row over positions 0 to `position`, or
  /// those that the model's window leaves of them.
  ExpectedRow attend(const ExpectedRow &query, int32_t sequence,
                     int32_t position, double scale) const;

private:
  struct Entry {
    ExpectedRow key, value;
  };

  Model model;
  const Numerics &numerics;
  std::map<int32_t, std::vector<Entry>> sequences;
};

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_EXPECTED_H
