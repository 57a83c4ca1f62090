//===- LaunchCheck.h - Every launch against the reference -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan runs on its device launch by launch. Before each launch its operands
// are given the values that the reference has for those of the same kernel op,
// and afterwards its results are compared with the reference's. So no error is
// carried on: a launch that is outside its tolerance is wrong itself, and what
// may differ is no more than the rounding of one kernel.
//
// The ops are those that lower-to-plan makes launches of, one each, in order;
// that the plan at hand agrees with them is verified by name, family, location
// and number of operands. Results in a form that only the target knows are
// compared after the launch that reads them. The cache is read and written in
// the target's layout; the reference keeps the rounded rows that it gives
// back, so that attention is exact to fp32.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_CHECK_LAUNCHCHECK_H
#define LLAMAC_COMPILER_CHECK_LAUNCHCHECK_H

#include "compiler/check/CheckReport.h"
#include "compiler/driver/Compiler.h"
#include "engine/step/Model.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

struct LaunchCheckResult {
  std::vector<CheckedKernel> kernels; ///< In the order of their first launch.
  std::optional<Culprit> culprit;     ///< The first wrong launch.
};

/// Runs a list of tokens through `model`, the plan of `checkpoint` compiled
/// with `compileOptions`: steps of many rows and of one, over the ends of pages
/// of the cache as far as the context reaches. With options.bisect the first
/// wrong launch leaves a reproducer. Internal error for a plan of other ops.
absl::StatusOr<LaunchCheckResult> checkLaunches(
    const Checkpoint &checkpoint, const CompileOptions &compileOptions,
    const std::shared_ptr<const Model> &model, const CheckOptions &options);

} // namespace llamac

#endif // LLAMAC_COMPILER_CHECK_LAUNCHCHECK_H
