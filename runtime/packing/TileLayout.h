//===- TileLayout.h - How packed weights lie in GPU memory ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled by both sides: the runtime, which packs weights, and the emitted
// source. No header may be included.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PACKING_TILELAYOUT_H
#define LLAMAC_RUNTIME_PACKING_TILELAYOUT_H

/// Functions of both sides say so to nvcc; NVRTC takes all as device code.
#ifdef __CUDACC__
#define LLAMAC_CONSTEXPR __host__ __device__ constexpr
#else
#define LLAMAC_CONSTEXPR constexpr
#endif

namespace llamac::cuda {

LLAMAC_CONSTEXPR long roundUp(long value, long unit) {
  return (value + unit - 1) / unit * unit;
}

/// Formats of a weight W [outputs][depth] on the device. Those of blocks are
/// GGUF's, and MXFP8 and FP8 those of runtime/formats/Fp8.h; all keep their
/// bits, but that no element of these two is NaN: a block with a NaN has the
/// scale NaN.
enum class WeightFormat : unsigned char {
  F16,
  BF16,
  Q8_0,
  Q4_0,
  Q4_1,
  MXFP8,
  Q5_0,
  Q5_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_NL,
  IQ4_XS,
  MXFP4,
  FP8
};

/// The meaning of the stored bits of an element: a float of 16 bits, an integer
/// with a bias, a place in a table of runtime/base/CodeBooks.h, or an FP8 or
/// FP4 number.
enum class ElementCoding : unsigned char { Float, Integer, Iq4, E4M3, E2M1 };

/// How elements q become weights. d, m and dmin are halves; the last four have
/// one d, or d and dmin, for a group of 256 columns.
///
///   None      q
///   Half      d q
///   SmallHalf 2^-8 d q
///   HalfPair  d q + m
///   E8M0      2^(e - 127) q
///   Signed32  d s q, s of 8 bits for 32 columns, stored as s + 128
///   Signed16  the same for 16 columns
///   Offset32  d s q - dmin z; s and z of 8 bits for 32 columns
///   Offset16  the same for 16 columns; 4 bits each
enum class ScaleCoding : unsigned char {
  None,
  Half,
  SmallHalf,
  HalfPair,
  E8M0,
  Signed32,
  Signed16,
  Offset32,
  Offset16
};

struct FormatInfo {
  ElementCoding elements;
  int lowBits;  ///< Bits of an element in the plane of low bits.
  int highBits; ///< Bits of an element in the plane of high bits.
  int bias;     ///< The bias of an integer: the stored number is q + bias.
  ScaleCoding scales;
};

LLAMAC_CONSTEXPR FormatInfo infoOf(WeightFormat format) {
  using Element = ElementCoding;
  using Scale = ScaleCoding;
  switch (format) {
  case WeightFormat::F16:
  case WeightFormat::BF16:
    break;
  case WeightFormat::Q8_0:
    return {Element::Integer, 8, 0, 128, Scale::Half};
  case WeightFormat::Q4_0:
    return {Element::Integer, 4, 0, 8, Scale::Half};
  case WeightFormat::Q4_1:
    return {Element::Integer, 4, 0, 0, Scale::HalfPair};
  case WeightFormat::MXFP8:
    return {Element::E4M3, 8, 0, 0, Scale::E8M0};
  case WeightFormat::Q5_0:
    return {Element::Integer, 4, 1, 16, Scale::Half};
  case WeightFormat::Q5_1:
    return {Element::Integer, 4, 1, 0, Scale::HalfPair};
  case WeightFormat::Q2_K:
    return {Element::Integer, 2, 0, 0, Scale::Offset16};
  case WeightFormat::Q3_K:
    return {Element::Integer, 2, 1, 4, Scale::Signed16};
  case WeightFormat::Q4_K:
    return {Element::Integer, 4, 0, 0, Scale::Offset32};
  case WeightFormat::Q5_K:
    return {Element::Integer, 4, 1, 0, Scale::Offset32};
  case WeightFormat::Q6_K:
    return {Element::Integer, 4, 2, 32, Scale::Signed16};
  case WeightFormat::IQ4_NL:
    return {Element::Iq4, 4, 0, 0, Scale::Half};
  case WeightFormat::IQ4_XS:
    return {Element::Iq4, 4, 0, 0, Scale::Signed32};
  case WeightFormat::MXFP4:
    return {Element::E2M1, 4, 0, 0, Scale::E8M0};
  case WeightFormat::FP8:
    return {Element::E4M3, 8, 0, 0, Scale::SmallHalf};
  }
  return {Element::Float, 16, 0, 0, Scale::None};
}

/// F16 and BF16 are rows, one after another. The other formats are tiles of 16
/// rows and 64 columns, the last ones filled up with zeros:
///
///   matrix  rows of tiles, one after another
///   row     groups of as many columns as have one d: 256, or 64
///   group   its tiles; then, where d is of 256 columns, [16 rows] of d, or of
///           d and dmin
///   tile    low bits, high bits, scales: 2 blocks of 32 columns for each row
///
/// A row of a tile is four shares, one for each lane that has it in an MMA:
/// share t has columns 4t to 4t + 3 of each 16, two eights of elements, one of
/// each block. In the order of columns they are four fours, of 16 columns each.
/// The planes of low and of high bits are [16 rows][4 shares], with the bits of
/// a share in words, lowest first:
///
///   8 bits          eight e: words 2e and 2e + 1
///   4 bits, a place in a table
///                   eight e: word e, the first element lowest
///   4 bits          eight e: word e; elements 2i and 2i + 1 at bits 4i and
///                   16 + 4i
///   2 bits          one word; elements 2i and 2i + 1 of eight e at bits 8e +
///                   2i and 16 + 8e + 2i
///   2 high bits     one word; elements 2i and 2i + 1 of eight e at bits
///                   highPlace and 16 + highPlace
///   1 high bit      half a word; at bits highPlace and 8 + highPlace
///
/// So the bits of two neighbours lie 16 bits apart, as those of the halves in a
/// word do, once a high half-word is spread over a word. Scales are [16
/// rows][2], then d, or d and dmin, as ScaleCoding names them.
LLAMAC_CONSTEXPR bool hasScales(WeightFormat format) {
  return infoOf(format).scales != ScaleCoding::None;
}

constexpr int tileRows = 16;
constexpr int tileColumns = 64;

/// Elements of a share.
constexpr int shareElements = 16;

/// Elements that a 16-bit or 32-bit scale, or two of fewer bits, belong to.
constexpr int scaleBlock = 32;

/// Whether weights are scale * q + offset, with an offset that may not be 0.
LLAMAC_CONSTEXPR bool hasOffsets(WeightFormat format) {
  const ScaleCoding scales = infoOf(format).scales;
  return scales == ScaleCoding::HalfPair || scales == ScaleCoding::Offset32 ||
         scales == ScaleCoding::Offset16;
}

/// Whether 16 columns have a scale of their own, not 32.
LLAMAC_CONSTEXPR bool hasHalfScales(WeightFormat format) {
  const ScaleCoding scales = infoOf(format).scales;
  return scales == ScaleCoding::Signed16 || scales == ScaleCoding::Offset16;
}

/// Where the high bits of elements 2i of eight e are.
LLAMAC_CONSTEXPR int highPlace(WeightFormat format, int eight, int i) {
  const FormatInfo info = infoOf(format);
  const int place = 2 * eight + i / 2;
  return info.lowBits == 2    ? 2 * i + eight
         : info.highBits == 1 ? place + 4 * (i % 2)
                              : place % 2 * 2 + place / 2 * 8 + 4 * (i % 2);
}

/// Columns that have a d in common.
LLAMAC_CONSTEXPR int groupColumns(WeightFormat format) {
  return infoOf(format).scales >= ScaleCoding::Signed32 ? 256 : tileColumns;
}

/// Bytes of a share in the two planes.
LLAMAC_CONSTEXPR int lowShareBytes(WeightFormat format) {
  return shareElements * infoOf(format).lowBits / 8;
}
LLAMAC_CONSTEXPR int highShareBytes(WeightFormat format) {
  return shareElements * infoOf(format).highBits / 8;
}

/// Bytes of the scales of a block of 32 columns.
LLAMAC_CONSTEXPR int scaleBytes(WeightFormat format) {
  switch (infoOf(format).scales) {
  case ScaleCoding::None:
    return 0;
  case ScaleCoding::E8M0:
  case ScaleCoding::Signed32:
    return 1;
  case ScaleCoding::HalfPair:
    return 4;
  default:
    return 2;
  }
}

/// Bytes of d, or of d and dmin, of a row of a group; 0 where blocks have
/// theirs.
LLAMAC_CONSTEXPR int groupScaleBytes(WeightFormat format) {
  const ScaleCoding scales = infoOf(format).scales;
  return scales >= ScaleCoding::Offset32   ? 4
         : scales >= ScaleCoding::Signed32 ? 2
                                           : 0;
}

/// Where the planes of a tile begin, and its size: a multiple of 16.
LLAMAC_CONSTEXPR int tileHighs(WeightFormat format) {
  return tileRows * 4 * lowShareBytes(format);
}
LLAMAC_CONSTEXPR int tileScales(WeightFormat format) {
  return tileHighs(format) + tileRows * 4 * highShareBytes(format);
}
LLAMAC_CONSTEXPR int tileBytes(WeightFormat format) {
  return tileScales(format) + tileRows * 2 * scaleBytes(format);
}

LLAMAC_CONSTEXPR int groupTiles(WeightFormat format) {
  return groupColumns(format) / tileColumns;
}
LLAMAC_CONSTEXPR int groupBytes(WeightFormat format) {
  return groupTiles(format) * tileBytes(format) +
         tileRows * groupScaleBytes(format);
}

/// Groups of a row of tiles.
LLAMAC_CONSTEXPR long groupsOf(WeightFormat format, long depth) {
  return roundUp(depth, groupColumns(format)) / groupColumns(format);
}

/// Where tile `tile` of a row of tiles begins.
LLAMAC_CONSTEXPR long tileOffset(WeightFormat format, long tile) {
  return tile / groupTiles(format) * groupBytes(format) +
         tile % groupTiles(format) * tileBytes(format);
}

/// Where what 256 columns have in common begins, of the group of tile `tile`.
LLAMAC_CONSTEXPR long groupScalesOffset(WeightFormat format, long tile) {
  return tile / groupTiles(format) * groupBytes(format) +
         groupTiles(format) * tileBytes(format);
}

/// Whether rows of `depth` elements can be packed.
LLAMAC_CONSTEXPR bool isPackableDepth(WeightFormat format, long depth) {
  const int unit = !hasScales(format)             ? 8
                   : groupScaleBytes(format) != 0 ? groupColumns(format)
                                                  : scaleBlock;
  return depth > 0 && depth % unit == 0;
}

/// Rows that are packed together, and their bytes.
LLAMAC_CONSTEXPR int unitRows(WeightFormat format) {
  return hasScales(format) ? tileRows : 1;
}
LLAMAC_CONSTEXPR long unitBytes(WeightFormat format, long depth) {
  return hasScales(format) ? groupsOf(format, depth) * groupBytes(format)
                           : depth * 2;
}

LLAMAC_CONSTEXPR long packedWeightBytes(WeightFormat format, long outputs,
                                        long depth) {
  const int rows = unitRows(format);
  return roundUp(outputs, rows) / rows * unitBytes(format, depth);
}

/// A lane takes a row in chunks, of 16 bytes of floats or a share: elements of
/// one, bytes of its values, and how many a row has.
LLAMAC_CONSTEXPR int chunkElements(WeightFormat format) {
  return hasScales(format) ? shareElements : 8;
}
LLAMAC_CONSTEXPR int chunkBytes(WeightFormat format) {
  const FormatInfo info = infoOf(format);
  return chunkElements(format) * (info.lowBits + info.highBits) / 8;
}
LLAMAC_CONSTEXPR long chunksOfRow(WeightFormat format, long depth) {
  return hasScales(format) ? roundUp(depth, tileColumns) / shareElements
                           : depth / 8;
}

/// The first column of four `four` of chunk `chunk` of a row.
LLAMAC_CONSTEXPR long columnOfFour(WeightFormat format, long chunk, int four) {
  return hasScales(format) ? chunk / 4 * tileColumns + chunk % 4 * 4 + 16 * four
                           : chunk * 8 + 4 * four;
}

} // namespace llamac::cuda

#endif // LLAMAC_RUNTIME_PACKING_TILELAYOUT_H
