//===- Sampling.cu - Sampling rows of several widths ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "llamac/sampling.cuh"

using namespace llamac::cuda;

#define LLAMAC_SAMPLE(width)                                                   \
  extern "C" __global__ void __launch_bounds__(sampleThreads)                  \
      sample##width(const float *logits, const SamplingParams *params,         \
                    Ranked *firsts, unsigned *counters, int *out, int rows) {  \
    sample<width>(logits, params, {firsts, counters}, out);                    \
  }

/// out[i] = exponentialOf(in[i]).
extern "C" __global__ void __launch_bounds__(128)
    exponentials(float *out, const unsigned *in, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows)
    out[i] = exponentialOf(in[i]);
}

LLAMAC_SAMPLE(1)
LLAMAC_SAMPLE(7)
LLAMAC_SAMPLE(1000)
LLAMAC_SAMPLE(4099)
LLAMAC_SAMPLE(49152)
