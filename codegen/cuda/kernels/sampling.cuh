//===- sampling.cuh - From logits to tokens ---------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Greedy sampling, and sampling with a temperature, top-k and top-p.
//
// Tokens have one order: the larger logit first, of equals the smaller id.
// Top-k and top-p keep the first ones, and ask where in that order a running
// sum passes a target:
//
//   top-k   the sum of ones passes k - 1: the last of the first k
//   top-p   the sum of the weights passes p of what those weigh: the last of
//           the fewest tokens that reach it
//
// Nothing is sorted. A logit's 32 bits become a rank, smaller for larger
// logits, and find() resolves it by three digits: a histogram of all tokens by
// the first digit says which bin the target falls into, one of that bin's
// tokens by the second digit says which part of it, and so on, until all that
// is left has one rank, and so one weight: the rest is a division. Both use the
// first histogram.
//
// One of the tokens that are kept is drawn by an exponential race
// (engine/sampling/TokenNoise.h): the one with the least quotient of an
// exponential random number, by a hash of the row's key and the token's id, and
// its weight.
//
// Several blocks look for a row's first token, each in a share of the logits.
// The last of them to finish merges what they found, and does the rest alone:
// nothing more for a greedy step.
//
// The weights that are summed are integers, so that sums do not depend on the
// order of the threads and a row gives the same token every time.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_SAMPLING_CUH
#define LLAMAC_CODEGEN_DEVICE_SAMPLING_CUH

#include "llamac/arrivals.cuh"
#include "llamac/config.h"
#include "llamac/vmath.cuh"

namespace llamac::cuda {

struct alignas(16) SamplingParams {
  float temperature; ///< 0: the first of the largest.
  int topK;          ///< From the k first only; 0: from all.
  float topP;        ///< From the fewest first that have this share; 1: all.
  uint32_t noiseKey; ///< Which of them: see tokenNoise().
};

/// How many tokens, and what they weigh.
struct Tally {
  uint32_t count;
  uint64_t mass;

  LLAMAC_DEVICE Tally operator+(Tally other) const {
    return {count + other.count, mass + other.mass};
  }
  LLAMAC_DEVICE Tally operator-(Tally other) const {
    return {count - other.count, mass - other.mass};
  }
};

/// The tokens whose ranks begin as `rank` does, and those before them.
struct Place {
  uint32_t rank;
  uint32_t count;
  Tally before;
};

struct Ranked {
  uint32_t rank;
  uint32_t id;
};

/// Behind all tokens.
LLAMAC_DEVICE Ranked notRanked() { return {0xffffffffu, 0xffffffffu}; }

/// The memory that the blocks of sample share; see sampleShape().
struct SampleArgs {
  Ranked *firsts;     ///< [rows][sampleBlocks(width)].
  uint32_t *counters; ///< [rows], zero.
};

constexpr int sampleWarps = sampleThreads / 32;
static_assert(sampleWarps == 32, "a warp has a lane for each");

/// Bins of a histogram; each of sampleThreads threads looks after two that
/// follow each other, each of fewer threads after more.
constexpr int sampleBins = 2 * sampleThreads;

/// Where the digit of a level of the search begins; it ends where that of the
/// level before begins.
constexpr int sampleLevels = 3;
LLAMAC_DEVICE constexpr int digitShift(int level) {
  return level == 0 ? 21 : level == 1 ? 10 : 0;
}
static_assert(sampleBins == 1 << 11, "a digit has at most 11 bits");

struct SampleMemory {
  uint32_t counts[sampleBins];
  uint32_t masses[2][sampleBins]; ///< Low and high words.
  Tally warps[sampleWarps];
  Ranked firsts[sampleWarps];
  uint32_t ties[sampleWarps];
  uint32_t tie;
  Place place;
};

/// A thread's bins, what is before them, and what all bins hold.
template <int count> struct Bins {
  Tally before;
  Tally own[count];
  Tally total;
};

/// Smaller for larger logits; the two zeros are one. Its own inverse.
LLAMAC_DEVICE uint32_t flipped(uint32_t bits) {
  return bits >> 31 ? bits : bits ^ 0x7fffffffu;
}
LLAMAC_DEVICE uint32_t rankOf(float logit) {
  return flipped(bitCast<uint32_t>(logit + 0.0f));
}
LLAMAC_DEVICE float logitOf(uint32_t rank) {
  return bitCast<float>(flipped(rank));
}

/// The rank of a logit; 0 when it is not finite.
LLAMAC_DEVICE uint32_t rankOfLogit(float logit) {
  const bool isFinite = (bitCast<uint32_t>(logit) >> 23 & 0xff) != 0xff;
  return isFinite ? rankOf(logit) : 0;
}

/// The first of the lanes' tokens.
LLAMAC_DEVICE Ranked firstOfLanes(Ranked own) {
  const uint32_t rank = reduceMinUnsigned(own.rank);
  return {rank, reduceMinUnsigned(own.rank == rank ? own.id : notRanked().id)};
}

/// The first of the tokens of all `warps` warps of a block, by `shared`, a
/// place for each.
template <int warps>
LLAMAC_DEVICE Ranked firstOfBlock(Ranked own, Ranked *shared) {
  own = firstOfLanes(own);
  if (laneIndex() == 0)
    shared[warpIndex()] = own;
  syncThreads();
  return firstOfLanes(laneIndex() < warps ? shared[laneIndex()] : notRanked());
}

/// The quantity that find() sums: ones or weights.
enum class Measure { Count, Mass };

template <Measure measure> LLAMAC_DEVICE uint64_t measured(const Tally &tally) {
  return measure == Measure::Count ? tally.count : tally.mass;
}

/// `exchange` of the three words of a tally.
template <typename Exchange>
LLAMAC_DEVICE Tally exchanged(Tally tally, Exchange exchange) {
  const uint32_t low = exchange(static_cast<uint32_t>(tally.mass));
  const uint32_t high = exchange(static_cast<uint32_t>(tally.mass >> 32));
  return {exchange(tally.count), static_cast<uint64_t>(high) << 32 | low};
}

/// The sum of lanes 0 to the own.
LLAMAC_DEVICE Tally sumOfLanes(Tally sum) {
  for (uint32_t by = 1; by < 32; by *= 2) {
    const Tally before =
        exchanged(sum, [&](uint32_t word) { return shuffleUp(word, by); });
    if (laneIndex() >= by)
      sum = sum + before;
  }
  return sum;
}

/// The largest sum that does not yet reach `share` of `mass`.
LLAMAC_DEVICE uint64_t beforeShare(float share, uint64_t mass) {
  const auto goal = static_cast<uint64_t>(static_cast<double>(share) *
                                          static_cast<double>(mass));
  return minOf(maxOf(goal, uint64_t{1}), mass) - 1;
}

/// The function of this name in engine/sampling/TokenNoise.h.
LLAMAC_DEVICE uint32_t tokenNoise(uint32_t key, uint32_t id) {
  uint32_t mixed = id ^ key;
  mixed = (mixed ^ mixed >> 16) * 0x21f0aaadu ^ key * 0x9e3779b9u;
  mixed = (mixed ^ mixed >> 15) * 0xd35a2d97u;
  return mixed ^ mixed >> 15;
}

/// -log(1 - u), u = (noise + 0.5) / 2^32, to 2^-20 of it.
LLAMAC_DEVICE float exponentialOf(uint32_t noise) {
  constexpr float ln2 = 0.693147181f;
  const bool isSmall = noise < 1u << 29;
  // u, or 1 - u.
  const float part =
      (static_cast<float>(isSmall ? noise : ~noise) + 0.5f) * 0x1p-32f;
  // Seven terms of the series leave u^8 / 8, 2^-24 of it.
  float sum = 1.0f / 7;
  sum = fma(sum, part, 1.0f / 6);
  sum = fma(sum, part, 1.0f / 5);
  sum = fma(sum, part, 1.0f / 4);
  sum = fma(sum, part, 1.0f / 3);
  sum = fma(sum, part, 1.0f / 2);
  sum = fma(sum, part, 1.0f);
  return isSmall ? part * sum : -ln2 * log2Approx(part);
}

/// One row of `width` logits; all `threads` threads of a block work on it.
template <long width, int threads = sampleThreads> struct SampledRow {
  static_assert(width <= 1 << 18, "sums of weights have 64 bits");
  static constexpr int warps = threads / 32;
  static constexpr int ownBins = sampleBins / threads;
  static_assert(warps <= sampleWarps && sampleBins % threads == 0);
  using Bins = cuda::Bins<ownBins>;

  const float *logits;
  SampleMemory &memory;
  float largest;
  float scale; ///< log2 e / temperature.

  /// The row for tokens at the temperature of `param`; `first` is the first
  /// one.
  LLAMAC_DEVICE SampledRow choose(Ranked first,
                                  const SamplingParams &param) const {
    constexpr float mostScale = 0x1p127f; // 0 times infinity is NaN.
    return {logits, memory, logitOf(first.rank),
            minOf(log2e / param.temperature, mostScale)};
  }

  /// 2^45 e^((logit - largest) / temperature): below e^-31 of the largest
  /// weight, 0.
  LLAMAC_DEVICE uint64_t weightOf(float logit) const {
    return static_cast<uint64_t>(0x1p45f *
                                 exp2Approx((logit - largest) * scale));
  }

  /// `visit(id, logit)` for the thread's share of the row.
  template <typename Visit> LLAMAC_DEVICE void forEach(Visit visit) const {
#pragma unroll 4
    for (int id = threadIdx.x; id < width; id += threads)
      visit(id, logits[id]);
  }

  /// The first of tokens `begin` to `end` - 1; rank 0 when a logit is not
  /// finite.
  LLAMAC_DEVICE Ranked first(int begin, int end) const {
    Ranked best = notRanked();
#pragma unroll 4
    for (int id = begin + threadIdx.x; id < end; id += threads) {
      const uint32_t rank = rankOfLogit(logits[id]);
      if (rank < best.rank)
        best = {rank, static_cast<uint32_t>(id)};
    }
    return firstOfBlock<warps>(best, memory.firsts);
  }

  /// The histogram of a digit of those at `place` that weigh something.
  template <int level> LLAMAC_DEVICE Bins histogram(const Place &place) const {
    for (int bin = threadIdx.x; bin < sampleBins; bin += threads)
      memory.counts[bin] = memory.masses[0][bin] = memory.masses[1][bin] = 0;
    syncThreads();
    forEach([&](int, float logit) {
      uint32_t digit = rankOf(logit);
      if constexpr (level > 0) {
        constexpr int above = digitShift(level - 1);
        if (digit >> above != place.rank >> above)
          return;
        digit &= (1u << above) - 1;
      }
      digit >>= digitShift(level);
      const uint64_t weight = weightOf(logit);
      if (weight == 0)
        return;
      atomicAddShared(&memory.counts[digit], 1);
      // A sum of 64 bits: whoever makes the low word wrap carries.
      const auto low = static_cast<uint32_t>(weight);
      const uint32_t held = atomicAddShared(&memory.masses[0][digit], low);
      const uint32_t high =
          static_cast<uint32_t>(weight >> 32) + (held + low < low);
      if (high != 0)
        atomicAddShared(&memory.masses[1][digit], high);
    });
    syncThreads();
    Bins bins;
    Tally own = {};
    for (int i = 0; i < ownBins; ++i) {
      const int bin = ownBins * threadIdx.x + i;
      bins.own[i] = {memory.counts[bin],
                     static_cast<uint64_t>(memory.masses[1][bin]) << 32 |
                         memory.masses[0][bin]};
      own = own + bins.own[i];
    }
    const Tally sum = sumOfLanes(own);
    if (laneIndex() == 31)
      memory.warps[warpIndex()] = sum;
    syncThreads();
    if (warpIndex() == 0)
      memory.warps[laneIndex()] =
          sumOfLanes(laneIndex() < warps ? memory.warps[laneIndex()] : Tally{});
    syncThreads();
    bins.total = memory.warps[warps - 1];
    bins.before = place.before + sum - own;
    if (warpIndex() > 0)
      bins.before = bins.before + memory.warps[warpIndex() - 1];
    return bins;
  }

  /// The bin where the sum passes `target`, which is less than all of them
  /// have together.
  template <Measure measure>
  LLAMAC_DEVICE Place select(const Bins &bins, uint64_t target, uint32_t rank,
                             int shift) const {
    // Everyone has read the place before, and the bins.
    syncThreads();
    Tally before = bins.before;
    for (int i = 0; i < ownBins; ++i) {
      const Tally after = before + bins.own[i];
      if (measured<measure>(before) <= target &&
          target < measured<measure>(after))
        memory.place = {rank | (ownBins * threadIdx.x + i) << shift,
                        bins.own[i].count, before};
      before = after;
    }
    syncThreads();
    return memory.place;
  }

  /// The one rank where the sum passes `target`; `bins` are those of level 0.
  template <Measure measure>
  LLAMAC_DEVICE Place find(const Bins &bins, uint64_t target) const {
    Place place = select<measure>(bins, target, 0, digitShift(0));
    place =
        select<measure>(histogram<1>(place), target, place.rank, digitShift(1));
    return select<measure>(histogram<2>(place), target, place.rank,
                           digitShift(2));
  }

  /// The id of number `index` of those with `rank`.
  LLAMAC_DEVICE uint32_t idOf(uint32_t rank, uint32_t index) const {
    // Each warp has one piece of the row.
    constexpr uint32_t piece = divideUp(width, threads) * 32;
    const uint32_t begin = warpIndex() * piece;
    const uint32_t end = minOf(begin + piece, static_cast<uint32_t>(width));
    uint32_t count = 0;
#pragma unroll 4
    for (uint32_t id = begin + laneIndex(); id < end; id += 32)
      count += rankOf(logits[id]) == rank;
    count = reduceAdd(static_cast<int>(count));
    if (laneIndex() == 0)
      memory.ties[warpIndex()] = count;
    syncThreads();
    const uint32_t others = laneIndex() < warps ? memory.ties[laneIndex()] : 0;
    const uint32_t before =
        reduceAdd(static_cast<int>(laneIndex() < warpIndex() ? others : 0));
    if (before <= index && index < before + count) {
      uint32_t left = index - before;
      for (uint32_t base = begin;; base += 32) {
        const uint32_t id = base + laneIndex();
        const bool isOne = id < end && rankOf(logits[id]) == rank;
        const uint32_t lanes = warpBallot(isOne);
        const uint32_t lanesBefore = lanes & ((1u << laneIndex()) - 1);
        if (isOne && left == static_cast<uint32_t>(__popc(lanesBefore)))
          memory.tie = id;
        const auto found = static_cast<uint32_t>(__popc(lanes));
        if (left < found)
          break;
        left -= found;
      }
    }
    syncThreads();
    return memory.tie;
  }

  /// The last of the tokens that top-k and top-p keep.
  LLAMAC_DEVICE Ranked lastKept(const SamplingParams &param) const {
    const Bins bins = histogram<0>({});
    uint64_t mass = bins.total.mass;
    Place place = {notRanked().rank, 0, {}};
    uint32_t index = 0; // The last one's number in its rank.
    if (param.topK > 0 &&
        static_cast<uint32_t>(param.topK) < bins.total.count) {
      const auto target = static_cast<uint32_t>(param.topK - 1);
      place = find<Measure::Count>(bins, target);
      index = target - place.before.count;
      mass = place.before.mass +
             (uint64_t{index} + 1) * weightOf(logitOf(place.rank));
    }
    if (param.topP < 1) {
      const uint64_t target = beforeShare(param.topP, mass);
      place = find<Measure::Mass>(bins, target);
      index = static_cast<uint32_t>((target - place.before.mass) /
                                    weightOf(logitOf(place.rank)));
    }
    return {place.rank,
            index + 1 < place.count ? idOf(place.rank, index) : notRanked().id};
  }

  /// The token that `param` chooses, of which the temperature is not 0.
  LLAMAC_DEVICE int sample(const SamplingParams &param) const {
    Ranked last = notRanked();
    if (param.topK > 0 || param.topP < 1)
      last = lastKept(param);
    // Times, as positive floats, are in the order of their bits.
    Ranked best = notRanked();
    forEach([&](uint32_t id, float logit) {
      const uint32_t rank = rankOf(logit);
      if (rank > last.rank || (rank == last.rank && id > last.id))
        return;
      const uint32_t time =
          bitCast<uint32_t>(exponentialOf(tokenNoise(param.noiseKey, id)) *
                            exp2Approx((largest - logit) * scale));
      if (time < best.rank)
        best = {time, id};
    });
    return static_cast<int>(firstOfBlock<warps>(best, memory.firsts).id);
  }
};

/// out[r] = the token that params[r] chooses by logits[r, 0 .. width), or -1
/// when one of them is not finite. A launch of sampleShape(width).
template <long width>
LLAMAC_DEVICE void sample(const float *logits, const SamplingParams *params,
                          const SampleArgs &shared, int *out) {
  constexpr int blocks = sampleBlocks(width);
  constexpr int share = divideUp(width, blocks);
  LLAMAC_SHARED(memory, SampleMemory);
  SampledRow<width> row{logits + blockIdx.y * width, memory, 0, 0};
  Ranked *firsts = shared.firsts + blockIdx.y * blocks;
  const int begin = blockIdx.x * share;
  const Ranked own = row.first(begin, minOf<int>(begin + share, width));
  if (threadIdx.x == 0)
    firsts[blockIdx.x] = own;
  if (!arrivesLast(shared.counters + blockIdx.y, blocks))
    return;
  const Ranked first =
      firstOfLanes(laneIndex() < blocks ? firsts[laneIndex()] : notRanked());
  const SamplingParams param = params[blockIdx.y];
  int token = first.rank == 0 ? -1 : static_cast<int>(first.id);
  if (first.rank != 0 && param.temperature > 0)
    token = row.choose(first, param).sample(param);
  if (threadIdx.x == 0)
    out[blockIdx.y] = token;
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_SAMPLING_CUH
