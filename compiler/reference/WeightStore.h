//===- WeightStore.h - Weights as fp32 rows ---------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_WEIGHTSTORE_H
#define LLAMAC_COMPILER_REFERENCE_WEIGHTSTORE_H

#include "compiler/reference/Parallel.h"
#include "compiler/reference/Value.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace llamac::reference {

/// Writes rows [firstRow, firstRow + numRows) of `weight`, rounded to its type,
/// as fp32 to `out`. Called from several threads at once.
using WeightReader = std::function<absl::Status(
    const Weight &weight, int64_t firstRow, int64_t numRows, float *out)>;

/// Keeps whole weights as fp32 as long as they fit a limit; rows of the others
/// are converted at every use.
class WeightStore {
public:
  WeightStore(WeightReader reader, uint64_t limitBytes)
      : reader(std::move(reader)), limitBytes(limitBytes) {}

  /// Keeps `weight` if it fits. Not for use from several threads.
  absl::Status keep(const Weight &weight, Parallel &parallel);

  /// Rows [firstRow, firstRow + numRows): where they are kept, or in `scratch`.
  absl::StatusOr<const float *> rows(const Weight &weight, int64_t firstRow,
                                     int64_t numRows,
                                     std::vector<float> &scratch) const;

private:
  WeightReader reader;
  uint64_t limitBytes;
  uint64_t keptBytes = 0;
  absl::flat_hash_map<std::string, std::vector<float>> kept;
};

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_WEIGHTSTORE_H
