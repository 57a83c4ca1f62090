//===- Expected.cpp - What ops should give, in doubles --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/Expected.h"

#include "tests/codegen/cpu_kernels/Oracle.h"

#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace llamac::conformance {

/// Six times the size of an error that is one of many of up to `bound` each:
/// `squares` is the sum of their squares. Uniform errors have a third of their
/// bound's square.
static double manyErrors(double squares) { return 6 * std::sqrt(squares / 3); }

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

std::vector<float> gridFloats(int64_t rows, int64_t width, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> step(-127, 127), place(0, 31);
  std::vector<float> values(rows * width);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t first = 0; first < width; first += 32) {
      float *block = &values[row * width + first];
      const int count = static_cast<int>(std::min<int64_t>(32, width - first));
      for (int i = 0; i < count; ++i)
        block[i] = static_cast<float>(step(random)) / 64;
      block[place(random) % count] = (random() % 2 ? 127.0f : -127.0f) / 64;
    }
  return values;
}

std::vector<float> normalFloats(int64_t count, uint32_t seed, float scale) {
  std::mt19937 random(seed);
  return oracle::randomFloats(count, scale, random);
}

std::vector<double> rowOf(const std::vector<float> &values, int64_t row,
                          int64_t width) {
  return {values.begin() + row * width, values.begin() + (row + 1) * width};
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Expected Matrix::times(int64_t n, const std::vector<double> &x,
                       Activations activations) const {
  const bool isGrid = activations == Activations::Grid;
  const bool int8 = !isGrid && numerics.roundsToInt8(type);
  double sum = 0, magnitude = 0, squares = 0, int8Squares = 0;
  for (int64_t first = 0; first < depth; first += 32) {
    const int64_t end = std::min(first + 32, depth);
    double range = 0, weightSquares = 0;
    for (int64_t k = first; k < end; ++k) {
      const double w = values[n * depth + k], term = w * x[k];
      sum += term;
      magnitude += std::abs(term);
      squares += term * term;
      range = std::max(range, std::abs(x[k]));
      weightSquares += w * w;
    }
    // Half a step of the block's rounding, for each activation.
    int8Squares += range / 254 * (range / 254) * weightSquares;
  }
  const double weightError = numerics.weightError(type, stepRows);
  const double activationError =
      isGrid ? 0 : numerics.activationError(type, stepRows);
  squares *= weightError * weightError + activationError * activationError;
  return {sum, sumError * magnitude +
                   manyErrors(squares + (int8 ? int8Squares : 0))};
}

ExpectedRow Matrix::times(const std::vector<double> &x,
                          Activations activations) const {
  ExpectedRow row;
  for (int64_t n = 0; n < outputs; ++n)
    row.push_back(times(n, x, activations));
  return row;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

std::vector<double> normalised(const std::vector<double> &x,
                               const std::vector<double> &gain, double eps) {
  double squares = 0;
  for (const double value : x)
    squares += value * value;
  const double root = std::sqrt(squares / static_cast<double>(x.size()) + eps);
  std::vector<double> result(x.size());
  std::transform(x.begin(), x.end(), gain.begin(), result.begin(),
                 [&](double value, double g) { return value / root * g; });
  return result;
}

ExpectedRow roundedOnce(const std::vector<double> &values) {
  ExpectedRow row;
  for (const double value : values)
    row.push_back({value, roundError * std::abs(value)});
  return row;
}

Expected gated(const Expected &gate, const Expected &up) {
  const double silu = gate.value / (1 + std::exp(-gate.value));
  const double value = silu * up.value;
  // The slope of silu is at most 1.1.
  // The reciprocal, of 1 + e^-gate, may be flushed.
  return {value, 1.1 * gate.bound * (std::abs(up.value) + up.bound) +
                     up.bound * std::abs(silu) + sumError * std::abs(value) +
                     flushError * std::abs(gate.value * up.value)};
}

ExpectedRow rotated(const ExpectedRow &row, int32_t position,
                    const std::vector<double> &frequencies) {
  ExpectedRow result(row.size());
  for (size_t i = 0; i < row.size(); i += 2) {
    const double angle = position * frequencies[i / 2 % frequencies.size()];
    const double c = std::cos(angle), s = std::sin(angle);
    const Expected &a = row[i], &b = row[i + 1];
    const double magnitude = std::abs(a.value) + std::abs(b.value);
    const double bound = a.bound + b.bound + 2 * roundError * magnitude;
    result[i] = {a.value * c - b.value * s, bound};
    result[i + 1] = {b.value * c + a.value * s, bound};
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

/// A number of steps rounded to one that a code of 8 bits stands for: an
/// integer, or an E4M3; `unit` is the distance of its neighbours.
static double nearestCode(double place, bool isE4m3, double &unit) {
  unit = 1;
  if (isE4m3) {
    int exponent = 0;
    std::frexp(place, &exponent); // Below 2^exponent; three bits of fraction.
    unit = std::ldexp(1.0, std::max(exponent - 1, -6) - 3);
  }
  return std::nearbyint(place / unit) * unit;
}

/// Rounds a block of the cache to 8 bits: integers, or E4M3. Numbers that are
/// known exactly become those that the cache holds, which are `error` of
/// themselves off when they are used.
static void roundBlock(Expected *block, int64_t count, bool isE4m3,
                       double error) {
  double largest = 0, bound = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(block[i].value))
      largest = std::numeric_limits<double>::quiet_NaN();
    largest = std::max(largest, std::abs(block[i].value));
    bound = std::max(bound, block[i].bound);
  }
  int exponent = 0;
  const double fraction = std::frexp(largest / 127, &exponent);
  const double step =
      isE4m3 ? largest / 448
             : std::ldexp(std::nearbyint(fraction * 256), exponent - 8);
  for (int64_t i = 0; i < count; ++i) {
    Expected &number = block[i];
    const double place = step == 0 ? 0 : number.value / step;
    double unit = 0;
    const double code = nearestCode(place, isE4m3, unit);
    // In fp32 a place near the middle may fall to either side.
    if (bound == 0 && !(std::abs(place - code) > 0.4999 * unit))
      number = {code * step, (roundError + error) * std::abs(number.value)};
    else // The step is off by 2^-9 and by the bound over 127.
      number.bound +=
          step * unit * 0.502 + bound * 0.01 + error * std::abs(number.value);
  }
}

void CacheOracle::append(int32_t sequence, ExpectedRow key, ExpectedRow value,
                         bool isExact) {
  if (const int64_t block = numerics.cacheBlock(model))
    for (ExpectedRow *row : {&key, &value})
      for (size_t i = 0; i < row->size(); i += block)
        roundBlock(&(*row)[i], block, model.cache == CacheFormat::FP8,
                   numerics.blockError(model));
  else if (!isExact)
    for (ExpectedRow *row : {&key, &value})
      for (Expected &number : *row)
        number.bound += numerics.cacheError(model) * std::abs(number.value);
  sequences[sequence].push_back({std::move(key), std::move(value)});
}

ExpectedRow CacheOracle::attend(const ExpectedRow &query, int32_t sequence,
                                int32_t position, double scale) const {
  const std::vector<Entry> &all = sequences.at(sequence);
  const int64_t first = model.window && position >= model.window
                            ? position + 1 - model.window
                            : 0;
  const absl::Span<const Entry> entries(all.data() + first,
                                        position + 1 - first);
  const double softmaxError = numerics.softmaxError(model);
  const double softmaxFloor = numerics.softmaxFloor(model);
  ExpectedRow result;
  for (int64_t head = 0; head < model.heads; ++head) {
    const Expected *q = &query[head * model.headSize];
    const int64_t from = head / model.group() * model.headSize;
    std::vector<double> weights, errors;
    double largest = -std::numeric_limits<double>::infinity(), longest = 0;
    for (int64_t d = 0; d < model.headSize; ++d)
      longest = std::max(longest, std::abs(q[d].value));
    const double queryError = numerics.queryError(model) * longest;
    for (size_t p = 0; p < entries.size(); ++p) {
      const Expected *k = &entries[p].key[from];
      double score = 0, squares = 0, magnitude = 0;
      for (int64_t d = 0; d < model.headSize; ++d) {
        const double term = q[d].value * k[d].value;
        score += term;
        magnitude += std::abs(term);
        const double error = std::abs(q[d].value) * k[d].bound +
                             std::abs(k[d].value) * (q[d].bound + queryError) +
                             softmaxError * std::abs(term);
        squares += error * error;
      }
      weights.push_back(scale * score);
      errors.push_back(scale * (sumError * magnitude + manyErrors(squares)));
      largest = std::max(largest, weights.back());
    }
    // A weight is off by the share e^error, and so is their sum.
    double total = 0, worst = 0;
    for (size_t p = 0; p < entries.size(); ++p) {
      weights[p] = std::exp(weights[p] - largest);
      total += weights[p];
      if (weights[p] != 0)
        worst = std::max(worst, errors[p]);
    }
    const double share =
        std::expm1(2 * worst) + 2 * softmaxError + 4 * sumError;
    for (int64_t d = 0; d < model.headSize; ++d) {
      double sum = 0, bound = 0;
      for (size_t p = 0; p < entries.size(); ++p) {
        const Expected &v = entries[p].value[from + d];
        sum += weights[p] * v.value;
        bound += weights[p] * (std::abs(v.value) * share + v.bound) +
                 (softmaxFloor + flushError) * std::abs(v.value);
      }
      result.push_back({sum / total, bound / total});
    }
  }
  return result;
}

std::string mismatch(const std::vector<float> &got,
                     const std::vector<ExpectedRow> &expected, int64_t width) {
  if (got.size() != expected.size() * width)
    return absl::StrFormat("%d numbers, expected %d", got.size(),
                           expected.size() * width);
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t row = i / width, column = i % width;
    const Expected &number = expected[row][column];
    // An output that depends on a NaN or an infinity is not finite either.
    const bool agrees =
        std::isfinite(number.value)
            ? std::abs(got[i] - number.value) <= number.bound + flushError
            : !std::isfinite(got[i]);
    if (!agrees && !number.isOpen)
      return absl::StrFormat("row %d column %d is %g, expected %g within %g",
                             row, column, got[i], number.value, number.bound);
  }
  return {};
}

} // namespace llamac::conformance
