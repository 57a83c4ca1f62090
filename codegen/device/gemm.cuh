//===- gemm.cuh - Matrix products for many rows -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y = x W^T on tensor cores, m16n8k16 in bf16 with f32 sums. A block makes one
// tile of outputs; it walks the depth in slices of 32 through a ring of stages
// in shared memory, filled by cp.async while earlier stages are multiplied:
//
//   x   f32, copied as it is; a lane rounds what it needs to bf16 in registers
//   W   bf16, copied as it is; the other formats go through registers, where
//       they are unpacked to bf16, one slice ahead. A share of a tile is of two
//       slices, which a thread keeps until the second
//
// RMSNorm is fused: while a lane rounds its share of x it sums the squares and
// multiplies by the gain, and the results are scaled at the end.
//
// Rows of x and W past the end, and depth past the end, are zero in shared
// memory, so ragged tiles need no other care than at the epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_GEMM_CUH
#define LLAMAC_CODEGEN_DEVICE_GEMM_CUH

#include "llamac/vmath.cuh"
#include "llamac/weights.cuh"

namespace llamac::cuda {

template <GemmConfig config, class Rows> struct GemmLoader {
  static constexpr int weights = config.weights;
  static constexpr int threads = gemmThreads(config);
  static constexpr bool copies = config.format == WeightFormat::BF16;
  static constexpr int slices = divideUp(config.depth, gemmSlice);
  using Weight = PackedWeight<config.format>;

  /// Reads of packed rows by one thread, where they are unpacked: 8 floats, or
  /// shares, which are of two slices.
  static constexpr int chunkSlices = Weight::scaled ? 2 : 1;
  static constexpr int rowChunks = 4;
  static constexpr int chunksOfSlice =
      weights * config.blockOutputs * rowChunks;
  static constexpr int chunksOfThread = divideUp(chunksOfSlice, threads);
  static_assert(chunkSlices * gemmSlice == rowChunks * Weight::span);

  Rows input;
  Weight matrix[weights];
  long firstRow, rows;
  long firstOutput, outputs;
  unsigned char *stages;
  WeightChunk<config.format> held[copies ? 1 : chunksOfThread];

  LLAMAC_DEVICE unsigned char *inputStage(int slice) const {
    return stages + slice % config.stages * gemmStageBytes(config);
  }
  LLAMAC_DEVICE unsigned char *weightStage(int slice) const {
    return inputStage(slice) + gemmInputBytes(config);
  }

  /// Starts the copies of a slice; they are one group, empty past the end.
  LLAMAC_DEVICE void start(int slice) {
    if (slice < slices) {
      copyInput(slice);
      if constexpr (copies)
        copyWeights(slice);
    }
    cpAsyncCommit();
  }

  LLAMAC_DEVICE void copyInput(int slice) {
    constexpr int chunks = config.blockRows * gemmSlice / 4;
#pragma unroll
    for (int i = threadIdx.x; i < chunks; i += threads) {
      const int row = i / (gemmSlice / 4), part = i % (gemmSlice / 4);
      const int k = slice * gemmSlice + part * 4;
      const bool inside = firstRow + row < rows && k < config.depth;
      cpAsync<16>(inputStage(slice) + row * gemmInputStride + part * 16,
                  input.row(inside ? firstRow + row : 0) + (inside ? k : 0),
                  inside ? 16 : 0);
    }
  }

  LLAMAC_DEVICE void copyWeights(int slice) {
    constexpr int chunks = config.blockOutputs * gemmSlice / 8;
#pragma unroll
    for (int w = 0; w < weights; ++w)
#pragma unroll
      for (int i = threadIdx.x; i < chunks; i += threads) {
        const int output = i / (gemmSlice / 8), part = i % (gemmSlice / 8);
        const int k = slice * gemmSlice + part * 8;
        const bool inside = firstOutput + output < outputs && k < config.depth;
        cpAsync<16>(weightStage(slice) +
                        (w * config.blockOutputs + output) * gemmWeightStride +
                        part * 16,
                    matrix[w].base +
                        (inside
                             ? (firstOutput + output) * config.depth * 2 + k * 2
                             : 0),
                    inside ? 16 : 0);
      }
  }

  struct Read {
    int row;     ///< Of the slice: weight * blockOutputs + output.
    int chunk;   ///< Of the row of the matrix.
    bool mine;   ///< Whether the thread has this one.
    bool inside; ///< Whether the matrix has it.
  };

  LLAMAC_DEVICE Read readOf(int slice, int n) const {
    const int i = n * threads + threadIdx.x;
    Read read;
    read.row = i / rowChunks;
    read.chunk = slice / chunkSlices * rowChunks + i % rowChunks;
    read.mine = chunksOfSlice % threads == 0 || i < chunksOfSlice;
    read.inside = read.mine &&
                  firstOutput + read.row % config.blockOutputs < outputs &&
                  read.chunk < chunksOfRow(config.format, config.depth);
    return read;
  }

  /// Reads what the slice is the first of.
  LLAMAC_DEVICE void fetch(int slice) {
    if constexpr (!copies) {
      if (slice % chunkSlices != 0)
        return;
#pragma unroll
      for (int n = 0; n < chunksOfThread; ++n) {
        const Read read = readOf(slice, n);
        held[n] = {};
        if (read.inside)
          held[n] = matrixOf(read.row).load(
              firstOutput + read.row % config.blockOutputs, read.chunk);
      }
    }
  }

  LLAMAC_DEVICE Weight matrixOf(int row) const {
    if constexpr (weights == 1)
      return matrix[0];
    else
      return row < config.blockOutputs ? matrix[0] : matrix[1];
  }

  /// Unpacks what fetch() read to bf16 in the slice's stage.
  LLAMAC_DEVICE void unpack(int slice) {
    if constexpr (chunkSlices == 2) {
      // Elements are places in registers, so they are constants.
      if (slice % 2 == 0)
        unpackBlock<0>(slice);
      else
        unpackBlock<1>(slice);
    } else if constexpr (!copies) {
      unpackBlock<0>(slice);
    }
  }

  /// Block `block` of each chunk.
  template <int block> LLAMAC_DEVICE void unpackBlock(int slice) {
#pragma unroll
    for (int n = 0; n < chunksOfThread; ++n) {
      const Read read = readOf(slice, n);
      if (!read.mine)
        continue;
      unsigned char *row = weightStage(slice) + read.row * gemmWeightStride;
#pragma unroll
      for (int four = 2 * block; four < 2 * block + 2; ++four) {
        const long column =
            columnOfFour(config.format, read.chunk, four) - slice * gemmSlice;
        vectorAt<Words2>(row + column * 2) =
            read.inside ? fourAsBf16(held[n], four) : Words2{};
      }
    }
  }
};

/// The part of a tile that one warp multiplies: `tilesM` x `tilesN` MMAs.
template <GemmConfig config, class Rows> struct GemmWarp {
  static constexpr int weights = config.weights;
  static constexpr int warpRows = config.blockRows / config.warpsAlongRows;
  static constexpr int warpOutputs =
      config.blockOutputs / config.warpsAlongOutputs;
  static constexpr int tilesM = warpRows / 16;
  static constexpr int tilesN = warpOutputs / 8;
  static_assert(warpRows % 16 == 0 && warpOutputs % 16 == 0);

  Rows input;
  int row = warpIndex() / config.warpsAlongOutputs * warpRows;
  int output = warpIndex() % config.warpsAlongOutputs * warpOutputs;
  int g = laneIndex() / 4;
  int t = laneIndex() % 4;
  float sums[weights][tilesM][tilesN][4] = {};
  float squares[tilesM][2] = {};

  /// Adds the products of one slice, which begins at depth `depth`.
  LLAMAC_DEVICE void multiply(const unsigned char *inputs,
                              const unsigned char *matrices, int depth) {
#pragma unroll
    for (int k = 0; k < gemmSlice; k += 16) {
      uint32_t a[tilesM][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = k + 8 * half + 2 * t;
        F32x2 gain = {1, 1};
        if constexpr (Rows::normalises)
          if (depth + at < config.depth)
            gain = load2(input.gain + depth + at);
#pragma unroll
        for (int m = 0; m < tilesM; ++m)
#pragma unroll
          for (int upper = 0; upper < 2; ++upper) {
            F32x2 x = load2(
                reinterpret_cast<const float *>(
                    inputs + (row + 16 * m + 8 * upper + g) * gemmInputStride) +
                at);
            if constexpr (Rows::normalises) {
              squares[m][upper] = dot(x, x, squares[m][upper]);
              x = x * gain;
            }
            a[m][2 * half + upper] = packBf16(x.x, x.y);
          }
      }
#pragma unroll
      for (int w = 0; w < weights; ++w)
#pragma unroll
        for (int n = 0; n < tilesN; n += 2) {
          // Matrices of ldmatrix: outputs 0-7 at k and k + 8, then 8-15.
          const int lane = laneIndex();
          uint32_t b[4];
          ldmatrix<4>(b, matrices +
                             (w * config.blockOutputs + output + 8 * n +
                              lane / 16 * 8 + lane % 8) *
                                 gemmWeightStride +
                             (k + lane / 8 % 2 * 8) * 2);
#pragma unroll
          for (int m = 0; m < tilesM; ++m) {
            mmaBf16(sums[w][m][n], a[m], {b[0], b[1]});
            mmaBf16(sums[w][m][n + 1], a[m], {b[2], b[3]});
          }
        }
    }
  }

  /// Hands every pair of results below `rows` and `outputs` to the epilogue.
  template <class Epilogue>
  LLAMAC_DEVICE void finish(long firstRow, long rows, long firstOutput,
                            long outputs, const Epilogue &epilogue) {
#pragma unroll
    for (int m = 0; m < tilesM; ++m)
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        float scale = 1;
        if constexpr (Rows::normalises) {
          float sum = squares[m][upper];
          sum += shuffleXor(sum, 1);
          sum += shuffleXor(sum, 2);
          scale = input.scale(sum);
        }
        const long at = firstRow + row + 16 * m + 8 * upper + g;
        if (at >= rows)
          continue;
#pragma unroll
        for (int n = 0; n < tilesN; ++n) {
          const long column = firstOutput + output + 8 * n + 2 * t;
          if (column >= outputs)
            continue;
          F32x2 acc[weights];
#pragma unroll
          for (int w = 0; w < weights; ++w)
            acc[w] =
                F32x2{sums[w][m][n][2 * upper], sums[w][m][n][2 * upper + 1]} *
                splat(scale);
          applyEpilogue(epilogue, at, column, acc);
        }
      }
  }
};

/// Block `block` of the product with packed matrices `weights` of `outputs`
/// rows: what gemm() does in one block, also part of a launch that has several
/// products (qkv.cuh).
template <GemmConfig config, class Rows, class Epilogue>
LLAMAC_DEVICE void productBlock(long block, long rows, const Rows &input,
                                const void *const (&weights)[config.weights],
                                long outputs, const Epilogue &epilogue) {
  static_assert(isPackableDepth(config.format, config.depth));
  LLAMAC_SHARED_DYNAMIC(stages);
  GemmLoader<config, Rows> loader{.input = input,
                                  .firstRow =
                                      blockIdx.y * long(config.blockRows),
                                  .rows = rows,
                                  .firstOutput = block * config.blockOutputs,
                                  .outputs = outputs,
                                  .stages = stages};
#pragma unroll
  for (int w = 0; w < config.weights; ++w)
    loader.matrix[w] = {static_cast<const uint8_t *>(weights[w]), outputs,
                        config.depth};

  GemmWarp<config, Rows> warp{input};
  loader.fetch(0);
#pragma unroll
  for (int slice = 0; slice < config.stages - 1; ++slice)
    loader.start(slice);
  loader.unpack(0);
  for (int slice = 0; slice < loader.slices; ++slice) {
    // This slice has come, for all threads; and all are through with the one
    // before, whose stage the next copies take.
    cpAsyncWait<config.stages - 2>();
    syncThreads();
    loader.start(slice + config.stages - 1);
    const bool more = slice + 1 < loader.slices;
    if (more)
      loader.fetch(slice + 1);
    warp.multiply(loader.inputStage(slice), loader.weightStage(slice),
                  slice * gemmSlice);
    if (more)
      loader.unpack(slice + 1);
  }
  warp.finish(loader.firstRow, rows, loader.firstOutput, outputs, epilogue);
}

/// The products of `rows` rows with packed weights: epilogue(row, column,
/// acc...) gets every pair of outputs once; that of the last of an odd number
/// is of no meaning. A launch of launchShape(config).
template <GemmConfig config, class Rows, class Epilogue>
LLAMAC_DEVICE void gemm(int rows, const Rows &input,
                        const void *const (&weights)[config.weights],
                        const Epilogue &epilogue) {
  productBlock<config>(blockIdx.x, rows, input, weights, config.outputs,
                       epilogue);
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_GEMM_CUH
