//===- WeightConverter.h - Weights in the form that kernels read *- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_WEIGHTS_WEIGHTCONVERTER_H
#define LLAMAC_RUNTIME_WEIGHTS_WEIGHTCONVERTER_H

#include "runtime/io/WeightMap.h"
#include "runtime/plan/plan_generated.h"

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

/// The whole of `source` as `type` in `layout`, packedBytes() of it, made by
/// `threads` threads and given to `sink` in order, in pieces of a few MiB for
/// each thread. Scales that a layout has behind all values are held until then.
/// Errors: those of the reader and of `sink`.
absl::Status
packWeight(const WeightMap &weights, const WeightSource &source, DataType type,
           schema::WeightLayout layout, int threads,
           absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> sink);

} // namespace llamac

#endif // LLAMAC_RUNTIME_WEIGHTS_WEIGHTCONVERTER_H
