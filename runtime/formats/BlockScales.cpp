//===- BlockScales.cpp - Scales of blocks of random bits ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/formats/BlockScales.h"

#include "runtime/formats/FloatBits.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

namespace llamac {

namespace {

/// Where a block of a quantised format has its scales, of type f16, and how
/// large values of random bits are: `rms` times the scale at `scale`. That at
/// `offset` is to be `offsetShare` of it for their mean to be 0.
struct BlockScales {
  DataType type;
  float rms;
  int scale;
  int offset = -1;
  float offsetShare = 0;
  bool isExponent = false; ///< The scale is a byte of E8M0.
};

} // namespace

static constexpr BlockScales blockScales[] = {
    {DataType::Q8_0, 74, 0},
    {DataType::Q4_0, 4.6F, 0},
    {DataType::Q4_1, 4.6F, 0, 2, -7.5F},
    {DataType::Q5_0, 9.2F, 0},
    {DataType::Q5_1, 9.2F, 0, 2, -15.5F},
    {DataType::Q4_K, 260, 0, 2, 7.5F},
    {DataType::Q5_K, 520, 0, 2, 15.5F},
    {DataType::Q6_K, 1370, 208},
    {DataType::Q2_K, 13.9F, 80, 82, 1.5F},
    {DataType::Q3_K, 43, 108},
    {DataType::IQ4_NL, 67, 0},
    {DataType::IQ4_XS, 1250, 0},
    {DataType::MXFP4, 2.9F, 0, -1, 0, true},
};

static const BlockScales *find(DataType type) {
  const BlockScales *known = std::ranges::find(
      blockScales, type, [](const BlockScales &row) { return row.type; });
  return known == std::end(blockScales) ? nullptr : known;
}

bool takesRandomBits(DataType type) { return find(type) != nullptr; }

void setBlockScales(DataType type, float rms, uint8_t *block) {
  const BlockScales *scales = find(type);
  assert(scales && "takesRandomBits() says which have them");
  const float scale = rms / scales->rms;
  if (scales->isExponent) {
    block[scales->scale] =
        static_cast<uint8_t>(127 + std::lround(std::log2(scale)));
    return;
  }
  const auto store = [&](int place, float value) {
    const uint16_t half = f32ToF16(value);
    std::memcpy(block + place, &half, sizeof half);
  };
  store(scales->scale, scale);
  if (scales->offset >= 0)
    store(scales->offset, scale * scales->offsetShare);
}

} // namespace llamac
