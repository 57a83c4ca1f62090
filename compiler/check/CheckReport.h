//===- CheckReport.h - What a check is asked for and finds ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_CHECK_CHECKREPORT_H
#define LLAMAC_COMPILER_CHECK_CHECKREPORT_H

#include "compiler/trial/LaunchReference.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// An error of a target, whose kernels may round activations to int8 in blocks:
/// 2 % of a typical logit.
inline constexpr double defaultTargetTolerance = 4e-4;

struct CheckOptions {
  /// Empty: 24 ids spread over the vocabulary.
  std::vector<int32_t> tokens;
  /// The largest normalised mean squared error that a pass may cause, which
  /// only reorders sums of fp32.
  double tolerance = 1e-9;
  /// The largest error of a target; nothing: defaultTargetTolerance, and what
  /// rounding the KV cache may cost.
  std::optional<double> targetTolerance;
  bool bisect = false;
  /// The schedule of a plan for sim: see ModelOptions.
  std::string simSchedule;
  std::string reproducerFolder = "."; ///< Used when a bisection finds a pass.
  /// Is told what is checked next.
  std::function<void(const std::string &)> progress = [](const auto &) {};
};

/// The difference that one pass, or one run of a target, made to the logits.
struct CheckedStep {
  std::string name;
  Difference difference;
  std::string where; ///< Function, token and vocabulary entry of the worst.
  double tolerance = 0;

  bool passed() const { return difference.nmse <= tolerance; }
};

/// The first op whose result a pass changed, or the first wrong launch.
struct Culprit {
  std::string pass;     ///< Empty for a launch.
  std::string kernel;   ///< The launch's; empty for a pass.
  std::string op;       ///< Its name after the pass; empty: not found.
  std::string location; ///< The name of the value that it should have given.
  std::optional<int64_t> layer;
  std::string where; ///< Program, row and column of a launch.
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

} // namespace llamac

#endif // LLAMAC_COMPILER_CHECK_CHECKREPORT_H
