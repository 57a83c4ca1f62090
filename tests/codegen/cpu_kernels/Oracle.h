//===- Oracle.h - Weights in double precision -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stored weights, made at random, and their values by GGUF's definition of
// each format, one element at a time in double precision.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_CPU_KERNELS_ORACLE_H
#define LLAMAC_TESTS_CODEGEN_CPU_KERNELS_ORACLE_H

#include "runtime/base/DataType.h"

#include <cstdint>
#include <random>
#include <vector>

namespace llamac::oracle {

double halfToDouble(uint16_t half);

/// Rows x cols stored weights with finite scales of both signs.
std::vector<uint8_t> randomWeights(DataType type, int64_t rows, int64_t cols,
                                   std::mt19937 &random);

/// The values of one stored row.
std::vector<double> dequantizeRow(DataType type, int64_t cols,
                                  const uint8_t *stored);

/// Normal values times `scale`.
std::vector<float> randomFloats(size_t count, float scale,
                                std::mt19937 &random);

} // namespace llamac::oracle

#endif // LLAMAC_TESTS_CODEGEN_CPU_KERNELS_ORACLE_H
