//===- Rounding.cu - One result by two lines --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// RoundingTest.cpp says what each computes.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"

using namespace llamac;

/// out: [6][rows], fma, exp2 and 1 / sqrt of the inputs by two lines each.
extern "C" __global__ void __launch_bounds__(128)
    twice(float *out, const float *in, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows)
    return;
  const float x = in[i];
  out[i] = fma(x, x, 1.0f);
  out[rows + i] = fma(x, x, 1.0f);
  out[2 * rows + i] = exp2Approx(x);
  out[3 * rows + i] = exp2Approx(x);
  out[4 * rows + i] = rsqrtApprox(x);
  out[5 * rows + i] = rsqrtApprox(x);
}

/// out: [2][32][4], the sums of one warp's MMA by two lines; in: the fragments
/// [32][6] of both operands.
extern "C" __global__ void __launch_bounds__(32)
    products(float *out, const uint32_t *in, int rows) {
  const uint32_t *of = in + 6 * threadIdx.x;
  const uint32_t a[4] = {of[0], of[1], of[2], of[3]}, b[2] = {of[4], of[5]};
  float sums[2][4];
  for (auto &sum : sums)
    for (float &value : sum)
      value = 0.3f;
  mmaBf16(sums[0], a, b);
  mmaBf16(sums[1], a, b);
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 4; ++i)
      out[(n * 32 + threadIdx.x) * 4 + i] = sums[n][i];
}
