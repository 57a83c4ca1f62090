//===- WeightPacking.cpp - Weights as the cpu kernels read them -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A format's layout is a list of fields of its block. A field is `count` units
// of `width` bytes at `offset` of a stored block; unit i of row r goes to
// target + (i * 16 + r) * width of the panel's block. GGUF's bytes of quants
// hold the pairs of k that the panel layout keeps, so four of them are one unit
// and need not be taken apart. The fifth bits of Q5_0 and Q5_1 do: bit k of
// GGUF's word is bit k / 4 of byte k % 4 in the panel's. And so do the quants
// of Q5_K and Q6_K, which are split into bytes of four bits and what is
// beyond them.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/WeightPacking.h"

#include "runtime/io/Mxfp8.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <iterator>

namespace llamac {

namespace {
struct Field {
  int offset; ///< In the stored block.
  int width;  ///< Bytes of a unit: 1, 2 or 4.
  int count;
  int target;        ///< In the panel's block.
  bool bits = false; ///< Words whose bits are spread over their bytes.
};

struct Layout {
  Field fields[5];
  /// Of the weights of Q5_K and Q6_K, beyond four; their words of the panel's
  /// block begin at `quants`.
  int extraBits = 0;
  int quants = 0;

  int extraBytes() const { return 32 * extraBits * int(panelRows); }
};
} // namespace

/// Of each format.
template <PanelFormat format> static constexpr Layout layoutOf();

template <> constexpr Layout layoutOf<PanelFormat::F32>() {
  return {.fields = {{0, 4, 1, 0}}};
}
template <> constexpr Layout layoutOf<PanelFormat::F16>() {
  return {.fields = {{0, 2, 1, 0}}};
}
template <> constexpr Layout layoutOf<PanelFormat::BF16>() {
  return {.fields = {{0, 4, 1, 0}}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q8_0>() {
  return {.fields = {{0, 2, 1, 0}, {2, 4, 8, 32}}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q4_0>() {
  return {.fields = {{0, 2, 1, 0}, {2, 4, 4, 32}}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q4_1>() {
  return {.fields = {{0, 2, 1, 0}, {2, 2, 1, 32}, {4, 4, 4, 64}}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q5_0>() {
  return {.fields = {{0, 2, 1, 0}, {2, 4, 1, 32, true}, {6, 4, 4, 96}}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q5_1>() {
  return {
      .fields = {
          {0, 2, 1, 0}, {2, 2, 1, 32}, {4, 4, 1, 64, true}, {8, 4, 4, 128}}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q4_K>() {
  return {.fields = {
              {0, 2, 1, 0}, {2, 2, 1, 32}, {4, 1, 12, 64}, {16, 4, 32, 256}}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q5_K>() {
  return {.fields = {{0, 2, 1, 0}, {2, 2, 1, 32}, {4, 1, 12, 64}},
          .extraBits = 1,
          .quants = 256};
}
template <> constexpr Layout layoutOf<PanelFormat::Q6_K>() {
  return {.fields = {{208, 2, 1, 0}, {192, 1, 16, 32}},
          .extraBits = 2,
          .quants = 288};
}
template <> constexpr Layout layoutOf<PanelFormat::MXFP8>() {
  return {.fields = {{0, 1, 1, 0}, {1, 4, 8, 16}}};
}

static constexpr Layout layouts[] = {
#define LLAMAC_ELEMENT_TYPE(ID, ...) layoutOf<PanelFormat::ID>(),
#include "runtime/base/ElementTypes.def"
};

/// Stored bytes of one row that become part of a panel's block.
static constexpr int64_t storedBytes(PanelFormat format) {
  return panelBlock(format).bytes / panelRows;
}

// Every layout moves each stored byte once.
static constexpr bool layoutsAreWhole() {
  for (size_t format = 0; format < std::size(layouts); ++format) {
    const Layout &layout = layouts[format];
    int bytes = 0;
    for (const Field &field : layout.fields)
      bytes += field.width * field.count;
    if (layout.extraBits)
      bytes += 128 + 32 * layout.extraBits;
    if (bytes != storedBytes(PanelFormat(format)))
      return false;
  }
  return true;
}
static_assert(layoutsAreWhole());

bool isPackable(DataType type, int64_t cols) {
  return cols > 0 && cols % 8 == 0 &&
         cols % panelBlock(panelFormat(type)).depth == 0;
}

int64_t packedBytes(DataType type, int64_t rows, int64_t cols) {
  return panelCount(rows) * panelBytes(panelFormat(type), cols);
}

static uint32_t loadWord(const uint8_t *from) {
  uint32_t word;
  std::memcpy(&word, from, 4);
  return word;
}

static void storeWord(uint8_t *to, uint32_t word) { std::memcpy(to, &word, 4); }

// The bits of `word`, bit k at bit k / 4 of byte k % 4.
static uint32_t spreadBits(uint32_t word) {
  uint32_t spread = 0;
  for (int k = 0; k < 32; ++k)
    spread |= (word >> k & 1) << (k % 4 * 8 + k / 4);
  return spread;
}

// Moves the units of one field of one row's block: `width` is a constant so
// that each move is one load and one store.
template <int width>
static void packField(const Field &field, const uint8_t *stored,
                      uint8_t *block) {
  for (ptrdiff_t i = 0; i < field.count; ++i)
    std::memcpy(block + field.target + i * panelRows * width,
                stored + field.offset + i * width, width);
}

static constexpr uint32_t everyByte(uint32_t byte) { return byte * 0x01010101; }

namespace {
/// Where a stored block of Q5_K or Q6_K has k = 4 group .. 4 group + 3 of a
/// part: four bits and one or two, in each byte of two words.
struct StoredQuants {
  int nibbles, nibbleShift;
  int extra, extraShift;
  uint32_t extraMask;

  StoredQuants(int extraBits, int part, int group) {
    if (extraBits == 1) {
      nibbles = 48 + part / 2 * 32;
      nibbleShift = part % 2 * 4;
      extra = 16;
      extraShift = part;
    } else {
      nibbles = part / 4 * 64 + part % 2 * 32;
      nibbleShift = part % 4 / 2 * 4;
      extra = 128 + part / 4 * 32;
      extraShift = part % 4 * 2;
    }
    nibbles += 4 * group;
    extra += 4 * group;
    extraMask = everyByte((1 << extraBits) - 1);
  }

  /// The four weights, a byte each.
  uint32_t read(const uint8_t *stored) const {
    return (loadWord(stored + nibbles) >> nibbleShift & everyByte(15)) |
           (loadWord(stored + extra) >> extraShift & extraMask) << 4;
  }
};
} // namespace

// The quants of one row's block of Q5_K or Q6_K; `lane` is its first word.
static void packQuants(const Layout &layout, const uint8_t *stored,
                       uint8_t *lane) {
  const int bits = layout.extraBits;
  const int pairsOfWord = 4 / bits, word = 4 * panelRows;
  const uint32_t low = everyByte((1 << bits) - 1);
  for (int group = 0; group < 8; ++group)
    for (int pair = 0; pair < 4; ++pair) {
      const uint32_t first = StoredQuants(bits, 2 * pair, group).read(stored);
      const uint32_t second =
          StoredQuants(bits, 2 * pair + 1, group).read(stored);
      storeWord(lane + layout.extraBytes() + (pair * 8 + group) * word,
                (first & everyByte(15)) | (second >> bits & everyByte(15))
                                              << 4);
      const uint32_t rest = (first & ~everyByte(15)) | (second & low)
                                                           << (4 - bits);
      uint8_t *extra = lane + (pair / pairsOfWord * 8 + group) * word;
      const int rotation = pair % pairsOfWord * 2 * bits;
      storeWord(extra,
                (rotation ? loadWord(extra) : 0) | std::rotl(rest, rotation));
    }
}

void packRows(DataType type, int64_t rows, int64_t cols, int64_t firstPanel,
              int64_t numPanels, const uint8_t *source, uint8_t *out) {
  assert(isPackable(type, cols) && "the caller has checked the shape");
  const Layout &layout = layouts[static_cast<int>(type)];
  PanelBlock block = panelBlock(panelFormat(type));
  int64_t panelSize = panelBytes(panelFormat(type), cols);
  const int64_t stride = storedBytes(panelFormat(type));
  int64_t rowBytes = cols / block.depth * stride;
  for (int64_t panel = 0; panel < numPanels; ++panel) {
    uint8_t *to = out + panel * panelSize;
    int64_t firstRow = (firstPanel + panel) * panelRows;
    int64_t present = rows - firstRow < panelRows ? rows - firstRow : panelRows;
    if (present < panelRows)
      std::memset(to, 0, panelSize);
    else
      std::memset(to + panelSize - 64, 0, 64);
    for (int64_t b = 0; b < cols / block.depth; ++b)
      for (int64_t r = 0; r < present; ++r) {
        const uint8_t *stored =
            source + (panel * panelRows + r) * rowBytes + b * stride;
        // The lane of row r starts at r units into every field.
        for (const Field &field : layout.fields) {
          uint8_t *lane = to + b * block.bytes + r * field.width;
          if (field.bits)
            storeWord(lane + field.target,
                      spreadBits(loadWord(stored + field.offset)));
          else if (field.width == 4)
            packField<4>(field, stored, lane);
          else if (field.width == 2)
            packField<2>(field, stored, lane);
          else if (field.width == 1)
            packField<1>(field, stored, lane);
        }
        if (layout.extraBits)
          packQuants(layout, stored,
                     to + b * block.bytes + layout.quants + 4 * r);
        if (type == DataType::MXFP8)
          to[b * block.bytes + r] = mxfp8ScaleWithNan(stored);
      }
  }
}

} // namespace llamac
