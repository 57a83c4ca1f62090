//===- gemm_sm90a.cuh - Matrix products for many rows on sm_90a -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y = x W^T as gemm.cuh does it, on the warpgroups of sm_90a. A block goes from
// tile to tile. One thread of the first warpgroup keeps a ring of stages full
// by tensor copies; the others multiply. x comes in bf16: who makes it rounds
// it, once for all blocks, and normalises it but for a scale of each row.
//
// Two warpgroups multiply 64 rows each of prompts by weights in bf16
// (WgmmaMath); with batches and packed weights a warpgroup has 64 outputs
// (WgmmaBatchMath). Operands lie in shared memory in rows of 128 bytes,
// swizzled, x as [rows][64] and W as panels of [panelOutputs][64] one behind
// the other. Packed weights are copied as they are packed.
//
// The first stages' weights are copied in the prologue, before earlier launches
// are done: weights do not depend on them.
//
// The two blocks of a cluster share what is larger, weights, if there is an
// even number of tiles along the rows, else x: each copies half of it to both,
// so a stage is free when both are done with it.
//
// Elements outside of x and W are zero in shared memory; they do not reach the
// epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH
#define LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH

#include "llamac/batch_sm90a.cuh"
#include "llamac/kvcache.cuh"
#include "llamac/qkv.cuh"

#if LLAMAC_HAS_SM90A

namespace llamac::cuda {

/// The 64 rows of a tile that one warpgroup multiplies, by all its panels at
/// once.
template <WgmmaConfig config> struct WgmmaMath : WgmmaOutputs<config> {
  using Ring = WgmmaRing<config>;
  static constexpr bool rowsAreColumns = false;
  static constexpr int panelSums = config.panelOutputs / 2;
  static_assert(!wgmmaUnpacks(config));

  WgmmaSlices<config> slices;
  int row;    ///< The lane's first one in the tile; the other is 8 further.
  int output; ///< Its first pair of outputs; every eight have another.

  LLAMAC_DEVICE explicit WgmmaMath(const Ring &ring)
      : slices(ring, Ring::mathWarp() / 4 * 64 * 128) {
    row = Ring::mathWarp() * 16 + laneIndex() / 4;
    output = laneIndex() % 4 * 2;
  }

  static constexpr int panelPairs = config.panelOutputs / 8;
  static constexpr int rowPairs = config.panels / config.weights * panelPairs;
  static constexpr int pairs = 2 * rowPairs;
  /// The loads of several splits leave registers for few pairs at a time.
  static constexpr int batch = (config.splits > 1 ? 8 : 16) / config.weights;

  static LLAMAC_DEVICE constexpr int rowStep(int i) { return i / rowPairs * 8; }
  static LLAMAC_DEVICE constexpr int outputStep(int i) {
    return i % rowPairs * 8;
  }

  template <class Norm, class Epilogue>
  LLAMAC_DEVICE void multiply(int rows, const ProductTile &tile,
                              const Epilogue &epilogue,
                              const ProductSplits &splits, const float *) {
    static_assert(!Norm::isThere);
    float sums[config.panels * panelSums];
    const uint64_t first = slices.ring.weightsDescriptor();
    slices.multiply(tile, [&](int, uint64_t x, bool adds) {
      const uint64_t w =
          first + slices.place.stage * (wgmmaStageBytes(config) / 16);
      wgmmaFence();
#pragma unroll
      for (int k = 0; k < productSlice / 16; ++k)
        wgmmaBf16(sums, Ring::atStep(x, k), Ring::atStep(w, k), adds || k > 0);
    });
    ProductResults<WgmmaMath, false>(*this, rows, tile, nullptr)
        .give(epilogue, splits, [&](int w, int i) {
          const float *sum =
              &sums[w * panelSums + i % rowPairs * 4 + i / rowPairs * 2];
          return F32x2{sum[0], sum[1]};
        });
  }
};

/// The products of a launch of launchShape(config) for `rows` rows.
template <WgmmaConfig config> class WgmmaProduct {
  using Ring = WgmmaRing<config>;
  static constexpr int parts = config.parts[2] ? 3 : config.parts[1] ? 2 : 1;
  static_assert(config.weights == 1 || config.panels == 2);
  static_assert(!config.batchRows || config.panelOutputs == 64);
  static_assert(isPackableDepth(config.format, config.depth));

  struct Weights {
    WgmmaWeight all[parts * config.weights];

    /// Selections are used since an index would take the array to local memory.
    LLAMAC_DEVICE WgmmaWeight of(int part, int w) const {
      WgmmaWeight found = all[0];
#pragma unroll
      for (int i = 1; i < parts * config.weights; ++i)
        if (part * config.weights + w == i)
          found = all[i];
      return found;
    }
  };
  using Loader = WgmmaLoader<config, Weights>;

public:
  /// Starts to copy weights: matrix `w` of part `p` is given[p * weights + w].
  LLAMAC_DEVICE
  WgmmaProduct(int rows, const WgmmaWeight (&given)[parts * config.weights])
      : rows(rows) {
#pragma unroll
    for (int i = 0; i < parts * config.weights; ++i)
      weights.all[i] = given[i];
    LLAMAC_SHARED_DYNAMIC(shared);
    LLAMAC_SHARED(full, uint64_t[config.stages]);
    LLAMAC_SHARED(empty, uint64_t[config.stages]);
    ring = {shared, full, empty};
    if constexpr (config.cluster > 1)
      rank = clusterRank();
    if (threadIdx.x == 0)
      ring.setUp();
    syncThreads();
    if constexpr (config.cluster > 1) {
      clusterArrive();
      clusterWait();
    }
    if (threadIdx.x == 0 && firstWork() < work())
      loader().begin(tileOf(firstWork()));
  }

  /// epilogue(row, column, acc...) gets every pair of outputs once; of several
  /// parts epilogueOfPart(epilogue, part) does. `input` is wgmmaInputMap's.
  /// With `norm` there is one tile of rows.
  template <class Epilogue, class Norm = NoNorm>
  LLAMAC_DEVICE void run(const TensorMap &input, const Epilogue &epilogue,
                         const ProductSplits &splits = {},
                         const Norm &norm = {}) const {
    if (warpIndex() < 4) {
      registersGive<wgmmaCopyRegisters>();
      if (threadIdx.x == 0) {
        Loader loads = loader();
        eachTile([&](const ProductTile &tile) { loads.load(input, tile); });
      }
    } else {
      registersTake<wgmmaMathRegisters(config)>();
      if constexpr (config.batchRows != 0)
        multiply(WgmmaBatchMath<config, Weights>(ring, weights), epilogue,
                 splits, norm);
      else
        multiply(WgmmaMath<config>(ring), epilogue, splits, norm);
    }
    // The other block may still be told that a stage is free.
    if constexpr (config.cluster > 1) {
      clusterArrive();
      clusterWait();
    }
  }

private:
  template <class Math, class Epilogue, class Norm>
  LLAMAC_DEVICE void multiply(Math math, const Epilogue &epilogue,
                              const ProductSplits &splits,
                              const Norm &norm) const {
    const float *const scales = scalesOf(norm, math, 0, rows);
    eachTile([&](const ProductTile &tile) {
      math.template multiply<Norm>(
          rows, tile, epilogueOfPart(epilogue, tile.part), splits, scales);
    });
  }

  /// Tiles along the rows, of a launch and of what one cluster after another
  /// has: those that share weights have neighbours.
  LLAMAC_DEVICE int rowTiles() const {
    return ceilDiv(rows, wgmmaTileRows(config));
  }
  LLAMAC_DEVICE bool sharesWeights() const {
    return wgmmaPanelBoxes(config) > 1 && rowTiles() % config.cluster == 0;
  }
  LLAMAC_DEVICE int rowSteps() const {
    return sharesWeights() ? rowTiles() / config.cluster : rowTiles();
  }

  LLAMAC_DEVICE Loader loader() const {
    return {ring, weights, rank, sharesWeights()};
  }

  /// Tiles are partitioned among clusters. Those along the rows go first, so
  /// that a panel of W is read by all at a time.
  LLAMAC_DEVICE int work() const {
    constexpr long tiles = wgmmaTiles(config);
    return rowSteps() * config.splits *
           static_cast<int>(sharesWeights() ? tiles
                                            : divideUp(tiles, config.cluster));
  }
  LLAMAC_DEVICE int firstWork() const { return blockIdx.x / config.cluster; }

  /// The block's tile of the cluster's work number `i`; behind the last tile,
  /// one past the outputs.
  LLAMAC_DEVICE ProductTile tileOf(int i) const {
    constexpr long outputs = wgmmaTileOutputs(config);
    auto ofCluster = [&](bool isShared, int step) {
      return isShared ? step * config.cluster + static_cast<int>(rank) : step;
    };
    const int split = i % config.splits, step = i / config.splits;
    const int rowTile = ofCluster(sharesWeights(), step % rowSteps());
    const int tile = ofCluster(!sharesWeights(), step / rowSteps());
    const int firstRow = rowTile * wgmmaTileRows(config);
    const int number = rowTile * static_cast<int>(wgmmaTiles(config)) + tile;
    if constexpr (parts > 1) {
      constexpr int second = wgmmaTiles(config, 0);
      constexpr int third = second + wgmmaTiles(config, 1);
      if (parts > 2 && tile >= third)
        return {firstRow, 2,    config.parts[2], (tile - third) * outputs,
                number,   split};
      if (tile >= second)
        return {firstRow, 1,    config.parts[1], (tile - second) * outputs,
                number,   split};
    }
    return {firstRow, 0, config.parts[0], tile * outputs, number, split};
  }

  template <class Visit> LLAMAC_DEVICE void eachTile(const Visit &visit) const {
    const int step = gridDim.x / config.cluster;
    for (int i = firstWork(); i < work(); i += step)
      visit(tileOf(i));
  }

  int rows;
  Weights weights;
  Ring ring;
  uint32_t rank = 0;
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH
