//===- matmul.h - Products of activations and packed weights ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// gemv, for one row, and gemm, for any number: y[t] = W x[t], with a prologue
// that supplies the rows of x and an epilogue that takes the results.
//
// Both first bring the rows of x into the form the format is multiplied in, in
// the thread's scratch, then walk their panels: 8-bit blocks for the formats
// of int8.h unless the config is exact, and f32 for all others. Rows lie inside
// each step of the depth ([depth / step][rows][step]), so that the inner loops
// read them in order. gemv keeps its sums in registers and is unrolled over
// panels for ILP. gemm reads a weight once for all rows of a block. Both
// prefetch far enough for few rows to be bound by the weights' bytes alone.
//
// A sum by leaves is the same chain of each, whatever their number, so that the
// tree over them is the same for a product of all and for products of parts.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_MATMUL_H
#define LLAMAC_CPU_MATMUL_H

#include "llamac/cpu/config.h"
#include "llamac/cpu/int8.h"
#include "llamac/cpu/panels.h"
#include "llamac/cpu/rowwise.h"
#include "llamac/cpu/tile.h"

namespace llamac::cpu {

/// The packed weights of a product, one or two.
template <int count> struct PanelWeights {
  const void *panels[count];
};

template <MatmulConfig config> struct MatmulBuffers {
  float *row;
  U8 *prepared;
  float *sums;

  LLAMAC_INLINE MatmulBuffers(void *scratch, long maxRows) {
    auto *base = static_cast<U8 *>(scratch);
    MatmulScratch parts = matmulScratch(config, maxRows);
    row = reinterpret_cast<float *>(base);
    prepared = base + parts.prepared;
    sums = reinterpret_cast<float *>(base + parts.accumulators);
  }

  LLAMAC_INLINE Int8Rows<config.depth> int8Rows(long rows) const {
    return {prepared, rows};
  }

  /// Rows first .. first + rows - 1 of x, in the form they are multiplied in.
  template <class Rows>
  LLAMAC_INLINE void prepare(const Rows &input, long first, long rows) const {
    if constexpr (usesInt8(config))
      int8Rows(rows).clear();
    for (long t = 0; t < rows; ++t) {
      const float *x = input(first + t, row);
      if constexpr (usesInt8(config)) {
        int8Rows(rows).template add<config.format, config.leaves>(x, t);
      } else {
        auto *steps = reinterpret_cast<float *>(prepared);
        for (long s = 0; s < config.depth / 8; ++s)
          store(steps + (s * rows + t) * 8, load<F32x8>(x + 8 * s));
      }
    }
  }
};

template <MatmulConfig config> LLAMAC_INLINE int panelLanes(long panel) {
  long left = config.outputs - panel * panelRows;
  return left < panelRows ? int(left) : int(panelRows);
}

template <MatmulConfig config>
LLAMAC_INLINE const U8 *panelAt(const PanelWeights<config.weights> &weights,
                                int weight, long panel) {
  return static_cast<const U8 *>(weights.panels[weight]) +
         panel * panelBytes(config.format, config.depth);
}

/// Sums over columns begin .. end - 1 of `count` panels for `rows` rows, f32
/// formats; x is [depth / 8][rows][8], sums [count][rows][16]. The panels that
/// are read next begin `stride` bytes on.
template <MatmulConfig config, int count>
LLAMAC_INLINE void floatPanels(const U8 *const (&panels)[count], long stride,
                               const float *x, long rows, long begin, long end,
                               float *sums) {
  using Reader = PanelReader<config.format>;
  constexpr PanelBlock block = panelBlock(config.format);
  constexpr long size = panelBytes(config.format, config.depth);
  constexpr long groupBytes = block.bytes * Reader::group / block.depth;
  clear(sums, count * rows * panelRows);
  for (long first = begin; first < end; first += Reader::group) {
    GroupScales<> scales[count];
    for (int p = 0; p < count; ++p) {
      prefetchShare<groupBytes, 1>(
          aheadOf<size, manyRowsAhead>(
              panels[p], panels[p] + first / Reader::group * groupBytes,
              stride),
          0);
      scales[p] = Reader::scales(panels[p], first);
    }
    for (long k = first; k < first + Reader::group; k += tileDepth) {
      F32x16 w[count][tileDepth];
      for (int p = 0; p < count; ++p)
        for (int j = 0; j < tileDepth; ++j)
          w[p][j] = Reader::weight(panels[p], scales[p], k, j);
      accumulate(w, x + k / 8 * rows * 8 + k % 8, 8, sums, panelRows,
                 rows * panelRows, rows);
    }
  }
}

/// floatPanels() for one row.
template <MatmulConfig config, int count>
LLAMAC_INLINE void floatPanelsRow(const U8 *const (&panels)[count],
                                  const float *x, long begin, long end,
                                  float *sums) {
  using Reader = PanelReader<config.format>;
  constexpr PanelBlock block = panelBlock(config.format);
  constexpr long stepBytes = block.bytes * 8 / block.depth;
  constexpr long distance = prefetchDistance(config);
  F32x16 sum[count] = {};
  for (long first = begin; first < end; first += Reader::group) {
    GroupScales<> scales[count];
    for (int p = 0; p < count; ++p)
      scales[p] = Reader::scales(panels[p], first);
    // So that shifts in the bytes that weights share are constants.
#pragma clang loop unroll(full)
    for (long k = first; k < first + Reader::group; k += 8) {
      for (int p = 0; p < count; ++p)
        for (long i = 0; i < stepBytes; i += 64)
          prefetch(panels[p] + k / 8 * stepBytes + distance + i);
      for (int part = 0; part < 8; part += tileDepth)
        for (int j = 0; j < tileDepth; ++j)
          for (int p = 0; p < count; ++p)
            sum[p] = fma(Reader::weight(panels[p], scales[p], k + part, j),
                         splat(x[k + part + j]), sum[p]);
    }
  }
  for (int p = 0; p < count; ++p)
    store(sums + p * panelRows, sum[p]);
}

/// Sums of `count` panels for `rows` rows, or for one where `single`, over
/// columns begin .. end - 1.
template <MatmulConfig config, bool single, int count>
LLAMAC_INLINE void sumColumns(const U8 *const (&panels)[count], long stride,
                              const MatmulBuffers<config> &buffers, long rows,
                              long begin, long end, float *sums) {
  const auto *x = reinterpret_cast<const float *>(buffers.prepared);
  if constexpr (single && usesInt8(config))
    int8PanelsRow<config.format, prefetchDistance(config)>(
        panels, stride, buffers.int8Rows(1), begin / 32, end / 32, sums);
  else if constexpr (single)
    floatPanelsRow<config>(panels, x, begin, end, sums);
  else if constexpr (usesInt8(config))
    int8Panels<config.format, manyRowsAhead>(
        panels, stride, buffers.int8Rows(rows), begin / 32, end / 32, sums);
  else
    floatPanels<config>(panels, stride, x, rows, begin, end, sums);
}

/// Sums the products over all columns. Sums of finished subtrees of leaves
/// stand in a row, each behind the larger ones: a leaf begins behind as many as
/// its number has ones in binary, and then finishes as many as it has at its
/// end.
template <MatmulConfig config, bool single, int count>
LLAMAC_INLINE void sumPanels(const U8 *const (&panels)[count], long stride,
                             const MatmulBuffers<config> &buffers, long rows,
                             float *sums) {
  constexpr long size = config.depth / config.leaves;
  static_assert(size % 8 == 0 && size % panelBlock(config.format).depth == 0);
  if constexpr (config.leaves == 1) {
    sumColumns<config, single>(panels, stride, buffers, rows, 0, size, sums);
  } else {
    const long floats = count * rows * panelRows;
#pragma clang loop unroll(disable)
    for (long leaf = 0; leaf < config.leaves; ++leaf) {
      float *sum = sums + __builtin_popcountl(leaf) * floats;
      sumColumns<config, single>(panels, stride, buffers, rows, leaf * size,
                                 (leaf + 1) * size, sum);
      for (long rest = leaf; rest % 2 != 0; rest /= 2) {
        sum -= floats;
        for (long i = 0; i < floats; i += 16)
          store(sum + i,
                load<F32x16>(sum + i) + load<F32x16>(sum + floats + i));
      }
    }
  }
}

/// Computes panels panel .. panel + count - 1 of each weight and hands the
/// results of rows first .. first + rows - 1 to the epilogue.
template <MatmulConfig config, int count, bool single, class Epilogue>
LLAMAC_INLINE void matmulPanels(const MatmulBuffers<config> &buffers,
                                const PanelWeights<config.weights> &weights,
                                long panel, long first, long rows,
                                const Epilogue &epilogue) {
  constexpr int total = count * config.weights;
  const U8 *panels[total];
  for (int w = 0; w < config.weights; ++w)
    for (int p = 0; p < count; ++p)
      panels[w * count + p] = panelAt<config>(weights, w, panel + p);

  constexpr long stride = count * panelBytes(config.format, config.depth);
  float *sums = buffers.sums;
  if constexpr (single || total <= tilePanels) {
    sumPanels<config, single>(panels, stride, buffers, rows, sums);
  } else {
    for (int i = 0; i < total; ++i) {
      const U8 *const one[] = {panels[i]};
      sumPanels<config, single>(one, stride, buffers, rows,
                                sums + i * rows * panelRows);
    }
  }

  for (int p = 0; p < count; ++p) {
    long column = (panel + p) * panelRows;
    int lanes = panelLanes<config>(panel + p);
    for (long t = 0; t < rows; ++t) {
      auto y = load<F32x16>(sums + (p * rows + t) * panelRows);
      if constexpr (config.weights == 2)
        epilogue(first + t, column, y,
                 load<F32x16>(sums + ((count + p) * rows + t) * panelRows),
                 lanes);
      else
        epilogue(first + t, column, y, lanes);
    }
  }
}

/// Panels begin .. end - 1, `wide` at a time while there are so many.
template <MatmulConfig config, int wide, bool single, class Epilogue>
LLAMAC_INLINE void matmulRange(const MatmulBuffers<config> &buffers,
                               const PanelWeights<config.weights> &weights,
                               long begin, long end, long first, long rows,
                               const Epilogue &epilogue) {
  long panel = begin;
  for (; panel + wide <= end; panel += wide)
    matmulPanels<config, wide, single>(buffers, weights, panel, first, rows,
                                       epilogue);
  if constexpr (wide > 1)
    matmulRange<config, wide / 2, single>(buffers, weights, panel, end, first,
                                          rows, epilogue);
}

/// Panels of each weight that many rows are unrolled over.
template <MatmulConfig config>
constexpr int gemmWidth = config.weights == 2 ? 1 : tilePanels;

/// Panels of each weight that one row is unrolled over.
template <MatmulConfig config>
constexpr int gemvWidth =
    config.panels ? config.panels
                  : (usesInt8(config) ? dotPanels : 4) / config.weights;

/// One of the products of a launch, and what takes its results.
template <MatmulConfig matmul, class Epilogue> struct Product {
  static constexpr MatmulConfig config = matmul;

  PanelWeights<config.weights> weights;
  Epilogue epilogue;
};

/// Rows first .. first + count - 1 of a launch of several products of one
/// input, whose panels are numbered one product after the other: panels
/// begin .. end - 1. The scratch holds up to `maxRows` rows.
template <bool single, class Rows> struct ProductRows {
  void *scratch;
  long maxRows;
  const Rows &rows;
  long first;
  long count;

  /// `prepared` says whether the scratch already holds the rows in the form
  /// that `product` is multiplied in.
  template <class Product, class... Others>
  LLAMAC_INLINE void run(long begin, long end, bool prepared,
                         const Product &product,
                         const Others &...others) const {
    constexpr MatmulConfig config = Product::config;
    constexpr long panels = panelCount(config.outputs);
    constexpr int wide = single ? gemvWidth<config> : gemmWidth<config>;
    if (begin < panels) {
      MatmulBuffers<config> buffers(scratch, maxRows);
      if (!prepared)
        buffers.prepare(rows, first, count);
      prepared = true;
      matmulRange<config, wide, single>(buffers, product.weights, begin,
                                        end < panels ? end : panels, first,
                                        count, product.epilogue);
    }
    if constexpr (sizeof...(Others) > 0)
      if (end > panels)
        next<config.format>(begin < panels ? 0 : begin - panels, end - panels,
                            prepared, others...);
  }

private:
  /// run() of the products that follow one of `format`.
  template <PanelFormat format, class Product, class... Others>
  LLAMAC_INLINE void next(long begin, long end, bool prepared,
                          const Product &product,
                          const Others &...others) const {
    run(begin, end, prepared && Product::config.format == format, product,
        others...);
  }
};

/// Whether the scratch holds the rows of `block` in the form of `products` when
/// a call begins, from the last one for the launch: if there is one form only.
template <class Product, class... Others>
LLAMAC_INLINE bool isPrepared(const CpuLaunch &launch, long block,
                              const Product &, const Others &...) {
  constexpr bool sameForm =
      (... && (Product::config.format == Others::config.format));
  return sameForm && launch.lastBlock == block;
}

/// Any number of rows, with the geometry `shape`.
template <LaunchShape shape, class Rows, class... Products>
LLAMAC_INLINE void gemmProducts(const CpuLaunch &launch, const Rows &rows,
                                const Products &...products) {
  for (long item = launch.begin; item < launch.end;) {
    long block = item / shape.items;
    long last = (block + 1) * shape.items;
    last = last < launch.end ? last : launch.end;
    long first = block * shape.rowBlock;
    long count = launch.rows - first;
    count = count < shape.rowBlock ? count : shape.rowBlock;
    ProductRows<false, Rows>{launch.scratch, shape.rowBlock, rows, first, count}
        .run(item - block * shape.items, last - block * shape.items,
             item == launch.begin && isPrepared(launch, block, products...),
             products...);
    item = last;
  }
}

/// One row.
template <class Rows, class... Products>
LLAMAC_INLINE void gemvProducts(const CpuLaunch &launch, const Rows &rows,
                                const Products &...products) {
  ProductRows<true, Rows>{launch.scratch, 1, rows, 0, 1}.run(
      launch.begin, launch.end, isPrepared(launch, /*block=*/0, products...),
      products...);
}

template <MatmulConfig config, class Rows, class Epilogue>
LLAMAC_INLINE void gemm(const CpuLaunch &launch, const Rows &rows,
                        const PanelWeights<config.weights> &weights,
                        const Epilogue &epilogue) {
  gemmProducts<gemmShape(config)>(launch, rows,
                                  Product<config, Epilogue>{weights, epilogue});
}

template <MatmulConfig config, class Rows, class Epilogue>
LLAMAC_INLINE void gemv(const CpuLaunch &launch, const Rows &rows,
                        const PanelWeights<config.weights> &weights,
                        const Epilogue &epilogue) {
  gemvProducts(launch, rows, Product<config, Epilogue>{weights, epilogue});
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_MATMUL_H
