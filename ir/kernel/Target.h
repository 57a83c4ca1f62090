//===- Target.h - What the schedule passes ask of a target ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes choose kernels without knowing any target: they ask this
// interface, which codegen implements from its kernel families.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_KERNEL_TARGET_H
#define LLAMAC_IR_KERNEL_TARGET_H

#include "ir/kernel/Kernel.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac::kernel {

/// The most tokens of a sequence that a plan can be compiled for.
inline constexpr int64_t longestContext = int64_t{1} << 20;

/// A matrix that a launch on a GPU copies by boxes (runtime/plan/TensorMap.h):
/// operand `operand` of the launch, rows without gaps; `rows` 0 stands for all
/// that the operand has.
struct TensorMapGeometry {
  int64_t operand = 0, elementBytes = 0, columns = 0, rows = 0;
  int64_t boxColumns = 0, boxRows = 0, swizzleBytes = 0;
};

/// Work items of a launch: `items`, times ceil(rows / rowBlock) when rowBlock
/// is not 0. On a GPU an item is a block of `threads` threads with `scratch`
/// bytes of shared memory; elsewhere `threads` is 0 and each thread has
/// `scratch` bytes of its own. `cluster` consecutive blocks run together.
/// `dependent` is programmatic dependent launch: the kernel waits for the
/// launch before it, and may begin before that is done.
///
/// A launch whose blocks work together gets memory of its own: for each row
/// `workspace` bytes, uninitialised, and `counters` words of 32 bits that are 0
/// before it and that it leaves 0. All blocks of a `resident` one run at the
/// same time and may wait for each other: at most `items`, as many as fit.
struct LaunchGeometry {
  int64_t items = 0;
  int64_t rowBlock = 0;
  int64_t scratch = 0;
  int64_t threads = 0;
  int64_t cluster = 1;
  bool dependent = false;
  int64_t workspace = 0;
  int64_t counters = 0;
  bool resident = false;
  std::vector<TensorMapGeometry> maps = {};
};

/// A range of row counts that a program is made for.
struct RowBucket {
  llvm::StringRef name;
  int64_t maxRows = 0;
  int64_t maxLogitsRows = 0; ///< Rows that may reach lm_head.
  /// Whether it is no good for rows of prompts: its attention reads the keys of
  /// every row for itself.
  bool decodeOnly = false;
};

/// The most bytes from memory and operations that a machine does in a second.
struct Peaks {
  double bandwidth = 0, operations = 0;

  /// The least seconds that `cost` takes.
  double seconds(const Cost &cost) const {
    return std::max(static_cast<double>(cost.bytes()) / bandwidth,
                    static_cast<double>(cost.flops) / operations);
  }
};

/// "off, auto or on".
std::string residentStepsNames();

class Target {
public:
  virtual ~Target() = default;

  virtual llvm::StringRef name() const = 0;

  /// Whether a step samples tokens, rather than ending in logits alone.
  virtual bool samples() const { return false; }

  /// Whether a row has the same results, bit by bit, in every program and
  /// beside any other rows, where sparsify-attention is not asked for.
  virtual bool rowsAreAlike() const { return false; }

  /// Whether the launch that embeds a step's tokens also computes its cosines
  /// and sines: worth it where a launch takes longer than they do.
  virtual bool embedsWithCosSin() const { return false; }

  /// Whether the cache rounds elements of a head together, so that only whole
  /// heads can be appended.
  virtual bool appendsWholeHeads() const { return false; }

  /// The most scores that attention of one row may be told to keep by
  /// sparsify-attention, since kernels drop some of more; 0: none do.
  virtual int64_t mostTopK() const { return 0; }

  /// Whether attention has kernels that take exponentials so.
  virtual bool takesExp(llama::ExpKind kind) const { return true; }

  /// The row counts to make programs for, ascending.
  virtual std::vector<RowBucket> rowBuckets() const = 0;

  /// The tile config of `op`, a kernel op launched with at most `maxRows`
  /// rows; null when ops of its kind have none.
  virtual mlir::Attribute chooseConfig(mlir::Operation *op,
                                       int64_t maxRows) const = 0;

  /// Whether there are products whose kernels take inputs in bf16 alone, and
  /// whether that of `op` does, with the config it has.
  virtual bool roundsInputs() const { return false; }
  virtual bool roundsInput(mlir::Operation *op) const { return false; }
  /// The encoding of such an input; null: columns in their order.
  virtual mlir::Attribute inputEncoding(mlir::Operation *op) const {
    return {};
  }

  /// Whether the kernel of `op`, a product with a config, takes the squares of
  /// its input's rows where it has a norm.
  virtual bool takesSquares(mlir::Operation *op) const { return false; }
  /// The parts of each row of its result of which the kernel of `op` gives the
  /// squares for a norm that comes next; 0: it gives none.
  virtual int64_t givesSquares(mlir::Operation *op) const { return 0; }

  /// Whether the step of one row shall be one launch.
  virtual ResidentSteps residentSteps() const { return ResidentSteps::Off; }
  /// Why there is no kernel for `op`, a kernel.resident; empty where there is.
  virtual std::string whyNotResident(mlir::Operation *op) const {
    return "target " + name().str() + " has none";
  }

  /// Configs that `op`, which has one, may have in its place: legal ones that
  /// take the same operands and give the same results, within tolerance.
  virtual std::vector<mlir::Attribute> otherConfigs(mlir::Operation *op) const {
    return {};
  }

  /// Whether these give the same bits, in any order of a sum's terms.
  virtual bool otherConfigsAreExact() const { return false; }

  /// Seconds that a launch of `op`, with the config it has, should take in
  /// `step`, to order other configs by; 0 where any order will do.
  virtual double predictedSeconds(mlir::Operation *op,
                                  const CostStep &step) const {
    return 0;
  }

  /// Seconds between two launches of which the second waits for the first,
  /// beside what predictedSeconds() has.
  virtual double launchGap() const { return 0; }

  /// The peaks that limit `op`; nothing where the target knows no machine.
  virtual std::optional<Peaks> peaks(mlir::Operation *op) const {
    return std::nullopt;
  }

  /// Whether `op` multiplies its matrices as integers of 8 bits, which the rate
  /// of f32 does not bound.
  virtual bool hasInt8Products(mlir::Operation *op) const { return false; }

  /// The element type in which kernels read matrices of `element`: another one
  /// where there are no kernels for it.
  virtual mlir::Type weightElement(mlir::Type element) const { return element; }

  /// Bytes of a weight of `type`, a tensor of a static shape, where kernels
  /// read it.
  virtual int64_t weightBytes(mlir::Type type) const {
    return kernel::weightBytes(type);
  }

  /// The sizes that the kernel of `op` is made with, by name.
  virtual std::vector<std::pair<llvm::StringRef, int64_t>>
  tiles(mlir::Operation *op) const;

  /// The reasons that keep `op`, with the config it has, from the fastest
  /// kernels that the target has for its kind: one clause each.
  virtual std::vector<std::string> slowPaths(mlir::Operation *op) const {
    return {};
  }

  /// The family that implements `op` with the config it has, by name; empty
  /// when none does.
  virtual llvm::StringRef familyName(mlir::Operation *op) const = 0;

  /// The work items of `op`, which a family implements.
  virtual LaunchGeometry geometry(mlir::Operation *op) const = 0;
};

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// Makes targets. An interface of the kernel dialect, by which passes reach
/// what codegen registers (codegen/targets/Targets.h).
class TargetFactory : public mlir::DialectInterface::Base<TargetFactory> {
public:
  explicit TargetFactory(mlir::Dialect *dialect) : Base(dialect) {}

  /// The target that `attr` describes; null, with an error, when it describes
  /// none.
  virtual std::unique_ptr<Target> create(TargetAttr attr,
                                         EmitError emitError) const = 0;
};

/// The cost of `op` in `step`, its weights counted as kernels of `target` read
/// them.
Cost costOf(mlir::Operation *op, const CostStep &step, const Target &target);

/// The target of the module that is `op` or holds it; null, with an error, for
/// a module without one.
std::unique_ptr<Target> targetOf(mlir::Operation *op);

/// Whether the target of the module that holds `op` appends whole heads; false
/// for a module without one. Failure, with an error, for an unknown target.
mlir::FailureOr<bool> appendsWholeHeads(mlir::Operation *op);

} // namespace llamac::kernel

#endif // LLAMAC_IR_KERNEL_TARGET_H
