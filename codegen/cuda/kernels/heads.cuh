//===- heads.cuh - Whole heads: norm, rotation and append -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp has a head of a query, a key or a value: lane l has columns 64 i + 2 l
// and the next, of each i. So it can do what needs a head as a whole: normalise
// it, and round it in blocks that share a scale.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_HEADS_CUH
#define LLAMAC_CODEGEN_DEVICE_HEADS_CUH

#include "llamac/kvcache.cuh"
#include "llamac/weights.cuh"

namespace llamac::cuda {

/// The bits of an E4M3 nearest to `value`, ties to even; of what is greater, of
/// infinities and NaNs too, those of the greatest, 448.
LLAMAC_DEVICE uint32_t toE4m3(float value) {
  const uint32_t bits = bitCast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t code;
  if (magnitude < 0x3c800000u) {
    // Below 2^-6 the unit is 2^-9, which is that of 2^14.
    code = bitCast<uint32_t>(bitCast<float>(magnitude) + 16384.0f) -
           bitCast<uint32_t>(16384.0f);
  } else {
    // Three bits of fraction stay, and exponents have a bias of 7.
    code = (magnitude + 0x7ffffu + (magnitude >> 20 & 1) >> 20) - (120u << 3);
  }
  return minOf(code, 0x7eu) | (bits >> 24 & 0x80u);
}

/// A lane's columns of a head of `size`; zeros behind its end.
template <int size> struct HeadPairs {
  static_assert(size % 2 == 0);
  static constexpr int count = ceilDiv(size, 64);

  F32x2 pairs[count];

  static LLAMAC_DEVICE int column(int i) {
    return 64 * i + 2 * static_cast<int>(laneIndex());
  }
  static LLAMAC_DEVICE bool isThere(int i) { return column(i) < size; }

  LLAMAC_DEVICE void load(const float *head) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      pairs[i] = isThere(i) ? load2(head + column(i)) : F32x2{0, 0};
  }
  LLAMAC_DEVICE void store(float *head) const {
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (isThere(i))
        store2(head + column(i), pairs[i]);
  }

  /// Divides by the square root of the mean of the squares, and multiplies by
  /// the gain [size].
  LLAMAC_DEVICE void normalise(const float *gain, float eps) {
    float total = 0;
#pragma unroll
    for (const F32x2 &pair : pairs) {
      float sum = dot(pair, pair, 0);
#pragma unroll
      for (int by = 16; by > 0; by /= 2)
        sum += shuffleXor(sum, by);
      total += sum;
    }
    const F32x2 scale = splat(normScale<size>(total, eps));
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (isThere(i))
        pairs[i] = pairs[i] * scale * load2(gain + column(i));
  }

  /// `cosSin` is the row's, [size / 2][cos, sin].
  LLAMAC_DEVICE void rotate(const float *cosSin) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (isThere(i))
        pairs[i] = rotated(pairs[i], load2(cosSin + column(i)));
  }
};

/// The scale of block `block` of a head, which `word` has.
template <KvFormat format>
LLAMAC_DEVICE float kvScaleOf(uint32_t word, int block) {
  if constexpr (format == KvFormat::FP8)
    return bitCast<float>(word);
  return block % 2 ? highBf16ToFloat(word) : lowBf16ToFloat(word);
}

/// Four codes of a block of a cache, the bytes of `word`, times their scale, as
/// halves.
template <KvFormat format>
LLAMAC_DEVICE Words2 widenedCodes(uint32_t word, float scale) {
  static_assert(hasBlocks(format));
  Words2 halves =
      format == KvFormat::Q8_0 ? bytesToHalves(word) : e4m3ToHalves(word);
#pragma unroll
  for (int i = 0; i < 2; ++i)
    halves[i] = packHalf(lowHalfToFloat(halves[i]) * scale,
                         highHalfToFloat(halves[i]) * scale);
  return halves;
}

/// A head as a cache of blocks holds it.
template <KvConfig kv> struct HeadBlocks {
  static constexpr int size = kv.headSize;
  static constexpr bool isQ8 = kv.format == KvFormat::Q8_0;
  static constexpr int count = HeadPairs<size>::count;
  static_assert(hasBlocks(kv.format) && size % kvBlock == 0);

  float scales[count];   ///< Scale of the block that pair i is in.
  uint32_t codes[count]; ///< The two codes of pair i.

  /// Rounds `head`. The scale is the largest magnitude over the largest code,
  /// in Q8_0 rounded to bf16, and elements are divided by it; where it is no
  /// normal number all are 0. One that is not finite spoils its block.
  LLAMAC_DEVICE explicit HeadBlocks(const HeadPairs<size> &head) {
    // Bits of magnitudes are in their order; a NaN is the largest.
    constexpr int lanes = isQ8 ? kvBlock / 2 : 32;
    uint32_t largest[count];
#pragma unroll
    for (int i = 0; i < count; ++i)
      largest[i] = maxOf(bitCast<uint32_t>(head.pairs[i].x) & 0x7fffffffu,
                         bitCast<uint32_t>(head.pairs[i].y) & 0x7fffffffu);
    if constexpr (!isQ8)
#pragma unroll
      for (int i = 0; i < count; ++i)
        largest[0] = maxOf(largest[0], largest[i]);
#pragma unroll
    for (int i = 0; i < (isQ8 ? count : 1); ++i)
#pragma unroll
      for (int by = 1; by < lanes; by *= 2)
        largest[i] = maxOf(largest[i], shuffleXor(largest[i], by));
#pragma unroll
    for (int i = 0; i < count; ++i) {
      scales[i] =
          bitCast<float>(largest[isQ8 ? i : 0]) * (1.0f / (isQ8 ? 127 : 448));
      if constexpr (isQ8)
        scales[i] = lowBf16ToFloat(packBf16(scales[i], 0));
      float inverse = 1.0f / scales[i];
      if (scales[i] < 0x1p-126f)
        scales[i] = inverse = 0;
      codes[i] = codeOf(head.pairs[i].x * inverse) |
                 codeOf(head.pairs[i].y * inverse) << 8;
    }
  }

  LLAMAC_DEVICE void store(const CachedKey &to) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int column = HeadPairs<size>::column(i);
      if (column < size)
        vectorAt<uint16_t>(to.codes + column) = static_cast<uint16_t>(codes[i]);
      if constexpr (isQ8) {
        // The first lane of two blocks stores both scales.
        const float next = shuffleXor(scales[i], kvBlock / 2);
        if (column < size && column % (2 * kvBlock) == 0)
          vectorAt<uint32_t>(to.scales + column / (2 * kvBlock) * 4) =
              packBf16(scales[i], next);
      } else if (column == 0) {
        vectorAt<float>(to.scales) = scales[i];
      }
    }
  }

  /// Stores what the cache gives for the head, in halves.
  LLAMAC_DEVICE void widen(unsigned char *row) const {
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (const int column = HeadPairs<size>::column(i); column < size)
        vectorAt<uint32_t>(row + 2 * column) =
            widenedCodes<kv.format>(codes[i], scales[i])[0];
  }

private:
  static LLAMAC_DEVICE uint32_t codeOf(float value) {
    if constexpr (!isQ8)
      return toE4m3(value);
    // The sum has the nearest integer in its low bits.
    return bitCast<uint32_t>(value + 12582912.0f) + 128u & 0xffu;
  }
};

/// Appends a head of a key or of a value.
template <KvConfig kv>
LLAMAC_DEVICE void appendHead(const HeadPairs<kv.headSize> &head,
                              const CachedKey &to) {
  if constexpr (hasBlocks(kv.format)) {
    HeadBlocks<kv>(head).store(to);
  } else {
#pragma unroll
    for (int i = 0; i < head.count; ++i)
      if (head.isThere(i))
        vectorAt<uint32_t>(to.codes + head.column(i) * 2) =
            packKv<kv.format>(head.pairs[i].x, head.pairs[i].y);
  }
}

/// Heads of query and key have no norm.
struct NoHeadNorms {
  template <int size>
  LLAMAC_DEVICE void apply(HeadPairs<size> &, bool /*isKey*/) const {}
};

/// They have one each, before they are rotated.
struct HeadNorms {
  const float *queryGain; ///< [headSize].
  const float *keyGain;
  float eps;

  template <int size>
  LLAMAC_DEVICE void apply(HeadPairs<size> &head, bool isKey) const {
    head.normalise(isKey ? keyGain : queryGain, eps);
  }
};

/// Normalises query and key, if they have norms, rotates them, and appends key
/// and value, from query [rows][heads * headSize], key and value
/// [rows][kvHeads * headSize] in memory: the rotated query goes to `out`. A
/// launch of ropeAppendShape().
template <KvConfig kv, long heads, class Norms = NoHeadNorms>
LLAMAC_DEVICE void ropeAppend(const float *query, const float *key,
                              const float *value, const AppendArgs &to,
                              float *out, const Norms &norms = {}) {
  constexpr long size = kv.headSize;
  const long row = blockIdx.y;
  long head = blockIdx.x * long(rowThreads / 32) + warpIndex();
  const bool isQuery = head < heads;
  if (!isQuery)
    head -= heads;
  const bool isKey = !isQuery && head < kv.kvHeads;
  if (!isQuery && !isKey)
    head -= kv.kvHeads;
  if (!isQuery && head >= kv.kvHeads)
    return;
  const long first =
      isQuery ? (row * heads + head) * size : (row * kv.kvHeads + head) * size;
  HeadPairs<size> pairs;
  pairs.load((isQuery ? query : isKey ? key : value) + first);
  if (isQuery || isKey) {
    norms.apply(pairs, isKey);
    pairs.rotate(to.cosSin + row * size);
  }
  if (isQuery) {
    pairs.store(out + first);
    return;
  }
  const KvCache<kv> cache{static_cast<unsigned char *>(to.pool), to.pageTable};
  const CachedKey at = cache.key(to.sequences[row], to.positions[row], head);
  appendHead<kv>(pairs, isKey ? at : at.after(kvPlaneBytes(kv)));
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_HEADS_CUH
