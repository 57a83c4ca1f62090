//===- amx.h - Products of tiles of bytes -----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Intel's AMX multiplies tiles, registers of up to 16 rows of 64 bytes: 16 rows
// of activations by the `depth` k of 16 rows of weights at a time, into 16 x 16
// sums of 32 bits (Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 1, chapter 18, and TDPBSUD in volume 2). A panel holds weights
// as a tile takes them: four k of each of the 16 rows in 64 bytes.
//
// A process asks the operating system for the tiles' registers
// (runtime/cpu/IsaLevel.cpp). A thread keeps them only while an AmxTiles lives,
// so that context switches need not save them afterwards.
//
// Tests compile the kernels with a model of the instructions in the place of
// AmxTiles, the header LLAMAC_AMX_MODEL, which runs without AMX.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_AMX_H
#define LLAMAC_CPU_AMX_H

#include "llamac/cpu/simd.h"

namespace llamac::cpu {

constexpr int amxRows = 16;

#if defined(LLAMAC_AMX_MODEL) || defined(__AMX_INT8__)
constexpr bool hasAmx = true;
#else
constexpr bool hasAmx = false;
#endif

#if defined(LLAMAC_AMX_MODEL)

#include LLAMAC_AMX_MODEL

#elif defined(__AMX_INT8__)

/// The tiles of a thread: one of activations, and for each of up to two panels
/// one of weights and one of sums. They hold `depth` k, a multiple of 4 up to
/// 64.
template <int depth> class AmxTiles {
public:
  LLAMAC_INLINE AmxTiles() {
    struct alignas(64) {
      U8 palette = 1;
      U8 startRow = 0;
      U8 reserved[14] = {};
      U16 rowBytes[16] = {};
      U8 rows[16] = {};
    } config;
    static_assert(sizeof(config) == 64);
    auto shape = [&](int tile, int rows, int rowBytes) {
      config.rows[tile] = U8(rows);
      config.rowBytes[tile] = U16(rowBytes);
    };
    shape(activations, amxRows, depth);
    for (int p = 0; p < 2; ++p) {
      shape(weights + p, depth / 4, 64);
      shape(sums + p, amxRows, 64);
    }
    __builtin_ia32_tile_loadconfig(&config);
  }
  AmxTiles(const AmxTiles &) = delete;
  AmxTiles &operator=(const AmxTiles &) = delete;
  LLAMAC_INLINE ~AmxTiles() { __builtin_ia32_tilerelease(); }

  /// i8 [16][depth], rows `stride` bytes apart.
  LLAMAC_INLINE void loadActivations(const I8 *from, long stride) {
    __builtin_ia32_tileloadd64(activations, from, stride);
  }

  /// u8 [depth / 4][16 rows of weights][4], of panel `panel`.
  template <int panel> LLAMAC_INLINE void loadWeights(const U8 *from) {
    __builtin_ia32_tileloadd64(weights + panel, from, 64);
  }

  /// to[t][row] = the sum over k of activation [t][k] times weight [row][k] of
  /// panel `panel`, i32 [16][16].
  template <int panel> LLAMAC_INLINE void multiply(int *to) {
    __builtin_ia32_tilezero(sums + panel);
    __builtin_ia32_tdpbsud(sums + panel, activations, weights + panel);
    __builtin_ia32_tilestored64(sums + panel, to, 64);
  }

private:
  static constexpr int activations = 0;
  static constexpr int weights = 1;
  static constexpr int sums = 3;
};

#else

template <int depth> class AmxTiles {};

#endif

} // namespace llamac::cpu

#endif // LLAMAC_CPU_AMX_H
