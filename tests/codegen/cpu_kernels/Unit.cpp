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
#include "llamac/cpu/qkv.h"
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

template <ExpKind kind> struct ExpAs {
  const float *x;
  float *out;

  void operator()(long, long column, int lanes) const {
    store16(out + column, expOfScore<kind>(load16(x + column, lanes)), lanes);
  }
};
} // namespace

// Operands: x, weight, out (also the residual).
#define ONE_WEIGHT(family, name, exact, format, n, k)                          \
  LLAMAC_KERNEL(family##_##name) {                                             \
    auto *out = operand<float>(*launch, 2);                                    \
    family<cases::matmul(PanelFormat::format, n, k, 1, exact)>(                \
        *launch, InputRows<k>{operand<float>(*launch, 0)},                     \
        {operand<void>(*launch, 1)}, AddRows<n>{out, out});                    \
  }

// Operands: x, norm, two weights, out.
#define TWO_WEIGHTS(family, name, exact, format, n, k)                         \
  LLAMAC_KERNEL(family##2_##name) {                                            \
    family<cases::matmul(PanelFormat::format, n, k, 2, exact)>(                \
        *launch,                                                               \
        NormRows<k>{operand<float>(*launch, 0), operand<float>(*launch, 1),    \
                    cases::eps},                                               \
        {operand<void>(*launch, 2), operand<void>(*launch, 3)},                \
        SiluMul<n>{operand<float>(*launch, 4)});                               \
  }

#define PRODUCTS(name, exact, format, n, k)                                    \
  ONE_WEIGHT(gemv, name, exact, format, n, k)                                  \
  ONE_WEIGHT(gemm, name, exact, format, n, k)                                  \
  TWO_WEIGHTS(gemv, name, exact, format, n, k)                                 \
  TWO_WEIGHTS(gemm, name, exact, format, n, k)                                 \
  LLAMAC_KERNEL(embed_##name) {                                                \
    embed<EmbedConfig{PanelFormat::format, k}>(                                \
        *launch, operand<int>(*launch, 0), operand<void>(*launch, 1),          \
        operand<float>(*launch, 2));                                           \
  }
#define MATMUL(format, n, k) PRODUCTS(format##_##n##_##k, false, format, n, k)
#define EXACT_MATMUL(format, n, k)                                             \
  PRODUCTS(exact_##format##_##n##_##k, true, format, n, k)
LLAMAC_BYTE_MATMUL_CASES(MATMUL)
#ifndef LLAMAC_AMX_MODEL // Its tiles are of bytes.
LLAMAC_FLOAT_MATMUL_CASES(MATMUL)
LLAMAC_EXACT_MATMUL_CASES(EXACT_MATMUL)
#endif

// Operands: x, weight, out.
#define OF_PART(family, parts, format, n, k)                                   \
  LLAMAC_KERNEL(family##OfPart##parts##_##format##_##n##_##k) {                \
    family<cases::leavesOfPart(PanelFormat::format, n, k, parts)>(             \
        *launch, InputRows<k / parts>{operand<float>(*launch, 0)},             \
        {operand<void>(*launch, 1)},                                           \
        StoreRows<n>{operand<float>(*launch, 2)});                             \
  }
#define LEAVES(format, n, k)                                                   \
  OF_PART(gemv, 1, format, n, k)                                               \
  OF_PART(gemv, 2, format, n, k)                                               \
  OF_PART(gemv, 8, format, n, k)                                               \
  OF_PART(gemm, 1, format, n, k)                                               \
  OF_PART(gemm, 2, format, n, k)                                               \
  OF_PART(gemm, 8, format, n, k)
LLAMAC_BYTE_LEAF_CASES(LEAVES)
#ifndef LLAMAC_AMX_MODEL
LLAMAC_FLOAT_LEAF_CASES(LEAVES)
#endif

// Operands: q, pool, page table, positions, sequences, out.
static inline AttentionArgs attentionArgs(const CpuLaunch &launch) {
  return {operand<float>(launch, 0), operand<void>(launch, 1),
          operand<int>(launch, 2),   operand<int>(launch, 3),
          operand<int>(launch, 4),   operand<float>(launch, 5)};
}

// Operands from `table` on: cos/sin cache, pool, page table, positions,
// sequences.
static inline AppendArgs appendArgs(const CpuLaunch &launch, int table) {
  return {operand<float>(launch, table), operand<void>(launch, table + 1),
          operand<int>(launch, table + 2), operand<int>(launch, table + 3),
          operand<int>(launch, table + 4)};
}

// Operands: x, three weights, those of the append, out.
static inline QkvArgs qkvArgs(const CpuLaunch &launch) {
  return {operand<void>(launch, 1), operand<void>(launch, 2),
          operand<void>(launch, 3), appendArgs(launch, 4),
          operand<float>(launch, 9)};
}

// One product of a qkv launch by itself. Operands: x, weight, out.
#define QKV_PART(part, h, g, s)                                                \
  LLAMAC_KERNEL(part##Product_##h##_##g##_##s) {                               \
    constexpr MatmulConfig config = cases::qkv(h, kv_##h##_##g##_##s).part;    \
    gemm<config>(*launch,                                                      \
                 InputRows<cases::qkvDepth>{operand<float>(*launch, 0)},       \
                 {operand<void>(*launch, 1)},                                  \
                 StoreRows<config.outputs>{operand<float>(*launch, 2)});       \
  }

#define ATTENTION(h, g, s, f, p)                                               \
  namespace {                                                                  \
  constexpr KvConfig kv_##h##_##g##_##s = cases::kv(g, s, KvFormat::f, p);     \
  constexpr AttentionConfig config_##h##_##g##_##s =                           \
      cases::attention(h, kv_##h##_##g##_##s);                                 \
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
  LLAMAC_KERNEL(ropeAppend_##h##_##g##_##s) {                                  \
    ropeAppend<RopeConfig{.kv = kv_##h##_##g##_##s, .heads = h}>(              \
        *launch,                                                               \
        RopeArgs{operand<float>(*launch, 0), operand<float>(*launch, 1),       \
                 operand<float>(*launch, 2), appendArgs(*launch, 3),           \
                 operand<float>(*launch, 8)});                                 \
  }                                                                            \
  LLAMAC_KERNEL(qkvGemm_##h##_##g##_##s) {                                     \
    qkvGemm<cases::qkv(h, kv_##h##_##g##_##s)>(                                \
        *launch, InputRows<cases::qkvDepth>{operand<float>(*launch, 0)},       \
        qkvArgs(*launch));                                                     \
  }                                                                            \
  LLAMAC_KERNEL(qkvGemv_##h##_##g##_##s) {                                     \
    qkvGemv<cases::qkv(h, kv_##h##_##g##_##s)>(                                \
        *launch, InputRows<cases::qkvDepth>{operand<float>(*launch, 0)},       \
        qkvArgs(*launch));                                                     \
  }                                                                            \
  QKV_PART(query, h, g, s)                                                     \
  QKV_PART(key, h, g, s)                                                       \
  QKV_PART(value, h, g, s)
LLAMAC_SOME_ATTENTION_CASES(ATTENTION)
#ifndef LLAMAC_AMX_MODEL
LLAMAC_OTHER_ATTENTION_CASES(ATTENTION)
#endif

#define TOP_ATTENTION(h, g, s, f, p)                                           \
  LLAMAC_KERNEL(attentionTop_##h##_##g##_##s) {                                \
    attentionSplit<cases::topAttention(h, cases::kv(g, s, KvFormat::f, p))>(   \
        *launch, attentionArgs(*launch));                                      \
  }
#ifndef LLAMAC_AMX_MODEL
LLAMAC_TOP_ATTENTION_CASES(TOP_ATTENTION)
#endif

#define EXP(kind)                                                              \
  LLAMAC_KERNEL(expAs_##kind) {                                                \
    pointwise<cases::expWidth>(                                                \
        *launch, ExpAs<ExpKind::kind>{operand<float>(*launch, 0),              \
                                      operand<float>(*launch, 1)});            \
  }
LLAMAC_EXP_CASES(EXP)

#define ROWWISE(w)                                                             \
  LLAMAC_KERNEL(rmsNorm_##w) {                                                 \
    rmsNorm<w>(*launch, operand<float>(*launch, 0),                            \
               operand<float>(*launch, 1), cases::eps,                         \
               StoreRows<w>{operand<float>(*launch, 2)});                      \
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

// Operands: tokens, packed table, out, rank.
LLAMAC_KERNEL(embedPart) {
  embed<EmbedConfig{PanelFormat::F32, 8, /*rows=*/4}>(
      *launch, operand<int>(*launch, 0), operand<void>(*launch, 1),
      operand<float>(*launch, 2), operand<int>(*launch, 3));
}

#define ROPE_TABLE(s)                                                          \
  LLAMAC_KERNEL(ropeTable_##s) {                                               \
    ropeTable<s>(*launch, operand<int>(*launch, 0),                            \
                 operand<double>(*launch, 1), operand<float>(*launch, 2));     \
  }
LLAMAC_ROPE_CASES(ROPE_TABLE)
