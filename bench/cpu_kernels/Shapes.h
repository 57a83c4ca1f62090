//===- Shapes.h - The products that the benchmark times ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes of SmolLM2 135M and Llama 3.2 1B.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_BENCH_CPU_KERNELS_SHAPES_H
#define LLAMAC_BENCH_CPU_KERNELS_SHAPES_H

#include "llamac/cpu/config.h"

/// SHAPE(format, outputs, depth).
#define LLAMAC_BENCH_SHAPES(SHAPE, format)                                     \
  SHAPE(format, 192, 576)                                                      \
  SHAPE(format, 576, 576)                                                      \
  SHAPE(format, 1536, 576)                                                     \
  SHAPE(format, 576, 1536)                                                     \
  SHAPE(format, 49152, 576)                                                    \
  SHAPE(format, 512, 2048)                                                     \
  SHAPE(format, 2048, 2048)                                                    \
  SHAPE(format, 8192, 2048)                                                    \
  SHAPE(format, 2048, 8192)

/// One shape of each model, for the other formats; K-quants want 256.
#define LLAMAC_BENCH_FEW_SHAPES(SHAPE, format)                                 \
  SHAPE(format, 1536, 768)                                                     \
  SHAPE(format, 8192, 2048)

#define LLAMAC_BENCH_CASES(SHAPE)                                              \
  LLAMAC_BENCH_SHAPES(SHAPE, Q4_0)                                             \
  LLAMAC_BENCH_SHAPES(SHAPE, Q4_1)                                             \
  LLAMAC_BENCH_SHAPES(SHAPE, Q8_0)                                             \
  LLAMAC_BENCH_SHAPES(SHAPE, BF16)                                             \
  LLAMAC_BENCH_SHAPES(SHAPE, MXFP8)                                            \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, F16)                                          \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, F32)                                          \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, Q5_0)                                         \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, Q5_1)                                         \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, Q4_K)                                         \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, Q5_K)                                         \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, Q6_K)                                         \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, Q2_K)                                         \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, Q3_K)                                         \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, IQ4_NL)                                       \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, IQ4_XS)                                       \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, MXFP4)                                        \
  LLAMAC_BENCH_FEW_SHAPES(SHAPE, FP8)

/// ATTENTION(heads, kvHeads, headSize, format): SmolLM2 135M and Llama 3.2 1B.
#define LLAMAC_BENCH_ATTENTION(ATTENTION)                                      \
  ATTENTION(9, 3, 64, F16)                                                     \
  ATTENTION(32, 8, 64, F16)                                                    \
  ATTENTION(9, 3, 64, Q8_0)                                                    \
  ATTENTION(32, 8, 64, Q8_0)

namespace llamac::cpu::bench {

constexpr AttentionConfig attention(long heads, long kvHeads, long headSize,
                                    KvFormat format) {
  return {.kv = {.kvHeads = kvHeads,
                 .headSize = headSize,
                 .pagesPerSequence = 128,
                 .format = format},
          .heads = heads,
          .scale = 0.125f};
}

} // namespace llamac::cpu::bench

#endif // LLAMAC_BENCH_CPU_KERNELS_SHAPES_H
