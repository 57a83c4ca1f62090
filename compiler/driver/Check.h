//===- Check.h - Every pass and target against the reference ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference interpreter runs the graph as it was imported and again after
// every pass; the logits of a short list of tokens must not change. A compiled
// plan is compared with the same logits. The first pass that changes them is
// bisected: values on both sides of it are compared where their ops share a
// name.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_CHECK_H
#define LLAMAC_COMPILER_DRIVER_CHECK_H

#include "compiler/driver/Compiler.h"
#include "passes/Passes.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

struct CheckOptions {
  /// Empty: 24 ids spread over the vocabulary.
  std::vector<int32_t> tokens;
  /// Of the normalised mean squared error that a pass may cause, which only
  /// reorders sums of fp32.
  double tolerance = 1e-9;
  /// Of that of a target, whose kernels may round activations to int8 in
  /// blocks: 2 % of a typical logit.
  double targetTolerance = 4e-4;
  bool bisect = false;
  /// Of a plan for sim: see ModelOptions.
  std::string simSchedule;
  std::string reproducerFolder = "."; ///< Used when a bisection finds a pass.
};

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

/// What was seen of an approximation.
struct ApproximationUse {
  double error = 0;   ///< The largest, as a share of what is allowed.
  double dropped = 0; ///< The largest share of a softmax outside top_k.
};

/// What one pass, or one run of a target, did to the logits.
struct CheckedStep {
  std::string name;
  Difference difference;
  std::string where; ///< Function, token and vocabulary entry of the worst.
  double tolerance = 0;

  bool passed() const { return difference.nmse <= tolerance; }
};

/// A kernel of a plan by its launch with the largest error.
struct CheckedKernel {
  std::string kernel;  ///< Its symbol, after those whose results only it reads.
  std::string op;      ///< That it implements.
  std::string program; ///< Of the launch, as are the rest.
  std::string location;
  std::optional<int64_t> layer;
  std::string where; ///< Result, row and column of the worst element.
  TiledDifference difference;
  double tolerance = 0;
  std::optional<ApproximationUse> approximation; ///< Of all launches.
  int64_t launches = 0;                          ///< That were compared.

  /// 16 elements may have this many times the average error: their errors do
  /// not even out, and some columns have larger weights.
  static constexpr double tileShare = 64;

  /// The error over its tolerance.
  double errorRatio() const;
  bool passed() const { return errorRatio() <= 1; }
};

/// The first op whose result a pass changed, or the first wrong launch.
struct Culprit {
  std::string pass;     ///< Empty for a launch.
  std::string kernel;   ///< Of a launch.
  std::string op;       ///< By its name after the pass; empty: not found.
  std::string location; ///< The name of the value that it should have given.
  std::optional<int64_t> layer;
  std::string where; ///< Of a launch: program, row and column.
  Difference difference;
  std::vector<std::string> files; ///< The reproducer.
};

struct CheckReport {
  std::vector<CheckedStep> passes;
  std::vector<CheckedKernel> kernels; ///< Each given the reference's operands.
  std::vector<CheckedStep> targets;   ///< Run from end to end.
  std::optional<Culprit> culprit;

  bool passed() const;
};

/// The passes that the reference can check: all before lower-to-plan.
std::vector<PipelineStep> checkableSteps(const CompileOptions &options,
                                         const kernel::Target &target);

/// Runs `passes` one by one on the graph of `checkpoint`, to be compiled with
/// `compileOptions`, which are resolved. assign-weight-formats may round to
/// another format: its result has a tolerance of the format, and what follows
/// is compared with its result. A pass that rounds activations has the
/// target's.
absl::StatusOr<CheckReport> checkPasses(const Checkpoint &checkpoint,
                                        const CompileOptions &compileOptions,
                                        llvm::ArrayRef<PipelineStep> passes,
                                        const CheckOptions &options);

/// checkPasses of the whole pipeline, and the target's logits.
absl::StatusOr<CheckReport> checkModel(const Checkpoint &checkpoint,
                                       const CompileOptions &compileOptions,
                                       const CheckOptions &options);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_CHECK_H
