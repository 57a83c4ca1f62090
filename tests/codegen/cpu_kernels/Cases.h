//===- Cases.h - What the kernel tests instantiate --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels that Unit.cpp instantiates and the tests run, as lists.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_CPU_KERNELS_CASES_H
#define LLAMAC_TESTS_CODEGEN_CPU_KERNELS_CASES_H

#include "llamac/cpu/config.h"

/// LLAMAC_ALL_KERNEL_CASES adds cases of shapes whose mechanisms the others
/// have already: ragged and whole panels, one block and several, one row of a
/// page.
#ifdef LLAMAC_ALL_KERNEL_CASES
#define LLAMAC_MORE_FLOAT_MATMUL_CASES(CASE)                                   \
  CASE(F32, 1, 8)                                                              \
  CASE(F32, 15, 48)                                                            \
  CASE(F32, 100, 256)                                                          \
  CASE(F16, 1, 24)                                                             \
  CASE(F16, 100, 256)                                                          \
  CASE(BF16, 1, 8)                                                             \
  CASE(BF16, 33, 104)                                                          \
  CASE(MXFP8, 100, 576)                                                        \
  CASE(FP8, 100, 576)
#define LLAMAC_MORE_BYTE_MATMUL_CASES(CASE)                                    \
  CASE(Q8_0, 1, 32)                                                            \
  CASE(Q4_0, 15, 32)                                                           \
  CASE(Q4_0, 100, 576)                                                         \
  CASE(Q4_1, 1, 32)                                                            \
  CASE(Q4_1, 100, 576)                                                         \
  CASE(Q5_0, 33, 96)                                                           \
  CASE(Q5_1, 1, 32)                                                            \
  CASE(Q4_K, 33, 512)                                                          \
  CASE(Q5_K, 33, 512)                                                          \
  CASE(Q6_K, 17, 256)
#define LLAMAC_MORE_ATTENTION_CASES(CASE)                                      \
  CASE(1, 1, 8, F16, 64)                                                       \
  CASE(4, 4, 64, F16, 128)                                                     \
  CASE(4, 1, 128, F16, 64)                                                     \
  CASE(2, 2, 16, Q8_0, 32)                                                     \
  CASE(5, 1, 48, Q8_0, 64)                                                     \
  CASE(16, 2, 128, Q8_0, 128)
#else
#define LLAMAC_MORE_FLOAT_MATMUL_CASES(CASE)
#define LLAMAC_MORE_BYTE_MATMUL_CASES(CASE)
#define LLAMAC_MORE_ATTENTION_CASES(CASE)
#endif

/// CASE(format, outputs, depth): gemv_*, gemm_*, gemv2_* and gemm2_* (two
/// weights, RMSNorm before, silu(a) * b after), and embed_*. Of formats that
/// are multiplied as floats, and as bytes.
#define LLAMAC_FLOAT_MATMUL_CASES(CASE)                                        \
  CASE(F32, 33, 104)                                                           \
  CASE(F16, 17, 96)                                                            \
  CASE(BF16, 15, 48)                                                           \
  CASE(BF16, 100, 576)                                                         \
  CASE(MXFP8, 17, 96)                                                          \
  CASE(FP8, 33, 96)                                                            \
  LLAMAC_MORE_FLOAT_MATMUL_CASES(CASE)
#define LLAMAC_BYTE_MATMUL_CASES(CASE)                                         \
  CASE(Q8_0, 17, 96)                                                           \
  CASE(Q8_0, 100, 576)                                                         \
  CASE(Q4_0, 33, 96)                                                           \
  CASE(Q4_1, 33, 96)                                                           \
  CASE(Q5_0, 15, 32)                                                           \
  CASE(Q5_1, 33, 96)                                                           \
  CASE(Q4_K, 17, 256)                                                          \
  CASE(Q5_K, 17, 256)                                                          \
  CASE(Q6_K, 33, 512)                                                          \
  CASE(Q2_K, 33, 512)                                                          \
  CASE(Q3_K, 17, 256)                                                          \
  CASE(IQ4_NL, 33, 96)                                                         \
  CASE(IQ4_XS, 17, 512)                                                        \
  CASE(MXFP4, 33, 96)                                                          \
  LLAMAC_MORE_BYTE_MATMUL_CASES(CASE)
/// Cases with activations in f32: gemv_exact_* and so on.
#define LLAMAC_EXACT_MATMUL_CASES(CASE)                                        \
  CASE(Q8_0, 17, 96)                                                           \
  CASE(Q4_1, 100, 576)                                                         \
  CASE(Q6_K, 33, 512)                                                          \
  CASE(IQ4_XS, 17, 512)

/// CASE(format, n, k): gemvOfPart1_* and gemmOfPart1_*, sums over all k by
/// eight leaves, and those of one of 2 and of 8 parts of k by its leaves.
#define LLAMAC_FLOAT_LEAF_CASES(CASE) CASE(F32, 17, 64) CASE(BF16, 33, 832)
#define LLAMAC_BYTE_LEAF_CASES(CASE) CASE(Q8_0, 33, 768) CASE(Q6_K, 17, 2048)

/// CASE(heads, kvHeads, headSize, format, pageTokens): attention_*,
/// attentionSplit_*, attentionMerge_*, ropeAppend_*,
/// qkvGemm_* and qkvGemv_*, and the products of the latter: queryProduct_*,
/// keyProduct_* and valueProduct_*.
#define LLAMAC_SOME_ATTENTION_CASES(CASE)                                      \
  CASE(3, 1, 16, F16, 32)                                                      \
  CASE(9, 3, 64, F16, 64)
#define LLAMAC_OTHER_ATTENTION_CASES(CASE)                                     \
  CASE(8, 1, 24, F32, 64)                                                      \
  CASE(8, 2, 80, BF16, 64)                                                     \
  CASE(12, 4, 64, Q8_0, 64)                                                    \
  LLAMAC_MORE_ATTENTION_CASES(CASE)

/// CASE(heads, kvHeads, headSize, format, pageTokens), of those above:
/// attentionTop_*, an attentionSplit_* that keeps topK scores, and of Q8_0 has
/// a window.
#define LLAMAC_TOP_ATTENTION_CASES(CASE)                                       \
  CASE(9, 3, 64, F16, 64)                                                      \
  CASE(12, 4, 64, Q8_0, 64)

/// CASE(kind): expAs_*, of one row of expWidth.
#define LLAMAC_EXP_CASES(CASE) CASE(Poly3) CASE(Table256)

/// CASE(width): rmsNorm_*, gatherRows_*, silu_* and exp_*.
#define LLAMAC_ROWWISE_CASES(CASE)                                             \
  CASE(8) CASE(24) CASE(64) CASE(576) CASE(1000)

/// CASE(headSize): ropeTable_*.
#define LLAMAC_ROPE_CASES(CASE) CASE(8) CASE(64) CASE(128)

namespace llamac::cpu::cases {

constexpr float eps = 1e-5f;
constexpr long pagesPerSequence = 10;

constexpr MatmulConfig matmul(PanelFormat format, long outputs, long depth,
                              int weights, bool exact = false) {
  return {.format = format,
          .outputs = outputs,
          .depth = depth,
          .weights = weights,
          .exact = exact};
}

/// The config for one of `parts` parts of `depth`.
constexpr MatmulConfig leavesOfPart(PanelFormat format, long outputs,
                                    long depth, long parts) {
  MatmulConfig config = matmul(format, outputs, depth / parts, 1);
  config.leaves = 8 / parts;
  return config;
}

constexpr KvConfig kv(long kvHeads, long headSize, KvFormat format,
                      long pageTokens) {
  return {.kvHeads = kvHeads,
          .headSize = headSize,
          .pagesPerSequence = pagesPerSequence,
          .pageTokens = pageTokens,
          .format = format};
}

constexpr AttentionConfig attention(long heads, KvConfig kv) {
  return {.kv = kv, .heads = heads, .scale = 0.17f};
}

constexpr long topK = 16;
constexpr long expWidth = 100'000;

constexpr AttentionConfig topAttention(long heads, KvConfig kv) {
  AttentionConfig config = attention(heads, kv);
  config.topK = topK;
  config.window = kv.format == KvFormat::Q8_0 ? 150 : 0;
  return config;
}

/// Query and key share a format and so the prepared rows; the value does not.
constexpr long qkvDepth = 64;

constexpr QkvConfig qkv(long heads, KvConfig kv) {
  long width = kv.kvHeads * kv.headSize;
  return {.query = matmul(PanelFormat::Q8_0, heads * kv.headSize, qkvDepth, 1),
          .key = matmul(PanelFormat::Q8_0, width, qkvDepth, 1),
          .value = matmul(PanelFormat::F32, width, qkvDepth, 1),
          .kv = kv};
}

} // namespace llamac::cpu::cases

#endif // LLAMAC_TESTS_CODEGEN_CPU_KERNELS_CASES_H
