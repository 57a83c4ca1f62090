//===- batch_sm90a.cuh - Products of a batch's rows by wgmma ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y^T = W x^T: wgmma takes 64 outputs of W as its rows and the batch, 16 to 128
// rows, as its columns, so that a step of decode reads weights as fast as
// memory gives them and multiplies no padding. A warpgroup has 64 outputs, of
// each of two weights where there are two.
//
// Sums lie the other way round from those of a prompt: a lane has two
// neighbouring rows of one output. Lanes of neighbouring outputs exchange one
// of each two sums, and then every lane has the pairs of neighbouring outputs
// of one row that epilogues take.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_BATCH_SM90A_CUH
#define LLAMAC_CODEGEN_DEVICE_BATCH_SM90A_CUH

#include "llamac/wgmma_ring.cuh"

#if LLAMAC_HAS_SM90A

namespace llamac::cuda {

/// The outputs of a tile that one warpgroup multiplies.
template <WgmmaConfig config, class Weights>
struct WgmmaBatchMath : WgmmaOutputs<config> {
  using Ring = WgmmaRing<config>;
  static constexpr bool rowsAreColumns = true;
  static constexpr int weights = config.weights;
  static constexpr int sumCount = config.batchRows / 2;
  /// Pairs of outputs that a lane has of each weight.
  static constexpr int pairs = sumCount / 2;

  WgmmaSlices<config> slices;
  const Weights &matrices;
  int output; ///< The lane's first pair in a tile; every second pair is eight
              ///< outputs further.
  int row; ///< The row of its first two pairs; those of the next are 8 apart.

  LLAMAC_DEVICE WgmmaBatchMath(const Ring &ring, const Weights &matrices)
      : slices(ring), matrices(matrices) {
    const int g = laneIndex() / 4, t = laneIndex() % 4;
    output = Ring::mathWarp() * 16 + (g & ~1);
    row = 2 * t + g % 2;
  }

  /// Pairs whose sums and extras are on their way together; of more there are
  /// no registers.
  static constexpr int batch =
      minOf(pairs, (config.batchRows == 256 ? 2 : 8) / weights);

  static LLAMAC_DEVICE constexpr int rowStep(int i) { return i / 2 * 8; }
  static LLAMAC_DEVICE constexpr int outputStep(int i) { return i % 2 * 8; }

  template <class Norm, class Epilogue>
  LLAMAC_DEVICE void
  multiply(int rows, const ProductTile &tile, const Epilogue &epilogue,
           const ProductSplits &splits, const float *scales) {
    float sums[weights][sumCount];
    if constexpr (wgmmaUnpacks(config))
      multiplyPacked(tile, sums);
    else
      multiplyBf16(tile, sums);
    ProductResults<WgmmaBatchMath, Norm::isThere>(*this, rows, tile, scales)
        .give(epilogue, splits,
              [&](int w, int i) { return pairOfColumns(&sums[w][2 * i]); });
  }

  /// Weights as they come, by descriptors.
  LLAMAC_DEVICE void multiplyBf16(const ProductTile &tile,
                                  float (&sums)[weights][sumCount]) {
    const uint64_t first = slices.ring.weightsDescriptor(
        Ring::mathWarp() / 4 * weights * wgmmaPanelBytes(config));
    slices.multiply(tile, [&](int, uint64_t x, bool adds) {
      const uint64_t w =
          first + slices.place.stage * (wgmmaStageBytes(config) / 16);
      wgmmaFence();
#pragma unroll
      for (int k = 0; k < productSlice / 16; ++k)
#pragma unroll
        for (int i = 0; i < weights; ++i)
          wgmmaBf16(sums[i],
                    Ring::atStep(w + i * (wgmmaPanelBytes(config) / 16), k),
                    Ring::atStep(x, k), adds || k > 0);
    });
  }

  /// Packed ones, in registers.
  LLAMAC_DEVICE void multiplyPacked(const ProductTile &tile,
                                    float (&sums)[weights][sumCount]) {
    WgmmaFragments<config, Weights> a(matrices, Ring::mathWarp() * 16);
    a.begin(tile);
    slices.multiply(tile, [&](int slice, uint64_t x, bool adds) {
      a.unpack(slices.ring, slices.place.stage, tile, slice);
      wgmmaFence();
#pragma unroll
      for (int k = 0; k < productSlice / 16; ++k)
#pragma unroll
        for (int i = 0; i < weights; ++i)
          wgmmaBf16(sums[i], a.words[i][k], Ring::atStep(x, k), adds || k > 0);
    });
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_BATCH_SM90A_CUH
