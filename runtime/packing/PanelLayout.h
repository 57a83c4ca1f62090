//===- PanelLayout.h - How packed weights lie in memory ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled by both sides: the runtime, which packs weights, and the
// freestanding unit that holds a plan's kernels. No header may be included but
// the list of element types.
//
// A matrix [rows, depth] is cut into panels of 16 rows; missing rows of the
// last panel are zero. A panel starts at a multiple of 64 bytes and holds its
// depth in blocks, each with the 16 rows interleaved:
//
//   F32   1 k       f32 [16]
//   F16   1 k       f16 [16]
//   BF16  2 k       bf16 [16][2]
//   Q8_0  32 k      f16 d[16]; i8 q[8][16][4]        q[g][r][j] is k = 4g + j
//   Q4_0  32 k      f16 d[16]; u8 q[4][16][4]        q[g][r][j] has k = 4g + j
//                                                    in its low half and k =
//                                                    16 + 4g + j in the high
//   IQ4_NL          as Q4_0
//   Q4_1  32 k      f16 d[16]; f16 m[16]; u8 q[4][16][4], as Q4_0
//   Q5_0  32 k      f16 d[16]; u8 h[16][4]; u8 q[4][16][4], as Q4_0, and bit g
//                   of h[r][j] is the fifth of k = 4g + j
//   Q5_1  32 k      f16 d[16]; f16 m[16]; u8 h[16][4]; u8 q[4][16][4]
//   MXFP4 32 k      E8M0 scale[16]; u8 q[4][16][4], as Q4_0
//   MXFP8 32 k      E8M0 scale[16]; E4M3 q[8][16][4], as Q8_0, but that no
//                   element is NaN: a block with a NaN has the scale NaN
//   FP8   32 k      f16 d[16]; E4M3 q[8][16][4], as MXFP8
//
// The others have 256 k. Their scales are GGUF's bytes, interleaved for 16
// rows. IQ4_XS has its eight parts of 32 k as Q4_0 has one:
//
//   IQ4_XS f16 d[16]; u16 high[16]; u8 low[4][16]; u8 q[8][4][16][4]
//
// In the K-quants a byte holds b = 4 or 2 bits of a weight of each of the parts
// of 8 / b, the first in the lowest, in units of four: k = 4g + j of any of
// them is in byte [g][r][j].
//
//   Q2_K  f16 d[16]; f16 dmin[16]; u8 scales[16][16], for 16 k each;
//         u8 q[2][8][16][4]
//   Q3_K  f16 d[16]; u8 scales[12][16], for 16 k each; u32 h[8][16];
//         u8 q[2][8][16][4]
//   Q4_K  f16 d[16]; f16 dmin[16]; u8 scales[12][16]; u8 q[4][8][16][4]
//   Q5_K  f16 d[16]; f16 dmin[16]; u8 scales[12][16]; u32 h[8][16];
//         u8 q[4][8][16][4]
//   Q6_K  f16 d[16]; i8 scales[16][16], for 16 k each; u32 h[2][8][16];
//         u8 q[4][8][16][4]
//
// The bits of a weight beyond b lie where one mask brings them beside the
// others (PairedParts of the kernels): a weight of part 2p has its low b bits
// in q, one of part 2p + 1 its high b, and the rest of the two, the n = 1 or 2
// high bits of the first at bit b and the n low ones of the second below them,
// are a byte e. h has four of these bytes, rotated left by 2np in its 32 bits,
// or'ed for all the p of a word: h[g] where n is 1, h[p / 2][g] where it is 2.
//
// So a packed weight has its format's own size but for the padding to 16 rows
// and 64 bytes, and one layout is for all instruction sets.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PACKING_PANELLAYOUT_H
#define LLAMAC_RUNTIME_PACKING_PANELLAYOUT_H

namespace llamac {

/// The formats of packed weights: those of DataType, by the same numbers.
enum class PanelFormat : unsigned char {
#define LLAMAC_ELEMENT_TYPE(ID, ...) ID,
#include "runtime/base/ElementTypes.def"
};

constexpr long panelRows = 16;

/// Depth and bytes of one interleaved block of 16 rows.
struct PanelBlock {
  long depth;
  long bytes;
};

constexpr PanelBlock panelBlock(PanelFormat format) {
  constexpr PanelBlock blocks[] = {
#define LLAMAC_ELEMENT_TYPE(ID, NAME, BLOCK, BYTES, ...)                       \
  {BLOCK, BYTES * panelRows},
#include "runtime/base/ElementTypes.def"
  };
  const PanelBlock block = blocks[static_cast<int>(format)];
  // Products of bf16 take two k at a time.
  return format == PanelFormat::BF16 ? PanelBlock{2, 2 * block.bytes} : block;
}

/// How the kernels multiply by a format: as fp32, or in 8-bit integers.
enum class PanelProduct : unsigned char { Float, Int8 };

constexpr PanelProduct panelProduct(PanelFormat format) {
  constexpr PanelProduct products[] = {
#define LLAMAC_ELEMENT_TYPE(ID, NAME, BLOCK, BYTES, PRODUCT, ...)              \
  PanelProduct::PRODUCT,
#include "runtime/base/ElementTypes.def"
  };
  return products[static_cast<int>(format)];
}

/// Bytes from one panel to the next; `depth` is a multiple of 8 and of the
/// format's block.
constexpr long panelBytes(PanelFormat format, long depth) {
  PanelBlock block = panelBlock(format);
  return (depth / block.depth * block.bytes + 63) / 64 * 64;
}

constexpr long panelCount(long rows) {
  return (rows + panelRows - 1) / panelRows;
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_PACKING_PANELLAYOUT_H
