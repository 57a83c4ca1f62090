//===- PanelPacking.cpp - Weights as the cpu kernels read them ------------===//
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
// that are stored in two places, whose bits are divided anew.
//
//===----------------------------------------------------------------------===//

#include "runtime/packing/PanelPacking.h"

#include "runtime/formats/Fp8.h"

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

/// Quants that have some bits in one place and the others in another. Both
/// places fill their bytes from the lowest bit on with one part of 32 k after
/// another, 32 bytes at a time.
struct QuantParts {
  int storedBits = 0, extraBits = 0;
  int stored = 0, extra = 0; ///< Where the two are in the stored block.
  int target = 0;            ///< In the panel's block: the extra bits first.
  /// Whether the first place takes parts 0 and 2, then 1 and 3, of four.
  bool isInterleaved = false;

  constexpr int bytes() const { return 32 * (storedBits + extraBits); }
};

struct Layout {
  Field fields[5];
  QuantParts parts = {};
  /// Whether elements may be NaN, of which the first field, the scale, tells.
  bool hasNans = false;
};
} // namespace

/// The layout of each format.
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
          .parts = {.storedBits = 4,
                    .extraBits = 1,
                    .stored = 48,
                    .extra = 16,
                    .target = 256}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q6_K>() {
  return {.fields = {{208, 2, 1, 0}, {192, 1, 16, 32}},
          .parts = {.storedBits = 4,
                    .extraBits = 2,
                    .extra = 128,
                    .target = 288,
                    .isInterleaved = true}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q2_K>() {
  return {.fields = {
              {80, 2, 1, 0}, {82, 2, 1, 32}, {0, 1, 16, 64}, {16, 4, 16, 320}}};
}
template <> constexpr Layout layoutOf<PanelFormat::Q3_K>() {
  return {
      .fields = {{108, 2, 1, 0}, {96, 1, 12, 32}},
      .parts = {.storedBits = 2, .extraBits = 1, .stored = 32, .target = 224}};
}
template <> constexpr Layout layoutOf<PanelFormat::IQ4_NL>() {
  return layoutOf<PanelFormat::Q4_0>();
}
template <> constexpr Layout layoutOf<PanelFormat::IQ4_XS>() {
  return {
      .fields = {{0, 2, 1, 0}, {2, 2, 1, 32}, {4, 1, 4, 64}, {8, 4, 32, 128}}};
}
template <> constexpr Layout layoutOf<PanelFormat::MXFP4>() {
  return {.fields = {{0, 1, 1, 0}, {1, 4, 4, 16}}};
}
template <> constexpr Layout layoutOf<PanelFormat::MXFP8>() {
  return {.fields = {{0, 1, 1, 0}, {1, 4, 8, 16}}, .hasNans = true};
}
template <> constexpr Layout layoutOf<PanelFormat::FP8>() {
  return {.fields = {{0, 2, 1, 0}, {2, 4, 8, 32}}, .hasNans = true};
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
    bytes += layout.parts.bytes();
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

// k = 4 group .. 4 group + 3 of a part of a stored block, a byte each.
static uint32_t readQuants(const QuantParts &parts, const uint8_t *stored,
                           int part, int group) {
  const auto bitsAt = [&](int at, int bits, int place) {
    const int first = place * bits;
    const int byte = at + first / 8 * 32 + 4 * group;
    return loadWord(stored + byte) >> first % 8 & everyByte((1 << bits) - 1);
  };
  const int place =
      parts.isInterleaved ? part / 4 * 4 + part % 2 * 2 + part % 4 / 2 : part;
  return bitsAt(parts.stored, parts.storedBits, place) |
         bitsAt(parts.extra, parts.extraBits, part) << parts.storedBits;
}

// The parts of the quants of one row's block; `lane` is its first word.
static void packQuants(const QuantParts &parts, const uint8_t *stored,
                       uint8_t *lane) {
  const int extraBits = parts.extraBits, storedBits = parts.storedBits;
  const uint32_t low = everyByte((1 << extraBits) - 1);
  const uint32_t most = everyByte((1 << storedBits) - 1);
  // Adds the bits of a pair, from `first` on, to those of the pairs before it.
  const auto store = [&](int at, int group, int first, uint32_t bits) {
    const int word = (at + first / 8) * 8 + group;
    uint8_t *to = lane + panelRows * 4 * word;
    storeWord(to, first % 8 == 0 ? bits : loadWord(to) | bits);
  };
  for (int group = 0; group < 8; ++group)
    for (int pair = 0; pair < 4; ++pair) {
      const uint32_t first = readQuants(parts, stored, 2 * pair, group);
      const uint32_t second = readQuants(parts, stored, 2 * pair + 1, group);
      const int sharedAt = pair * 2 * storedBits, restAt = pair * 2 * extraBits;
      const uint32_t shared = (first & most) | (second >> extraBits & most)
                                                   << storedBits;
      const uint32_t rest = (first & ~most) | (second & low)
                                                  << (storedBits - extraBits);
      store(extraBits, group, sharedAt, shared << sharedAt % 8);
      store(0, group, restAt, std::rotl(rest, restAt % 8));
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
        if (layout.parts.bytes() > 0)
          packQuants(layout.parts, stored,
                     to + b * block.bytes + layout.parts.target + 4 * r);
        if (const int width = layout.fields[0].width; layout.hasNans)
          copyScaleWithNan(stored, width, to + b * block.bytes + r * width);
      }
  }
}

} // namespace llamac
