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
// Two products may share a norm between them: the first stores its results
// times the gain, and sums of squares of each row; the second multiplies what
// it sums by one number for a row.
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
  long allOutputs;     ///< Outputs of all parts, a whole number of pairs.
  long before = 0;     ///< Outputs of the parts ahead.
  int allTiles = 0;    ///< Tiles of all parts.
  int tilesBefore = 0; ///< Tiles of the parts ahead.
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
  int number; ///< Number among all tiles of a launch.
  int split;
};

/// Where the blocks of a tile put their sums, and count themselves.
struct ProductSplits {
  float *partials = nullptr;
  uint32_t *counters = nullptr;
};

/// A product whose input has no norm, or is normalised, has this in its place.
struct NoNorm {
  static constexpr bool isThere = false;
};

/// The norm of an input that ForNextNorm stored: rows of `depth`.
template <long depth> struct SquaresNorm {
  static constexpr bool isThere = true;
  const float *squares; ///< [rows][depth / squareColumns].
  float eps;

  /// Stores the scales of `tileRows` rows from `firstRow` on, of the `rows`
  /// that there are, to `scales`; `thread` is one of `threads`. Eight lanes add
  /// up a row, and have all their loads on the way at a time.
  template <int tileRows, int threads>
  LLAMAC_DEVICE void store(float *scales, int thread, int firstRow,
                           int rows) const {
    constexpr int parts = depth / squareColumns, lanes = 8;
    constexpr int step = threads / lanes;
    constexpr int turns = divideUp(tileRows, step);
    float sums[turns] = {};
#pragma unroll
    for (int i = 0; i < turns; ++i) {
      const int row = minOf(firstRow + i * step + thread / lanes, rows - 1);
#pragma unroll
      for (int part = 0; part < parts; part += lanes)
        if (parts % lanes == 0 || part + thread % lanes < parts)
          sums[i] += squares[long(row) * parts + part + thread % lanes];
    }
#pragma unroll
    for (int i = 0; i < turns; ++i) {
#pragma unroll
      for (int by = 1; by < lanes; by *= 2)
        sums[i] += shuffleXor(sums[i], by);
      const int row = i * step + thread / lanes;
      if (thread % lanes == 0 && row < tileRows)
        scales[row] = normScale<depth>(sums[i], eps);
    }
  }
};

/// Where the scales of a tile of `tileRows` rows are: one place for the
/// products of a launch, of which a block makes one.
template <int tileRows> LLAMAC_DEVICE float *placeOfScales() {
  LLAMAC_SHARED(scales, float[tileRows]);
  return scales;
}

/// The scales of the rows of a tile, which `math` multiplies; null without a
/// norm.
template <class Math, class Norm>
LLAMAC_DEVICE const float *scalesOf(const Norm &norm, const Math &math,
                                    int firstRow, int rows) {
  if constexpr (Norm::isThere) {
    float *const scales = placeOfScales<Math::tileRows>();
    norm.template store<Math::tileRows, Math::threads>(scales, math.thread(),
                                                       firstRow, rows);
    math.sync();
    return scales;
  } else {
    return nullptr;
  }
}

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
///
/// Where rows are the columns of MMAs, Math::rowsAreColumns, a norm may be
/// shared. Then Math::threads threads, of which the caller is math.thread(),
/// multiply a tile of Math::tileRows rows and Math::tileOutputs outputs,
/// math.sync() is a barrier of them, and math.exchange() is shared memory for
/// [tileOutputs / 16][tileRows] floats. With `scales` the sums of a row are
/// multiplied by one number before they go to the epilogue.
template <class Math, bool scales> struct ProductResults {
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
  int rows;
  const float *scaleOfRow; ///< Scales of the tile's rows; shared memory.

  LLAMAC_DEVICE ProductResults(const Math &math, int rows,
                               const ProductTile &tile, const float *scaleOfRow)
      : row(tile.firstRow + math.row), column(tile.firstOutput + math.output),
        rowsBehind(rows - row),
        outputsBehind(static_cast<int>(tile.outputs - column)), math(math),
        tile(tile), rows(rows), scaleOfRow(scaleOfRow) {}

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
    if constexpr (scales)
#pragma unroll
      for (int i = 0; i < batch; ++i)
#pragma unroll
        for (int w = 0; w < weights; ++w)
          sums[i][w] = sums[i][w] *
                       splat(scaleOfRow[math.row + Math::rowStep(first + i)]);
    // Registers that are only written where a pair is there would be live from
    // the kernel's beginning on.
    ExtrasOf<Epilogue> extras[batch] = {};
    eachPair<first>([&](int i) {
      extras[i - first] = extrasOf(epilogue, row + Math::rowStep(i),
                                   column + Math::outputStep(i));
    });
    auto apply = [&](int i) {
      return applyEpilogue(epilogue, row + Math::rowStep(i),
                           column + Math::outputStep(i), sums[i - first],
                           extras[i - first]);
    };
    if constexpr (TakesSquares<Epilogue>) {
      F32x2 results[batch] = {};
      eachPair<first>([&](int i) { results[i - first] = apply(i); });
      squareResults<first>(results);
    } else {
      eachPair<first>(apply);
    }
    if constexpr (first + batch < pairs)
      finish<first + batch>(epilogue, load);
    else if constexpr (TakesSquares<Epilogue>)
      giveSquares(epilogue);
  }

  /// Squares of the results from pair `first` on: pairs 2i and 2i + 1 are of
  /// one row, and of the 16 outputs of an MMA that four lanes have of it.
  template <int first>
  LLAMAC_DEVICE void squareResults(const F32x2 (&results)[batch]) const {
    static_assert(Math::rowsAreColumns && batch % 2 == 0);
    if constexpr (first == 0)
      math.sync(); // The former contents have been read.
#pragma unroll
    for (int i = 0; i < batch; i += 2) {
      float sum =
          dot(results[i + 1], results[i + 1], dot(results[i], results[i], 0));
      sum += shuffleXor(sum, 8);
      sum += shuffleXor(sum, 16);
      const int output = math.output + Math::outputStep(first + i);
      if (laneIndex() < 8)
        math.exchange()[output / 16 * Math::tileRows + math.row +
                        Math::rowStep(first + i)] = sum;
    }
  }

  /// Adds up the squares of each squareColumns outputs, for the epilogue.
  template <class Epilogue>
  LLAMAC_DEVICE void giveSquares(const Epilogue &epilogue) const {
    constexpr int tileRows = Math::tileRows;
    constexpr int groups = Math::tileOutputs / squareColumns;
    static_assert(Math::tileOutputs % squareColumns == 0);
    math.sync();
    for (int i = math.thread(); i < groups * tileRows; i += Math::threads) {
      const int inTile = i % tileRows;
      const long output = tile.firstOutput + i / tileRows * squareColumns;
      if (tile.firstRow + inTile >= rows || output >= tile.outputs)
        continue;
      const float *of =
          math.exchange() + i / tileRows * (squareColumns / 16) * tileRows;
      float sum = 0;
#pragma unroll
      for (int part = 0; part < squareColumns / 16; ++part)
        sum += of[part * tileRows + inTile];
      epilogue.storeSquares(tile.firstRow + inTile, output, sum);
    }
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
