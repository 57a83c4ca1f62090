//===- PassReports.h - Seeing what each pass does ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A user can ask for these reports of a compilation: the IR around passes, what
// each changed, a dump of every step in a folder, and times. A pass is one
// step, however many functions it runs on, and the IR is always the whole
// module.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_PASSREPORTS_H
#define LLAMAC_COMPILER_DRIVER_PASSREPORTS_H

#include "compiler/driver/TextTable.h"
#include "ir/kernel/Target.h"
#include "runtime/device/Device.h"

#include "absl/status/status.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace llamac {

/// Is told of each step of a compilation when it is done.
class PassObserver {
public:
  virtual ~PassObserver() = default;

  /// `module` is as the step `name` of `phase` left it: the import, which is
  /// the first, or a pass, on all its functions. `seconds` are those of the
  /// step with its verification, without what reports take.
  virtual void stepDone(llvm::StringRef phase, llvm::StringRef name,
                        mlir::ModuleOp module, double seconds) = 0;
};

struct PassReportOptions {
  // Names of passes, or "all". IR and diffs go to stderr.
  std::vector<std::string> printBefore, printAfter;
  bool printChanged = false;    ///< A diff for each pass that changes the IR.
  bool printLocations = false;  ///< With all IR but that of diffs.
  std::optional<int64_t> layer; ///< Whose ops are printed; none: all ops.
  bool explainFusion = false;   ///< The fusions and remarks of passes.
  bool explainKernels = false;  ///< A description of each kernel.
  /// Whether explanations go to stderr, as stdout has the result.
  bool explainsOnStderr = false;
  /// The limits of this machine, for kernels whose target knows no peaks.
  std::optional<DeviceLimits> hostLimits = {};
  int64_t explainRows = 0;     ///< Rows of the explained step; 0: as many as
                               ///< programs take.
  std::string dumpFolder;      ///< Empty: no dumps.
  bool times = false;          ///< Times of phases and passes, on stderr at
                               ///< the end.
  std::string crashReproducer; ///< A file for the IR and passes of a failure.
  PassObserver *observer = nullptr; ///< Outlives the compilation.

  /// Whether passes are to say what they did not do.
  bool wantsRemarks() const {
    return explainFusion || explainKernels || observer;
  }
};

/// The IR as text; with `locations`, which are for people and diagnostics
/// alone, parsing it gives the same module with them.
std::string printIr(mlir::ModuleOp module, bool locations);

class PassReports {
public:
  explicit PassReports(PassReportOptions options);
  PassReports(const PassReports &) = delete;
  PassReports &operator=(const PassReports &) = delete;
  ~PassReports();

  /// Usage error when the options name a pass that is not `known`.
  absl::Status checkNames(llvm::ArrayRef<llvm::StringRef> known) const;
  /// Usage error when the options ask for a layer that a model of `numLayers`
  /// has not, or for a layer of nothing.
  absl::Status checkLayer(int64_t numLayers) const;

  /// Runs `pm`, which holds the pass `name` alone, on `module` with all
  /// reports. The verifier follows. Warnings go to stderr, each text once.
  llvm::LogicalResult run(llvm::StringRef name, mlir::PassManager &pm,
                          mlir::ModuleOp module);

  /// Ends the phase of fusions: where they are to be explained, prints the
  /// table of the ops that each pass fused, and names those of the `skipped`
  /// passes, or says that no op was left out of one.
  void endFusion(llvm::ArrayRef<std::string> skipped) const;

  /// The remarks of passes on ops at `location`: "fuse-qkv: not fused: ...".
  std::vector<std::string> remarksAt(mlir::Location location) const {
    return remarksOf.lookup(location);
  }

  /// Where explanations go.
  llvm::raw_ostream &explanations() const {
    return options.explainsOnStderr ? llvm::errs() : llvm::outs();
  }

  const std::optional<DeviceLimits> &hostLimits() const {
    return options.hostLimits;
  }

  /// Starts the phase `name`, which is timed until endPhase().
  void startPhase(llvm::StringRef name);
  void endPhase(const absl::Status &status) {
    phase.stop();
    hasFailed |= !status.ok();
  }

  /// Writes `text` to the file `name` in the dump folder, if one is asked for.
  void dump(llvm::StringRef name, const std::string &text);

  /// Writes `module` to the dump folder, numbered, as made by the step `name`,
  /// and tells the observer.
  void stepDone(llvm::StringRef name, mlir::ModuleOp module, double seconds);

  /// Reports a step that began with its phase.
  void stepDone(llvm::StringRef name, mlir::ModuleOp module);

  /// The IR as the user wants it printed.
  std::string print(mlir::ModuleOp module) const {
    return printIr(module, options.printLocations);
  }

  /// The first error in writing dumps.
  const absl::Status &status() const { return dumpStatus; }

private:
  /// Takes a remark or a warning of the pass `name`; failure for an error.
  llvm::LogicalResult take(llvm::StringRef name, mlir::Diagnostic &diagnostic);

  /// The part of the IR that is shown on stderr; `hidesOthers`: ops that are
  /// not, as hidden lines.
  std::string shown(mlir::ModuleOp module, bool locations,
                    bool hidesOthers = false) const;

  PassReportOptions options;
  mlir::DefaultTimingManager timing;
  mlir::TimingScope total, phase;
  std::string phaseName;
  bool hasFailed = false; ///< Whether a phase has.
  std::chrono::steady_clock::time_point phaseStart;
  int steps = 0;
  int remarks = 0;           ///< Remarks of the phase.
  std::set<std::string> ran; ///< The passes that were run.
  int changes = 0;           ///< Diffs that were printed.
  TextTable fusions = TextTable({{"pass"},
                                 {"op"},
                                 {"before", /*alignsRight=*/true},
                                 {"after", /*alignsRight=*/true}});
  llvm::DenseMap<mlir::Location, std::vector<std::string>> remarksOf;
  std::set<std::string> warnings;
  absl::Status dumpStatus;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_PASSREPORTS_H
