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
// Few tiles would leave multiprocessors idle, so several blocks share the depth
// of one. Each stores its sums; the last to come adds up all of them, in the
// order of the depth: a result has the same bits whoever comes last.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_BATCH_SM90A_CUH
#define LLAMAC_CODEGEN_DEVICE_BATCH_SM90A_CUH

#include "llamac/arrivals.cuh"
#include "llamac/vmath.cuh"
#include "llamac/wgmma_ring.cuh"

#if LLAMAC_HAS_SM90A

namespace llamac::cuda {

/// Where the blocks of a tile put their sums, and count themselves.
struct WgmmaSplits {
  float *partials = nullptr;
  uint32_t *counters = nullptr;
};

/// The outputs of a tile that one warpgroup multiplies.
template <WgmmaConfig config> struct WgmmaBatchMath {
  using Ring = WgmmaRing<config>;
  static constexpr int weights = config.weights;
  static constexpr int sumCount = config.batchRows / 2;
  /// Pairs of outputs that a lane has of each weight.
  static constexpr int pairs = sumCount / 2;

  WgmmaSlices<config> slices;
  int output; ///< The lane's first pair in a tile; every second pair is eight
              ///< outputs further.
  int row; ///< The row of its first two pairs; those of the next are 8 apart.

  LLAMAC_DEVICE explicit WgmmaBatchMath(const Ring &ring)
      : slices(ring, 0,
               Ring::mathWarp() / 4 * weights * wgmmaPanelBytes(config)) {
    const int g = laneIndex() / 4, t = laneIndex() % 4;
    output = Ring::mathWarp() * 16 + (g & ~1);
    row = 2 * t + g % 2;
  }

  template <class Epilogue>
  LLAMAC_DEVICE void multiply(int rows, const WgmmaTile &tile,
                              const Epilogue &epilogue,
                              const WgmmaSplits &splits) {
    float sums[weights][sumCount];
    slices.multiply(tile, [&](uint64_t x, uint64_t w, bool adds) {
#pragma unroll
      for (int i = 0; i < weights; ++i)
        wgmmaBf16(sums[i], w + i * (wgmmaPanelBytes(config) / 16), x, adds);
    });

    F32x2 acc[weights][pairs];
#pragma unroll
    for (int w = 0; w < weights; ++w)
#pragma unroll
      for (int i = 0; i < pairs; ++i)
        acc[w][i] = pairOf(&sums[w][2 * i]);
    if constexpr (config.splits > 1)
      merge(rows, tile, epilogue, splits, acc);
    else
      finish<0>(rows, tile, epilogue,
                [&]<int first>(F32x2(&sums)[batch][weights]) {
#pragma unroll
                  for (int i = 0; i < batch; ++i)
#pragma unroll
                    for (int w = 0; w < weights; ++w)
                      sums[i][w] = acc[w][first + i];
                });
  }

  /// Exchanges two neighbouring rows of the lane's output for one row of it and
  /// of the output beside it.
  static LLAMAC_DEVICE F32x2 pairOf(const float *sums) {
    const bool isOdd = laneIndex() & 4;
    const float other = shuffleXor(isOdd ? sums[0] : sums[1], 4);
    return isOdd ? F32x2{other, sums[1]} : F32x2{sums[0], other};
  }

  /// Calls visit(i, row, column) for those of the lane's pairs from `first` on,
  /// `count` of them, that are there.
  template <int first, int count, class Visit>
  LLAMAC_DEVICE void eachPair(int rows, const WgmmaTile &tile,
                              const Visit &visit) const {
#pragma unroll
    for (int i = first; i < first + count; ++i) {
      const int at = tile.firstRow + row + i / 2 * 8;
      const long column = tile.firstOutput + output + i % 2 * 8;
      if (at < rows && column < tile.outputs)
        visit(i, at, column);
    }
  }

  /// Pairs whose sums and extras are on their way together; of more there are
  /// no registers.
  static constexpr int batch = minOf(pairs, (Ring::unpacks ? 4 : 8) / weights);
  static_assert(pairs % batch == 0);

  /// Hands the sums from pair `first` on to the epilogue, a batch of pairs at a
  /// time, which load(first, sums) brings.
  template <int first, class Epilogue, class Load>
  LLAMAC_DEVICE void finish(int rows, const WgmmaTile &tile,
                            const Epilogue &epilogue, const Load &load) const {
    F32x2 sums[batch][weights];
    load.template operator()<first>(sums);
    ExtrasOf<Epilogue> extras[batch];
    eachPair<first, batch>(rows, tile, [&](int i, int at, long column) {
      extras[i - first] = extrasOf(epilogue, at, column);
    });
    eachPair<first, batch>(rows, tile, [&](int i, int at, long column) {
      applyEpilogue(epilogue, at, column, sums[i - first], extras[i - first]);
    });
    if constexpr (first + batch < pairs)
      finish<first + batch>(rows, tile, epilogue, load);
  }

  /// Stores the block's sums of a tile. The last of its blocks finishes it.
  template <class Epilogue>
  LLAMAC_DEVICE void merge(int rows, const WgmmaTile &tile,
                           const Epilogue &epilogue, const WgmmaSplits &splits,
                           const F32x2 (&acc)[weights][pairs]) const {
    if (tile.firstOutput >= tile.outputs)
      return; // It is there for its neighbour alone, and has no counter.
    constexpr long outputs = wgmmaOutputs(config);
    const long before = tile.part == 0   ? 0
                        : tile.part == 1 ? config.parts[0]
                                         : config.parts[0] + config.parts[1];
    auto partialOf = [&](int split, int w, int at, long column) {
      return splits.partials +
             ((long(at) * config.splits + split) * weights + w) * outputs +
             before + column;
    };
    eachPair<0, pairs>(rows, tile, [&](int i, int at, long column) {
#pragma unroll
      for (int w = 0; w < weights; ++w)
        store2(partialOf(tile.split, w, at, column), acc[w][i]);
    });
    constexpr int threads = Ring::mathWarps * 32;
    if (!arrivesLast(splits.counters + tile.number, config.splits,
                     threadIdx.x == wgmmaProductThreads(config) - threads,
                     [] { barrierSync(1, threads); }))
      return;
    finish<0>(
        rows, tile, epilogue, [&]<int first>(F32x2(&sums)[batch][weights]) {
#pragma unroll
          for (int i = 0; i < batch; ++i)
#pragma unroll
            for (int w = 0; w < weights; ++w)
              sums[i][w] = {0, 0};
#pragma unroll 2
          for (int split = 0; split < config.splits; ++split)
            eachPair<first, batch>(rows, tile, [&](int i, int at, long column) {
#pragma unroll
              for (int w = 0; w < weights; ++w)
                sums[i - first][w] =
                    sums[i - first][w] + load2(partialOf(split, w, at, column));
            });
        });
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_BATCH_SM90A_CUH
