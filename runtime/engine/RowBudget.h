//===- RowBudget.h - Rows of prompts beside running answers -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_ROWBUDGET_H
#define LLAMAC_RUNTIME_ENGINE_ROWBUDGET_H

#include <cstdint>

namespace llamac {

/// How many rows of prompts a step may have beside answers that decode, so that
/// those wait for the step at most `slowdown` times as long as for one without
/// prompts. Learnt from the seconds of the steps before:
///
///   rows = (slowdown - 1) * seconds of a step without / seconds a row adds
class RowBudget {
public:
  /// Of at least one row, so that prompts go on.
  int64_t rows() const;

  /// Takes the seconds of a step of `decodeRows` rows that decode and
  /// `promptRows` others.
  void record(int64_t decodeRows, int64_t promptRows, double seconds);

private:
  /// Answers see some steps slower than the mean.
  static constexpr double slowdown = 1.6;
  static constexpr int64_t firstRows = 16; ///< While nothing is known.

  double plainSeconds = 0; ///< Of a step without prompts; 0: not known.
  double rowSeconds = 0;   ///< That a row of a prompt adds; 0: not known.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_ROWBUDGET_H
