//===- LogitsMath.cpp - Selections and sums over logits -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops over all tokens work on chunks: a part without branches fills arrays on
// the stack, and a scalar part goes through these. The first is compiled for
// AVX2 as well.
//
//===----------------------------------------------------------------------===//

#include "engine/sampling/LogitsMath.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

namespace llamac {

/// Independent accumulators, so that a loop is no chain of dependences.
static constexpr size_t lanes = 32;
static constexpr size_t chunkSize = 256;
static constexpr size_t bucketCount = 2048;
/// Tokens whose largest logit is kept by selectLargest().
static constexpr size_t blockSize = 64;

static bool isMoreLikely(const TokenLogit &a, const TokenLogit &b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// Calls `callback` with the first token and the number of tokens of each
/// chunk.
template <typename Callback>
static void forEachChunk(size_t size, Callback callback) {
  for (size_t first = 0; first < size; first += chunkSize)
    callback(first, std::min(chunkSize, size - first));
}

//===----------------------------------------------------------------------===//
// Vector code
//===----------------------------------------------------------------------===//

#define LLAMAC_INLINE __attribute__((always_inline))

#if defined(__x86_64__)
template <typename Loop>
__attribute__((target("avx2,fma"))) static void runWithAvx2(const Loop &loop) {
  loop();
}
static bool hasAvx2() {
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}
#endif

/// Runs `loop`, a lambda that is LLAMAC_INLINE and captures values, as compiled
/// for this machine.
template <typename Loop> static void vectorized(const Loop &loop) {
#if defined(__x86_64__)
  if (hasAvx2())
    return runWithAvx2(loop);
#endif
  loop();
}

/// e^x for x of at most 0, to 2 units in the last place; 0 below -700. Taking
/// away a multiple of ln 2 in two parts (Cody and Waite) leaves |r| < 0.35,
/// where Taylor's polynomial of degree 12 is off by 2e-16.
LLAMAC_INLINE static inline double expOf(double x) {
  constexpr double log2e = 1.4426950408889634, ln2High = 6.93147180369123816e-1,
                   ln2Low = 1.90821492927058770e-10;
  // Adding it rounds to a whole number, which the low bits then hold.
  constexpr double rounder = 0x1.8p52;
  const double bounded = x < -700 ? -700 : x;
  const double shifted = bounded * log2e + rounder;
  const double n = shifted - rounder;
  const double r = (bounded - n * ln2High) - n * ln2Low;
  double sum = 1. / 479001600;
  sum = sum * r + 1. / 39916800;
  sum = sum * r + 1. / 3628800;
  sum = sum * r + 1. / 362880;
  sum = sum * r + 1. / 40320;
  sum = sum * r + 1. / 5040;
  sum = sum * r + 1. / 720;
  sum = sum * r + 1. / 120;
  sum = sum * r + 1. / 24;
  sum = sum * r + 1. / 6;
  sum = sum * r + 1. / 2;
  sum = sum * r + 1;
  sum = sum * r + 1;
  const double power = std::bit_cast<double>(
      (std::bit_cast<uint64_t>(shifted) << 52) + std::bit_cast<uint64_t>(1.0));
  return x < -700 ? 0 : sum * power;
}

/// Weights e^((logit - largest) * inverse) of a chunk.
static void weigh(const float *logits, size_t size, float largest,
                  double inverse, double *weights) {
  vectorized([=]() LLAMAC_INLINE {
    for (size_t i = 0; i < size; ++i)
      weights[i] = expOf(static_cast<double>(logits[i] - largest) * inverse);
  });
}

/// The smallest and largest of `count` * `lanes` logits, lane by lane.
static void foldLanes(const float *logits, size_t count, float *least,
                      float *most) {
  vectorized([=]() LLAMAC_INLINE {
    float low[lanes], high[lanes];
    for (size_t lane = 0; lane < lanes; ++lane)
      low[lane] = -notAllowed, high[lane] = notAllowed;
    for (size_t i = 0; i < count * lanes; i += lanes)
      for (size_t lane = 0; lane < lanes; ++lane) {
        const float logit = logits[i + lane];
        low[lane] = logit < low[lane] ? logit : low[lane];
        high[lane] = logit > high[lane] ? logit : high[lane];
      }
    for (size_t lane = 0; lane < lanes; ++lane)
      least[lane] = low[lane], most[lane] = high[lane];
  });
}

LogitRange rangeOf(absl::Span<const float> logits) {
  float least[lanes], most[lanes];
  foldLanes(logits.data(), logits.size() / lanes, least, most);
  LogitRange range{*std::min_element(least, least + lanes),
                   *std::max_element(most, most + lanes)};
  for (const float logit : logits.subspan(logits.size() / lanes * lanes)) {
    range.smallest = std::min(range.smallest, logit);
    range.largest = std::max(range.largest, logit);
  }
  return range;
}

/// The largest logit of each block of blockSize of them.
static std::vector<float> blockMaxima(absl::Span<const float> logits) {
  const size_t whole = logits.size() / blockSize;
  std::vector<float> maxima(whole);
  const float *from = logits.data();
  float *to = maxima.data();
  vectorized([=]() LLAMAC_INLINE {
    for (size_t block = 0; block < whole; ++block) {
      float most = notAllowed;
      for (size_t i = 0; i < blockSize; ++i) {
        const float logit = from[block * blockSize + i];
        most = logit > most ? logit : most;
      }
      to[block] = most;
    }
  });
  if (whole * blockSize < logits.size())
    maxima.push_back(rangeOf(logits.subspan(whole * blockSize)).largest);
  return maxima;
}

//===----------------------------------------------------------------------===//
// Selection by rank
//===----------------------------------------------------------------------===//

int32_t argmax(absl::Span<const float> logits) {
  // The largest value is found first, without a branch on each element.
  return static_cast<int32_t>(
      std::find(logits.begin(), logits.end(), rangeOf(logits).largest) -
      logits.begin());
}

void selectLargest(absl::Span<const float> logits, size_t count, float least,
                   std::vector<TokenLogit> &result) {
  result.clear();
  // So many blocks have a largest logit of at least that of number `count`,
  // hence so do as many tokens.
  const std::vector<float> largest = blockMaxima(logits);
  float bound = least;
  if (count <= largest.size()) {
    std::vector<float> order = largest;
    const auto last = order.begin() + static_cast<ptrdiff_t>(count) - 1;
    std::nth_element(order.begin(), last, order.end(), std::greater<>());
    bound = std::max(bound, *last);
  }
  for (size_t block = 0; block < largest.size(); ++block) {
    if (largest[block] < bound)
      continue;
    const size_t first = block * blockSize;
    const size_t end = std::min(first + blockSize, logits.size());
    for (size_t id = first; id < end; ++id)
      if (logits[id] >= bound)
        result.push_back({logits[id], static_cast<int32_t>(id)});
  }
  if (count < result.size()) {
    std::nth_element(result.begin(),
                     result.begin() + static_cast<ptrdiff_t>(count),
                     result.end(), isMoreLikely);
    result.resize(count);
  }
  std::sort(result.begin(), result.end(), isMoreLikely);
}

int64_t countMoreLikely(absl::Span<const float> logits, int32_t id) {
  const float logit = logits[id];
  int64_t count = 0;
  for (const float other : logits)
    count += other > logit;
  return count + std::count(logits.begin(), logits.begin() + id, logit);
}

//===----------------------------------------------------------------------===//
// Selection by weight
//===----------------------------------------------------------------------===//

double sumOfExps(absl::Span<const float> logits, float largest) {
  double weights[chunkSize];
  double sums[lanes] = {};
  forEachChunk(logits.size(), [&](size_t first, size_t size) {
    weigh(&logits[first], size, largest, 1, weights);
    std::fill(weights + size, weights + chunkSize, 0.0);
    for (size_t i = 0; i < chunkSize; i += lanes)
      for (size_t lane = 0; lane < lanes; ++lane)
        sums[lane] += weights[i + lane];
  });
  return std::accumulate(sums, sums + lanes, 0.0);
}

/// The bucket of each token of a chunk; of one below `least` a place behind the
/// buckets, where those beside each other have their own.
static void findBuckets(const float *logits, size_t size, float largest,
                        float least, float scale, int32_t *buckets) {
  vectorized([=]() LLAMAC_INLINE {
    constexpr auto last = static_cast<float>(bucketCount - 1);
    for (size_t i = 0; i < size; ++i) {
      const float place = (largest - logits[i]) * scale;
      const auto bucket = static_cast<int32_t>(place < last ? place : last);
      const auto behind = static_cast<int32_t>(bucketCount + i % lanes);
      buckets[i] = logits[i] >= least ? bucket : behind;
    }
  });
}

/// Whether one of `lanes` tokens is in `bucket`.
static bool hasBucket(const int32_t *buckets, int32_t bucket) {
  uint32_t found = 0;
  for (size_t lane = 0; lane < lanes; ++lane)
    found |= buckets[lane] == bucket ? 1U : 0U;
  return found != 0;
}

void WeightBuckets::fill(absl::Span<const float> logits, LogitRange range,
                         float leastLogit, double temperature) {
  row = logits;
  largest = range.largest;
  least = leastLogit;
  const float width = largest - std::max(least, range.smallest);
  // The scale is 0 for a NaN: all are in the first bucket then.
  constexpr float most = std::numeric_limits<float>::max();
  scale = width > 0 ? std::min(bucketCount / width, most) : 0;
  // Denormal ones have no inverse; they leave no token but the largest, too.
  const double inverse =
      1 / std::max(temperature, std::numeric_limits<double>::min());
  sums.assign(bucketCount + lanes, 0.0);
  double weights[chunkSize];
  int32_t buckets[chunkSize];
  forEachChunk(row.size(), [&](size_t first, size_t size) {
    weigh(&row[first], size, largest, inverse, weights);
    findBuckets(&row[first], size, largest, least, scale, buckets);
    for (size_t i = 0; i < size; ++i)
      sums[buckets[i]] += weights[i];
  });
  sums.resize(bucketCount);
  // The last bucket has tokens, for whoever ends there by rounding.
  while (sums.back() == 0)
    sums.pop_back();
}

double WeightBuckets::totalWeight() const {
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void WeightBuckets::list(size_t bucket, std::vector<TokenLogit> &result) const {
  result.clear();
  const auto wanted = static_cast<int32_t>(bucket);
  int32_t buckets[chunkSize];
  forEachChunk(row.size(), [&](size_t first, size_t size) {
    findBuckets(&row[first], size, largest, least, scale, buckets);
    std::fill(buckets + size, buckets + chunkSize, -1);
    for (size_t group = 0; group < size; group += lanes) {
      if (!hasBucket(buckets + group, wanted))
        continue;
      for (size_t i = group; i < group + lanes; ++i)
        if (buckets[i] == wanted)
          result.push_back({row[first + i], static_cast<int32_t>(first + i)});
    }
  });
  std::sort(result.begin(), result.end(), isMoreLikely);
}

//===----------------------------------------------------------------------===//
// Drawing
//===----------------------------------------------------------------------===//

/// Logarithms to base 2 as the bits of a float have them: exponent and
/// fraction, read as one whole number, are a line below them from each power of
/// two to the next.
static constexpr float unitsOfLog2 = 0x1p23f;

/// Whether one of each `lanes` of `size` tokens, from id `first` on, may win: a
/// token of at least `least` whose uniform number has a logarithm, in units, of
/// at most `bound` and that of its weight, (logit - largest) * scale.
static void findContenders(const float *logits, uint32_t first, size_t size,
                           float least, float largest, float scale, float bound,
                           uint32_t key, uint32_t *mayWin) {
  vectorized([=]() LLAMAC_INLINE {
    for (size_t group = 0; group < size / lanes; ++group) {
      const float *row = logits + group * lanes;
      const uint32_t firstId = first + static_cast<uint32_t>(group * lanes);
      uint32_t kept = 0, found = 0;
      for (size_t lane = 0; lane < lanes; ++lane)
        kept |= row[lane] >= least ? 1U : 0U;
      if (kept != 0)
        for (size_t lane = 0; lane < lanes; ++lane) {
          const uint32_t noise =
              tokenNoise(key, firstId + static_cast<uint32_t>(lane));
          // Times 2^24, and rounded down, so that it is exact.
          const auto uniform =
              static_cast<float>(static_cast<int32_t>(noise >> 8));
          const auto log = static_cast<float>(std::bit_cast<int32_t>(uniform));
          const bool isBefore = log <= (row[lane] - largest) * scale + bound;
          found |= row[lane] >= least && isBefore ? 1U : 0U;
        }
      mayWin[group] = found;
    }
  });
}

void TokenRace::enter(absl::Span<const float> logits, const TokenLogit &last,
                      float largest, double temperature) {
  auto enterFrom = [&](size_t first, size_t count) {
    for (size_t id = first; id < first + count; ++id) {
      const TokenLogit token{logits[id], static_cast<int32_t>(id)};
      if (!isMoreLikely(last, token))
        enter(token.id, std::exp((token.logit - largest) / temperature));
    }
  };
  // A product of 0 and infinity is NaN.
  const auto scale = static_cast<float>(
      std::min<double>(unitsOfLog2 * std::numbers::log2e / temperature,
                       std::numeric_limits<float>::max()));
  const size_t whole = logits.size() / lanes * lanes;
  uint32_t mayWin[chunkSize / lanes];
  forEachChunk(whole, [&](size_t first, size_t size) {
    // The numbers are times 2^24, exponents have 127 added, and sums are off by
    // less than the rest.
    constexpr double offset = 24 + 127 + 1e-3;
    const auto bound =
        static_cast<float>((std::log2(best) + offset) * unitsOfLog2);
    findContenders(&logits[first], static_cast<uint32_t>(first), size,
                   last.logit, largest, scale, bound, key, mayWin);
    for (size_t group = 0; group < size / lanes; ++group)
      if (mayWin[group] != 0)
        enterFrom(first + group * lanes, lanes);
  });
  enterFrom(whole, logits.size() - whole);
}

} // namespace llamac
