//===- panels.h - Reading packed weights as f32 -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights of 16 rows at one k, widened to f32, from any packed format (the
// layouts are in PanelLayout.h). The values are those of the format's
// definition: q * scale + offset.
//
// The quants of the block formats are interleaved by words of four k, so no
// format needs a shuffle: a word is shifted until the bits asked for are its
// last.
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

LLAMAC_INLINE F32x16 toFloat(U32x16 q) {
  return __builtin_convertvector(bits<I32x16>(q), F32x16);
}

/// Byte `at` of every row of words [..][16][4].
LLAMAC_INLINE U32x16 byteOfWords(const U8 *words, long at) {
  return load<U32x16>(words + at / 4 * 64) >> U32(at % 4 * 8) & 255;
}

/// Four bits of a block of 32 whose pairs start at `q`.
LLAMAC_INLINE U32x16 packedNibble(const U8 *q, long at) {
  return byteOfWords(q, at % 16) >> U32(at / 16 * 4) & 15;
}

/// The same with the fifth bits that lie before them.
LLAMAC_INLINE U32x16 packedFive(const U8 *high, long at) {
  U32x16 fifth = byteOfWords(high, at % 4) >> U32(at / 4) & 1;
  return packedNibble(high + 64, at) | fifth << 4;
}

/// The block of `format` that holds k.
template <PanelFormat format>
LLAMAC_INLINE const U8 *blockOf(const U8 *panel, long k) {
  constexpr PanelBlock block = panelBlock(format);
  return panel + k / block.depth * block.bytes;
}

/// Reads panels of one format:
///   group            consecutive k that share scales
///   scales(panel, k) those of the group that starts at k
///   weight(panel, scales, k, j)  the weights at k + j, for k a multiple of
///                    tileDepth and j < tileDepth
/// This is that of Q4_0, Q4_1, Q5_0 and Q5_1.
template <PanelFormat format> struct PanelReader {
  static constexpr long group = 32;
  static constexpr bool hasOffset =
      format == PanelFormat::Q4_1 || format == PanelFormat::Q5_1;
  static constexpr bool hasFifthBits =
      format == PanelFormat::Q5_0 || format == PanelFormat::Q5_1;

  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    const U8 *block = blockOf<format>(panel, k);
    GroupScales result{fromF16(load<U16x16>(block))};
    if constexpr (hasOffset)
      result.offset = fromF16(load<U16x16>(block + 32));
    return result;
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    const U8 *at = blockOf<format>(panel, k) + (hasOffset ? 64 : 32);
    F32x16 q = toFloat(hasFifthBits ? packedFive(at, k % 32 + j)
                                    : packedNibble(at, k % 32 + j));
    if constexpr (hasOffset)
      return fma(q, s.scale, s.offset);
    else
      return (q - (hasFifthBits ? 16.0f : 8.0f)) * s.scale;
  }
};

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
    return {fromF16(load<U16x16>(blockOf<PanelFormat::Q8_0>(panel, k)))};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    long at = k % 32 + j;
    U32x16 word =
        load<U32x16>(blockOf<PanelFormat::Q8_0>(panel, k) + 32 + at / 4 * 64);
    I32x16 q = bits<I32x16>(word << U32(24 - at % 4 * 8)) >> 24;
    return __builtin_convertvector(q, F32x16) * s.scale;
  }
};

/// `lanes` bytes as f32.
template <class Byte, int lanes>
LLAMAC_INLINE auto bytesToFloat(const U8 *from) {
  using Bytes = Byte __attribute__((ext_vector_type(lanes)));
  using Words = int __attribute__((ext_vector_type(lanes)));
  using Floats = float __attribute__((ext_vector_type(lanes)));
  return __builtin_convertvector(
      __builtin_convertvector(load<Bytes>(from), Words), Floats);
}

/// The six bits of scale and minimum of a part.
template <int lanes> struct SixBitScales {
  using Floats = float __attribute__((ext_vector_type(lanes)));
  Floats scale;
  Floats minimum;
};

/// Those of part `part` of `lanes` rows of a Q4_K or Q5_K block, whose bytes
/// are 16 apart from `scales` on. There are eight pairs in 12 bytes: the first
/// four are the low six bits of bytes 0..3 and 4..7; the others have their low
/// four bits in bytes 8..11 and their high two in the top of bytes 0..7.
template <int lanes>
LLAMAC_INLINE SixBitScales<lanes> sixBitScales(const U8 *scales, long part) {
  using Bytes = U8 __attribute__((ext_vector_type(lanes)));
  using Words = U32 __attribute__((ext_vector_type(lanes)));
  using Floats = float __attribute__((ext_vector_type(lanes)));
  const auto byte = [&](long index) {
    return __builtin_convertvector(load<Bytes>(scales + 16 * index), Words);
  };
  Words scale, minimum;
  if (part < 4) {
    scale = byte(part) & 63;
    minimum = byte(4 + part) & 63;
  } else {
    const Words low = byte(4 + part);
    scale = (low & 15) | byte(part - 4) >> 6 << 4;
    minimum = low >> 4 | byte(part) >> 6 << 4;
  }
  return {__builtin_convertvector(scale, Floats),
          __builtin_convertvector(minimum, Floats)};
}

/// Element `at` of a K-quant's block, whose words begin at `words` and whose
/// weights have `extraBits` beyond four.
template <int extraBits>
LLAMAC_INLINE U32x16 pairedQuant(const U8 *words, long at) {
  const long part = at / 32, pair = part / 2, group = at % 32 / 4;
  const U32 byte = U32(at % 4 * 8);
  const auto four =
      load<U32x16>(words + (8 * extraBits + at / 64 * 8 + group) * 64) >>
          byte >> U32(part % 2 * 4) &
      15;
  if constexpr (extraBits == 0) {
    return four;
  } else {
    constexpr long pairsOfWord = 4 / extraBits;
    constexpr U32 low = (1 << extraBits) - 1;
    const auto word =
        load<U32x16>(words + (pair / pairsOfWord * 8 + group) * 64);
    // The byte that the rotation brought elsewhere, from its bit 4 - extraBits.
    const U32 by =
        byte + 4 - extraBits + U32(pair % pairsOfWord) * 2 * extraBits & 31;
    const U32x16 rest = word >> by | word << (-by & 31);
    return part % 2 ? four << extraBits | (rest & low)
                    : four | (rest >> extraBits & low) << 4;
  }
}

/// Q4_K and Q5_K.
template <PanelFormat format, int extraBits> struct SixBitReader {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    const U8 *block = blockOf<format>(panel, k);
    const auto six = sixBitScales<16>(block + 64, k % 256 / 32);
    return {fromF16(load<U16x16>(block)) * six.scale,
            -(fromF16(load<U16x16>(block + 32)) * six.minimum)};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    const U8 *words = blockOf<format>(panel, k) + 256;
    return fma(toFloat(pairedQuant<extraBits>(words, k % 256 + j)), s.scale,
               s.offset);
  }
};
template <>
struct PanelReader<PanelFormat::Q4_K> : SixBitReader<PanelFormat::Q4_K, 0> {};
template <>
struct PanelReader<PanelFormat::Q5_K> : SixBitReader<PanelFormat::Q5_K, 1> {};

template <> struct PanelReader<PanelFormat::Q6_K> {
  static constexpr long group = 16;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    const U8 *block = blockOf<PanelFormat::Q6_K>(panel, k);
    return {fromF16(load<U16x16>(block)) *
            bytesToFloat<I8, 16>(block + 32 + k % 256 / 16 * 16)};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    const U8 *words = blockOf<PanelFormat::Q6_K>(panel, k) + 288;
    return (toFloat(pairedQuant<2>(words, k % 256 + j)) - 32.0f) * s.scale;
  }
};

// E4M3 elements times an E8M0 scale; a block with a NaN has the scale NaN. Bits
// of an element where those of an f32 are make it 2^-120 of itself, a subnormal
// one included. Two products undo it, since 2^120 times the scale may be
// infinite.
template <> struct PanelReader<PanelFormat::MXFP8> {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales scales(const U8 *panel, long k) {
    U32x16 e = __builtin_convertvector(
        load<U8x16>(blockOf<PanelFormat::MXFP8>(panel, k)), U32x16);
    // 2^-127 is subnormal; all ones are NaN.
    U32x16 edge = bits<U32x16>(I32x16((e + 1 & 255) < 2)) & 0x00400000;
    return {bits<F32x16>(e << 23 | edge)};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales &s,
                                     long k, int j) {
    long at = k % 32 + j;
    U32x16 word =
        load<U32x16>(blockOf<PanelFormat::MXFP8>(panel, k) + 16 + at / 4 * 64);
    I32x16 element = bits<I32x16>(word << U32(24 - at % 4 * 8)) >> 4;
    return bits<F32x16>(element & I32x16(0x87f00000)) * 0x1p120f * s.scale;
  }
};

} // namespace llamac::cpu

#endif // LLAMAC_CPU_PANELS_H
