//===- Unit.cpp - Every kernel skeleton, instantiated ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for an emitted unit: compiled freestanding, once for each
// instruction-set level.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include "llamac/cpu/attention.h"
#include "llamac/cpu/matmul.h"
#include "llamac/cpu/rope.h"
#include "llamac/cpu/rowwise.h"

using namespace llamac::cpu;
using llamac::CpuLaunch;
using llamac::PanelFormat;

#define LLAMAC_KERNEL(name)                                                    \
  extern "C" __attribute__((visibility("default"))) void name(                 \
      const CpuLaunch *launch)

namespace {
template <long stride> struct SiluMul {
  float *out;

  void operator()(long row, long column, F32x16 gate, F32x16 up,
                  int lanes) const {
    store16(out + row * stride + column, silu(gate) * up, lanes);
  }
};

template <long width> struct Silu {
  const float *x;
  float *out;

  void operator()(long row, long column, int lanes) const {
    long at = row * width + column;
    store16(out + at, silu(load16(x + at, lanes)), lanes);
  }
};

template <long width> struct Exp {
  const float *x;
  float *out;

  void operator()(long row, long column, int lanes) const {
    long at = row * width + column;
    store16(out + at, exp(load16(x + at, lanes)), lanes);
  }
};
} // namespace

// Operands: x, weight, out (also the residual).
#define ONE_WEIGHT(family, format, n, k)                                       \
  LLAMAC_KERNEL(family##_##format##_##n##_##k) {                               \
    auto *out = operand<float>(*launch, 2);                                    \
    family<cases::matmul(PanelFormat::format, n, k, 1)>(                       \
        *launch, InputRows<k>{operand<float>(*launch, 0)},                     \
        {operand<void>(*launch, 1)}, AddRows<n>{out, out});                    \
  }

// Operands: x, norm, two weights, out.
#define TWO_WEIGHTS(family, format, n, k)                                      \
  LLAMAC_KERNEL(family##2_##format##_##n##_##k) {                              \
    family<cases::matmul(PanelFormat::format, n, k, 2)>(                       \
        *launch,                                                               \
        NormRows<k>{operand<float>(*launch, 0), operand<float>(*launch, 1),    \
                    cases::eps},                                               \
        {operand<void>(*launch, 2), operand<void>(*launch, 3)},                \
        SiluMul<n>{operand<float>(*launch, 4)});                               \
  }

#define MATMUL(format, n, k)                                                   \
  ONE_WEIGHT(gemv, format, n, k)                                               \
  ONE_WEIGHT(gemm, format, n, k)                                               \
  TWO_WEIGHTS(gemv, format, n, k)                                              \
  TWO_WEIGHTS(gemm, format, n, k)                                              \
  LLAMAC_KERNEL(embed_##format##_##n##_##k) {                                  \
    embed<EmbedConfig{PanelFormat::format, k}>(                                \
        *launch, operand<int>(*launch, 0), operand<void>(*launch, 1),          \
        operand<float>(*launch, 2));                                           \
  }
LLAMAC_MATMUL_CASES(MATMUL)

// Operands: q, pool, page table, positions, sequences, out.
static inline AttentionArgs attentionArgs(const CpuLaunch &launch) {
  return {operand<float>(launch, 0), operand<void>(launch, 1),
          operand<int>(launch, 2),   operand<int>(launch, 3),
          operand<int>(launch, 4),   operand<float>(launch, 5)};
}

#define ATTENTION(h, g, s, f, p)                                               \
  namespace {                                                                  \
  constexpr KvConfig kv_##h##_##g##_##s = cases::kv(g, s, KvFormat::f, p);     \
  constexpr AttentionConfig config_##h##_##g##_##s =                           \
      cases::attention(h, kv_##h##_##g##_##s);                                 \
  constexpr MatmulConfig product_##h##_##g##_##s =                             \
      cases::matmul(PanelFormat::F32, 16, h *s, 1);                            \
  }                                                                            \
  LLAMAC_KERNEL(attention_##h##_##g##_##s) {                                   \
    attention<config_##h##_##g##_##s>(*launch, attentionArgs(*launch));        \
  }                                                                            \
  LLAMAC_KERNEL(attentionSplit_##h##_##g##_##s) {                              \
    attentionSplit<config_##h##_##g##_##s>(*launch, attentionArgs(*launch));   \
  }                                                                            \
  LLAMAC_KERNEL(attentionMerge_##h##_##g##_##s) {                              \
    attentionMerge<config_##h##_##g##_##s>(                                    \
        *launch, operand<float>(*launch, 0), operand<int>(*launch, 1),         \
        operand<float>(*launch, 2));                                           \
  }                                                                            \
  LLAMAC_KERNEL(mergedProduct_##h##_##g##_##s) {                               \
    gemv<product_##h##_##g##_##s>(                                             \
        *launch,                                                               \
        MergedRows<config_##h##_##g##_##s>{operand<float>(*launch, 0),         \
                                           operand<int>(*launch, 1)},          \
        {operand<void>(*launch, 2)},                                           \
        StoreRows<16>{operand<float>(*launch, 3)});                            \
  }                                                                            \
  LLAMAC_KERNEL(plainProduct_##h##_##g##_##s) {                                \
    gemv<product_##h##_##g##_##s>(                                             \
        *launch, InputRows<h * s>{operand<float>(*launch, 0)},                 \
        {operand<void>(*launch, 2)},                                           \
        StoreRows<16>{operand<float>(*launch, 3)});                            \
  }                                                                            \
  LLAMAC_KERNEL(ropeAppend_##h##_##g##_##s) {                                  \
    ropeAppend<RopeConfig{.kv = kv_##h##_##g##_##s,                            \
                          .heads = h,                                          \
                          .queryStride = (h + 2 * g) * s,                      \
                          .keyStride = (h + 2 * g) * s,                        \
                          .valueStride = (h + 2 * g) * s}>(                    \
        *launch,                                                               \
        RopeArgs{operand<float>(*launch, 0),                                   \
                 operand<float>(*launch, 0) + h * s,                           \
                 operand<float>(*launch, 0) + (h + g) * s,                     \
                 operand<float>(*launch, 1), operand<void>(*launch, 2),        \
                 operand<int>(*launch, 3), operand<int>(*launch, 4),           \
                 operand<int>(*launch, 5), operand<float>(*launch, 6)});       \
  }
LLAMAC_ATTENTION_CASES(ATTENTION)

#define ROWWISE(w)                                                             \
  LLAMAC_KERNEL(rmsNorm_##w) {                                                 \
    rmsNorm<w>(*launch, operand<float>(*launch, 0),                            \
               operand<float>(*launch, 1), cases::eps,                         \
               operand<float>(*launch, 2));                                    \
  }                                                                            \
  LLAMAC_KERNEL(gatherRows_##w) {                                              \
    gatherRows<w>(*launch, operand<float>(*launch, 0),                         \
                  operand<int>(*launch, 1), operand<float>(*launch, 2));       \
  }                                                                            \
  LLAMAC_KERNEL(silu_##w) {                                                    \
    pointwise<w>(*launch, Silu<w>{operand<float>(*launch, 0),                  \
                                  operand<float>(*launch, 1)});                \
  }                                                                            \
  LLAMAC_KERNEL(exp_##w) {                                                     \
    pointwise<w>(*launch, Exp<w>{operand<float>(*launch, 0),                   \
                                 operand<float>(*launch, 1)});                 \
  }
LLAMAC_ROWWISE_CASES(ROWWISE)

LLAMAC_KERNEL(gatherIndices) {
  gatherRows<1>(*launch, operand<int>(*launch, 0), operand<int>(*launch, 1),
                operand<int>(*launch, 2));
}

#define ROPE_TABLE(s)                                                          \
  LLAMAC_KERNEL(ropeTable_##s) {                                               \
    ropeTable<s>(*launch, operand<int>(*launch, 0),                            \
                 operand<double>(*launch, 1), operand<float>(*launch, 2));     \
  }
LLAMAC_ROPE_CASES(ROPE_TABLE)
