//===- LaunchReference.h - What every launch should give --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps of a model by the reference interpreter, on the functions that
// lower-to-plan takes: one for each program of a plan, with one kernel op for
// each launch. All values of the last step are kept.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_TRIAL_LAUNCHREFERENCE_H
#define LLAMAC_COMPILER_TRIAL_LAUNCHREFERENCE_H

#include "compiler/reference/Comparison.h"
#include "compiler/reference/Interpreter.h"
#include "compiler/reference/StepArguments.h"
#include "ir/kernel/Kernel.h"
#include "ir/kernel/TargetNumerics.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// A kernel of a plan by its launch with the largest error.
struct CheckedKernel {
  std::string kernel;  ///< Its symbol, after those whose results only it reads.
  std::string op;      ///< The op that it implements.
  std::string program; ///< The launch's program; the next members describe the
                       ///< launch too.
  std::string location;
  std::optional<int64_t> layer;
  std::string where; ///< Result, row and column of the worst element.
  TiledDifference difference;
  double tolerance = 0;
  std::optional<ApproximationUse> approximation; ///< The worst of all launches.
  int64_t launches = 0;                          ///< Compared launches.

  /// 16 elements may have this many times the average error: their errors do
  /// not even out, and some columns have larger weights.
  static constexpr double tileShare = 64;

  /// The error over its tolerance.
  double errorRatio() const;
  bool passed() const { return errorRatio() <= 1; }
};

class LaunchReference {
public:
  /// `module` and `numerics` outlive the result. Its cache keeps rows as the
  /// target's does, in pages of `pageBytes` bytes.
  static absl::StatusOr<std::unique_ptr<LaunchReference>>
  create(mlir::ModuleOp module, reference::WeightReader reader,
         const kernel::TargetNumerics &numerics, uint64_t pageBytes);

  /// The ops of @`function` that become launches, in order; empty when
  /// there is no such function.
  llvm::ArrayRef<mlir::Operation *> launches(llvm::StringRef function) const;

  /// Runs `tokens` as the next ones of sequence 0 through @`function`, which
  /// gives the logits of `logitsRows`.
  absl::Status step(llvm::StringRef function, absl::Span<const int32_t> tokens,
                    absl::Span<const int32_t> logitsRows);

  /// The value of an argument, or an op's result, in the last step.
  const reference::Value &value(mlir::Value value) const {
    return *values.at(value);
  }

private:
  struct Program {
    mlir::func::FuncOp function;
    reference::Interpreter interpreter;
    std::vector<mlir::Operation *> launches;
  };

  LaunchReference(reference::WeightReader reader,
                  const kernel::TargetNumerics &numerics, uint64_t pageBytes)
      : weights(std::move(reader), uint64_t{8} << 30), parallel(0),
        numerics(numerics), page(pageBytes) {}

  const Program *find(llvm::StringRef function) const;
  void roundAppended(mlir::Operation &op, reference::KvState &state,
                     absl::Span<const int32_t> positions);

  reference::WeightStore weights;
  reference::Parallel parallel;
  const kernel::TargetNumerics &numerics;
  std::vector<uint8_t> page; ///< Scratch for rounding rows.
  std::vector<Program> programs;
  llvm::DenseMap<mlir::Value, reference::ValuePtr> values;
  std::vector<reference::ValuePtr> caches; ///< After the last step.
  int32_t length = 0;                      ///< Tokens in each.
};

bool isCache(mlir::Value value);

/// The numbers of `value`, row after row.
std::vector<float> numbersOf(const reference::Value &value);

/// `value`, a tensor of `type`, as a device has it in memory, and back.
std::vector<uint8_t> storedNumbers(mlir::Type type,
                                   const reference::Value &value);
std::vector<float> numbersIn(mlir::Type type, absl::Span<const uint8_t> bytes);

/// The length of a row of the numbers of `value`.
int64_t widthOf(const reference::Value &value);

/// Compares `got` with what the reference has for `result`; `valueOf` gives the
/// reference's values. Sets difference, place and tolerance.
CheckedKernel compareResult(
    mlir::OpResult result, absl::Span<const float> got,
    const kernel::TargetNumerics &numerics,
    llvm::function_ref<const reference::Value &(mlir::Value)> valueOf);

/// A module of one function @launch with `op` alone, the weights it reads, and
/// the ops before it whose results are private; all else is an argument.
mlir::OwningOpRef<mlir::ModuleOp>
isolateLaunch(mlir::Operation *op, const kernel::TargetNumerics &numerics);

} // namespace llamac

#endif // LLAMAC_COMPILER_TRIAL_LAUNCHREFERENCE_H
