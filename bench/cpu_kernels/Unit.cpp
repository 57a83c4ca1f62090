//===- Unit.cpp - The kernels that the benchmark times --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"

#include "llamac/cpu/attention.h"
#include "llamac/cpu/matmul.h"

using namespace llamac::cpu;
using llamac::CpuLaunch;
using llamac::PanelFormat;

#define LLAMAC_KERNEL(name)                                                    \
  extern "C" __attribute__((visibility("default"))) void name(                 \
      const CpuLaunch *launch)

#define SHAPE(f, n, k)                                                         \
  LLAMAC_KERNEL(gemv_##f##_##n##_##k) {                                        \
    gemv<MatmulConfig{.format = PanelFormat::f, .outputs = n, .depth = k}>(    \
        *launch, InputRows<k>{operand<float>(*launch, 0)},                     \
        {operand<void>(*launch, 1)},                                           \
        StoreRows<n>{operand<float>(*launch, 2)});                             \
  }                                                                            \
  LLAMAC_KERNEL(gemm_##f##_##n##_##k) {                                        \
    gemm<MatmulConfig{.format = PanelFormat::f, .outputs = n, .depth = k}>(    \
        *launch, InputRows<k>{operand<float>(*launch, 0)},                     \
        {operand<void>(*launch, 1)},                                           \
        StoreRows<n>{operand<float>(*launch, 2)});                             \
  }
LLAMAC_BENCH_CASES(SHAPE)

static inline AttentionArgs attentionArgs(const CpuLaunch &launch) {
  return {operand<float>(launch, 0), operand<void>(launch, 1),
          operand<int>(launch, 2),   operand<int>(launch, 3),
          operand<int>(launch, 4),   operand<float>(launch, 5)};
}

#define ATTENTION(h, g, s, f)                                                  \
  LLAMAC_KERNEL(attention_##h##_##g##_##s##_##f) {                             \
    attention<bench::attention(h, g, s, KvFormat::f)>(*launch,                 \
                                                      attentionArgs(*launch)); \
  }                                                                            \
  LLAMAC_KERNEL(attentionSplit_##h##_##g##_##s##_##f) {                        \
    attentionSplit<bench::attention(h, g, s, KvFormat::f)>(                    \
        *launch, attentionArgs(*launch));                                      \
  }
LLAMAC_BENCH_ATTENTION(ATTENTION)
