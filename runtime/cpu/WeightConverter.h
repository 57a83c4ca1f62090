//===- WeightConverter.h - Weights in the form that kernels read *- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CPU_WEIGHTCONVERTER_H
#define LLAMAC_RUNTIME_CPU_WEIGHTCONVERTER_H

#include "runtime/io/WeightMap.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace llamac {

/// Rows [firstRow, firstRow + numRows) of `source` as `type`, row-major, to
/// `out`: the stored bytes when the checkpoint holds that type, else converted
/// through fp32. `type` is the stored one or one that quantizeRow writes.
absl::Status convertRows(const WeightMap &weights, const WeightSource &source,
                         DataType type, int64_t firstRow, int64_t numRows,
                         uint8_t *out);

/// The whole of `source` as `type` in the panel layout of WeightPacking.h, made
/// by `threads` threads and given to `sink` in order, in pieces of whole
/// panels. Errors: those of the reader and of `sink`.
absl::Status
packWeight(const WeightMap &weights, const WeightSource &source, DataType type,
           int threads,
           absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> sink);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CPU_WEIGHTCONVERTER_H
