//===- panels.h - Reading packed weights as f32 -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights of 16 rows at one k, widened to f32, from any packed format (the
// layouts are in PanelLayout.h). The values are those of GGUF's definition of
// each format: q * scale + offset.
//
// The block formats with transposed bytes are read one byte of all 16 rows at
// a time, so no format needs a shuffle.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_PANELS_H
#define LLAMAC_CPU_PANELS_H

#include "llamac/PanelLayout.h"
#include "llamac/cpu/simd.h"

namespace llamac::cpu {

/// What all the weights of a group share.
struct GroupScales {
  F32x16 scale = 0;
  F32x16 offset = 0;
};

/// Byte `index` of the 16 blocks whose bytes are transposed at `block`.
LLAMAC_INLINE U32x16 transposedByte(const U8 *block, long index) {
  return __builtin_convertvector(load<U8x16>(block + 16 * index), U32x16);
}

/// The half floats in bytes `index` and `index + 1`.
LLAMAC_INLINE F32x16 transposedHalf(const U8 *block, long index) {
  U32x16 h = transposedByte(block, index) | transposedByte(block, index + 1)
                                                << 8;
  return fromF16(__builtin_convertvector(h, U16x16));
}

LLAMAC_INLINE F32x16 toFloat(U32x16 q) {
  return __builtin_convertvector(bits<I32x16>(q), F32x16);
}

/// Reads panels of one format:
///   group            consecutive k that share scales
///   scales(panel, k) those of the group that starts at k
///   weight(panel, scales, k, j)  the weights at k + j, for k a multiple of
///                    tileDepth and j < tileDepth
template <PanelFormat format> struct PanelReader;

/// Formats without scales.
struct PlainReader {
  static constexpr long group = 8;
  static LLAMAC_INLINE GroupScales scales(const U8 *, long) { return {}; }
};

template <> struct PanelReader<PanelFormat::F32> : PlainReader {
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &,
                                     long k, int j) {
    return load<F32x16>(panel + (k + j) * 64);
  }
};

template <> struct PanelReader<PanelFormat::F16> : PlainReader {
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &,
                                     long k, int j) {
    return fromF16(load<U16x16>(panel + (k + j) * 32));
  }
};

// Pairs of k: the even one is the low half of a word.
template <> struct PanelReader<PanelFormat::BF16> : PlainReader {
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &,
                                     long k, int j) {
    U32x16 pair = load<U32x16>(panel + k * 32 + j / 2 * 64);
    return bits<F32x16>(j % 2 ? pair & 0xffff0000 : pair << 16);
  }
};

template <> struct PanelReader<PanelFormat::Q8_0> {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    return {fromF16(load<U16x16>(panel + k / 32 * 544))};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    long at = k % 32 + j;
    U32x16 word = load<U32x16>(panel + k / 32 * 544 + 32 + at / 4 * 64);
    I32x16 q = bits<I32x16>(word << U32(24 - at % 4 * 8)) >> 24;
    return __builtin_convertvector(q, F32x16) * s.scale;
  }
};

/// Four bits of the Q4_0 and Q4_1 layouts, whose nibbles start at `q`.
LLAMAC_INLINE U32x16 packedNibble(const U8 *q, long at) {
  U32x16 word = load<U32x16>(q + at % 16 / 4 * 64);
  return word >> U32(at % 4 * 8 + at / 16 * 4) & 15;
}

template <> struct PanelReader<PanelFormat::Q4_0> {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    return {fromF16(load<U16x16>(panel + k / 32 * 288))};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    U32x16 q = packedNibble(panel + k / 32 * 288 + 32, k % 32 + j);
    return (toFloat(q) - 8.0f) * s.scale;
  }
};

template <> struct PanelReader<PanelFormat::Q4_1> {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    const U8 *block = panel + k / 32 * 320;
    return {fromF16(load<U16x16>(block)), fromF16(load<U16x16>(block + 32))};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    U32x16 q = packedNibble(panel + k / 32 * 320 + 64, k % 32 + j);
    return fma(toFloat(q), s.scale, s.offset);
  }
};

/// Five bits of a block with its high bits at byte `high`, low ones after them.
LLAMAC_INLINE U32x16 fiveBits(const U8 *block, long high, long at) {
  U32x16 low = transposedByte(block, high + 4 + at % 16) >> U32(at / 16 * 4);
  U32x16 top = transposedByte(block, high + at / 8) >> U32(at % 8);
  return (low & 15) | (top & 1) << 4;
}

// GGUF's block: f16 d; u32 high bits; u8 nibbles[16].
template <> struct PanelReader<PanelFormat::Q5_0> {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    return {transposedHalf(panel + k / 32 * 352, 0)};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    U32x16 q = fiveBits(panel + k / 32 * 352, 2, k % 32 + j);
    return (toFloat(q) - 16.0f) * s.scale;
  }
};

// GGUF's block: f16 d; f16 m; u32 high bits; u8 nibbles[16].
template <> struct PanelReader<PanelFormat::Q5_1> {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    const U8 *block = panel + k / 32 * 384;
    return {transposedHalf(block, 0), transposedHalf(block, 2)};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    U32x16 q = fiveBits(panel + k / 32 * 384, 4, k % 32 + j);
    return fma(toFloat(q), s.scale, s.offset);
  }
};

/// Scale and minimum of the 32 k of a Q4_K or Q5_K block that start at k: six
/// bits each, eight pairs in the 12 bytes after d and dmin. The first four
/// pairs are the low six bits of bytes 0..3 and 4..7; the others have their low
/// four bits in bytes 8..11 and their high two in the top of bytes 0..7.
LLAMAC_INLINE GroupScales sixBitScales(const U8 *block, long k) {
  long part = k % 256 / 32;
  U32x16 scale, minimum;
  if (part < 4) {
    scale = transposedByte(block, 4 + part) & 63;
    minimum = transposedByte(block, 8 + part) & 63;
  } else {
    U32x16 low = transposedByte(block, 8 + part);
    scale = (low & 15) | transposedByte(block, part) >> 6 << 4;
    minimum = low >> 4 | transposedByte(block, 4 + part) >> 6 << 4;
  }
  return {transposedHalf(block, 0) * toFloat(scale),
          -(transposedHalf(block, 2) * toFloat(minimum))};
}

// GGUF's block: f16 d, dmin; u8 scales[12]; u8 q[4][32], 64 k each, the first
// 32 in the low halves.
template <> struct PanelReader<PanelFormat::Q4_K> {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    return sixBitScales(panel + k / 256 * 2304, k);
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    const U8 *block = panel + k / 256 * 2304;
    long at = k % 256;
    U32x16 byte = transposedByte(block, 16 + at / 64 * 32 + at % 32 + j);
    U32x16 q = byte >> U32(at / 32 % 2 * 4) & 15;
    return fma(toFloat(q), s.scale, s.offset);
  }
};

// GGUF's block: f16 d, dmin; u8 scales[12]; u8 high[32], bit k / 32 of byte
// k % 32; u8 q[4][32] as Q4_K.
template <> struct PanelReader<PanelFormat::Q5_K> {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    return sixBitScales(panel + k / 256 * 2816, k);
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    const U8 *block = panel + k / 256 * 2816;
    long at = k % 256;
    U32x16 byte = transposedByte(block, 48 + at / 64 * 32 + at % 32 + j);
    U32x16 top = transposedByte(block, 16 + at % 32 + j) >> U32(at / 32) & 1;
    U32x16 q = (byte >> U32(at / 32 % 2 * 4) & 15) | top << 4;
    return fma(toFloat(q), s.scale, s.offset);
  }
};

// GGUF's block: u8 low[2][64], u8 high[2][32], i8 scales[16], f16 d. Each half
// is 128 k: low halves of low[0..63], then their high halves; two bits of
// high[k % 32] for each quarter.
template <> struct PanelReader<PanelFormat::Q6_K> {
  static constexpr long group = 16;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    const U8 *block = panel + k / 256 * 3360;
    I8x16 scale = load<I8x16>(block + 16 * (192 + k % 256 / 16));
    return {transposedHalf(block, 208) *
            __builtin_convertvector(scale, F32x16)};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    const U8 *block = panel + k / 256 * 3360;
    long half = k % 256 / 128, quarter = k % 128 / 32, at = k % 32;
    U32x16 low = transposedByte(block, half * 64 + quarter % 2 * 32 + at + j);
    U32x16 high = transposedByte(block, 128 + half * 32 + at + j);
    U32x16 q = (low >> U32(quarter / 2 * 4) & 15) |
               (high >> U32(quarter * 2) & 3) << 4;
    return (toFloat(q) - 32.0f) * s.scale;
  }
};

} // namespace llamac::cpu

#endif // LLAMAC_CPU_PANELS_H
