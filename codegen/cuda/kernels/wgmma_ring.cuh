//===- wgmma_ring.cuh - What feeds products by wgmma ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A ring of stages in shared memory, each with a slice of x and of W, the
// thread that keeps it full by tensor copies, and the order in which those that
// multiply go through it.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_WGMMA_RING_CUH
#define LLAMAC_CODEGEN_DEVICE_WGMMA_RING_CUH

#include "llamac/ptx_sm90a.cuh"
#include "llamac/results.cuh"
#include "llamac/weights.cuh"

#if LLAMAC_HAS_SM90A

namespace llamac::cuda {

/// A packed matrix, and its map (wgmmaWeightMap).
struct WgmmaWeight {
  const void *packed;
  const TensorMap *map;
};

template <WgmmaConfig config> struct WgmmaRing {
  static constexpr int mathWarps = wgmmaMathWarpsOf(config);

  static LLAMAC_DEVICE int firstSlice(int split) {
    return firstSliceOf(config.format, config.depth, config.splits, split);
  }

  /// The thread's warp among those that multiply, which are the last.
  static LLAMAC_DEVICE int mathWarp() {
    return warpIndex() + mathWarps - wgmmaProductThreads(config) / 32;
  }

  unsigned char *stages;
  uint64_t *full;  ///< A stage has come.
  uint64_t *empty; ///< A stage is free.

  LLAMAC_DEVICE unsigned char *at(int stage) const {
    return stages + stage * wgmmaStageBytes(config);
  }
  LLAMAC_DEVICE unsigned char *weightsAt(int stage) const {
    return at(stage) + wgmmaInputBytes(config);
  }
  /// The descriptor of W of the first stage, `begin` bytes behind its first.
  LLAMAC_DEVICE uint64_t weightsDescriptor(int begin = 0) const {
    return matrixDescriptor(weightsAt(0) + begin, 0, 1024, Swizzle::Bytes128);
  }

  /// Called by one thread, before it copies and before a barrier of the
  /// cluster.
  LLAMAC_DEVICE void setUp() const {
    for (int stage = 0; stage < config.stages; ++stage) {
      mbarrierInit(&full[stage], 1);
      mbarrierInit(&empty[stage], mathWarps * config.cluster);
    }
    mbarrierInitFence();
  }

  /// A warp that is done with a stage tells those who fill it.
  LLAMAC_DEVICE void release(int stage) const {
    syncWarp();
    if (laneIndex() != 0)
      return;
    mbarrierArrive(&empty[stage]);
    if constexpr (config.cluster > 1)
      mbarrierArriveCluster(&empty[stage], clusterRank() ^ 1);
  }

  /// The descriptor of 16 columns of an operand, the k-th of its slice.
  static LLAMAC_DEVICE uint64_t atStep(uint64_t operand, int k) {
    return operand + k * 32 / 16;
  }
};

/// Copies the slices of one tile after another; one thread.
template <WgmmaConfig config, class Weights> struct WgmmaLoader {
  using Ring = WgmmaRing<config>;
  static constexpr int cluster = config.cluster;

  Ring ring;
  Weights weights;
  uint32_t rank;
  bool sharesWeights; ///< Else the cluster shares x.
  RingPlace<config.stages> place = {};
  bool isFirst = true; ///< Whether the prologue has begun with the tile.

  /// Slices of the first tile whose weights the prologue copies.
  static LLAMAC_DEVICE int prologueSlices(const ProductTile &tile) {
    return minOf(config.stages, Ring::firstSlice(tile.split + 1) -
                                    Ring::firstSlice(tile.split));
  }
  LLAMAC_DEVICE void begin(const ProductTile &tile) const {
    for (int stage = 0; stage < prologueSlices(tile); ++stage)
      copyWeights(stage, tile, Ring::firstSlice(tile.split) + stage);
  }

  /// Copies `boxes` boxes of `boxRows` rows of the map and `boxBytes` bytes to
  /// `to`; where the cluster shares them, the block's own one to all blocks.
  template <int boxes, int boxRows, int boxBytes>
  LLAMAC_DEVICE void copyBoxes(bool isShared, unsigned char *to,
                               const TensorMap &map, int column, int row,
                               uint64_t *full) const {
    if (boxes > 1 && isShared) {
      tensorLoadMulticast(to + rank * boxBytes, map, column,
                          row + rank * boxRows, full, (1 << boxes) - 1);
      return;
    }
#pragma unroll
    for (int i = 0; i < boxes; ++i)
      tensorLoad(to + i * boxBytes, map, column, row + i * boxRows, full);
  }

  /// Starts a round of the free stage `stage`.
  LLAMAC_DEVICE void copyWeights(int stage, const ProductTile &tile,
                                 int slice) const {
    constexpr bool isPacked = hasScales(config.format);
    constexpr int unit = isPacked ? tileRows : 1;
    constexpr int boxes = wgmmaPanelBoxes(config);
    mbarrierArriveExpect(&ring.full[stage], wgmmaSliceBytes(config));
    const int column =
        isPacked ? tileOffset(config.format, slice) / 8 : slice * productSlice;
#pragma unroll
    for (int panel = 0; panel < config.panels; ++panel) {
      const bool ofTwo = config.weights == 2;
      const int row =
          tile.firstOutput + (ofTwo ? 0 : panel) * config.panelOutputs;
      copyBoxes<boxes, config.panelOutputs / unit / boxes,
                wgmmaPackedBytes(config) / boxes>(
          sharesWeights,
          ring.weightsAt(stage) + panel * wgmmaPackedBytes(config),
          *weights.of(tile.part, ofTwo ? panel : 0).map, column, row / unit,
          &ring.full[stage]);
    }
  }

  LLAMAC_DEVICE void load(const TensorMap &input, const ProductTile &tile) {
    const int first = Ring::firstSlice(tile.split);
    const int begun = isFirst ? first + prologueSlices(tile) : first;
    isFirst = false;
    for (int slice = first; slice < Ring::firstSlice(tile.split + 1); ++slice) {
      if (slice >= begun) {
        mbarrierWait(&ring.empty[place.stage], place.phase ^ 1);
        copyWeights(place.stage, tile, slice);
      }
      copyBoxes<cluster, wgmmaTileRows(config) / cluster,
                wgmmaInputBytes(config) / cluster>(
          !sharesWeights, ring.at(place.stage), input, slice * productSlice,
          tile.firstRow, &ring.full[place.stage]);
      place.advance();
    }
  }
};

/// ProductResults asks these of the warpgroups that multiply.
template <WgmmaConfig config> struct WgmmaOutputs {
  static constexpr int weights = config.weights;
  static constexpr int splits = config.splits;
  static constexpr int threads = wgmmaMathWarpsOf(config) * 32;
  static constexpr int tileRows = wgmmaTileRows(config);
  static constexpr int tileOutputs = wgmmaTileOutputs(config);

  static LLAMAC_DEVICE int thread() {
    return threadIdx.x - (wgmmaProductThreads(config) - threads);
  }
  static LLAMAC_DEVICE void sync() { barrierSync(1, threads); }
  static LLAMAC_DEVICE float *exchange() {
    LLAMAC_SHARED(sums, float[wgmmaExchangeBytes(config) / 4]);
    return sums;
  }
  static LLAMAC_DEVICE constexpr long allOutputs() {
    return wgmmaOutputs(config);
  }
  static LLAMAC_DEVICE long before(const ProductTile &tile) {
    return tile.part == 0   ? 0
           : tile.part == 1 ? config.parts[0]
                            : config.parts[0] + config.parts[1];
  }
  static LLAMAC_DEVICE bool isLast(uint32_t *counter) {
    return arrivesLast(counter, splits, thread() == 0, sync);
  }
};

/// Goes through the slices of one tile after another; a warpgroup that
/// multiplies. A slice is a group of products, and what it read is free when
/// the group of the slice behind it has begun and its own is done.
template <WgmmaConfig config> struct WgmmaSlices {
  using Ring = WgmmaRing<config>;

  Ring ring;
  uint64_t input; ///< Descriptor of the first stage's x.
  RingPlace<config.stages> place = {};

  /// The warpgroup begins so many bytes behind the first of x.
  LLAMAC_DEVICE explicit WgmmaSlices(const Ring &ring, int inputBegin = 0)
      : ring(ring), input(matrixDescriptor(ring.at(0) + inputBegin, 0, 1024,
                                           Swizzle::Bytes128)) {}

  /// Calls begin(slice, x, adds) for one slice of the tile's depth after
  /// another, which begins its products: with the descriptor of x, `place`
  /// being the stage, and whether there are sums to add to. Unless operands are
  /// in registers, the products of two slices are under way at a time.
  template <class Begin>
  LLAMAC_DEVICE void multiply(const ProductTile &tile, const Begin &begin) {
    constexpr int behind = wgmmaUnpacks(config) ? 0 : 1;
    const int first = Ring::firstSlice(tile.split);
    const int end = Ring::firstSlice(tile.split + 1);
    int last = 0;
#pragma unroll 1
    for (int slice = first; slice < end; ++slice) {
      mbarrierWait(&ring.full[place.stage], place.phase);
      begin(slice, input + place.stage * (wgmmaStageBytes(config) / 16),
            slice > first);
      wgmmaCommit();
      wgmmaWait<behind>();
      if constexpr (behind == 0)
        ring.release(place.stage);
      else if (slice > first)
        ring.release(last);
      last = place.stage;
      place.advance();
    }
    if constexpr (behind != 0) {
      wgmmaWait<0>();
      ring.release(last);
    }
  }
};

/// The packed weights of a slice as operands A: a lane has rows g and g + 8 of
/// its warp's 16, a tile's, at 16 columns after another. While a warpgroup
/// unpacks, the products of another run.
template <WgmmaConfig config, class Weights> struct WgmmaFragments {
  using Ring = WgmmaRing<config>;
  static constexpr WeightFormat format = config.format;
  static constexpr int weights = config.weights;

  const Weights &matrices;
  int row; ///< The first of the warp's 16 in a tile, counted over its panels.
  GroupScales<format> groups[weights];
  uint32_t words[weights][productSlice / 16][4];

  LLAMAC_DEVICE WgmmaFragments(const Weights &matrices, int row)
      : matrices(matrices), row(row) {}

  /// Before the first slice of a tile.
  LLAMAC_DEVICE void begin(const ProductTile &tile) {
    eachWeight(tile, [&](int w, const uint8_t *matrix, long output) {
      groups[w].begin(matrix, tile.outputs, config.depth, output,
                      Ring::firstSlice(tile.split));
    });
  }

  /// Unpacks slice `slice`, which has come to stage `stage`.
  LLAMAC_DEVICE void unpack(const Ring &ring, int stage,
                            const ProductTile &tile, int slice) {
    eachWeight(tile, [&](int w, const uint8_t *matrix, long output) {
      groups[w].advance(matrix, tile.outputs, config.depth, output, slice,
                        Ring::firstSlice(tile.split + 1));
    });
    const unsigned char *stageWeights = ring.weightsAt(stage);
#pragma unroll
    for (int w = 0; w < weights; ++w) {
      auto &a = words[w];
      if constexpr (hasScales(format)) {
        const unsigned char *packed = stageWeights +
                                      w * wgmmaPackedBytes(config) +
                                      row / tileRows * tileBytes(format);
#pragma unroll
        for (int upper = 0; upper < 2; ++upper) {
          const auto chunk = chunkOfLane(packed, groups[w], upper);
#pragma unroll
          for (int k = 0; k < productSlice / 16; ++k) {
            const Words2 four = fourAsBf16(chunk, k);
            a[k][upper] = four[0];
            a[k][2 + upper] = four[1];
          }
        }
      } else {
        // F16 in rows of 128 bytes, swizzled.
        const unsigned char *rows = stageWeights + w * wgmmaPackedBytes(config);
#pragma unroll
        for (int k = 0; k < productSlice / 16; ++k) {
          ldmatrix<4>(a[k],
                      rows + swizzled<128>((row + laneIndex() % 16) * 128 +
                                           k * 32 + laneIndex() / 16 * 16));
#pragma unroll
          for (int i = 0; i < 4; ++i)
            a[k][i] =
                packBf16(lowHalfToFloat(a[k][i]), highHalfToFloat(a[k][i]));
        }
      }
    }
  }

private:
  /// Calls visit(w, matrix, output) with each matrix and the first of the
  /// warp's outputs in it.
  template <class Visit>
  LLAMAC_DEVICE void eachWeight(const ProductTile &tile,
                                const Visit &visit) const {
#pragma unroll
    for (int w = 0; w < weights; ++w)
      visit(w, static_cast<const uint8_t *>(matrices.of(tile.part, w).packed),
            tile.firstOutput + row);
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_WGMMA_RING_CUH
