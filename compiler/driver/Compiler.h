//===- Compiler.h - From a checkpoint to a plan -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pipeline as phases: each takes what the one before left, and a
// compilation can stop after any.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_COMPILER_H
#define LLAMAC_COMPILER_DRIVER_COMPILER_H

#include "codegen/Backend.h"
#include "codegen/targets/Targets.h"
#include "compiler/driver/PassReports.h"
#include "compiler/trial/KernelOverride.h"
#include "frontends/Checkpoint.h"
#include "passes/Passes.h"
#include "runtime/cpu/IsaLevel.h"
#include "text/tokenizer/TokenizerBlob.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

enum class Phase {
  Import,   ///< The graph as the frontend builds it.
  Graph,    ///< Without duplicates, with weight formats assigned.
  Fuse,     ///< A short list of kernel ops.
  Schedule, ///< Launches with tiles and memory, for each range of row counts.
  Emit,     ///< The kernels' source.
  Plan,     ///< The kernels' machine code, all that a plan file needs.
};

/// Every phase in order, as command lines name them.
llvm::ArrayRef<llvm::StringLiteral> phaseNames();

/// The phase called `name`. Usage error for an unknown one.
absl::StatusOr<Phase> parsePhase(absl::string_view name);

struct CompileOptions {
  std::string target = "cpu";
  std::string gpu;     ///< The GPU of target cuda. Empty: GPU `gpuIndex`, or
                       ///< sm_90a.
  int gpuIndex = 0;    ///< Index of the machine's GPU, for target cuda.
  int64_t context = 0; ///< 0: the model's own, at most 8192.
  std::string weightFormat = "keep"; ///< Or of weightRoundings().
  std::string kvFormat = "f16";      ///< Format of the KV cache; --kv-type.
  std::vector<IsaLevel> isaLevels;   ///< Instruction sets of cpu. Empty:
                                     ///< usableIsaLevel().
  std::string tuneCpu; ///< The processor to tune cpu for, a processorName().
                       ///< Empty: the host's.
  bool exact = false;  ///< Whether activations stay in f32 on cpu.
  /// Says whether cuda and sim have one row's step in one launch: a name of
  /// kernel::ResidentSteps.
  std::string residentStep = "off";
  bool simCheck = false;           ///< Whether accesses are checked on sim.
  bool simHostileRounding = false; ///< Whether sim rounds as in
                                   ///< simulator/shim.h's hostile flavour.
  std::string approximateExp;      ///< poly=3 or table=256; empty: exact.
  int64_t sparsifyTopK = 0;        ///< Scores that decode on cpu keeps; 0: all
                                   ///< scores.
  bool embedWeights = true;
  bool hasWeights = true;   ///< Else a configuration alone makes a plan.
  int64_t maxSequences = 8; ///< The most sequences that a runtime may keep at a
                            ///< time.
  int64_t stepRows = 0; ///< Programs that only steps of more rows need are left
                        ///< out; 0: none are.
  int64_t ranks = 1;    ///< They partition the weights and the cache.
  /// Whether results have the same bits for any number of ranks. Of cpu.
  bool reproducibleRanks = false;
  /// Layers whose inputs a step gives, which an EAGLE-3 head reads
  /// (DraftHead).
  std::vector<int64_t> featureLayers;
  std::string headOf; ///< The model that an EAGLE-3 head is compiled for.
  std::vector<std::string> skipPasses;   ///< Optional passes to leave out.
  std::vector<KernelOverride> overrides; ///< Replaced kernels of cuda and sim.
  PassReportOptions reports;

  /// The options that decide what is in a plan, in one line.
  std::string describe() const;

  /// The changes to results that the approximations may cause in a plan, one
  /// line each.
  std::vector<std::string> describeBounds() const;
};

/// The ids that end an answer: those that the checkpoint names, and those that
/// its tokenizer knows, if there is one.
std::vector<int32_t> endsOfText(const Checkpoint &checkpoint,
                                const TokenizerBlob *vocabulary);

/// The sampling that a checkpoint advises, if it does.
std::optional<schema::SamplingT>
advisedSampling(const GenerationDefaults &defaults);

/// Usage error for an unknown format of weights.
absl::Status checkWeightFormat(const std::string &format);

/// Unsupported error where results of the target depend on the number of ranks
/// and must not.
absl::Status checkReproducibleRanks(const CompileOptions &options);

/// `options` with what they leave open resolved for a model. Errors: usage for
/// options that are invalid or do not go together.
absl::StatusOr<CompileOptions> resolveOptions(const CompileOptions &options,
                                              const ModelConfig &config);

/// The target that `options`, which are resolved, ask for.
kernel::TargetAttr targetAttr(mlir::MLIRContext &context,
                              const CompileOptions &options);

/// The backend of a target that resolved options describe.
std::unique_ptr<Backend> createBackend(kernel::TargetAttr attr);

/// The passes of `phase` with `options` for `target`; empty for a phase that
/// runs no passes.
std::vector<PipelineStep> passesOf(Phase phase, const CompileOptions &options,
                                   const kernel::Target &target);

/// An MLIR context with every dialect of the pipeline, and with the targets
/// that `addTargets` adds.
std::unique_ptr<mlir::MLIRContext>
createContext(llvm::function_ref<void(mlir::DialectRegistry &)> addTargets =
                  registerTargets);

/// The graph of `checkpoint`, verified, in `context`.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>>
importGraph(mlir::MLIRContext &context, const Checkpoint &checkpoint,
            llvm::ArrayRef<int64_t> featureLayers = {});

/// The graph of `checkpoint` for the target of `options`, which are resolved.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>>
importGraph(mlir::MLIRContext &context, const Checkpoint &checkpoint,
            const CompileOptions &options);

/// Runs one step of the pipeline. Internal error with the diagnostics of a pass
/// that fails; unsupported where it says that the model cannot be compiled so.
absl::Status applyStep(const PipelineStep &step, mlir::ModuleOp module,
                       const Checkpoint &checkpoint);

class Compilation {
public:
  /// Errors: usage for options that are invalid or do not fit the model. Keeps
  /// a reference to `checkpoint`.
  static absl::StatusOr<std::unique_ptr<Compilation>>
  create(const Checkpoint &checkpoint, const CompileOptions &options);

  /// Before Phase::Emit: `edit` is given all source before it is shown or
  /// compiled. Tests make wrong kernels by it.
  void editSource(SourceEdit edit) { sourceEdit = std::move(edit); }

  /// Runs all phases up to `last` that have not run. An error of a pass is
  /// internal and carries its diagnostics.
  absl::Status runTo(Phase last);

  const Checkpoint &model() const { return checkpoint; }
  mlir::ModuleOp module() { return *graph; }
  const CompileOptions &options() const { return compileOptions; }
  const kernel::Target &target() const { return backend->target(); }
  const PassReports &passReports() const { return reports; }

  /// The output of the last phase that ran, in text: IR that parses back, or,
  /// from Phase::Emit on, the kernels' source.
  std::string text() const;

  /// The KV cache; from Phase::Schedule on with the groups of its layers.
  schema::KvLayoutT kvLayout() const;

  /// The step whose costs are counted, but for its rows: the last attends to
  /// `context` tokens.
  kernel::CostStep costStep(int64_t context) const;

  /// After Phase::Schedule: planManifest() of the module.
  absl::StatusOr<schema::PlanT> manifest() const;

  /// After Phase::Emit: writes the kernels' source to `folder` with the headers
  /// that it includes below it, so that -I of the folder is all that a
  /// freestanding C++20 compiler needs.
  absl::Status writeSourceFiles(const std::string &folder) const;

  /// After Phase::Plan: writes the plan with the checkpoint's weights and
  /// `tokenizerBlob` (empty when it has none). `fingerprint` is the model's, as
  /// it was before anything was read: badFile, and no plan, when its files have
  /// changed since.
  absl::Status writePlanFile(const std::string &path,
                             const std::string &fingerprint,
                             const std::string &tokenizerBlob,
                             const PlanProgress &progress);

private:
  Compilation(const Checkpoint &checkpoint, const CompileOptions &options);

  absl::Status runPhase(Phase phase);
  absl::Status runPasses(Phase phase);
  absl::Status emit();
  absl::Status compile();
  PlanContents planContents() const;

  const Checkpoint &checkpoint;
  CompileOptions compileOptions;
  PassReports reports;
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<Backend> backend;
  mlir::OwningOpRef<mlir::ModuleOp> graph;
  int phasesRun = 0;
  SourceEdit sourceEdit;
  std::vector<SourceFile> sources;
  std::vector<PlanCode> code;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_COMPILER_H
