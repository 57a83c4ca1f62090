//===- results.cuh - What the sums of tensor cores become -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sums of a tile, which lie in the registers of the lanes that multiplied
// it, go to the epilogue in pairs of neighbouring outputs of one row.
//
// Few tiles would leave multiprocessors idle, so several blocks may share the
// depth of one. Each stores its sums; the last to come adds up all of them, in
// the order of the depth: a result has the same bits whoever comes last.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_RESULTS_CUH
#define LLAMAC_CODEGEN_DEVICE_RESULTS_CUH

#include "llamac/arrivals.cuh"
#include "llamac/vmath.cuh"

namespace llamac::cuda {

/// One of the products of a launch, which share their input.
struct ProductPart {
  long outputs;
  long allOutputs;     ///< Of all parts, a whole number of pairs.
  long before = 0;     ///< Outputs of the parts ahead.
  int allTiles = 0;    ///< Tiles of all parts.
  int tilesBefore = 0; ///< Those of the parts ahead.
};

/// A block's place: its number in a product, and its tile along the rows.
struct ProductPlace {
  long block;
  int rowTile = 0;
};

/// One tile of one product: outputs firstOutput .. of the `outputs` of a part,
/// one of several matrices that share the input, and of the depth split
/// `split`.
struct ProductTile {
  int firstRow;
  int part;
  long outputs;
  long firstOutput;
  int number; ///< Of all tiles of a launch.
  int split;
};

/// Where the blocks of a tile put their sums, and count themselves.
struct ProductSplits {
  float *partials = nullptr;
  uint32_t *counters = nullptr;
};

/// The sums of an MMA with weights as its 16 rows: a lane has two neighbouring
/// rows of the input, in one output. It exchanges one of them with the lane of
/// the output beside it: of lane (g, t), row 2t + g % 2 of outputs g & ~1 and
/// the next are left.
LLAMAC_DEVICE F32x2 pairOfColumns(const float *sums) {
  const bool isOdd = laneIndex() & 4;
  const float other = shuffleXor(isOdd ? sums[0] : sums[1], 4);
  return isOdd ? F32x2{other, sums[1]} : F32x2{sums[0], other};
}

/// The results of a tile. `Math` says which pairs of outputs a lane has: the
/// first, of row math.row and output math.output in the tile, and Math::pairs
/// altogether; pair i is Math::rowStep(i) rows and Math::outputStep(i) outputs
/// further. Math::batch of them find registers on their way to the epilogue.
/// Math::splits blocks share a tile; a row has math.allOutputs() outputs, a
/// whole number of pairs, of all parts, math.before(tile) ahead of the tile's
/// part; and math.isLast(counter) holds in the last of the blocks.
template <class Math> struct ProductResults {
  static constexpr int weights = Math::weights;
  static constexpr int splits = Math::splits;
  static constexpr int pairs = Math::pairs;
  static constexpr int batch = Math::batch;
  static_assert(pairs % batch == 0);

  int row;        ///< The row of the lane's first pair in the launch.
  long column;    ///< Its output, of its part.
  int rowsBehind; ///< Rows, and outputs, that there are from it on.
  int outputsBehind;
  const Math &math;
  const ProductTile &tile;

  LLAMAC_DEVICE ProductResults(const Math &math, int rows,
                               const ProductTile &tile)
      : row(tile.firstRow + math.row), column(tile.firstOutput + math.output),
        rowsBehind(rows - row),
        outputsBehind(static_cast<int>(tile.outputs - column)), math(math),
        tile(tile) {}

  /// Finishes the tile, or the block's split of it: sumOf(w, i) is what the
  /// lane has of weight `w` for its pair `i`; whole warps call it.
  template <class Epilogue, class SumOf>
  LLAMAC_DEVICE void give(const Epilogue &epilogue, const ProductSplits &shared,
                          const SumOf &sumOf) const {
    if constexpr (splits > 1)
      merge(epilogue, shared, sumOf);
    else
      finish<0>(epilogue, [&]<int first>(F32x2(&sums)[batch][weights]) {
#pragma unroll
        for (int i = 0; i < batch; ++i)
#pragma unroll
          for (int w = 0; w < weights; ++w)
            sums[i][w] = sumOf(w, first + i);
      });
  }

private:
  LLAMAC_DEVICE bool isThere(int i) const {
    return Math::rowStep(i) < rowsBehind && Math::outputStep(i) < outputsBehind;
  }

  /// Calls visit(i) for those of the batch of pairs from `first` on that are
  /// there.
  template <int first, class Visit>
  LLAMAC_DEVICE void eachPair(const Visit &visit) const {
#pragma unroll
    for (int i = first; i < first + batch; ++i)
      if (isThere(i))
        visit(i);
  }

  /// Hands the sums from pair `first` on to the epilogue, a batch of pairs at a
  /// time, which load<first>(sums) brings. The extras of a batch are on their
  /// way before its first result is stored.
  template <int first, class Epilogue, class Load>
  LLAMAC_DEVICE void finish(const Epilogue &epilogue, const Load &load) const {
    F32x2 sums[batch][weights];
    load.template operator()<first>(sums);
    // Registers that are only written where a pair is there would be live from
    // the kernel's beginning on.
    ExtrasOf<Epilogue> extras[batch] = {};
    eachPair<first>([&](int i) {
      extras[i - first] = extrasOf(epilogue, row + Math::rowStep(i),
                                   column + Math::outputStep(i));
    });
    eachPair<first>([&](int i) {
      applyEpilogue(epilogue, row + Math::rowStep(i),
                    column + Math::outputStep(i), sums[i - first],
                    extras[i - first]);
    });
    if constexpr (first + batch < pairs)
      finish<first + batch>(epilogue, load);
  }

  /// Stores the block's sums of a tile, f32 [rows][splits][weights][outputs].
  /// The last of its blocks finishes it.
  template <class Epilogue, class SumOf>
  LLAMAC_DEVICE void merge(const Epilogue &epilogue,
                           const ProductSplits &shared,
                           const SumOf &sumOf) const {
    if (tile.firstOutput >= tile.outputs)
      return; // It is there for its neighbour alone, and has no counter.
    const long outputs = math.allOutputs();
    const long splitFloats = weights * outputs;
    const long rowFloats = splits * splitFloats;
    // The lane's first pair of the first split; others are at constants.
    float *const firstSum =
        shared.partials + row * rowFloats + math.before(tile) + column;
    auto offsetOf = [&](int w, int i) {
      return Math::rowStep(i) * rowFloats + w * outputs + Math::outputStep(i);
    };
    float *const own = firstSum + tile.split * splitFloats;
#pragma unroll
    for (int first = 0; first < pairs; first += batch) {
      // Else ptxas exchanges all sums before it stores the first, and spills.
      syncWarp();
#pragma unroll
      for (int i = first; i < first + batch; ++i)
#pragma unroll
        for (int w = 0; w < weights; ++w)
          if (const F32x2 sum = sumOf(w, i); isThere(i))
            store2(own + offsetOf(w, i), sum);
    }
    if (!math.isLast(shared.counters + tile.number))
      return;
    finish<0>(epilogue, [&]<int first>(F32x2(&sums)[batch][weights]) {
#pragma unroll
      for (int i = 0; i < batch; ++i)
#pragma unroll
        for (int w = 0; w < weights; ++w)
          sums[i][w] = {0, 0};
#pragma unroll 2
      for (int split = 0; split < splits; ++split)
        eachPair<first>([&](int i) {
#pragma unroll
          for (int w = 0; w < weights; ++w)
            sums[i - first][w] =
                sums[i - first][w] +
                load2(firstSum + split * splitFloats + offsetOf(w, i));
        });
    });
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_RESULTS_CUH
