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
// format needs a shuffle between words: one is shifted until the bits asked for
// are its last.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_PANELS_H
#define LLAMAC_CPU_PANELS_H

#include "llamac/PanelLayout.h"
#include "llamac/cpu/simd.h"
#include "runtime/base/CodeBooks.h"

namespace llamac::cpu {

/// The scales that all the weights of a group share, for some rows of a panel.
template <int lanes = panelRows> struct GroupScales {
  using Floats = float __attribute__((ext_vector_type(lanes)));
  Floats scale = 0;
  Floats offset = 0;
};

/// The block of `format` that holds k.
template <PanelFormat format>
LLAMAC_INLINE const U8 *blockOf(const U8 *panel, long k) {
  constexpr PanelBlock block = panelBlock(format);
  return panel + k / block.depth * block.bytes;
}

/// `lanes` scales of E8M0.
template <int lanes> LLAMAC_INLINE auto e8m0ToFloat(const U8 *from) {
  using Bytes = U8 __attribute__((ext_vector_type(lanes)));
  using Words = U32 __attribute__((ext_vector_type(lanes)));
  using Floats = float __attribute__((ext_vector_type(lanes)));
  const Words e = __builtin_convertvector(load<Bytes>(from), Words);
  // 2^-127 is subnormal; all ones are NaN.
  const Words edge = bits<Words>((e + 1 & 255) < 2) & 0x00400000;
  return bits<Floats>(e << 23 | edge);
}

// Blocks of integers

/// How a block's weights are integers: v scale + offset, v from `least` to
/// `most`.
struct BlockCode {
  int least, most;
  bool hasOffset = false;
  /// Runs of k in each 32, with scales of their own.
  int runs = 1;
  /// Bits of a weight in the byte that it shares with others. Less than 8 hold
  /// v - least, or the place of v among `values`.
  int storedBits = 4;
  /// And beyond them, in words that lie before those bytes.
  int extraBits = 0;
  /// Whether a byte has weights of parts of 32 k, which are taken in pairs.
  bool isPaired = false;
  const I8 *values = nullptr;
};

template <PanelFormat format> constexpr BlockCode blockCode();

template <> constexpr BlockCode blockCode<PanelFormat::Q8_0>() {
  return {.least = -128, .most = 127, .storedBits = 8};
}
template <> constexpr BlockCode blockCode<PanelFormat::Q4_0>() {
  return {.least = -8, .most = 7};
}
template <> constexpr BlockCode blockCode<PanelFormat::Q4_1>() {
  return {.least = 0, .most = 15, .hasOffset = true};
}
template <> constexpr BlockCode blockCode<PanelFormat::Q5_0>() {
  return {.least = -16, .most = 15, .extraBits = 1};
}
template <> constexpr BlockCode blockCode<PanelFormat::Q5_1>() {
  return {.least = 0, .most = 31, .hasOffset = true, .extraBits = 1};
}
template <> constexpr BlockCode blockCode<PanelFormat::Q2_K>() {
  return {.least = 0,
          .most = 3,
          .hasOffset = true,
          .runs = 2,
          .storedBits = 2,
          .isPaired = true};
}
template <> constexpr BlockCode blockCode<PanelFormat::Q3_K>() {
  return {.least = -4,
          .most = 3,
          .runs = 2,
          .storedBits = 2,
          .extraBits = 1,
          .isPaired = true};
}
template <> constexpr BlockCode blockCode<PanelFormat::Q4_K>() {
  return {.least = 0, .most = 15, .hasOffset = true, .isPaired = true};
}
template <> constexpr BlockCode blockCode<PanelFormat::Q5_K>() {
  return {.least = 0,
          .most = 31,
          .hasOffset = true,
          .extraBits = 1,
          .isPaired = true};
}
template <> constexpr BlockCode blockCode<PanelFormat::Q6_K>() {
  return {
      .least = -32, .most = 31, .runs = 2, .extraBits = 2, .isPaired = true};
}
template <> constexpr BlockCode blockCode<PanelFormat::IQ4_NL>() {
  return {.least = -127, .most = 113, .values = iq4Values};
}
template <> constexpr BlockCode blockCode<PanelFormat::IQ4_XS>() {
  return {.least = -127, .most = 113, .values = iq4Values};
}
template <> constexpr BlockCode blockCode<PanelFormat::MXFP4>() {
  return {.least = -12, .most = 12, .values = mxfp4Values};
}

/// Where a block's quants begin: behind the scales.
template <PanelFormat format> constexpr long quantsOffset() {
  constexpr BlockCode code = blockCode<format>();
  constexpr PanelBlock block = panelBlock(format);
  return block.bytes -
         block.depth * (code.storedBits + code.extraBits) / 8 * panelRows;
}

/// The scales of group `group` of a block, of 32 k or a run of them, in `lanes`
/// rows from `lane` on.
template <PanelFormat format, int lanes>
LLAMAC_INLINE GroupScales<lanes> groupScales(const U8 *block, long group,
                                             int lane) {
  using Words = U32 __attribute__((ext_vector_type(lanes)));
  using Floats = float __attribute__((ext_vector_type(lanes)));
  const auto half = [&](long at) {
    return loadF16<lanes>(block + at + 2 * lane);
  };
  // Byte `index` of the stored bytes that begin at `at`.
  const auto byte = [&](long at, long index) {
    using Bytes = U8 __attribute__((ext_vector_type(lanes)));
    return __builtin_convertvector(load<Bytes>(block + at + 16 * index + lane),
                                   Words);
  };
  const auto toFloat = [](Words unsignedInt) {
    using Ints = int __attribute__((ext_vector_type(lanes)));
    return __builtin_convertvector(bits<Ints>(unsignedInt), Floats);
  };
  if constexpr (format == PanelFormat::Q4_K || format == PanelFormat::Q5_K) {
    // Eight pairs of six bits in 12 bytes: the first four are the low six bits
    // of bytes 0..3 and 4..7; the others have their low four bits in bytes
    // 8..11 and their high two in the top of bytes 0..7.
    Words scale, minimum;
    if (group < 4) {
      scale = byte(64, group) & 63;
      minimum = byte(64, 4 + group) & 63;
    } else {
      const Words low = byte(64, 4 + group);
      scale = (low & 15) | byte(64, group - 4) >> 6 << 4;
      minimum = low >> 4 | byte(64, group) >> 6 << 4;
    }
    return {half(0) * toFloat(scale), -(half(32) * toFloat(minimum))};
  } else if constexpr (format == PanelFormat::Q2_K) {
    const Words both = byte(64, group);
    return {half(0) * toFloat(both & 15), -(half(32) * toFloat(both >> 4))};
  } else if constexpr (format == PanelFormat::Q3_K) {
    // Sixteen of six bits in 12 bytes: the low four in the halves of bytes
    // 0..7, the high two in the quarters of bytes 8..11.
    const Words low = byte(32, group % 8) >> U32(group / 8 * 4) & 15;
    const Words high = byte(32, 8 + group % 4) >> U32(group / 4 * 2) & 3;
    return {half(0) * (toFloat(low | high << 4) - 32.0f)};
  } else if constexpr (format == PanelFormat::Q6_K) {
    using Ints = int __attribute__((ext_vector_type(lanes)));
    using Bytes = I8 __attribute__((ext_vector_type(lanes)));
    const auto scale = load<Bytes>(block + 32 + 16 * group + lane);
    return {half(0) * __builtin_convertvector(
                          __builtin_convertvector(scale, Ints), Floats)};
  } else if constexpr (format == PanelFormat::IQ4_XS) {
    // Eight of six bits: the low four in the halves of four bytes, the high two
    // in the quarters of the two bytes before them.
    using Halves = U16 __attribute__((ext_vector_type(lanes)));
    const Words highs =
        __builtin_convertvector(load<Halves>(block + 32 + 2 * lane), Words);
    const Words low = byte(64, group / 2) >> U32(group % 2 * 4) & 15;
    const Words high = highs >> U32(group * 2) & 3;
    return {half(0) * (toFloat(low | high << 4) - 32.0f)};
  } else if constexpr (format == PanelFormat::MXFP4) {
    return {e8m0ToFloat<lanes>(block + lane) * 0.5f};
  } else if constexpr (blockCode<format>().hasOffset) {
    return {half(0), half(32)};
  } else {
    return {half(0)};
  }
}

/// Byte `at` of every row of words [..][16][4].
LLAMAC_INLINE U32x16 byteOfWords(const U8 *words, long at) {
  return load<U32x16>(words + at / 4 * 64) >> U32(at % 4 * 8) & 255;
}

/// Weight `at` of a block whose parts are paired, as PanelLayout.h has it:
/// v - least.
template <int storedBits, int extraBits>
LLAMAC_INLINE U32x16 pairedQuant(const U8 *words, long at) {
  constexpr U32 mask = (1 << storedBits) - 1;
  constexpr long pairsOfByte = 4 / storedBits;
  const long part = at / 32, pair = part / 2, group = at % 32 / 4;
  const U32 byte = U32(at % 4 * 8);
  const U32 shift = U32(pair % pairsOfByte * 2 + part % 2) * storedBits;
  const U8 *stored =
      words + (8 * extraBits + pair / pairsOfByte * 8 + group) * 64;
  const U32x16 q = load<U32x16>(stored) >> byte >> shift & mask;
  if constexpr (extraBits == 0) {
    return q;
  } else {
    constexpr long pairsOfWord = 4 / extraBits;
    constexpr U32 low = (1 << extraBits) - 1;
    const auto word =
        load<U32x16>(words + (pair / pairsOfWord * 8 + group) * 64);
    // The byte that the rotation brought elsewhere, from where the bits of the
    // second part begin in it.
    const U32 by = byte + storedBits - extraBits +
                       U32(pair % pairsOfWord) * 2 * extraBits &
                   31;
    const U32x16 rest = word >> by | word << (-by & 31);
    return part % 2 ? q << extraBits | (rest & low)
                    : q | (rest >> extraBits & low) << storedBits;
  }
}

/// Weight `at` of a block: its v.
template <PanelFormat format>
LLAMAC_INLINE I32x16 blockQuant(const U8 *block, long at) {
  constexpr BlockCode code = blockCode<format>();
  const U8 *words = block + quantsOffset<format>();
  if constexpr (code.isPaired) {
    return bits<I32x16>(
               pairedQuant<code.storedBits, code.extraBits>(words, at)) +
           code.least;
  } else if constexpr (code.storedBits == 8) {
    const auto word = load<U32x16>(words + at / 4 * 64);
    return bits<I32x16>(word << U32(24 - at % 4 * 8)) >> 24;
  } else {
    // The first 16 of each 32 k have the low halves.
    const U8 *part = words + at / 32 * 256 + 64 * code.extraBits;
    U32x16 q = byteOfWords(part, at % 16) >> U32(at % 32 / 16 * 4) & 15;
    if constexpr (code.extraBits > 0)
      q |= (byteOfWords(words, at % 4) >> U32(at / 4) & 1) << 4;
    if constexpr (code.values)
      return bits<I32x16>(lookedUp<code.values>(q) << 24) >> 24;
    else
      return bits<I32x16>(q) + code.least;
  }
}

/// Reads panels of one format:
///   group            consecutive k that share scales
///   scales(panel, k) those of the group that starts at k
///   weight(panel, scales, k, j)  the weights at k + j, for k a multiple of
///                    tileDepth and j < tileDepth
/// This is that of the blocks of integers.
template <PanelFormat format> struct PanelReader {
  static constexpr long depth = panelBlock(format).depth;
  static constexpr long group = 32 / blockCode<format>().runs;

  static LLAMAC_INLINE GroupScales<> scales(const U8 *panel, long k) {
    return groupScales<format, panelRows>(blockOf<format>(panel, k),
                                          k % depth / group, 0);
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales<> &s,
                                     long k, int j) {
    const auto v = __builtin_convertvector(
        blockQuant<format>(blockOf<format>(panel, k), k % depth + j), F32x16);
    if constexpr (blockCode<format>().hasOffset)
      return fma(v, s.scale, s.offset);
    else
      return v * s.scale;
  }
};

// Floats

/// Formats without scales.
struct PlainReader {
  static constexpr long group = 8;
  static LLAMAC_INLINE GroupScales<> scales(const U8 *, long) { return {}; }
};

template <> struct PanelReader<PanelFormat::F32> : PlainReader {
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales<> &,
                                     long k, int j) {
    return load<F32x16>(panel + (k + j) * 64);
  }
};

template <> struct PanelReader<PanelFormat::F16> : PlainReader {
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales<> &,
                                     long k, int j) {
    return fromF16(load<U16x16>(panel + (k + j) * 32));
  }
};

// Pairs of k: the even one is the low half of a word.
template <> struct PanelReader<PanelFormat::BF16> : PlainReader {
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales<> &,
                                     long k, int j) {
    U32x16 pair = load<U32x16>(panel + k * 32 + j / 2 * 64);
    return bits<F32x16>(j % 2 ? pair & 0xffff0000 : pair << 16);
  }
};

// E4M3 elements times a scale, E8M0 or 2^-8 of an f16; a block with a NaN has
// the scale NaN. Bits of an element where those of an f32 are make it 2^-120 of
// itself, a subnormal one included. Two products undo it, since 2^120 times the
// scale may be infinite.
template <PanelFormat format> struct E4m3Reader {
  static constexpr long group = 32;
  static LLAMAC_INLINE GroupScales<> scales(const U8 *panel, long k) {
    const U8 *block = blockOf<format>(panel, k);
    if constexpr (format == PanelFormat::MXFP8)
      return {e8m0ToFloat<panelRows>(block)};
    else
      return {loadF16<panelRows>(block) * 0x1p-8f};
  }
  static LLAMAC_INLINE F32x16 weight(const U8 *panel, const GroupScales<> &s,
                                     long k, int j) {
    constexpr long elements = panelBlock(format).bytes - 32 * panelRows;
    long at = k % 32 + j;
    U32x16 word =
        load<U32x16>(blockOf<format>(panel, k) + elements + at / 4 * 64);
    I32x16 element = bits<I32x16>(word << U32(24 - at % 4 * 8)) >> 4;
    return bits<F32x16>(element & I32x16(0x87f00000)) * 0x1p120f * s.scale;
  }
};

template <>
struct PanelReader<PanelFormat::MXFP8> : E4m3Reader<PanelFormat::MXFP8> {};
template <>
struct PanelReader<PanelFormat::FP8> : E4m3Reader<PanelFormat::FP8> {};

} // namespace llamac::cpu

#endif // LLAMAC_CPU_PANELS_H
