//===- Comparison.h - Values against the reference's ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_COMPARISON_H
#define LLAMAC_COMPILER_REFERENCE_COMPARISON_H

#include "absl/types/span.h"

#include <cstddef>
#include <cstdint>

namespace llamac {

/// How far values are from those expected.
struct Difference {
  double nmse = 0;    ///< sum (got - expected)^2 / sum expected^2.
  double maximum = 0; ///< Largest |got - expected| over the largest |expected|.
  size_t worst = 0;   ///< The element of the largest difference.
};

/// Infinite for values that are not finite or not as many as expected.
Difference compareValues(absl::Span<const float> got,
                         absl::Span<const float> expected);

/// compareValues, and a wrong tile among many, which it averages away.
struct TiledDifference : Difference {
  /// The largest mean squared error of 16 elements that follow each other in a
  /// row, over their own mean square or that of all values, if that is larger.
  double tile = 0;
};

/// Compares [rows, width] values. `residual`, empty or as many, is what the
/// launch added to: errors are measured against the rest, which may be much
/// smaller. A difference in the last bit of an expected float does not count,
/// nor does one within `bounds`, empty or as many, which an approximation has.
TiledDifference compareTiles(absl::Span<const float> got,
                             absl::Span<const float> expected, int64_t width,
                             absl::Span<const float> residual = {},
                             absl::Span<const float> bounds = {});

/// The effects of an approximation that were seen.
struct ApproximationUse {
  double error = 0;   ///< The largest, as a share of what is allowed.
  double dropped = 0; ///< The largest share of a softmax outside top_k.
};

} // namespace llamac

#endif // LLAMAC_COMPILER_REFERENCE_COMPARISON_H
