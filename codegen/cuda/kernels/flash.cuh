//===- flash.cuh - Flash attention of one warp ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part that all forms of attention share: a warp with 16 query vectors
// walks tiles of keys on tensor cores, m16n8k16 in the cache's format with f32
// sums. Scores, a running maximum and sum, and the weighted values stay in
// registers; tiles come through a ring of stages in shared memory, filled by
// cp.async. Blocks of a cache are widened to halves on their way out of it, by
// the threads that brought them.
//
// Heads are multiples of 8. Unless one is a multiple of 16, the depth of an
// MMA, the last step of the first product has zeros for its upper half, and the
// last 8 columns of the second are an MMA of their own.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_FLASH_CUH
#define LLAMAC_CODEGEN_DEVICE_FLASH_CUH

#include "llamac/heads.cuh"
#include "llamac/ptx_sm90.cuh"

namespace llamac::cuda {

/// 2^(a - b), where a is at most b; 0 when a is minus infinity, even if b is.
LLAMAC_DEVICE float weightOf(float a, float b) {
  return a == minusInfinity ? 0.0f : exp2Approx(a - b);
}

/// 2^(a - b) as `kind` says, for a finite b.
template <ExpKind kind> LLAMAC_DEVICE float weightAs(float a, float b) {
  if constexpr (kind == ExpKind::Exact) {
    return exp2Approx(a - b);
  } else {
    static_assert(kind == ExpKind::Poly3, "exp2 of a GPU is a table itself");
    if (a == minusInfinity)
      return 0.0f;
    float x = a - b;
    x = x < -126.0f ? -126.0f : x; // A NaN passes.
    // Adding it rounds to an integer, which lies in the low bits.
    constexpr float magic = 12582912.0f;
    const float shifted = (x - 0.5f) + magic;
    const float f = x - (shifted - magic); // In [0, 1].
    const float p =
        fma(f, fma(f, fma(f, exp2PolyC, exp2PolyB), exp2PolyA), 1.0f);
    // The low bits are n + 127 after the sum, and those above move out.
    return p * bitCast<float>((bitCast<uint32_t>(shifted) + 127) << 23);
  }
}

/// A running softmax of 16 query vectors. In fragments, lane 4g + t has rows g
/// and g + 8 (index `upper`) and columns 2t, 2t + 1 of every 8.
template <AttentionConfig config, bool sharedQueries = false> struct FlashWarp {
  static constexpr KvConfig kv = config.kv;
  static constexpr int head = kv.headSize;
  static constexpr int stride = attentionStride(config);
  static_assert(head % 8 == 0 && kv.pageTokens % keyTile == 0);
  static_assert(config.heads % kv.kvHeads == 0);

  int g = laneIndex() / 4;
  int t = laneIndex() % 4;
  uint32_t q[sharedQueries ? 1 : ceilDiv(head, 16)][4] = {};
  /// Where queries are in shared memory: [head / 16][lanes][4].
  uint32_t *queries = nullptr;
  static_assert(!sharedQueries || head % 16 == 0);
  float sums[head / 8][4] = {};
  float maximum[2] = {minusInfinity, minusInfinity};
  float total[2] = {}; ///< This lane's part, until finish().

  /// Loads query vectors: pointer(i) is where vector i, 0 to 15, lies, or null
  /// for a vector of zeros. Scores come out times log2 e.
  template <class Pointer>
  LLAMAC_DEVICE void loadQueries(const Pointer &pointer) {
    constexpr float scale = config.scale * log2e;
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const float *from = pointer(g + 8 * upper);
#pragma unroll
      for (int i = 0; i < head / 8; ++i) {
        F32x2 pair = {0, 0};
        if (from)
          pair = load2(from + 8 * i + 2 * t) * splat(scale);
        const uint32_t packed = packKv<kv.format>(pair.x, pair.y);
        const int word = i % 2 * 2 + upper;
        if constexpr (sharedQueries)
          queries[(i / 2 * 32 + laneIndex()) * 4 + word] = packed;
        else
          q[i / 2][word] = packed;
      }
    }
  }

  /// The queries' fragment of elements 16 k and on.
  LLAMAC_DEVICE void loadFragment(int k, uint32_t (&fragment)[4]) const {
    Words4 words = {};
    if constexpr (sharedQueries)
      words = vectorAt<const Words4>(queries + (k * 32 + laneIndex()) * 4);
#pragma unroll
    for (int word = 0; word < 4; ++word)
      if constexpr (sharedQueries)
        fragment[word] = words[word];
      else
        fragment[word] = q[k][word];
  }

  /// Takes `count` keys, a multiple of 16, and their values, rows of `stride`
  /// bytes in shared memory. Row g + 8 * upper sees those from from[upper] on
  /// before limit[upper].
  template <int count>
  LLAMAC_DEVICE void take(const unsigned char *keys,
                          const unsigned char *values, const int (&from)[2],
                          const int (&limit)[2]) {
    float scores[count / 8][4] = {};
    const int lane = laneIndex();
#pragma unroll
    for (int k = 0; k < head / 16; ++k) {
      uint32_t fragment[4];
      loadFragment(k, fragment);
#pragma unroll
      for (int n = 0; n < count / 8; n += 2) {
        // Matrices of ldmatrix: keys 0-7 at d and d + 8, then keys 8-15.
        uint32_t b[4];
        ldmatrix<4>(b, keys + (8 * n + lane / 16 * 8 + lane % 8) * stride +
                           (16 * k + lane / 8 % 2 * 8) * 2);
        mmaKv<kv.format>(scores[n], fragment, {b[0], b[1]});
        mmaKv<kv.format>(scores[n + 1], fragment, {b[2], b[3]});
      }
    }
    if constexpr (head % 16 != 0)
#pragma unroll
      for (int n = 0; n < count / 8; n += 2) {
        // Keys 0-7, then 8-15, at the last 8 elements.
        uint32_t b[2];
        ldmatrix<2>(b, keys + (8 * n + lane % 16) * stride + (head - 8) * 2);
        mmaKv<kv.format>(scores[n], q[head / 16], {b[0], 0});
        mmaKv<kv.format>(scores[n + 1], q[head / 16], {b[1], 0});
      }
    float factor[2];
    softmax(scores, from, limit, factor);
    rescale(factor);
#pragma unroll
    for (int k = 0; k < count / 16; ++k) {
      uint32_t a[4];
      weightFragment(scores, k, a);
#pragma unroll
      for (int n = 0; n + 1 < head / 8; n += 2) {
        // Transposed: keys 0-7 and 8-15 at d, then at d + 8.
        uint32_t b[4];
        ldmatrix<4, true>(
            b, values + (16 * k + lane / 8 % 2 * 8 + lane % 8) * stride +
                   (8 * n + lane / 16 * 8) * 2);
        mmaKv<kv.format>(sums[n], a, {b[0], b[1]});
        mmaKv<kv.format>(sums[n + 1], a, {b[2], b[3]});
      }
      if constexpr (head % 16 != 0) {
        // Keys 0-7, then 8-15, at the last 8 elements.
        uint32_t b[2];
        ldmatrix<2, true>(b, values + (16 * k + lane % 16) * stride +
                                 (head - 8) * 2);
        mmaKv<kv.format>(sums[head / 8 - 1], a, b);
      }
    }
  }

  /// Turns scores of keys 0 on into weights relative to the new maximum. What
  /// was summed under the old one is to be rescaled by `factor`.
  template <int tiles>
  LLAMAC_DEVICE void softmax(float (&scores)[tiles][4], const int (&from)[2],
                             const int (&limit)[2], float (&factor)[2]) {
    // Most tiles are seen whole, by all rows of the warp.
    const bool isWhole = minOf(limit[0], limit[1]) >= 8 * tiles &&
                         (config.window == 0 || maxOf(from[0], from[1]) <= 0);
    if (warpBallot(isWhole) != fullWarp)
#pragma unroll
      for (int n = 0; n < tiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = 8 * n + 2 * t + i % 2;
          if (key >= limit[i / 2] || (config.window != 0 && key < from[i / 2]))
            scores[n][i] = minusInfinity;
        }
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      float largest = maximum[upper];
#pragma unroll
      for (int n = 0; n < tiles; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          largest = maximumNumber(largest, scores[n][2 * upper + i]);
      largest = maximumNumber(largest, shuffleXor(largest, 1));
      largest = maximumNumber(largest, shuffleXor(largest, 2));
      // Finite, also where nothing was seen yet.
      const float base = largest == minusInfinity ? 0.0f : largest;
      factor[upper] = exp2Approx(maximum[upper] - base);
      maximum[upper] = largest;
      total[upper] *= factor[upper];
#pragma unroll
      for (int n = 0; n < tiles; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float &score = scores[n][2 * upper + i];
          score = weightAs<config.exp>(score, base);
          total[upper] += score;
        }
    }
  }

  /// Multiplies what was summed by the factors of softmax().
  LLAMAC_DEVICE void rescale(const float (&factor)[2]) {
#pragma unroll
    for (int n = 0; n < head / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums[n][i] *= factor[i / 2];
  }

  /// The weights of keys 16 k to 16 k + 15 as the left operand of the second
  /// product: scores' fragments are that just as they are.
  template <int tiles>
  static LLAMAC_DEVICE void weightFragment(const float (&weights)[tiles][4],
                                           int k, uint32_t (&fragment)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float *pair = &weights[2 * k + i / 2][i % 2 * 2];
      fragment[i] = packKv<kv.format>(pair[0], pair[1]);
    }
  }

  /// Adds up the lanes' parts of the sums of weights.
  LLAMAC_DEVICE void finish() {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      total[upper] += shuffleXor(total[upper], 1);
      total[upper] += shuffleXor(total[upper], 2);
    }
  }

  /// Stores the weighted values of vector g + 8 * upper times `factor`.
  template <class Result>
  LLAMAC_DEVICE void store(int upper, float factor, Result *to) const {
#pragma unroll
    for (int n = 0; n < head / 8; ++n)
      store2(to + 8 * n + 2 * t, F32x2{sums[n][2 * upper] * factor,
                                       sums[n][2 * upper + 1] * factor});
  }
};

/// A launch of attention alone: all threads of a block share a split, and the
/// cache has all keys.
struct WholeBlock {
  static LLAMAC_DEVICE void sync() { syncThreads(); }
};

/// Brings tiles of `tileKeys` keys and their values, by the first
/// attentionWarps warps of a block, which Team::sync() is a barrier of.
template <AttentionConfig config, int tileKeys = keyTile,
          class Team = WholeBlock>
struct KeyLoader {
  static constexpr KvConfig kv = config.kv;
  static constexpr bool widens = hasBlocks(kv.format);
  static constexpr int stride = attentionStride(config);
  /// How far ahead of its copy a tile is asked for.
  static constexpr int aheadTiles = 4;
  /// Tiles whose copies begin ahead of the first that is used. A tile behind
  /// them comes where the one before it was.
  static constexpr int startedTiles =
      widens || config.stages == 1 ? config.stages : config.stages - 1;
  /// Elements of 16 bytes, which a thread copies at a time, and how many there
  /// are of a key and of a tile.
  static constexpr int partElements = widens ? kvBlock : 8;
  static constexpr int rowParts = kv.headSize / partElements;
  static constexpr int parts = tileKeys * rowParts;

  KvCache<kv> cache;
  unsigned char *stages;
  int kvHead;
  int sequence;
  int begin, end; ///< Keys that are needed; `begin` is a multiple of tileKeys.
  int firstSeen = 0; ///< The first that is.
  /// The last key that the cache has, if it lacks that at `end` - 1.
  int lastKept = 0x7fffffff;

  LLAMAC_DEVICE int tiles() const { return ceilDiv(end - begin, tileKeys); }
  /// The keys and values of a tile as they are multiplied; of blocks there is
  /// one tile at a time.
  LLAMAC_DEVICE unsigned char *keys(int tile) const {
    return widens ? stages : stageOf(tile);
  }
  LLAMAC_DEVICE unsigned char *values(int tile) const {
    return keys(tile) + tileKeys * stride;
  }

  /// Starts the copies of a tile; they are one group, empty past the end.
  /// Tokens at and after `end` are zero: the cache is uninitialised there. So
  /// are those ahead of `firstSeen`, which may be NaN.
  LLAMAC_DEVICE void start(int tile) {
    const int first = begin + tile * tileKeys;
    if (first < end) {
      const CachedKey from = cache.key(sequence, first, kvHead);
      forEachPart(tile, [&](int i, int token, int part) {
        const bool isAhead = config.window != 0 && first + token < firstSeen;
        const bool isThere = first + token < end && !isAhead;
        const unsigned char *codes =
            from.codes +
            (isThere ? token * int(kvRowBytes(kv)) + part * 16 : 0);
        const uint32_t valid = isThere ? 16 : 0;
        if constexpr (widens) {
          unsigned char *const to = stageOf(tile) + i * 16;
          cpAsync<16>(to, codes, valid);
          cpAsync<16>(to + parts * 16, codes + kvPlaneBytes(kv), valid);
          const unsigned char *scale =
              from.scales + (isThere ? scaleNumber(token, part) * 4 : 0);
          unsigned char *const word = scaleWord(tile, i);
          cpAsync<4>(word, scale, valid / 4);
          cpAsync<4>(word + parts * 4, scale + kvPlaneBytes(kv), valid / 4);
        } else {
          const int at = token * stride + part * 16;
          cpAsync<16>(keys(tile) + at, codes, valid);
          cpAsync<16>(values(tile) + at, codes + kvPlaneBytes(kv), valid);
        }
      });
    }
    cpAsyncCommit();
    askAhead(tile + aheadTiles);
  }

  /// Widens what the thread has copied of a tile.
  LLAMAC_DEVICE void widen(int tile) const {
    forEachPart(tile, [&](int i, int token, int part) {
#pragma unroll
      for (int plane = 0; plane < 2; ++plane) {
        const auto codes =
            vectorAt<const Words4>(stageOf(tile) + (plane * parts + i) * 16);
        const float scale = kvScaleOf<kv.format>(
            vectorAt<const uint32_t>(scaleWord(tile, plane * parts + i)), part);
        unsigned char *const to =
            keys(tile) + plane * tileKeys * stride + token * stride + part * 32;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          Words4 wide;
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const Words2 four =
                widenedCodes<kv.format>(codes[2 * half + j], scale);
            wide[2 * j] = four[0];
            wide[2 * j + 1] = four[1];
          }
          vectorAt<Words4>(to + 16 * half) = wide;
        }
      }
    });
  }

  /// Asks L2 for a tile, where a GPU can.
  LLAMAC_DEVICE void askAhead(int tile) const {
#if LLAMAC_HAS_SM90
    const int first = begin + tile * tileKeys;
    if (first < end && warpIndex() == 0 && electLane()) {
      constexpr uint32_t bytes = tileKeys * kvRowBytes(kv);
      constexpr uint32_t scaleBytes = tileKeys * kvScaleWords(kv) * 4;
      const CachedKey key = cache.key(sequence, first, kvHead);
#pragma unroll
      for (int plane = 0; plane < 2; ++plane) {
        const CachedKey of = key.after(plane * kvPlaneBytes(kv));
        bulkPrefetch(of.codes, bytes);
        if constexpr (widens)
          bulkPrefetch(of.scales, scaleBytes);
      }
    }
#endif
  }

  /// Starts the copies of the first tiles, and asks for those behind them that
  /// start() does not ask for.
  LLAMAC_DEVICE void startFirst() {
#pragma unroll
    for (int tile = 0; tile < startedTiles; ++tile)
      start(tile);
    for (int tile = startedTiles; tile < aheadTiles; ++tile)
      askAhead(tile);
  }

  /// Calls body(tile) for every tile, once it has come for all threads, and
  /// complete(tile) ahead of that, which may add to it what the thread has.
  /// startFirst() was called.
  template <class Body, class Complete>
  LLAMAC_DEVICE void forEachTile(const Body &body, const Complete &complete) {
    const int count = tiles();
    if constexpr (widens) {
      for (int tile = 0; tile < count; ++tile) {
        cpAsyncWait<config.stages - 1>();
        widen(tile);
        complete(tile);
        start(tile + config.stages);
        Team::sync();
        body(tile);
        Team::sync();
      }
      cpAsyncWait<0>();
    } else if constexpr (config.stages == 1) {
      for (int tile = 0; tile < count; ++tile) {
        cpAsyncWait<0>();
        complete(tile);
        Team::sync();
        body(tile);
        Team::sync();
        start(tile + 1);
      }
    } else {
      for (int tile = 0; tile < count; ++tile) {
        cpAsyncWait<config.stages - 2>();
        complete(tile);
        Team::sync();
        start(tile + config.stages - 1);
        body(tile);
      }
      // The stages may now be used again.
      cpAsyncWait<0>();
      Team::sync();
    }
  }
  template <class Body> LLAMAC_DEVICE void forEachTile(const Body &body) {
    forEachTile(body, [](int) {});
  }

private:
  LLAMAC_DEVICE unsigned char *stageOf(int tile) const {
    return stages + (widens ? attentionTileBytes(config, tileKeys) : 0) +
           tile % config.stages * attentionStageBytes(config, tileKeys);
  }

  /// The word that has the scale of part `i` of the keys, then of the values,
  /// behind all codes.
  LLAMAC_DEVICE unsigned char *scaleWord(int tile, int i) const {
    return stageOf(tile) + 2 * parts * 16 + i * 4;
  }
  /// The number of the word with a part's scale among those of its tile.
  static LLAMAC_DEVICE int scaleNumber(int token, int part) {
    return kv.format == KvFormat::FP8
               ? token
               : token * int(kvScaleWords(kv)) + part / 2;
  }

  /// Calls body(i, token, part) for the parts of a tile that the thread copies,
  /// but not for a key that another thread puts there.
  template <class Body>
  LLAMAC_DEVICE void forEachPart(int tile, const Body &body) const {
    const int first = begin + tile * tileKeys;
    // More would leave registers for fewer blocks.
    constexpr int atOnce = widens ? 2 : 4;
#pragma unroll atOnce
    for (int i = threadIdx.x; i < parts; i += attentionWarps * 32) {
      const int token = i / rowParts;
      if (first + token <= lastKept || first + token >= end)
        body(i, token, i % rowParts);
    }
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_FLASH_CUH
