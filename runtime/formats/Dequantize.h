//===- Dequantize.h - Stored elements to fp32 and back -------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_FORMATS_DEQUANTIZE_H
#define LLAMAC_RUNTIME_FORMATS_DEQUANTIZE_H

#include "runtime/base/DataType.h"

#include <cstdint>

namespace llamac {

/// Writes `n` elements of `type` at `in` to `out` as fp32. `n` is a multiple
/// of the type's block; `in` holds dataTypeBytes(type, n) bytes and need not be
/// aligned. The block layouts and formulas are GGML's (ggml-quants.c), and
/// those of Fp8.h.
void dequantizeRow(DataType type, const uint8_t *in, int64_t n, float *out);

/// Whether quantizeRow writes `type`: f32, f16, bf16, q8_0, q4_0, mxfp8 and
/// fp8.
bool canQuantizeTo(DataType type);

/// Writes `n` fp32 values at `in` to `out` as `type`, for which canQuantizeTo
/// holds; the same sizes as above. Plain floats round to nearest even. A block
/// is rounded as GGML's reference does: q8_0 with d = amax / 127, q4_0 with
/// d = (value of the largest magnitude) / -8; mxfp8 and fp8 as Fp8.h says.
void quantizeRow(DataType type, const float *in, int64_t n, uint8_t *out);

} // namespace llamac

#endif // LLAMAC_RUNTIME_FORMATS_DEQUANTIZE_H
