//===- Tables.cu - Kernels whose operands are a table -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TablesTest.cpp and SimDeviceTest.cpp run them.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"

using namespace llamac;

template <int count> struct Table {
  float *out;
  const float *in[count];
};

template <int count>
LLAMAC_DEVICE void addUp(const Table<count> &table, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows)
    return;
  float sum = 0;
  for (int number = 0; number < count; ++number)
    sum += table.in[number][i];
  table.out[i] = sum;
}
extern "C" __global__ void sumOfTable(LLAMAC_TABLE(Table<40>, table),
                                      int rows) {
  addUp(table, rows);
}
extern "C" __global__ void sumBeyondTable(LLAMAC_TABLE(Table<41>, table),
                                          int rows) {
  addUp(table, rows);
}

struct StepOperands {
  float *out;
  uint32_t *counters; ///< Two.
};

// A step that takes all of its blocks: each says how many there are, and how
// many steps it was asked for.
extern "C" __global__ void residentStep(LLAMAC_TABLE(StepOperands, operands),
                                        int steps) {
  uint32_t *counters = operands.counters;
  if (threadIdx.x != 0)
    return;
  atomicAddAcqRel(&counters[0], 1);
  while (loadAcquire(&counters[0]) < gridDim.x) {
  }
  operands.out[blockIdx.x] = 100 * steps + gridDim.x;
  if (atomicAddAcqRel(&counters[1], 1) == gridDim.x - 1) {
    storeRelease(&counters[0], 0);
    storeRelease(&counters[1], 0);
  }
}
