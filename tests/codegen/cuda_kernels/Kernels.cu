//===- Kernels.cu - Every kernel of one model -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for emitted source: every family, for the model LLAMAC_MODEL, a
// list of ModelCase's members that the compiler is given. Every kernel takes
// its pointers and then the rows of the launch.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include "llamac/attention.cuh"
#include "llamac/attention_sm90a.cuh"
#include "llamac/chain.cuh"
#include "llamac/gemm.cuh"
#include "llamac/gemm_sm90a.cuh"
#include "llamac/gemv.cuh"
#include "llamac/qkv.cuh"
#include "llamac/rowwise.cuh"
#include "llamac/sampling.cuh"

using namespace llamac;
using namespace llamac::cuda;

constexpr ModelCase model{LLAMAC_MODEL};
constexpr long queryWidth = model.heads * model.headSize;

#define LLAMAC_KERNEL(name, shape)                                             \
  extern "C" __global__ void __launch_bounds__(shape.threads, shape.minBlocks) \
      name

template <long stride, class Result = float> struct SiluMul {
  Result *out;

  LLAMAC_DEVICE void operator()(long row, long column, F32x2 acc0,
                                F32x2 acc1) const {
    storePair<stride>(out, row, column, silu(acc0) * acc1);
  }
};

//===----------------------------------------------------------------------===//
// Products, for decode and prefill
//===----------------------------------------------------------------------===//

constexpr KvConfig cache = cases::kv(model);

#define LLAMAC_PRODUCTS(family, Family)                                        \
  constexpr auto family##Qkv = cases::qkv##Family(model);                      \
  LLAMAC_KERNEL(family##_qkv, launchShape(family##Qkv))                        \
  (const float *x, const void *wq, const void *wk, const void *wv,             \
   const float *norm, const float *table, void *pool, const int *positions,    \
   const int *sequences, const int *pageTable, float *out, int rows) {         \
    const AppendArgs to{table, pool, pageTable, positions, sequences};         \
    qkv<family##Qkv>(rows, NormRows<model.width>{x, norm, cases::eps},         \
                     {wq, wk, wv},                                             \
                     QkvEpilogue<cache, queryWidth>{QkvPart::Query, to, out}); \
  }                                                                            \
  constexpr auto family##Out = cases::family(model, model.width, queryWidth);  \
  LLAMAC_KERNEL(family##_out, launchShape(family##Out))                        \
  (const float *x, const void *w, float *residual, int rows) {                 \
    family<family##Out>(rows, InputRows<queryWidth>{x}, {w},                   \
                        AddRows<model.width>{residual, residual});             \
  }                                                                            \
  constexpr auto family##Up =                                                  \
      cases::family(model, model.hidden, model.width, 2);                      \
  LLAMAC_KERNEL(family##_up, launchShape(family##Up))                          \
  (const float *x, const float *norm, const void *w1, const void *w3,          \
   float *out, int rows) {                                                     \
    family<family##Up>(rows, NormRows<model.width>{x, norm, cases::eps},       \
                       {w1, w3}, SiluMul<model.hidden>{out});                  \
  }                                                                            \
  constexpr auto family##Down =                                                \
      cases::family(model, model.width, model.hidden);                         \
  LLAMAC_KERNEL(family##_down, launchShape(family##Down))                      \
  (const float *x, const void *w, float *residual, int rows) {                 \
    family<family##Down>(rows, InputRows<model.hidden>{x}, {w},                \
                         AddRows<model.width>{residual, residual});            \
  }                                                                            \
  constexpr auto family##Deep =                                                \
      cases::family(model, model.width, cases::deep);                          \
  LLAMAC_KERNEL(family##_deep, launchShape(family##Deep))                      \
  (const float *x, const float *norm, const void *w, float *out, int rows) {   \
    family<family##Deep>(rows, NormRows<cases::deep>{x, norm, cases::eps},     \
                         {w}, StoreRows<model.width>{out});                    \
  }                                                                            \
  constexpr auto family##Head =                                                \
      cases::family(model, model.vocabulary, model.width, 1);                  \
  LLAMAC_KERNEL(family##_head, launchShape(family##Head))                      \
  (const float *x, const float *norm, const void *w, float *out, int rows) {   \
    family<family##Head>(rows, NormRows<model.width>{x, norm, cases::eps},     \
                         {w}, StoreRows<model.vocabulary>{out});               \
  }

#if LLAMAC_HAS_SM90
/// The code that is emitted for a stream, in the form of the other products.
template <StreamConfig config, class Rows, class Epilogue, int count>
LLAMAC_DEVICE void stream(int rows, const Rows &input,
                          const void *const (&weights)[count],
                          const Epilogue &epilogue) {
  letNextLaunchBegin();
  WeightStream<config> stream(weights);
  waitForLaunches();
  stream.run(rows, input, epilogue);
}

template <StreamConfig config, class Rows, class Epilogue>
LLAMAC_DEVICE void qkv(int rows, const Rows &input,
                       const void *const (&weights)[3],
                       const Epilogue &epilogue) {
  stream<config>(rows, input, weights, epilogue);
}

LLAMAC_PRODUCTS(stream, Stream)
#endif
LLAMAC_PRODUCTS(gemv, Gemv)

/// The type of gemm's input.
using GemmRow = ChooseType<hasScales(model.format), LaneBFloat16, BFloat16>;

constexpr auto gemmQkv = cases::qkvGemm(model);
LLAMAC_KERNEL(gemm_qkv, launchShape(gemmQkv))
(const GemmRow *x, const void *wq, const void *wk, const void *wv,
 const float *table, void *pool, const int *positions, const int *sequences,
 const int *pageTable, float *out, int rows) {
  const AppendArgs to{table, pool, pageTable, positions, sequences};
  qkv<gemmQkv>(rows, x, {wq, wk, wv},
               QkvEpilogue<cache, queryWidth>{QkvPart::Query, to, out});
}

constexpr auto gemmOut = cases::gemm(model, model.width, queryWidth);
LLAMAC_KERNEL(gemm_out, launchShape(gemmOut))
(const GemmRow *x, const void *w, float *residual, int rows) {
  gemm<gemmOut>(rows, x, {w}, AddRows<model.width>{residual, residual});
}

constexpr auto gemmUp = cases::gemm(model, model.hidden, model.width, 2);
LLAMAC_KERNEL(gemm_up, launchShape(gemmUp))
(const GemmRow *x, const void *w1, const void *w3, BFloat16 *out, int rows) {
  gemm<gemmUp>(rows, x, {w1, w3}, SiluMul<model.hidden, BFloat16>{out});
}

constexpr auto gemmDown = cases::gemm(model, model.width, model.hidden);
LLAMAC_KERNEL(gemm_down, launchShape(gemmDown))
(const GemmRow *x, const void *w, float *residual, int rows) {
  gemm<gemmDown>(rows, x, {w}, AddRows<model.width>{residual, residual});
}

constexpr auto gemmHead = cases::gemm(model, model.vocabulary, model.width);
LLAMAC_KERNEL(gemm_head, launchShape(gemmHead))
(const GemmRow *x, const void *w, float *out, int rows) {
  gemm<gemmHead>(rows, x, {w}, StoreRows<model.vocabulary>{out});
}

#if LLAMAC_HAS_SM90A
/// The code that is emitted for a product by wgmma, of an input that is
/// normalised where it is made. Maps follow the operands.
template <WgmmaConfig config, class Epilogue, int count>
LLAMAC_DEVICE void wgmma(int rows, const TensorMap &input,
                         const WgmmaWeight (&weights)[count],
                         const Epilogue &epilogue) {
  letNextLaunchBegin();
  WgmmaProduct<config> product(rows, weights);
  waitForLaunches();
  product.run(input, epilogue);
}

constexpr auto wgmmaQkv = cases::qkvWgmma(model);
LLAMAC_KERNEL(wgmma_qkv, launchShape(wgmmaQkv))
(const BFloat16 *x, const void *wq, const void *wk, const void *wv,
 const float *table, void *pool, const int *positions, const int *sequences,
 const int *pageTable, float *out, LLAMAC_TENSOR_MAP(xMap),
 LLAMAC_TENSOR_MAP(qMap), LLAMAC_TENSOR_MAP(kMap), LLAMAC_TENSOR_MAP(vMap),
 int rows) {
  const AppendArgs to{table, pool, pageTable, positions, sequences};
  wgmma<wgmmaQkv>(
      rows, xMap, {{wq, &qMap}, {wk, &kMap}, {wv, &vMap}},
      QkvEpilogue<cache, wgmmaQkv.parts[0]>{QkvPart::Query, to, out});
}

constexpr auto wgmmaOut = cases::wgmma(model, model.width, queryWidth);
LLAMAC_KERNEL(wgmma_out, launchShape(wgmmaOut))
(const BFloat16 *x, const void *w, float *residual, LLAMAC_TENSOR_MAP(xMap),
 LLAMAC_TENSOR_MAP(map), int rows) {
  wgmma<wgmmaOut>(rows, xMap, {{w, &map}},
                  AddRows<model.width>{residual, residual});
}

constexpr auto wgmmaUp = cases::wgmma(model, model.hidden, model.width, 2);
LLAMAC_KERNEL(wgmma_up, launchShape(wgmmaUp))
(const BFloat16 *x, const void *w1, const void *w3, BFloat16 *out,
 LLAMAC_TENSOR_MAP(xMap), LLAMAC_TENSOR_MAP(map1), LLAMAC_TENSOR_MAP(map3),
 int rows) {
  wgmma<wgmmaUp>(rows, xMap, {{w1, &map1}, {w3, &map3}},
                 SiluMul<model.hidden, BFloat16>{out});
}

constexpr auto wgmmaDown = cases::wgmma(model, model.width, model.hidden);
LLAMAC_KERNEL(wgmma_down, launchShape(wgmmaDown))
(const BFloat16 *x, const void *w, float *residual, LLAMAC_TENSOR_MAP(xMap),
 LLAMAC_TENSOR_MAP(map), int rows) {
  wgmma<wgmmaDown>(rows, xMap, {{w, &map}},
                   AddRows<model.width>{residual, residual});
}

constexpr auto wgmmaDeep = cases::wgmma(model, model.width, cases::deep);
LLAMAC_KERNEL(wgmma_deep, launchShape(wgmmaDeep))
(const BFloat16 *x, const void *w, float *out, LLAMAC_TENSOR_MAP(xMap),
 LLAMAC_TENSOR_MAP(map), int rows) {
  wgmma<wgmmaDeep>(rows, xMap, {{w, &map}}, StoreRows<model.width>{out});
}

constexpr auto wgmmaHead = cases::wgmma(model, model.vocabulary, model.width);
LLAMAC_KERNEL(wgmma_head, launchShape(wgmmaHead))
(const BFloat16 *x, const void *w, float *out, LLAMAC_TENSOR_MAP(xMap),
 LLAMAC_TENSOR_MAP(map), int rows) {
  wgmma<wgmmaHead>(rows, xMap, {{w, &map}}, StoreRows<model.vocabulary>{out});
}
#endif

#ifndef LLAMAC_PRODUCTS_ONLY
//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

constexpr AttentionConfig attending = cases::attention(model);

LLAMAC_KERNEL(attention_whole, attentionShape(attending, 1))
(const float *q, const void *pool, const int *positions, const int *sequences,
 const int *pageTable, float *out, int rows) {
  attention<attending>(
      rows, AttentionArgs{q, pool, pageTable, positions, sequences, out});
}

#if LLAMAC_HAS_SM90A
/// Nothing for heads that wgmma does not take.
template <AttentionConfig config>
LLAMAC_DEVICE void attendByWgmma(int rows, const TensorMap &pool,
                                 const AttentionArgs &args) {
  if constexpr (takesWgmmaAttention(config))
    attentionWgmma<config>(rows, pool, args);
}

LLAMAC_KERNEL(attention_wgmma, wgmmaAttentionShape(attending, 1))
(const float *q, const void *pool, const int *positions, const int *sequences,
 const int *pageTable, float *out, LLAMAC_TENSOR_MAP(poolMap), int rows) {
  attendByWgmma<attending>(
      rows, poolMap,
      AttentionArgs{q, pool, pageTable, positions, sequences, out});
}
#endif

LLAMAC_KERNEL(attention_split, attentionSplitShape(attending, 1))
(const float *q, const void *pool, const int *positions, const int *sequences,
 const int *pageTable, float *partials, unsigned *counters, float *out,
 int rows) {
  attentionSplit<attending>(
      rows, AttentionArgs{q, pool, pageTable, positions, sequences, out},
      {partials, counters});
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

LLAMAC_KERNEL(embed_tokens, rowwiseShape())
(const int *tokens, const void *table, float *out, int rows) {
  embed<EmbedConfig{model.format, model.vocabulary, model.width}>(tokens, table,
                                                                  out);
}

LLAMAC_KERNEL(embed_with_cos_sin, rowwiseShape())
(const int *tokens, const void *table, const int *positions,
 const double *frequencies, float *out, float *cosSin, int rows) {
  embed<EmbedConfig{model.format, model.vocabulary, model.width}>(tokens, table,
                                                                  out);
  ropeTable<model.headSize>(positions, frequencies, cosSin);
}

LLAMAC_KERNEL(rms_norm, rmsNormShape(model.width, model.width))
(const float *x, const float *gain, float *out, int rows) {
  rmsNorm<model.width>(x, gain, cases::eps, StoreRows<model.width>{out});
}

LLAMAC_KERNEL(gather_rows, rowwiseShape())
(const float *x, const int *index, float *out, int rows) {
  gatherRows<model.width>(x, index, out);
}

LLAMAC_KERNEL(gather_numbers, rowwiseShape())
(const int *x, const int *index, int *out, int rows) {
  gatherRows<1>(x, index, out);
}

struct AddPairs {
  const float *a;
  const float *b;
  float *out;

  LLAMAC_DEVICE void operator()(long row, long column) const {
    const long at = row * model.width + column;
    store2(out + at, load2(a + at) + load2(b + at));
  }
};

LLAMAC_KERNEL(add, pointwiseShape(model.width))
(const float *a, const float *b, float *out, int rows) {
  pointwise<model.width>(AddPairs{a, b, out});
}

LLAMAC_KERNEL(rope_table, ropeTableShape())
(const int *positions, const double *frequencies, float *out, int rows) {
  ropeTable<model.headSize>(positions, frequencies, out);
}

LLAMAC_KERNEL(pick_token, sampleShape(model.vocabulary))
(const float *logits, const SamplingParams *params, Ranked *firsts,
 unsigned *counters, int *out, int rows) {
  sample<model.vocabulary>(logits, params, {firsts, counters}, out);
}
#endif
