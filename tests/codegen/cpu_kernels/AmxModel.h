//===- AmxModel.h - AMX tiles in C++ ----------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model of what codegen/cpu/kernels/amx.h does with tiles, by the operations
// that Intel's manual gives for TILELOADD, TDPBSUD and TILESTORED: bytes of a
// tile are addressed by row and column, and a tile of weights has the four k of
// a column adjacent. Included there, in namespace llamac::cpu.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_CPU_KERNELS_AMXMODEL_H
#define LLAMAC_TESTS_CODEGEN_CPU_KERNELS_AMXMODEL_H

struct AmxTile {
  int rows;
  int rowBytes;
  U8 bytes[16][64];

  [[gnu::noinline]] void load(const void *from, long stride) {
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < rowBytes; ++i)
        bytes[row][i] = static_cast<const U8 *>(from)[row * stride + i];
  }
};

/// TDPBSUD on a tile of zeros: signed bytes of a, unsigned ones of b.
[[gnu::noinline]] inline void multiplyTiles(const AmxTile &a, const AmxTile &b,
                                            int *to) {
  for (int m = 0; m < a.rows; ++m)
    for (int n = 0; n < b.rowBytes / 4; ++n) {
      int sum = 0;
      for (int k = 0; k < b.rows; ++k)
        for (int i = 0; i < 4; ++i)
          sum += int(I8(a.bytes[m][4 * k + i])) * int(b.bytes[k][4 * n + i]);
      to[16 * m + n] = sum;
    }
}

template <int depth> class AmxTiles {
public:
  void loadActivations(const I8 *from, long stride) { a.load(from, stride); }
  template <int panel> void loadWeights(const U8 *from) {
    b[panel].load(from, 64);
  }

  template <int panel> void multiply(int *to) const {
    multiplyTiles(a, b[panel], to);
  }

private:
  AmxTile a{amxRows, depth, {}};
  AmxTile b[2] = {{depth / 4, 64, {}}, {depth / 4, 64, {}}};
};

#endif // LLAMAC_TESTS_CODEGEN_CPU_KERNELS_AMXMODEL_H
