//===- PlanBuilder.h - From the plan dialect to the plan file ---*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_PLAN_PLANBUILDER_H
#define LLAMAC_CODEGEN_PLAN_PLANBUILDER_H

#include "ir/plan/Plan.h"
#include "runtime/base/ModelConfig.h"
#include "runtime/io/WeightMap.h"
#include "runtime/plan/plan_generated.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// Machine code of a plan's kernels for one instruction-set level, or what a
/// device has in place of levels.
struct PlanCode {
  std::string isa;
  std::string elf;
};

/// A plan's record of a kernel for the tuner: variants with their symbols.
struct KernelTuning {
  std::string tuning;
  double tolerance = 0;
  double predicted = 0;
  std::vector<schema::VariantT> variants;
};

/// The contents of a plan beside its programs.
struct PlanContents {
  ModelConfig config;
  std::string target;
  std::string gpu; ///< Whose kernels they are; empty for cpu.
  int64_t context = 0;
  int64_t ranks = 1;
  std::string fingerprint;   ///< Fingerprint of the model.
  std::string options;       ///< The options that the plan was compiled with,
                             ///< readable.
  bool rowsAreAlike = false; ///< Whether a row is so in every program.
  /// Layers whose inputs a step also gives.
  std::vector<int64_t> featureLayers;
  schema::KvLayoutT kv; ///< With its groups.
  schema::WeightLayout matrixLayout = schema::WeightLayout::Panel16;
  std::vector<PlanCode> code;           ///< Best level first.
  std::string source;                   ///< The emitted unit.
  std::string generator;                ///< Hash of what kernels are made of.
  llvm::StringMap<KernelTuning> tuning; ///< Records by kernel; only kernels
                                        ///< with variants have one.
  /// The name, by program, under which the choice of its launches' overlap is
  /// kept.
  llvm::StringMap<std::string> programTuning;
  std::optional<schema::SamplingT> sampling; ///< Advice of the model's makers.
  std::string tokenizerKind;
  std::string tokenizerBlob;    ///< Empty: the model has no tokenizer.
  std::optional<int32_t> bos;   ///< Begins a sequence.
  bool addBos = false;          ///< Whether prompts begin with it.
  std::vector<int32_t> stopIds; ///< End an answer.
  bool embedWeights = true;     ///< Packed in the plan, or read at load.
  bool hasWeights = true;       ///< Else there are none at all.
  /// When all is written: an error keeps the plan from getting its name.
  std::function<absl::Status()> checkModel;
};

/// Adds to `kv` the groups of the `layers` layers that the programs of `module`
/// have; one group of all where there is no program yet.
void addKvGroups(mlir::ModuleOp module, int64_t layers, schema::KvLayoutT &kv);

/// The geometry and tensor maps of `kernel`.
schema::GeometryT geometryOf(plan::KernelOp kernel);

/// The manifest of the plan that `module`, in the plan dialect with memory
/// placed, describes: all that decides the memory it runs in. It names no
/// section: there are no weights, no code and no tokenizer.
absl::StatusOr<schema::PlanT> planManifest(mlir::ModuleOp module,
                                           const PlanContents &contents);

/// Told how many of the weights' bytes are written.
using PlanProgress = std::function<void(uint64_t done, uint64_t total)>;

/// Writes the plan that `module`, in the plan dialect with memory placed,
/// describes, with the weights of `weights`. Errors: those of the readers and
/// of PlanWriter. On an error the file at `path` is as it was.
absl::Status writePlan(mlir::ModuleOp module, const PlanContents &contents,
                       const WeightMap &weights, const std::string &path,
                       const PlanProgress &progress);

} // namespace llamac

#endif // LLAMAC_CODEGEN_PLAN_PLANBUILDER_H
