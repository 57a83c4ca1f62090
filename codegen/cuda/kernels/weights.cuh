//===- weights.cuh - Packed weights in registers ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane reads a chunk of a row of a packed weight (TileLayout.h): 8 floats,
// or a share of a tile, and unpacks it four elements at a time. The elements of
// block formats become pairs of halves, exactly, and the rest is made of those:
// floats for lanes that multiply, halves for tensor cores that multiply exactly
// (halves.cuh), bf16 of the scaled weights for the others. Short elements
// become the latter without a detour (fourAsBf16).
//
// Integers become halves without a conversion: the bits of q, put where a half
// of the right exponent has its unit, make the half 2^n + q, and a multiply-add
// makes two of them exact.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_WEIGHTS_CUH
#define LLAMAC_CODEGEN_DEVICE_WEIGHTS_CUH

#include "llamac/CodeBooks.h"
#include "llamac/config.h"
#include "llamac/ptx.cuh"

namespace llamac::cuda {

/// The power of two 2^(e - 127); 255 is NaN.
LLAMAC_DEVICE float e8m0ToFloat(uint32_t e) {
  // 2^-127 is subnormal; all ones are NaN.
  return bitCast<float>(e << 23 | ((e + 1 & 255) < 2 ? 0x00400000u : 0));
}

/// Two E4M3 elements, bytes 0 and 2 of `word`, as halves. Bits of an element
/// where those of a half are make it 2^-8 of itself, a subnormal one included;
/// a NaN becomes 480.
LLAMAC_DEVICE uint32_t e4m3ToHalf2ByBits(uint32_t word) {
  const uint32_t scaled = (word << 7 & 0x3f803f80u) | (word << 8 & 0x80008000u);
  return fmaHalf2(scaled, 0x5c005c00u, 0x80008000u); // * 256 + -0
}

/// The four E4M3 elements of `word` as pairs of halves by their bits, for GPUs
/// that do not convert them.
LLAMAC_DEVICE Words2 e4m3ToHalvesByBits(uint32_t word) {
  const uint32_t apart = prmt(word, 0, 0x3120u);
  return {e4m3ToHalf2ByBits(apart), e4m3ToHalf2ByBits(apart >> 8)};
}

/// The four E4M3 elements of `word` as pairs of halves.
LLAMAC_DEVICE Words2 e4m3ToHalves(uint32_t word) {
#if LLAMAC_HAS_SM89
  return {e4m3x2ToHalf2(word), e4m3x2ToHalf2(word >> 16)};
#else
  return e4m3ToHalvesByBits(word);
#endif
}

/// The four bytes of `word`, less 128 each, as pairs of halves.
LLAMAC_DEVICE Words2 bytesToHalves(uint32_t word) {
  // 1024 + byte; less 1024 + 128.
  constexpr uint32_t one = 0x3c003c00u;
  constexpr uint32_t unit = 0x64646464u, less = 0xe480e480u;
  return {fmaHalf2(prmt(word, unit, 0x4140u), one, less),
          fmaHalf2(prmt(word, unit, 0x4342u), one, less)};
}

/// Four bytes, each the value of IQ4 at one of the places in the lower half of
/// `places`, plus 128.
LLAMAC_DEVICE uint32_t iq4Bytes(uint32_t places) {
  constexpr auto four = [](int first) {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i)
      word |= static_cast<uint32_t>(iq4Values[first + i] + 128) << 8 * i;
    return word;
  };
  constexpr uint32_t table[] = {four(0), four(4), four(8), four(12)};
  const uint32_t within = places & 0x7777u;
  // Bit 3 of a place says which of the two is its.
  return prmt(prmt(table[0], table[1], within),
              prmt(table[2], table[3], within),
              places >> 1 & 0x4444u | 0x3210u);
}

/// Byte `i` of `word` as a float, less 128.
LLAMAC_DEVICE float signedByte(uint32_t word, int i) {
  // 0x4b000000 is 2^23, whose last bit is worth 1.
  const uint32_t bits = prmt(word, 0x4b000000u, 0x7440u + i);
  return bitCast<float>(bits) - (8388608.0f + 128.0f);
}
LLAMAC_DEVICE float unsignedByte(uint32_t word, int i) {
  return bitCast<float>(prmt(word, 0x4b000000u, 0x7440u + i)) - 8388608.0f;
}

/// The stored scale of a block of 32 columns: a weight is scale * q + offset.
/// Where blocks of 16 have their own, `half` says which of the two is meant.
template <WeightFormat format> struct BlockScale {
  static constexpr ScaleCoding coding = infoOf(format).scales;
  static constexpr bool shifts = hasOffsets(format);
  static constexpr bool halves = hasHalfScales(format);

  uint32_t own;
  uint32_t group; ///< d, or d and dmin, of 256 columns.

  LLAMAC_DEVICE float scale(int half) const {
    if constexpr (coding == ScaleCoding::E8M0)
      return e8m0ToFloat(own);
    else if constexpr (coding == ScaleCoding::SmallHalf)
      return lowHalfToFloat(own) * 0x1p-8f;
    else if constexpr (coding == ScaleCoding::Signed32)
      return lowHalfToFloat(group) * signedByte(own, 0);
    else if constexpr (coding == ScaleCoding::Signed16)
      return lowHalfToFloat(group) * signedByte(own, half);
    else if constexpr (coding == ScaleCoding::Offset32)
      return lowHalfToFloat(group) * unsignedByte(own, 0);
    else if constexpr (coding == ScaleCoding::Offset16)
      return lowHalfToFloat(group) * unsignedByte(own & 0x0f0f, half);
    else
      return lowHalfToFloat(own);
  }
  LLAMAC_DEVICE float offset(int half) const {
    if constexpr (coding == ScaleCoding::Offset32)
      return -(highHalfToFloat(group) * unsignedByte(own, 1));
    else if constexpr (coding == ScaleCoding::Offset16)
      return -(highHalfToFloat(group) * unsignedByte(own >> 4 & 0x0f0f, half));
    else
      return highHalfToFloat(own);
  }
};

/// The elements of a share of a tile.
template <WeightFormat format> struct ShareValues {
  using Low = Vec<uint32_t, lowShareBytes(format) / 4>;

  Low low;
  uint32_t high;

  /// The values of row `row` of a tile, at the place `share`, which is 4 * row
  /// + t.
  static LLAMAC_DEVICE ShareValues inMemory(const uint8_t *tile, int share) {
    return {loadOnce(reinterpret_cast<const Low *>(tile) + share),
            highOf(tile, share)};
  }
  static LLAMAC_DEVICE ShareValues inShared(const uint8_t *tile, int share) {
    return {vectorAt<const Low>(tile + share * sizeof(Low)),
            highOf(tile, share)};
  }

private:
  static LLAMAC_DEVICE uint32_t highOf(const uint8_t *tile, int share) {
    constexpr int bytes = highShareBytes(format);
    const uint8_t *from = tile + tileHighs(format) + share * bytes;
    if constexpr (bytes == 4)
      return vectorAt<const uint32_t>(from);
    else if constexpr (bytes == 2)
      // Spread: the bits of the upper half of a word come to its upper half.
      return prmt(vectorAt<const uint16_t>(from), 0, 0x4140u);
    else
      return 0;
  }
};

/// d, or d and dmin, of row `row`, of the 16 rows at `scales`; 0 where blocks
/// have theirs.
template <WeightFormat format>
LLAMAC_DEVICE uint32_t groupScaleOf(const uint8_t *scales, int row) {
  constexpr int bytes = groupScaleBytes(format);
  if constexpr (bytes == 4)
    return vectorAt<const uint32_t>(scales + row * bytes);
  else if constexpr (bytes == 2)
    return vectorAt<const uint16_t>(scales + row * bytes);
  else
    return 0;
}

/// The scale of block `block` of row `row` of a tile, whose group has `group`.
template <WeightFormat format>
LLAMAC_DEVICE BlockScale<format> scaleOf(const uint8_t *tile, uint32_t group,
                                         int row, int block) {
  constexpr int bytes = scaleBytes(format);
  const uint8_t *own = tile + tileScales(format) + (2 * row + block) * bytes;
  if constexpr (bytes == 4)
    return {vectorAt<const uint32_t>(own), group};
  else if constexpr (bytes == 2)
    return {vectorAt<const uint16_t>(own), group};
  else
    return {*own, group};
}

/// The part of a row that a lane takes at a time.
template <WeightFormat format, bool = hasScales(format)> struct WeightChunk {
  ShareValues<format> values;
  BlockScale<format> scales[2]; ///< Scales of its two blocks.

  /// `values` of row `row` of a tile, whose group has `group`.
  static LLAMAC_DEVICE WeightChunk of(const ShareValues<format> &values,
                                      const uint8_t *tile, uint32_t group,
                                      int row) {
    return {values,
            {scaleOf<format>(tile, group, row, 0),
             scaleOf<format>(tile, group, row, 1)}};
  }
};
template <WeightFormat format> struct WeightChunk<format, false> {
  Words4 values;
};

/// A lane of an operand A keeps here what 256 columns of its rows g and g + 8
/// of a tile have in common for their scales. It is not in the tile; a lane
/// loads it a group ahead. Where blocks have theirs there is nothing to keep.
template <WeightFormat format> struct GroupScales {
  static constexpr bool exist = groupScaleBytes(format) != 0;

  uint32_t now[2] = {};
  uint32_t next[2] = {};

  /// Before the first tile, `tile`, of rows `first` .. of the `outputs` of a
  /// matrix of `depth`; rows that it does not have get zero.
  LLAMAC_DEVICE void begin(const uint8_t *matrix, long outputs, long depth,
                           long first, int tile) {
    if constexpr (exist)
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        const long output = first + laneIndex() / 4 + 8 * upper;
        next[upper] = 0;
        if (output < outputs)
          next[upper] = groupScaleOf<format>(
              matrix + output / tileRows * unitBytes(format, depth) +
                  groupScalesOffset(format, tile),
              output % tileRows);
      }
  }

  /// Before each tile, in the order of the depth up to tile `end`.
  LLAMAC_DEVICE void advance(const uint8_t *matrix, long outputs, long depth,
                             long first, int tile, int end) {
    if constexpr (exist)
      if (tile % groupTiles(format) == 0) {
#pragma unroll
        for (int upper = 0; upper < 2; ++upper)
          now[upper] = next[upper];
        if (tile + groupTiles(format) < end)
          begin(matrix, outputs, depth, first, tile + groupTiles(format));
      }
  }
};

/// The lane's share of row g, or of row g + 8, of a tile in shared memory.
template <WeightFormat format>
LLAMAC_DEVICE WeightChunk<format>
chunkOfLane(const uint8_t *tile, const GroupScales<format> &groups, int upper) {
  const int row = laneIndex() / 4 + 8 * upper;
  return WeightChunk<format>::of(
      ShareValues<format>::inShared(tile, 4 * row + laneIndex() % 4), tile,
      groups.now[upper], row);
}

/// A matrix [outputs][depth] as it lies in memory.
template <WeightFormat format> struct PackedWeight {
  static constexpr int span = chunkElements(format);
  static constexpr int fours = span / 4;
  static constexpr bool scaled = hasScales(format);
  static constexpr bool shifted = hasOffsets(format);

  const uint8_t *base;
  long outputs;
  long depth;

  /// Chunk `chunk` of row `output`: four `i` of it has the elements from
  /// columnOfFour(format, chunk, i) on.
  LLAMAC_DEVICE WeightChunk<format> load(long output, int chunk) const {
    if constexpr (!scaled) {
      return {loadOnce(reinterpret_cast<const Words4 *>(
          base + output * depth * 2 + 16l * chunk))};
    } else {
      const int row = output % tileRows, tile = chunk / 4;
      const uint8_t *tiles =
          base + output / tileRows * unitBytes(format, depth);
      const uint8_t *own = tiles + tileOffset(format, tile);
      return WeightChunk<format>::of(
          ShareValues<format>::inMemory(own, 4 * row + chunk % 4), own,
          groupScaleOf<format>(tiles + groupScalesOffset(format, tile), row),
          row);
    }
  }
};

/// For lop3: a & b | c.
constexpr uint32_t andOr = (0xf0 & 0xcc) | 0xaa;

/// The elements of four `four` of a share as two pairs of halves: q.
template <WeightFormat format>
LLAMAC_DEVICE Words2 fourAsHalf(const ShareValues<format> &share, int four) {
  constexpr FormatInfo info = infoOf(format);
  const int eight = four / 2;
  if constexpr (info.elements == ElementCoding::E4M3) {
    return e4m3ToHalves(share.low[four]);
  } else if constexpr (info.elements == ElementCoding::E2M1) {
    // Its bits, where those of a half are, make it 2^-14 of itself.
    Words2 result;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = four % 2 * 2 + half;
      const uint32_t word = share.low[eight] << (12 - 4 * i);
      const uint32_t scaled =
          lop3<andOr>(word, 0x80008000u, word >> 3 & 0x0e000e00u);
      result[half] = fmaHalf2(scaled, 0x74007400u, 0x80008000u); // * 2^14 + -0
    }
    return result;
  } else if constexpr (info.elements == ElementCoding::Iq4 ||
                       info.lowBits == 8) {
    if constexpr (info.lowBits == 8)
      return bytesToHalves(share.low[four]);
    else
      return bytesToHalves(
          iq4Bytes(four % 2 ? share.low[eight] >> 16 : share.low[eight]));
  } else {
    const uint32_t all = info.lowBits == 2 ? share.low[0] >> 8 * eight
                                           : share.low[eight] >> four % 2 * 8;
    Words2 result;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // The unit of q has place `place`: 1024 + 2^place q; times 2^-place, less
      // 2^(10 - place) and the bias.
      const int i = four % 2 * 2 + half;
      const int place = info.lowBits == 2 ? 2 * i : 4 * half;
      constexpr uint32_t both = 0x00010001u;
      const uint32_t low = both * (((1u << info.lowBits) - 1) << place);
      uint32_t bits = lop3<andOr>(all, low, 0x64006400u);
      if constexpr (info.highBits != 0) {
        const int high = place + info.lowBits;
        const int by = high - highPlace(format, eight, i);
        const uint32_t moved = by < 0 ? share.high >> -by : share.high << by;
        bits = lop3<andOr>(moved, both * (((1u << info.highBits) - 1) << high),
                           bits);
      }
      result[half] = fmaHalf2(
          bits, both * (0x3c00u - (place << 10)),
          both * (0x8000u + ((25 - place) << 10) + (info.bias << place)));
    }
    return result;
  }
}

/// Elements 4 * four .. of a chunk in its order, without their scales.
template <WeightFormat format>
LLAMAC_DEVICE Vec<float, 4> decode(const WeightChunk<format> &chunk, int four) {
  if constexpr (format == WeightFormat::BF16) {
    const uint32_t low = chunk.values[2 * four];
    const uint32_t high = chunk.values[2 * four + 1];
    return {lowBf16ToFloat(low), highBf16ToFloat(low), lowBf16ToFloat(high),
            highBf16ToFloat(high)};
  } else {
    Words2 halves;
    if constexpr (format == WeightFormat::F16)
      halves = {chunk.values[2 * four], chunk.values[2 * four + 1]};
    else
      halves = fourAsHalf(chunk.values, four);
    return {lowHalfToFloat(halves[0]), highHalfToFloat(halves[0]),
            lowHalfToFloat(halves[1]), highHalfToFloat(halves[1])};
  }
}

/// decode() with the scale applied: the weights themselves.
template <WeightFormat format>
LLAMAC_DEVICE Vec<float, 4> weightsOf(const WeightChunk<format> &chunk,
                                      int four) {
  Vec<float, 4> result = decode(chunk, four);
  if constexpr (hasScales(format)) {
    const BlockScale<format> &of = chunk.scales[four / 2];
    const float scale = of.scale(four % 2);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if constexpr (BlockScale<format>::shifts)
        result[i] = fma(result[i], scale, of.offset(four % 2));
      else
        result[i] *= scale;
  }
  return result;
}

/// Whether elements become weights as pairs of bf16: whole numbers of four to
/// six bits without an offset, or E2M1.
LLAMAC_CONSTEXPR bool scalesPairs(WeightFormat format) {
  const FormatInfo info = infoOf(format);
  return info.elements == ElementCoding::E2M1 ||
         (info.elements == ElementCoding::Integer && info.lowBits == 4 &&
          !hasOffsets(format));
}

/// The bits of `value`, which bf16 holds, twice.
LLAMAC_CONSTEXPR uint32_t twiceAsBf16(float value) {
  return (bitCast<uint32_t>(value) >> 16) * 0x00010001u;
}

/// The elements of four `four` of a share as two pairs of bf16: q, which bf16
/// holds.
template <WeightFormat format>
LLAMAC_DEVICE Words2 elementsAsBf16(const ShareValues<format> &share,
                                    int four) {
  static_assert(scalesPairs(format));
  constexpr FormatInfo info = infoOf(format);
  constexpr uint32_t both = 0x00010001u;
  const int eight = four / 2;
  Words2 result;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = four % 2 * 2 + half;
    if constexpr (info.elements == ElementCoding::E2M1) {
      // Its bits, where those of bf16 are, make it 2^-126 of itself.
      const uint32_t word = share.low[eight] << (12 - 4 * i);
      const uint32_t scaled =
          lop3<andOr>(word, 0x8000 * both, word >> 6 & 0x01c0 * both);
      result[half] =
          fmaBf162(scaled, twiceAsBf16(0x1p126f), twiceAsBf16(-0.0f));
    } else {
      // 128 + q, less 128 and the bias.
      uint32_t bits =
          lop3<andOr>(share.low[eight] >> 4 * i, 0xf * both, twiceAsBf16(128));
      if constexpr (info.highBits != 0) {
        const int by = 4 - highPlace(format, eight, i);
        const uint32_t moved = by < 0 ? share.high >> -by : share.high << by;
        bits =
            lop3<andOr>(moved, both * (((1u << info.highBits) - 1) << 4), bits);
      }
      result[half] =
          fmaBf162(bits, twiceAsBf16(1), twiceAsBf16(-128.0f - info.bias));
    }
  }
  return result;
}

/// A scale as the sum of two bf16, each twice: the nearest, and the rest, which
/// has two digits where the scale is a half. So q of up to six bits times the
/// rest is exact, and scale * q is rounded once. Of a longer scale the rest and
/// its product are rounded too, which comes to 2^-15 of the result at most.
struct ScalePairs {
  uint32_t high, low;

  static LLAMAC_DEVICE ScalePairs of(float scale) {
    const uint32_t high = packBf16(scale, scale);
    const float rest = scale - lowBf16ToFloat(high);
    return {high, packBf16(rest, rest)};
  }
};

/// Four `four` of a chunk as bf16.
template <WeightFormat format>
LLAMAC_DEVICE Words2 fourAsBf16(const WeightChunk<format> &chunk, int four) {
  if constexpr (format == WeightFormat::BF16) {
    return {chunk.values[2 * four], chunk.values[2 * four + 1]};
  } else if constexpr (scalesPairs(format)) {
    constexpr uint32_t minusZero = twiceAsBf16(-0.0f);
    const Words2 q = elementsAsBf16(chunk.values, four);
    const ScalePairs scale =
        ScalePairs::of(chunk.scales[four / 2].scale(four % 2));
    Words2 result;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t low = minusZero;
      if constexpr (BlockScale<format>::coding != ScaleCoding::E8M0)
        low = fmaBf162(q[half], scale.low, minusZero);
      result[half] = fmaBf162(q[half], scale.high, low);
    }
    return result;
  } else {
    const Vec<float, 4> w = weightsOf(chunk, four);
    return {packBf16(w[0], w[1]), packBf16(w[2], w[3])};
  }
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_WEIGHTS_CUH
