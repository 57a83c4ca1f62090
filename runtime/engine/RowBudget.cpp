//===- RowBudget.cpp - Rows of prompts beside running answers -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/RowBudget.h"

#include <algorithm>

namespace llamac {

int64_t RowBudget::rows() const {
  if (plainSeconds == 0 || rowSeconds == 0)
    return firstRows;
  const double rows = (slowdown - 1) * plainSeconds / rowSeconds;
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(rows, 1e6)));
}

/// Moves `mean` towards `value`.
static void update(double &mean, double value) {
  mean = mean == 0 ? value : mean + 0.2 * (value - mean);
}

void RowBudget::record(int64_t decodeRows, int64_t promptRows, double seconds) {
  if (decodeRows == 0)
    return;
  if (promptRows == 0) {
    update(plainSeconds, seconds);
  } else if (plainSeconds > 0) {
    // A row costs something, however short a step was by chance.
    const double added = std::max(seconds - plainSeconds, 0.01 * seconds);
    update(rowSeconds, added / static_cast<double>(promptRows));
  }
}

} // namespace llamac
