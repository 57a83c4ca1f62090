//===- gemm_sm90a.cuh - Matrix products for many rows on sm_90a -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y = x W^T as gemm.cuh does it, on the warpgroups of sm_90a. A block has three
// warpgroups and goes from tile to tile. One thread of the first keeps a ring
// of stages full by tensor copies; the two others multiply 64 rows each:
//
//   x   f32, in two halves of [128 rows][32] with 128-byte rows, swizzled.
//   Lanes
//       read what they need, multiply by the gain, sum squares and round to
//       bf16, in registers: the operand A. So no launch has to write x in bf16,
//       and RMSNorm needs no pass of its own.
//   W   bf16, in panels of [panelOutputs][64] with 128-byte rows, swizzled: the
//       operand B
//
// A slice is two groups of products. While one is under way the lanes round the
// operand of the next. A stage is free when the groups of its slice are done.
//
// In a cluster of two, the blocks' tiles are of the same rows: each copies half
// of the rows of x to both. A stage is then free when the warps of both blocks
// are through with it.
//
// What lies outside of x and W is zero in shared memory; rows and outputs that
// are none do not reach the sink.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH
#define LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH

#include "llamac/kvcache.cuh"
#include "llamac/ptx_sm90a.cuh"
#include "llamac/qkv.cuh"
#include "llamac/ring.cuh"

#if LLAMAC_HAS_SM90A

namespace llamac::cuda {

/// One tile of one product: outputs firstOutput .. of `outputs`, whose weights
/// the maps are of.
template <WgmmaConfig config, class Sink> struct WgmmaTile {
  const TensorMap *weights[config.weights];
  long firstOutput;
  long outputs;
  Sink sink;
};

/// The shared memory of a block.
template <WgmmaConfig config> struct WgmmaRing {
  static constexpr int slices = divideUp(config.depth, wgmmaSlice);
  static constexpr int halfBytes = wgmmaInputBytes() / 2;

  unsigned char *stages;
  uint64_t *full;
  uint64_t *empty;

  LLAMAC_DEVICE unsigned char *at(int stage) const {
    return stages + stage * wgmmaStageBytes(config);
  }

  /// By one thread, before a barrier of the cluster.
  LLAMAC_DEVICE void setUp() const {
    for (int stage = 0; stage < config.stages; ++stage) {
      mbarrierInit(&full[stage], 1);
      mbarrierInit(&empty[stage], wgmmaMathWarps * config.cluster);
    }
    mbarrierInitFence();
  }

  /// By a warp that is through with a stage: tells those who fill it.
  LLAMAC_DEVICE void release(int stage) const {
    syncWarp();
    if (laneIndex() != 0)
      return;
    mbarrierArrive(&empty[stage]);
    if constexpr (config.cluster > 1)
      mbarrierArriveCluster(&empty[stage], clusterRank() ^ 1);
  }
};

/// Copies the slices of one tile after another; one thread.
template <WgmmaConfig config> struct WgmmaLoader {
  using Ring = WgmmaRing<config>;
  static constexpr int boxRows = wgmmaRows / config.cluster;

  Ring ring;
  const TensorMap &input;
  uint32_t rank;
  RingPlace<config.stages> place = {};

  template <class Tile>
  LLAMAC_DEVICE void load(int firstRow, const Tile &tile) {
    for (int slice = 0; slice < Ring::slices; ++slice) {
      uint64_t *full = &ring.full[place.stage];
      unsigned char *to = ring.at(place.stage);
      mbarrierWait(&ring.empty[place.stage], place.phase ^ 1);
      mbarrierArriveExpect(full, wgmmaStageBytes(config));
      const int depth = slice * wgmmaSlice;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        unsigned char *part =
            to + half * Ring::halfBytes + rank * boxRows * 128;
        const int column = depth + half * wgmmaSlice / 2;
        const int row = firstRow + rank * boxRows;
        if constexpr (config.cluster > 1)
          tensorLoadMulticast(part, input, column, row, full,
                              (1 << config.cluster) - 1);
        else
          tensorLoad(part, input, column, row, full);
      }
#pragma unroll
      for (int panel = 0; panel < config.panels; ++panel) {
        const int ofWeight = config.weights == 2 ? 0 : panel;
        tensorLoad(to + wgmmaInputBytes() + panel * wgmmaPanelBytes(config),
                   *tile.weights[config.weights == 2 ? panel : 0], depth,
                   tile.firstOutput + ofWeight * config.panelOutputs, full);
      }
      place.advance();
    }
  }
};

/// The 64 rows of a tile that one warpgroup multiplies.
template <WgmmaConfig config, class Rows> struct WgmmaMath {
  using Ring = WgmmaRing<config>;
  static constexpr int panels = config.panels;
  static constexpr int panelSums = config.panelOutputs / 2;

  Ring ring;
  Rows input;
  int row;   ///< The lane's first one in the tile; the other is 8 further.
  int pair;  ///< The columns that a lane has of eight: 2 * pair and the next.
  bool swap; ///< Whether the lane reads pieces 2 and 3 before 0 and 1.
  int first; ///< Where in a row of 128 bytes the lane reads first.
  uint64_t weights; ///< Descriptor of the first stage's first panel.
  RingPlace<config.stages> place = {};

  LLAMAC_DEVICE WgmmaMath(const Ring &ring, const Rows &input)
      : ring(ring), input(input) {
    const int lane = laneIndex();
    row = (warpIndex() - 4) * 16 + lane / 4;
    pair = lane % 4;
    // A row's 16-byte pieces lie where the swizzle puts them: piece p of row r
    // at p ^ (r % 8). Lanes of odd rows begin two pairs of pieces later, so
    // that those of four rows, which read at one time, read all banks once.
    swap = row & 1;
    first = ((pair / 2) ^ (row % 8) ^ (swap ? 4 : 0)) * 16 + pair % 2 * 8;
    weights = matrixDescriptor(ring.stages + wgmmaInputBytes(), 0, 1024,
                               Swizzle::Bytes128);
  }

  /// The lane's share of 32 columns of x, which begin at depth `depth` and lie
  /// at `half`, as operands of two products.
  LLAMAC_DEVICE void round(const unsigned char *half, int depth,
                           const bool (&isRow)[2], float (&squares)[2],
                           uint32_t (&a)[2][4]) const {
    // Four pieces of eight columns, of two rows.
    uint32_t rounded[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      F32x2 gain = {1, 1};
      if constexpr (Rows::normalises) {
        const int k = depth + (i ^ (swap ? 2 : 0)) * 8 + 2 * pair;
        if (config.depth % wgmmaSlice == 0 || k < config.depth)
          gain = load2(input.gain + k);
      }
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        F32x2 x = {0, 0};
        if (isRow[upper])
          x = load2(reinterpret_cast<const float *>(
              half + (row + 8 * upper) * 128 + (first ^ i * 32)));
        if constexpr (Rows::normalises) {
          squares[upper] += x.x * x.x + x.y * x.y;
          x = x * gain;
        }
        rounded[i][upper] = packBf16(x.x, x.y);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int upper = 0; upper < 2; ++upper)
        a[i / 2][i % 2 * 2 + upper] =
            swap ? rounded[i ^ 2][upper] : rounded[i][upper];
  }

  template <class Tile>
  LLAMAC_DEVICE void multiply(long firstRow, long rows, const Tile &tile) {
    const bool isRow[2] = {firstRow + row < rows, firstRow + row + 8 < rows};
    float squares[2] = {};
    float sums[panels][panelSums] = {};
    uint32_t a[2][2][4];
    int before = 0;
    for (int slice = 0; slice < Ring::slices; ++slice) {
      mbarrierWait(&ring.full[place.stage], place.phase);
      const uint64_t b = weights + place.stage * (wgmmaStageBytes(config) / 16);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        round(ring.at(place.stage) + half * Ring::halfBytes,
              slice * wgmmaSlice + half * wgmmaSlice / 2, isRow, squares,
              a[half]);
        wgmmaFence();
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
          for (int panel = 0; panel < panels; ++panel)
            wgmmaBf16(
                sums[panel], a[half][k],
                b + (panel * wgmmaPanelBytes(config) + half * 64 + k * 32) /
                        16);
        wgmmaCommit();
        // The group before is done: its registers are free, and if it was of
        // another slice, so is that one's stage.
        wgmmaWait<1>();
        if (half == 0 && slice > 0)
          ring.release(before);
      }
      before = place.stage;
      place.advance();
    }
    wgmmaWait<0>();
    ring.release(before);
    finish(firstRow, isRow, squares, sums, tile);
  }

  /// Hands every pair of results to the sink.
  template <class Tile>
  LLAMAC_DEVICE void
  finish(long firstRow, const bool (&isRow)[2], const float (&squares)[2],
         const float (&sums)[panels][panelSums], const Tile &tile) const {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      float scale = 1;
      if constexpr (Rows::normalises) {
        float sum = squares[upper];
        sum += shuffleXor(sum, 1);
        sum += shuffleXor(sum, 2);
        scale = input.scale(sum);
      }
      if (!isRow[upper])
        continue;
      const long at = firstRow + row + 8 * upper;
      auto pairOf = [&](int panel, int i) {
        return F32x2{sums[panel][4 * i + 2 * upper],
                     sums[panel][4 * i + 2 * upper + 1]} *
               splat(scale);
      };
#pragma unroll
      for (int panel = 0; panel < (config.weights == 2 ? 1 : panels); ++panel)
#pragma unroll
        for (int i = 0; i < config.panelOutputs / 8; ++i) {
          const long column =
              tile.firstOutput + panel * config.panelOutputs + 8 * i + 2 * pair;
          if (column >= tile.outputs)
            continue;
          if constexpr (config.weights == 2)
            tile.sink(at, column, pairOf(0, i), pairOf(1, i));
          else
            tile.sink(at, column, pairOf(panel, i));
        }
    }
  }
};

/// All tiles: `tileAt(n)` is number n of the `tiles` of each block of rows, a
/// multiple of the cluster.
template <WgmmaConfig config, class Rows, class TileAt>
LLAMAC_DEVICE void wgmmaTilesOf(int rows, const Rows &input,
                                const TensorMap &inputMap, int tiles,
                                const TileAt &tileAt) {
  static_assert(config.weights == 1 || config.panels == 2);
  static_assert(config.depth % 8 == 0);
  LLAMAC_SHARED_DYNAMIC(stages);
  LLAMAC_SHARED(full, uint64_t[config.stages]);
  LLAMAC_SHARED(empty, uint64_t[config.stages]);
  const WgmmaRing<config> ring{stages, full, empty};
  if (threadIdx.x == 0)
    ring.setUp();
  syncThreads();
  uint32_t rank = 0;
  if constexpr (config.cluster > 1) {
    clusterArrive();
    clusterWait();
    rank = clusterRank();
  }
  // Blocks of rows go first, so that a panel of W is read by all at a time.
  const int rowBlocks = ceilDiv(rows, wgmmaRows);
  const int work = rowBlocks * (tiles / config.cluster);
  const int step = gridDim.x / config.cluster;
  auto eachTile = [&](auto &worker) {
    for (int i = blockIdx.x / config.cluster; i < work; i += step)
      worker(i % rowBlocks * wgmmaRows,
             tileAt(i / rowBlocks * config.cluster + rank));
  };
  if (warpIndex() < 4) {
    registersGive<40>();
    if (threadIdx.x == 0) {
      WgmmaLoader<config> loader{ring, inputMap, rank};
      auto load = [&](int firstRow, const auto &tile) {
        loader.load(firstRow, tile);
      };
      eachTile(load);
    }
  } else {
    registersTake<232>();
    WgmmaMath<config, Rows> math(ring, input);
    auto multiply = [&](int firstRow, const auto &tile) {
      math.multiply(firstRow, rows, tile);
    };
    eachTile(multiply);
  }
  // The other block may still be told that a stage is free.
  if constexpr (config.cluster > 1) {
    clusterArrive();
    clusterWait();
  }
}

/// As gemm(): the products of `rows` rows with bf16 weights, by maps of
/// wgmmaInputMap and wgmmaWeightMap. A launch of wgmmaShape(config).
template <WgmmaConfig config, class Rows, class Sink>
LLAMAC_DEVICE void
wgmmaGemm(int rows, const Rows &input, const TensorMap &inputMap,
          const TensorMap *const (&weights)[config.weights], const Sink &sink) {
  wgmmaTilesOf<config>(
      rows, input, inputMap, roundUp(wgmmaTiles(config), config.cluster),
      [&](int tile) {
        WgmmaTile<config, Sink> result{
            {}, tile * long(wgmmaTileOutputs(config)), config.outputs, sink};
#pragma unroll
        for (int w = 0; w < config.weights; ++w)
          result.weights[w] = weights[w];
        return result;
      });
}

/// Maps of the three weights of a layer's query, key and value.
struct QkvMaps {
  const TensorMap &query;
  const TensorMap &key;
  const TensorMap &value;
};

/// As qkvGemm(). A launch of wgmmaShape(config).
template <QkvConfig<WgmmaConfig> config, class Rows>
LLAMAC_DEVICE void qkvWgmma(int rows, const Rows &input,
                            const TensorMap &inputMap, const QkvMaps &maps,
                            const QkvArgs &args) {
  constexpr WgmmaConfig query = config.query;
  constexpr int queries = wgmmaTiles(query), keys = wgmmaTiles(config.key),
                values = wgmmaTiles(config.value);
  using Sink = QkvSink<config.kv, query.outputs>;
  wgmmaTilesOf<query>(
      rows, input, inputMap, roundUp(queries + keys + values, query.cluster),
      [&](int tile) {
        const bool isKey = tile >= queries && tile < queries + keys;
        const bool isValue = tile >= queries + keys;
        const int own = tile - (isValue ? queries + keys : isKey ? queries : 0);
        return WgmmaTile<query, Sink>{{isValue ? &maps.value
                                       : isKey ? &maps.key
                                               : &maps.query},
                                      own * long(wgmmaTileOutputs(query)),
                                      isValue ? config.value.outputs
                                      : isKey ? config.key.outputs
                                              : query.outputs,
                                      Sink{isValue ? QkvPart::Value
                                           : isKey ? QkvPart::Key
                                                   : QkvPart::Query,
                                           args.to, args.out}};
      });
}

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH
