//===- rowwise.h - Kernels and prologues that take whole rows ---*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// RMSNorm, embedding look-up, pointwise functors and row gathering, and the
// prologues that supply the rows of a product (matmul.h).
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_ROWWISE_H
#define LLAMAC_CPU_ROWWISE_H

#include "llamac/cpu/config.h"
#include "llamac/cpu/panels.h"
#include "llamac/cpu/simd.h"
#include "llamac/cpu/vmath.h"

namespace llamac::cpu {

/// Calls body(column, lanes) for the 16-wide groups of a row of `width`.
template <long width, class Body>
LLAMAC_INLINE void forEachGroup(const Body &body) {
  for (long column = 0; column < width / 16 * 16; column += 16)
    body(column, 16);
  if constexpr (width % 16 != 0)
    body(width / 16 * 16, int(width % 16));
}

/// Calls body(row) for the rows of a launch's work items, `rowBlock` rows each.
template <class Body>
LLAMAC_INLINE void forEachRow(const CpuLaunch &launch, long rowBlock,
                              const Body &body) {
  long end = launch.end * rowBlock;
  end = end < launch.rows ? end : launch.rows;
  for (long row = launch.begin * rowBlock; row < end; ++row)
    body(row);
}

/// rsqrt(mean(x^2) + eps).
template <long width>
LLAMAC_INLINE float normFactor(const float *x, float eps) {
  // Four sums, for ILP.
  F32x16 squares[4] = {};
  for (long column = 0; column < width / 64 * 64; column += 64)
    for (int i = 0; i < 4; ++i) {
      auto v = load<F32x16>(x + column + 16 * i);
      squares[i] = fma(v, v, squares[i]);
    }
  forEachGroup<width % 64>([&](long column, int lanes) {
    F32x16 v = load16(x + width / 64 * 64 + column, lanes);
    squares[0] = fma(v, v, squares[0]);
  });
  float sum = sumLanes((squares[0] + squares[1]) + (squares[2] + squares[3]));
  return 1.0f / __builtin_elementwise_sqrt(sum / float(width) + eps);
}

/// Calls epilogue(row, column, y, lanes) for y = x * rsqrt(mean(x^2) + eps) *
/// weight, where x is columns `first` to `first` + width of row `row`.
template <long width, class Epilogue>
LLAMAC_INLINE void normalize(const float *x, const float *weight, float eps,
                             long row, long first, const Epilogue &epilogue) {
  float factor = normFactor<width>(x, eps);
  forEachGroup<width>([&](long column, int lanes) {
    F32x16 v = load16(x + column, lanes) * factor;
    epilogue(row, first + column, v * load16(weight + column, lanes), lanes);
  });
}

// Prologues and epilogues

template <long width, long stride = width> struct InputRows {
  const float *input;

  LLAMAC_INLINE const float *operator()(long row, float *) const {
    return input + row * stride;
  }
};

/// out = y.
template <long stride> struct StoreRows {
  float *out;

  LLAMAC_INLINE void operator()(long row, long column, F32x16 y,
                                int lanes) const {
    store16(out + row * stride + column, y, lanes);
  }
};

template <long width, long stride = width> struct NormRows {
  const float *input;
  const float *weight;
  float eps;

  LLAMAC_INLINE const float *operator()(long row, float *scratch) const {
    normalize<width>(input + row * stride, weight, eps, 0, 0,
                     StoreRows<width>{scratch});
    return scratch;
  }
};

/// out = residual + y; both may be the same buffer.
template <long stride> struct AddRows {
  const float *residual;
  float *out;

  LLAMAC_INLINE void operator()(long row, long column, F32x16 y,
                                int lanes) const {
    long at = row * stride + column;
    store16(out + at, load16(residual + at, lanes) + y, lanes);
  }
};

// Kernels

/// Normalises each part of `size` of a row of `width`.
template <long width, long size = width, class Epilogue>
LLAMAC_INLINE void rmsNorm(const CpuLaunch &launch, const float *x,
                           const float *weight, float eps,
                           const Epilogue &epilogue) {
  forEachRow(launch, rowwiseShape().rowBlock, [&](long row) {
    for (long at = 0; at < width; at += size)
      normalize<size>(x + row * width + at, weight, eps, row, at, epilogue);
  });
}

/// functor(row, column, lanes) loads and stores.
template <long width, class Functor>
LLAMAC_INLINE void pointwise(const CpuLaunch &launch, const Functor &functor) {
  forEachRow(launch, rowwiseShape().rowBlock, [&](long row) {
    forEachGroup<width>(
        [&](long column, int lanes) { functor(row, column, lanes); });
  });
}

/// out[row] = x[index[row]].
template <long width>
LLAMAC_INLINE void gatherRows(const CpuLaunch &launch, const float *x,
                              const int *index, float *out) {
  forEachRow(launch, rowwiseShape().rowBlock, [&](long row) {
    const float *from = x + index[row] * width;
    forEachGroup<width>([&](long column, int lanes) {
      store16(out + row * width + column, load16(from + column, lanes), lanes);
    });
  });
}

/// Gathers positions or sequences.
template <long width>
LLAMAC_INLINE void gatherRows(const CpuLaunch &launch, const int *x,
                              const int *index, int *out) {
  static_assert(width == 1);
  forEachRow(launch, rowwiseShape().rowBlock,
             [&](long row) { out[row] = x[index[row]]; });
}

/// out[row] = row tokens[row] of a packed table. A row is one lane of its
/// panel: all 16 are widened and one is kept, which reads the same cache lines
/// as picking its bytes would. Of a rank's part of the table, which begins at
/// token *rank * config.rows, other tokens give -0, which changes no sum's
/// bits.
template <EmbedConfig config>
LLAMAC_INLINE void embed(const CpuLaunch &launch, const int *tokens,
                         const void *table, float *out,
                         [[maybe_unused]] const int *rank = nullptr) {
  using Reader = PanelReader<config.format>;
  forEachRow(launch, rowwiseShape().rowBlock, [&](long row) {
    long token = tokens[row];
    if constexpr (config.rows != 0) {
      token -= *rank * config.rows;
      if (token < 0 || token >= config.rows) {
        forEachGroup<config.width>([&](long column, int lanes) {
          store16(out + row * config.width + column, splat(-0.0f), lanes);
        });
        return;
      }
    }
    const U8 *panel =
        static_cast<const U8 *>(table) +
        token / panelRows * panelBytes(config.format, config.width);
    long lane = token % panelRows;
    for (long first = 0; first < config.width; first += Reader::group) {
      GroupScales<> scales = Reader::scales(panel, first);
#pragma clang loop unroll(disable)
      for (long k = first; k < first + Reader::group; k += tileDepth)
        for (int j = 0; j < tileDepth; ++j) {
          float lanes[16];
          store(lanes, Reader::weight(panel, scales, k, j));
          out[row * config.width + k + j] = lanes[lane];
        }
    }
  });
}

/// load(first) + load(first + 1) + ... of `count` inputs by a binary tree.
template <int count, class Load>
LLAMAC_INLINE F32x16 treeSum(int first, const Load &load) {
  if constexpr (count == 1)
    return load(first);
  else
    return treeSum<count / 2>(first, load) +
           treeSum<count / 2>(first + count / 2, load);
}

/// Calls epilogue(row, column, y, lanes) for y = inputs[0] + inputs[1] + ...,
/// in this order, or by a tree; inputs are those of `ranks` ranks, [rows,
/// width] each.
template <int ranks, long width, bool tree = false, class Epilogue>
LLAMAC_INLINE void allReduce(const CpuLaunch &launch,
                             const float *const *inputs,
                             const Epilogue &epilogue) {
  forEachRow(launch, rowwiseShape().rowBlock, [&](long row) {
    forEachGroup<width>([&](long column, int lanes) {
      auto load = [&](int rank) {
        return load16(inputs[rank] + row * width + column, lanes);
      };
      F32x16 sum;
      if constexpr (tree) {
        sum = treeSum<ranks>(0, load);
      } else {
        sum = load(0);
        for (int rank = 1; rank < ranks; ++rank)
          sum += load(rank);
      }
      epilogue(row, column, sum, lanes);
    });
  });
}

/// out[row, rank * width + column] = inputs[rank][row, column].
template <int ranks, long width>
LLAMAC_INLINE void allGather(const CpuLaunch &launch,
                             const float *const *inputs, float *out) {
  constexpr long rowBlock = allGatherShape(ranks).rowBlock;
  for (long item = launch.begin; item < launch.end; ++item) {
    const long rank = item % ranks, first = item / ranks * rowBlock;
    const long last = first + rowBlock;
    for (long row = first; row < last && row < launch.rows; ++row)
      forEachGroup<width>([&](long column, int lanes) {
        store16(out + (row * ranks + rank) * width + column,
                load16(inputs[rank] + row * width + column, lanes), lanes);
      });
  }
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_ROWWISE_H
