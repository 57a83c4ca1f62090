//===- attention_tile.h - Attention of a few rows of a sequence -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is a few rows of one sequence that follow one another: the rows of a
// chunk of a prompt, or the one row of a sequence that is decoded. Its query
// vectors are those rows times the query heads that share a kv head; all of
// them use a key or value while it is in registers (tile.h).
//
// Keys of Q8_0 stay integers: a query vector is rounded to 16 bits once, a
// block of a key gives an exact sum in 32 bits, and the sum times the block's
// scale is added in fp32. Values are widened as those of other formats are.
//
// With `topK` a split of one row keeps its topK largest scores of each query
// vector and few others, and reads only the values of the tokens that a vector
// keeps.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_ATTENTION_TILE_H
#define LLAMAC_CPU_ATTENTION_TILE_H

#include "llamac/cpu/config.h"
#include "llamac/cpu/kvcache.h"
#include "llamac/cpu/rowwise.h"
#include "llamac/cpu/simd.h"
#include "llamac/cpu/tile.h"
#include "llamac/cpu/topk.h"
#include "llamac/cpu/vmath.h"

namespace llamac::cpu {

/// Row r is the token at positions[r] of sequence sequences[r].
struct AttentionArgs {
  const float *q;       ///< [rows][heads][headSize], rotated.
  const void *pool;     ///< The layer's pages.
  const int *pageTable; ///< [sequences][pagesPerSequence].
  const int *positions; ///< [rows].
  const int *sequences; ///< [rows].
  float *out;
};

/// The result of some splits for one query vector.
struct SoftmaxState {
  float maximum;
  float sum;
};

/// The value that scores are taken relative to: the maximum, or 0 where all of
/// them are minus infinity, so that they weigh nothing rather than NaN.
LLAMAC_INLINE float baseOf(float maximum) {
  return maximum == -__builtin_inff() ? 0.0f : maximum;
}

/// Merges the triple of the next split, (o, next), into (sums, state).
template <long padded>
LLAMAC_INLINE void mergeSplit(float *sums, SoftmaxState &state, const float *o,
                              SoftmaxState next) {
  float maximum = state.maximum > next.maximum ? state.maximum : next.maximum;
  F32x16 difference = 0;
  difference.x = state.maximum - baseOf(maximum);
  difference.y = next.maximum - baseOf(maximum);
  F32x16 factors = exp(difference);
  F32x16 old = factors.x, added = factors.y;
  for (long d = 0; d < padded; d += 16)
    store(sums + d,
          fma(load<F32x16>(sums + d), old, load<F32x16>(o + d) * added));
  state.sum = fma(splat(state.sum), old, splat(next.sum) * added).x;
  state.maximum = maximum;
}

/// The largest divisor of `number` that is at most `most`.
constexpr long divisorUpTo(long number, long most) {
  long count = number < most ? number : most;
  count = count < 1 ? 1 : count;
  while (number % count != 0)
    --count;
  return count;
}

template <int number> struct Panels {
  static constexpr int count = number;
};

/// Query vectors of one kv head and what is computed from them, in a thread's
/// scratch.
template <AttentionConfig config> struct AttentionTile {
  static constexpr KvConfig kv = config.kv;
  static constexpr long group = config.heads / kv.kvHeads;
  static constexpr long capacity = attentionTileRows(config) * group;
  static constexpr long head = kv.headSize;
  static constexpr long padded = paddedHead(head);
  static constexpr long split = config.splitTokens;
  static constexpr long pages = split / kv.pageTokens;
  static constexpr long stride = config.heads * head;
  static constexpr bool isQ8 = kv.format == KvFormat::Q8_0;
  static_assert(config.heads % kv.kvHeads == 0 && head % 8 == 0);
  static_assert(kv.pageTokens % 32 == 0 && split % kv.pageTokens == 0);

  float *queries;       // [vectors][head], scaled; of Q8_0 i16
  float *scores;        // [vectors][split]
  float *partial;       // [vectors][padded], of one split
  float *sums;          // [vectors][padded], of the splits so far
  SoftmaxState *states; // [vectors], of one split
  SoftmaxState *totals; // [vectors], of the splits so far
  float *queryScales;   // [vectors], of Q8_0
  float *valueScales;   // [head / kvBlock][pageTokens], of a page of Q8_0

  LLAMAC_INLINE explicit AttentionTile(void *scratch) {
    queries = static_cast<float *>(scratch);
    scores = queries + capacity * padded;
    partial = scores + capacity * split;
    sums = partial + capacity * padded;
    states = reinterpret_cast<SoftmaxState *>(sums + capacity * padded);
    totals = states + capacity;
    queryScales = reinterpret_cast<float *>(totals + capacity);
    valueScales = sums + capacity * (padded + 2 * 16);
  }

  /// Scaled copies of the query vectors of rows first .. first + rows - 1.
  LLAMAC_INLINE void loadQueries(const float *q, long first, long rows,
                                 long kvHead) {
    for (long r = 0; r < rows; ++r)
      for (long j = 0; j < group; ++j) {
        const float *from =
            q + (first + r) * stride + (kvHead * group + j) * head;
        if constexpr (isQ8) {
          roundQuery(from, r * group + j);
        } else {
          float *to = queries + (r * group + j) * head;
          forEachGroup<head>([&](long d, int lanes) {
            store16(to + d, load16(from + d, lanes) * config.scale, lanes);
          });
        }
      }
  }

  // Q8_0

  LLAMAC_INLINE I16 *roundedQuery(long vector) const {
    return reinterpret_cast<I16 *>(queries) + vector * head;
  }

  /// Vector `vector` in 16 bits, and its scale, which is not finite when an
  /// element is not.
  LLAMAC_INLINE void roundQuery(const float *from, long vector) {
    U32x16 magnitudes = 0;
    for (long d = 0; d < head; d += 16)
      magnitudes = __builtin_elementwise_max(
          magnitudes, bits<U32x16>(load<F32x16>(from + d)) & 0x7fffffff);
    const float largest = bits<float>(__builtin_reduce_max(magnitudes));
    constexpr float most = 32767;
    // Too small a vector for its inverse is zero.
    const float inverse = largest < 0x1p-100f ? 0.0f : most / largest;
    I16 *to = roundedQuery(vector);
    for (long d = 0; d < head; d += 16) {
      // toKvBlock() rounds in this way too.
      const F32x16 nearest =
          fma(load<F32x16>(from + d), splat(inverse), splat(0x1.8p23f));
      store(to + d, __builtin_convertvector(bits<U32x16>(nearest), I16x16));
    }
    queryScales[vector] = largest * (config.scale / most);
  }

  /// Vectors that scoreBlocks() unrolls over, and blocks of 16 keys for each.
  static constexpr long blockwise = divisorUpTo(group, fewSums / 2);
  static constexpr int blockwisePanels =
      fewSums >= 8 * blockwise && kv.pageTokens % 64 == 0 ? 4
      : fewSums >= 4 * blockwise                          ? 2
                                                          : 1;

  /// Computes scores of `tokens` keys of one page for `vectors` query vectors,
  /// a multiple of `blockwise`; `column` points at the page's scores. `used` is
  /// called as in scoreFew().
  template <class Used>
  LLAMAC_INLINE void scoreBlocks(const KvPage<kv> &page, long tokens,
                                 long vectors, float *column,
                                 const Used &used) {
    constexpr int panels = blockwisePanels;
    constexpr long scaled = kvBlock + 2; // Bytes of a block and its scale.
    for (long token = 0; token < tokens; token += 16 * panels)
      for (long first = 0; first < vectors; first += blockwise) {
        F32x16 score[blockwise][panels] = {};
        for (long d = 0; d < head; d += kvBlock) {
          if (first == 0)
            used((token * head + 16 * panels * d) / kvBlock * scaled,
                 16 * panels * scaled);
          I32x16 sum[blockwise][panels] = {};
          for (long pair = d; pair < d + kvBlock; pair += 2) {
            I16x32 w[panels];
            for (int p = 0; p < panels; ++p)
              w[p] = __builtin_convertvector(
                  load<I8x32>(page.keys(token + 16 * p, pair)), I16x32);
            for (long v = 0; v < blockwise; ++v) {
              const auto x = bits<I16x32>(
                  I32x16(load<int>(roundedQuery(first + v) + pair)));
              for (int p = 0; p < panels; ++p)
                sum[v][p] = addPairs(sum[v][p], w[p], x);
            }
          }
          for (int p = 0; p < panels; ++p) {
            const F32x16 scale =
                fromBF16(load<U16x16>(page.keyScale(token + 16 * p, d)));
            for (long v = 0; v < blockwise; ++v)
              score[v][p] = fma(__builtin_convertvector(sum[v][p], F32x16),
                                scale, score[v][p]);
          }
        }
        for (long v = 0; v < blockwise; ++v)
          for (int p = 0; p < panels; ++p)
            store(column + (first + v) * split + token + 16 * p,
                  score[v][p] * queryScales[first + v]);
      }
  }

  LLAMAC_INLINE void widenValueScales(const KvPage<kv> &page) {
    for (long d = 0; d < head; d += kvBlock)
      for (long token = 0; token < kv.pageTokens; token += 16)
        store(valueScales + d / kvBlock * kv.pageTokens + token,
              fromBF16(load<U16x16>(page.valueScale(token, d))));
  }

  // All formats

  /// Elements d .. d + 15 of the value of `token`.
  LLAMAC_INLINE F32x16 loadValue(const KvPage<kv> &page, long token,
                                 long d) const {
    const U8 *value = page.value(token, d);
    if constexpr (isQ8)
      return __builtin_convertvector(load<I8x16>(value), F32x16) *
             valueScales[d / kvBlock * kv.pageTokens + token];
    else
      return loadKv<kv.format>(value);
  }

  /// Computes scores of `tokens` keys of one page for `vectors` query vectors;
  /// `scores` points at the page's column.
  LLAMAC_INLINE void scorePage(const KvPage<kv> &page, long tokens,
                               long vectors, float *column) {
    for (long token = 0; token < tokens; token += 16 * tilePanels) {
      for (long v = 0; v < vectors; ++v)
        clear(column + v * split + token, 16 * tilePanels);
      for (long d = 0; d < head; d += tileDepth) {
        F32x16 w[tilePanels][tileDepth];
        for (int p = 0; p < tilePanels; ++p)
          for (int j = 0; j < tileDepth; ++j) {
            const U8 *keys = page.keys(token + 16 * p, d + j);
            w[p][j] = loadKv<kv.format>(keys);
            page.prefetchAfter(keys);
          }
        accumulate(w, queries + d, head, column + token, split, 16, vectors);
      }
    }
  }

  /// Vectors of one row that are unrolled over, and blocks of 16 keys or
  /// elements for each: what accumulateFew() has registers for.
  static constexpr long few = divisorUpTo(group, 8);
  static constexpr int fewPanels = fewSums >= 4 * few   ? 4
                                   : fewSums >= 2 * few ? 2
                                                        : 1;

  /// About as many bytes are read between two calls of `used`.
  static constexpr long usedBytes = 256;

  /// scorePage() for the vectors of one row. used(begin, bytes) is called as
  /// bytes of the page's keys are read, in the order of their use, once each.
  template <class Used>
  LLAMAC_INLINE void scoreFew(const KvPage<kv> &page, long tokens,
                              float *column, const Used &used) {
    constexpr int panels = kv.pageTokens / 16 % fewPanels == 0 ? fewPanels : 2;
    constexpr long step = 16 * panels * KvPage<kv>::element;
    constexpr long often = divisorUpTo(head, usedBytes / step);
    for (long token = 0; token < tokens; token += 16 * panels)
      for (long v = 0; v < group; v += few) {
        float *to = column + v * split + token;
        for (long i = 0; i < few; ++i)
          clear(to + i * split, 16 * panels);
        accumulateFew<few, panels>(
            [&](int p, long d) {
              if (v == 0 && p == 0 && d % often == 0)
                used((token / (16 * panels) * head + d) * step, often * step);
              return loadKv<kv.format>(page.keys(token + 16 * p, d));
            },
            head, queries + v * head, head, to, split, 16);
      }
  }

  /// Turns the scores of `count` vectors from `first` on into weights and sets
  /// their states: keys ahead of `from` and at and after `limit` get none.
  /// Writes columns up to `tokens`, rounded up. On the way step(n) is called
  /// with a growing n, up to twice the limit.
  template <int count, class Step>
  LLAMAC_INLINE void softmax(long first, long from, long limit, long tokens,
                             const Step &step) {
    // Whether the lanes of keys t and on are seen.
    auto seen = [&](I32x16 lane, long t) {
      if constexpr (config.window != 0)
        return (lane < int(limit - t)) & (lane >= int(from - t));
      else
        return lane < int(limit - t);
    };
    I32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    constexpr float lowest = -__builtin_inff();
    float *rows = scores + first * split;
    F32x16 largest[count];
    for (int v = 0; v < count; ++v)
      largest[v] = lowest;
    for (long t = 0; t < limit; t += 16) {
      step(t);
      for (int v = 0; v < count; ++v) {
        auto score = load<F32x16>(rows + v * split + t);
        largest[v] = max(seen(lane, t) ? score : lowest, largest[v]);
      }
    }
    float base[count];
    F32x16 sum[count] = {};
    for (int v = 0; v < count; ++v) {
      states[first + v].maximum = maxLanes(largest[v]);
      base[v] = baseOf(states[first + v].maximum);
    }
    for (long t = 0; t < tokens; t += 16) {
      step(limit + t);
      for (int v = 0; v < count; ++v) {
        F32x16 weight = 0;
        if (t < limit) {
          weight = expOfScore<config.exp>(load<F32x16>(rows + v * split + t) -
                                          base[v]);
          weight = seen(lane, t) ? weight : F32x16(0);
          sum[v] += weight;
        }
        store(rows + v * split + t, weight);
      }
    }
    for (int v = 0; v < count; ++v)
      states[first + v].sum = sumLanes(sum[v]);
  }

  /// Whether a token of a page, whose token `from` is the first that is seen,
  /// is ahead of it: its value, which weighs nothing, may be NaN.
  static LLAMAC_INLINE bool isAhead(long token, long from) {
    return config.window != 0 && token < from;
  }

  /// partial[.][d ..] += weights x values for tokens from `from` on of one
  /// page, `panels` times 16 elements.
  template <int panels>
  LLAMAC_INLINE void addValues(const KvPage<kv> &page, long from, long tokens,
                               long vectors, const float *column, long d) {
    for (long token = 0; token < tokens; token += tileDepth) {
      F32x16 w[panels][tileDepth];
      for (int j = 0; j < tileDepth; ++j)
        if (!isQ8 || d % 64 == 0) // Once for each 64 bytes.
          page.prefetchAfter(page.value(token + j, d));
      for (int p = 0; p < panels; ++p)
        for (int j = 0; j < tileDepth; ++j)
          // Uninitialised slots may be NaN.
          w[p][j] = token + j < tokens && !isAhead(token + j, from)
                        ? loadValue(page, token + j, d + 16 * p)
                        : F32x16(0);
      accumulate(w, column + token, split, partial + d, padded, 16, vectors);
    }
  }

  /// addValues() for the vectors of one row, which weigh no slot but those that
  /// were written. `used` is called as in scoreFew().
  template <int panels, class Used>
  LLAMAC_INLINE void addFew(const KvPage<kv> &page, long from, long tokens,
                            const float *column, long d, const Used &used) {
    constexpr long element = KvPage<kv>::element, step = 16 * panels * element;
    constexpr long often = divisorUpTo(kv.pageTokens, usedBytes / step);
    for (long v = 0; v < group; v += few)
      accumulateFew<few, panels>(
          [&](int p, long token) {
            if (v == 0 && p == 0 && token % often == 0)
              used(kv.pageTokens * d * element + token * step, often * step);
            return isAhead(token, from) ? F32x16(0)
                                        : loadValue(page, token, d + 16 * p);
          },
          tokens, column + v * split, split, partial + v * padded + d, padded,
          16);
  }

  /// Calls body(panels, d) for all elements of a value, `panels` blocks of 16
  /// at a time while there are so many.
  template <int panels, class Body>
  static LLAMAC_INLINE void forEachPanels(const Body &body) {
    long d = 0;
    for (; d + 16 * panels <= padded; d += 16 * panels)
      body(Panels<panels>(), d);
    if constexpr (panels > 1)
      for (; d < padded; d += 16)
        body(Panels<1>(), d);
  }

  struct Split {
    long sequence;
    long kvHead;
    long number;
  };

  static LLAMAC_INLINE KvPage<kv> pageOf(const AttentionArgs &args,
                                         const Split &of, long page) {
    return {args.pool, args.pageTable, of.sequence, of.number * pages + page,
            of.kvHead};
  }

  /// Calls body(page, number, tokens) for the pages of a split that have some
  /// of the tokens from `from` to `tokens` - 1; `tokens` of each are taken.
  template <class Body>
  static LLAMAC_INLINE void forEachPage(const AttentionArgs &args,
                                        const Split &of, long from, long tokens,
                                        const Body &body) {
    const long begin = from > 0 ? from / kv.pageTokens : 0;
    for (long page = begin; page * kv.pageTokens < tokens; ++page) {
      long left = tokens - page * kv.pageTokens;
      body(pageOf(args, of, page), page,
           left < kv.pageTokens ? left : kv.pageTokens);
    }
  }

  // The largest scores alone

  /// [split], tokens of a split, behind the other scratch.
  LLAMAC_INLINE int *keptTokens() const {
    return reinterpret_cast<int *>(valueScales) + kvScaleBytes(kv) / 2;
  }

  /// Lists the tokens that a vector of a row keeps in keptTokens(), prefetches
  /// their values, moves their scores to the front, as minus infinity where
  /// another vector keeps them, and gives how many they are.
  LLAMAC_INLINE long keepTokens(const AttentionArgs &args, const Split &of,
                                long from, long tokens) {
    float thresholds[group];
    for (long v = 0; v < group; ++v)
      thresholds[v] =
          thresholdOf<config.topK>(scores + v * split, from, tokens);
    int *kept = keptTokens();
    long count = 0;
    for (long t = 0; t < tokens; t += 16) {
      I32x16 isKept = 0;
      for (long v = 0; v < group; ++v) // A NaN is kept.
        isKept |= ~(load<F32x16>(scores + v * split + t) < thresholds[v]);
      const KvPage<kv> page = pageOf(args, of, t / kv.pageTokens);
      for (U32 left = laneBits(isKept & areSeen(t, from, tokens)); left;
           left &= left - 1) {
        const long token = t + __builtin_ctz(left);
        const U8 *value = page.value(token % kv.pageTokens, 0);
        for (long byte = 0; byte < padded * KvPage<kv>::element; byte += 64)
          prefetch(value + byte);
        for (long v = 0; v < group; ++v) {
          const float score = scores[v * split + token];
          scores[v * split + count] =
              score < thresholds[v] ? -__builtin_inff() : score;
        }
        kept[count++] = static_cast<int>(token);
      }
    }
    return count;
  }

  /// addFew() for the `count` tokens that keepTokens() kept.
  LLAMAC_INLINE void addKept(const AttentionArgs &args, const Split &of,
                             long count) {
    const int *kept = keptTokens();
    for (long first = 0, end; first < count; first = end) {
      const long number = kept[first] / kv.pageTokens;
      for (end = first + 1; end < count && kept[end] / kv.pageTokens == number;)
        ++end;
      const KvPage<kv> page = pageOf(args, of, number);
      if constexpr (isQ8)
        widenValueScales(page);
      forEachPanels<fewPanels>([&](auto panels, long d) {
        for (long v = 0; v < group; v += few)
          accumulateFew<few, panels.count>(
              [&](int p, long i) {
                return loadValue(page, kept[first + i] % kv.pageTokens,
                                 d + 16 * p);
              },
              end - first, scores + v * split + first, split,
              partial + v * padded + d, padded, 16);
      });
    }
  }

  /// Keys of a split that a row sees: `from` to `limit` - 1.
  struct Seen {
    long from;
    long limit;

    LLAMAC_INLINE bool any() const { return limit > 0 && from < split; }
  };

  static LLAMAC_INLINE Seen seenBy(const AttentionArgs &args, long row,
                                   long number) {
    const long position = args.positions[row], before = number * split;
    const long limit = position + 1 - before;
    return {firstKey(config, position) - before, limit < split ? limit : split};
  }

  /// (partial, states) of a split, for rows first .. first + rows - 1, whose
  /// queries are loaded.
  LLAMAC_INLINE void computeSplit(const AttentionArgs &args, const Split &of,
                                  long first, long rows) {
    const long vectors = rows * group;
    // Rows are at ascending positions.
    const long from = seenBy(args, first, of.number).from;
    const long tokens = seenBy(args, first + rows - 1, of.number).limit;
    forEachPage(args, of, from, tokens,
                [&](const KvPage<kv> &page, long number, long count) {
                  float *column = scores + number * kv.pageTokens;
                  if constexpr (isQ8)
                    scoreBlocks(page, count, vectors, column,
                                [&](long begin, long bytes) {
                                  page.prefetchAfter(page.base + begin, bytes);
                                });
                  else
                    scorePage(page, count, vectors, column);
                });
    for (long v = 0; v < vectors; ++v) {
      const Seen seen = seenBy(args, first + v / group, of.number);
      softmax<1>(v, seen.from, seen.limit, tokens, [](long) {});
    }
    clear(partial, vectors * padded);
    forEachPage(args, of, from, tokens,
                [&](const KvPage<kv> &page, long number, long count) {
                  if constexpr (isQ8)
                    widenValueScales(page);
                  forEachPanels<tilePanels>([&](auto panels, long d) {
                    addValues<panels.count>(page, from - number * kv.pageTokens,
                                            count, vectors,
                                            scores + number * kv.pageTokens, d);
                  });
                });
  }

  using Prefetcher = KvPrefetcher<kv, pages>;

  /// The places `offset` bytes from the start of a split's head. In place of a
  /// page that is past `tokens`, the first.
  static LLAMAC_INLINE typename Prefetcher::Places
  placesOf(const AttentionArgs &args, const Split &of, long tokens,
           long offset) {
    typename Prefetcher::Places places;
    for (long page = 0; page < pages; ++page)
      places.begins[page] =
          pageOf(args, of, page * kv.pageTokens < tokens ? page : 0).base +
          offset;
    return places;
  }

  /// computeSplit() for one row, which sees the keys `from` to `tokens` - 1.
  /// `prefetcher` keeps step with the work, so that memory is never idle.
  LLAMAC_INLINE void computeRow(const AttentionArgs &args, const Split &of,
                                long from, long tokens,
                                Prefetcher &prefetcher) {
    constexpr long keyBytes = kvKeyBytes(kv);
    constexpr long valueBytes = kvHeadBytes(kv) - keyBytes;
    // The softmax takes about an eighth of the time.
    constexpr long before = Prefetcher::rows - Prefetcher::rows / 8;
    constexpr long after = Prefetcher::rows + Prefetcher::rows / 8;
    forEachPage(args, of, from, tokens,
                [&](const KvPage<kv> &page, long number, long count) {
                  float *column = scores + number * kv.pageTokens;
                  auto used = [&](long begin, long bytes) {
                    prefetcher.prefetchUntil(
                        (number * keyBytes + begin + bytes) * before /
                        (pages * keyBytes));
                  };
                  if constexpr (isQ8)
                    scoreBlocks(page, count, group, column, used);
                  else
                    scoreFew(page, count, column, used);
                });
    constexpr int together = divisorUpTo(group, 4);
    if constexpr (config.topK != 0) {
      const long count = keepTokens(args, of, from, tokens);
      prefetcher.prefetchUntil(Prefetcher::rows);
      for (long v = 0; v < group; v += together)
        softmax<together>(v, 0, count, count, [](long) {});
      clear(partial, group * padded);
      addKept(args, of, count);
      return;
    }
    for (long v = 0; v < group; v += together)
      softmax<together>(v, from, tokens, tokens, [&](long n) {
        prefetcher.prefetchUntil(before + n * (after - before) / (2 * split));
      });
    clear(partial, group * padded);
    forEachPage(args, of, from, tokens,
                [&](const KvPage<kv> &page, long number, long count) {
                  auto used = [&](long begin, long bytes) {
                    prefetcher.prefetchUntil(
                        after + (number * valueBytes + begin + bytes) * before /
                                    (pages * valueBytes));
                  };
                  if constexpr (isQ8)
                    widenValueScales(page);
                  forEachPanels<fewPanels>([&](auto panels, long d) {
                    addFew<panels.count>(page, from - number * kv.pageTokens,
                                         count, scores + number * kv.pageTokens,
                                         d, used);
                  });
                });
    prefetcher.prefetchUntil(2 * Prefetcher::rows);
  }

  LLAMAC_INLINE void attend(const AttentionArgs &args, long first, long rows,
                            long kvHead) {
    loadQueries(args.q, first, rows, kvHead);
    const long vectors = rows * group;
    const long last = args.positions[first + rows - 1];
    const long firstSplit = firstKey(config, args.positions[first]) / split;

    for (long number = firstSplit; number * split <= last; ++number) {
      computeSplit(args, {args.sequences[first], kvHead, number}, first, rows);
      for (long v = 0; v < vectors; ++v) {
        if (number == firstSplit) {
          totals[v] = states[v];
          for (long d = 0; d < padded; d += 16)
            store(sums + v * padded + d,
                  load<F32x16>(partial + v * padded + d));
        } else if (seenBy(args, first + v / group, number).any()) {
          mergeSplit<padded>(sums + v * padded, totals[v], partial + v * padded,
                             states[v]);
        }
      }
    }
    for (long v = 0; v < vectors; ++v)
      finish(sums + v * padded, totals[v],
             args.out + (first + v / group) * stride +
                 (kvHead * group + v % group) * head);
  }

  static LLAMAC_INLINE void finish(const float *from, SoftmaxState state,
                                   float *to) {
    float inverse = 1.0f / state.sum;
    forEachGroup<head>([&](long d, int lanes) {
      store16(to + d, load<F32x16>(from + d) * inverse, lanes);
    });
  }

  /// The triples of a split and rows first .. first + rows - 1 that see some of
  /// it, to args.out.
  LLAMAC_INLINE void storeSplit(const AttentionArgs &args, const Split &of,
                                long first, long rows) const {
    constexpr long size = attentionPartialFloats(config);
    constexpr long splits = attentionSplits(config);
    for (long v = 0; v < rows * group; ++v) {
      const long row = first + v / group;
      if (!seenBy(args, row, of.number).any())
        continue;
      const long head = row * config.heads + of.kvHead * group + v % group;
      float *to = args.out + (head * splits + of.number) * size;
      for (long d = 0; d < padded; d += 16)
        store(to + d, load<F32x16>(partial + v * padded + d));
      to[padded] = states[v].maximum;
      to[padded + 1] = states[v].sum;
    }
  }

  /// One split of rows first .. first + rows - 1.
  LLAMAC_INLINE void attendSplit(const AttentionArgs &args, const Split &of,
                                 long first, long rows) {
    loadQueries(args.q, first, rows, of.kvHead);
    computeSplit(args, of, first, rows);
    storeSplit(args, of, first, rows);
  }

  /// One split of one row. `prefetcher` has its keys, and brings its values and
  /// the next split's keys.
  LLAMAC_INLINE void attendSplit(const AttentionArgs &args, const Split &of,
                                 long row, Prefetcher &prefetcher) {
    const Seen seen = seenBy(args, row, of.number);
    // After the row's last split, the same one again.
    Split next = {of.sequence, of.kvHead + 1, of.number};
    if (next.kvHead == kv.kvHeads)
      next = {of.sequence, 0, of.number + 1};
    if (seenBy(args, row, next.number).limit <= 0)
      next = of;
    auto placesOfKeys = [&] {
      return placesOf(args, next, seenBy(args, row, next.number).limit, 0);
    };
    if constexpr (config.topK != 0) // Which values is not known yet.
      prefetcher.start(placesOfKeys());
    else
      prefetcher.start(placesOf(args, of, seen.limit, kvKeyBytes(kv)),
                       placesOfKeys());
    loadQueries(args.q, row, 1, of.kvHead);
    computeRow(args, of, seen.from, seen.limit, prefetcher);
    storeSplit(args, of, row, 1);
  }
};
} // namespace llamac::cpu

#endif // LLAMAC_CPU_ATTENTION_TILE_H
