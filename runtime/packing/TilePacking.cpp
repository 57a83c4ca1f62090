//===- TilePacking.cpp - Weights as the cuda kernels read them ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stored block is taken apart into what TileLayout.h names: elements as
// they are to be stored, scales, and d and dmin. One function for all formats
// then puts them where a tile has them. The blocks' own layouts are those of
// runtime/formats/Dequantize.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/packing/TilePacking.h"

#include "runtime/formats/Dequantize.h"
#include "runtime/formats/Fp8.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

namespace llamac::cuda {

bool isPackable(DataType type, int64_t depth) {
  return isPackableDepth(weightFormat(type), depth) &&
         depth % dataTypeInfo(type).blockElements == 0;
}

namespace {

/// Up to 256 columns of a row.
struct Block {
  uint8_t elements[256];
  uint8_t scales[8][4]; ///< scaleBytes() for each 32 columns.
  uint8_t shared[4];    ///< groupScaleBytes().
};

} // namespace

/// Takes apart the block of `type` at `in`.
template <DataType type> static void takeApart(const uint8_t *in, Block &out);

//===----------------------------------------------------------------------===//
// Blocks of 32: scales, then values
//===----------------------------------------------------------------------===//

template <> void takeApart<DataType::Q8_0>(const uint8_t *in, Block &out) {
  std::memcpy(out.scales[0], in, 2);
  for (int i = 0; i < 32; ++i)
    out.elements[i] = in[2 + i] ^ 0x80; // q + 128
}

template <int scaleBytes> static void takeE4m3(const uint8_t *in, Block &out) {
  copyScaleWithNan(in, scaleBytes, out.scales[0]);
  std::memcpy(out.elements, in + scaleBytes, 32);
}

template <> void takeApart<DataType::MXFP8>(const uint8_t *in, Block &out) {
  takeE4m3<1>(in, out);
}
template <> void takeApart<DataType::FP8>(const uint8_t *in, Block &out) {
  takeE4m3<2>(in, out);
}

/// 16 bytes whose low halves are the first 16 elements.
static void takeNibbles(const uint8_t *in, uint8_t *out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = in[i] & 15;
    out[16 + i] = in[i] >> 4;
  }
}

template <int scaleBytes, bool hasFifthBit>
static void takeBlock(const uint8_t *in, Block &out) {
  std::memcpy(out.scales[0], in, scaleBytes);
  in += scaleBytes;
  uint32_t fifths = 0;
  if (hasFifthBit)
    std::memcpy(&fifths, in, sizeof fifths);
  takeNibbles(in + (hasFifthBit ? sizeof fifths : 0), out.elements);
  if (hasFifthBit)
    for (int i = 0; i < 32; ++i)
      out.elements[i] |= static_cast<uint8_t>((fifths >> i & 1) << 4);
}

template <> void takeApart<DataType::Q4_0>(const uint8_t *in, Block &out) {
  takeBlock<2, false>(in, out);
}
template <> void takeApart<DataType::Q4_1>(const uint8_t *in, Block &out) {
  takeBlock<4, false>(in, out);
}
template <> void takeApart<DataType::Q5_0>(const uint8_t *in, Block &out) {
  takeBlock<2, true>(in, out);
}
template <> void takeApart<DataType::Q5_1>(const uint8_t *in, Block &out) {
  takeBlock<4, true>(in, out);
}
template <> void takeApart<DataType::IQ4_NL>(const uint8_t *in, Block &out) {
  takeBlock<2, false>(in, out);
}
template <> void takeApart<DataType::MXFP4>(const uint8_t *in, Block &out) {
  takeBlock<1, false>(in, out);
}

//===----------------------------------------------------------------------===//
// Blocks of 256
//===----------------------------------------------------------------------===//

template <bool hasFifthBit>
static void takeGroups(const uint8_t *in, Block &out) {
  std::memcpy(out.shared, in, 4);
  const uint8_t *packed = in + 4, *high = in + 16;
  const uint8_t *nibbles = in + (hasFifthBit ? 48 : 16);
  for (int j = 0; j < 8; ++j) {
    uint8_t *scale = out.scales[j];
    if (j < 4) {
      scale[0] = packed[j] & 63;
      scale[1] = packed[j + 4] & 63;
    } else {
      scale[0] = static_cast<uint8_t>((packed[j + 4] & 15) |
                                      (packed[j - 4] >> 6) << 4);
      scale[1] =
          static_cast<uint8_t>(packed[j + 4] >> 4 | (packed[j] >> 6) << 4);
    }
    for (int i = 0; i < 32; ++i) {
      const int fifth = hasFifthBit ? high[i] >> j & 1 : 0;
      out.elements[32 * j + i] = static_cast<uint8_t>(
          (nibbles[j / 2 * 32 + i] >> j % 2 * 4 & 15) | fifth << 4);
    }
  }
}

template <> void takeApart<DataType::Q4_K>(const uint8_t *in, Block &out) {
  takeGroups</*hasFifthBit=*/false>(in, out);
}
template <> void takeApart<DataType::Q5_K>(const uint8_t *in, Block &out) {
  takeGroups<true>(in, out);
}

/// A scale of 8 bits with a sign, as it is stored.
static uint8_t biased(int scale) { return static_cast<uint8_t>(scale + 128); }

template <> void takeApart<DataType::Q6_K>(const uint8_t *in, Block &out) {
  std::memcpy(out.shared, in + 208, 2);
  for (int j = 0; j < 16; ++j)
    out.scales[j / 2][j % 2] = in[192 + j] ^ 0x80;
  for (int part = 0; part < 8; ++part) {
    const uint8_t *low = in + part / 4 * 64 + part % 2 * 32;
    const uint8_t *high = in + 128 + part / 4 * 32;
    for (int i = 0; i < 32; ++i)
      out.elements[32 * part + i] =
          static_cast<uint8_t>((low[i] >> part % 4 / 2 * 4 & 15) |
                               (high[i] >> part % 4 * 2 & 3) << 4);
  }
}

/// Two bits of four parts in a byte.
static void takePairs(const uint8_t *in, uint8_t *out) {
  for (int part = 0; part < 8; ++part)
    for (int i = 0; i < 32; ++i)
      out[32 * part + i] = in[part / 4 * 32 + i] >> part % 4 * 2 & 3;
}

template <> void takeApart<DataType::Q2_K>(const uint8_t *in, Block &out) {
  std::memcpy(out.shared, in + 80, 4);
  for (int j = 0; j < 16; ++j)
    out.scales[j / 2][j % 2] = in[j];
  takePairs(in + 16, out.elements);
}

template <> void takeApart<DataType::Q3_K>(const uint8_t *in, Block &out) {
  std::memcpy(out.shared, in + 108, 2);
  const uint8_t *scales = in + 96;
  for (int j = 0; j < 16; ++j)
    out.scales[j / 2][j % 2] =
        biased(((scales[j % 8] >> j / 8 * 4 & 15) |
                (scales[8 + j % 4] >> j / 4 * 2 & 3) << 4) -
               32);
  takePairs(in + 32, out.elements);
  for (int part = 0; part < 8; ++part)
    for (int i = 0; i < 32; ++i)
      out.elements[32 * part + i] |=
          static_cast<uint8_t>((in[i] >> part & 1) << 2);
}

template <> void takeApart<DataType::IQ4_XS>(const uint8_t *in, Block &out) {
  std::memcpy(out.shared, in, 2);
  const int highs = in[2] | in[3] << 8;
  for (int j = 0; j < 8; ++j) {
    out.scales[j][0] = biased(
        ((in[4 + j / 2] >> j % 2 * 4 & 15) | (highs >> 2 * j & 3) << 4) - 32);
    takeNibbles(in + 8 + 16 * j, out.elements + 32 * j);
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// The first of the low bits of element `j` of eight `eight` in its share.
static constexpr int lowPlace(FormatInfo info, int eight, int j) {
  if (info.lowBits == 8 || info.elements == ElementCoding::Iq4)
    return info.lowBits * (8 * eight + j);
  return (info.lowBits == 2 ? 8 : 32) * eight + info.lowBits * (j / 2) +
         16 * (j % 2);
}

/// Stores the 64 elements of row `row` of a tile, those of all four shares `t`
/// together: a compiler makes one vector of them.
template <WeightFormat format>
static void placeElements(const uint8_t *elements, int row, uint8_t *tile) {
  constexpr FormatInfo info = infoOf(format);
  constexpr uint32_t lowMask = (1U << info.lowBits) - 1;
  constexpr int words = lowShareBytes(format) / 4;
  constexpr int highBytes = highShareBytes(format);
  uint32_t low[words][4] = {}, high[4] = {};
  for (int four = 0; four < 4; ++four) {
    uint32_t elementsOf[4];
    std::memcpy(elementsOf, elements + 16 * four, sizeof elementsOf);
    for (int i = 0; i < 4; ++i) {
      const int eight = four / 2, j = four % 2 * 4 + i;
      const int place = lowPlace(info, eight, j);
      for (int t = 0; t < 4; ++t) {
        const uint32_t element = elementsOf[t] >> 8 * i & 255;
        low[place / 32][t] |= (element & lowMask) << place % 32;
        if constexpr (highBytes != 0)
          high[t] |= element >> info.lowBits
                                    << (highPlace(format, eight, j / 2) +
                                        8 * info.highBits * (j % 2));
      }
    }
  }
  uint8_t *lows = tile + row * 4 * lowShareBytes(format);
  uint8_t *highs = tile + tileHighs(format) + row * 4 * highBytes;
  for (int t = 0; t < 4; ++t) {
    for (int word = 0; word < words; ++word)
      std::memcpy(lows + (t * words + word) * 4, &low[word][t], 4);
    std::memcpy(highs + t * highBytes, &high[t], highBytes);
  }
}

/// Packs the stored row at `source` to row `row` of the row of tiles at `out`.
template <DataType type, int64_t blockElements, int64_t blockBytes>
static void packRow(int64_t depth, const uint8_t *source, int row,
                    uint8_t *out) {
  constexpr WeightFormat format = weightFormat(type);
  constexpr int64_t columns = groupColumns(format);
  constexpr int bytes = scaleBytes(format);
  constexpr int sharedBytes = groupScaleBytes(format);
  for (int64_t first = 0; first < depth; first += columns) {
    Block group;
    const int64_t count = std::min(columns, depth - first);
    if (count < columns)
      group = {};
    // A block of 256 is all of a group; of those of 32 it has one or two.
    for (int64_t at = 0; at < count; at += blockElements) {
      Block block;
      takeApart<type>(source, block);
      std::memcpy(group.elements + at, block.elements, blockElements);
      std::memcpy(group.scales[at / scaleBlock], block.scales,
                  blockElements / scaleBlock * sizeof block.scales[0]);
      std::memcpy(group.shared, block.shared, sharedBytes);
      source += blockBytes;
    }
    for (int i = 0; i < groupTiles(format); ++i) {
      uint8_t *tile = out + i * tileBytes(format);
      placeElements<format>(group.elements + i * tileColumns, row, tile);
      for (int block = 0; block < 2; ++block)
        std::memcpy(tile + tileScales(format) + (2 * row + block) * bytes,
                    group.scales[2 * i + block], bytes);
    }
    std::memcpy(out + groupScalesOffset(format, 0) + row * sharedBytes,
                group.shared, sharedBytes);
    out += groupBytes(format);
  }
}

using RowPacker = void (*)(int64_t depth, const uint8_t *source, int row,
                           uint8_t *out);

/// packRow() of a type that lies in tiles.
template <DataType type, int64_t blockElements, int64_t blockBytes>
static constexpr RowPacker rowPacker() {
  if constexpr (hasScales(weightFormat(type)))
    return packRow<type, blockElements, blockBytes>;
  else
    return nullptr;
}

void packWeight(DataType type, int64_t depth, int64_t numRows,
                const uint8_t *source, uint8_t *packed) {
  assert(cuda::isPackable(type, depth) && "the caller has checked the shape");
  static constexpr RowPacker packers[] = {
#define LLAMAC_ELEMENT_TYPE(ID, NAME, BLOCK, BYTES, ...)                       \
  rowPacker<DataType::ID, BLOCK, BYTES>(),
#include "runtime/base/ElementTypes.def"
  };
  const WeightFormat format = weightFormat(type);
  const int64_t bytes = unitBytes(format, depth);
  const auto storedBytes = static_cast<int64_t>(dataTypeBytes(type, depth));
  if (const RowPacker packer = packers[static_cast<size_t>(type)]) {
    std::memset(packed, 0, packedWeightBytes(format, numRows, depth));
    for (int64_t row = 0; row < numRows; ++row)
      packer(depth, source + row * storedBytes,
             static_cast<int>(row % tileRows), packed + row / tileRows * bytes);
  } else if (deviceType(type) == type) {
    std::memcpy(packed, source, numRows * bytes);
  } else {
    std::vector<float> wide(depth);
    for (int64_t row = 0; row < numRows; ++row) {
      dequantizeRow(type, source + row * storedBytes, depth, wide.data());
      quantizeRow(DataType::BF16, wide.data(), depth, packed + row * bytes);
    }
  }
}

} // namespace llamac::cuda
