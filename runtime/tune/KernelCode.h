//===- KernelCode.h - Machine code for the tuner ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_KERNELCODE_H
#define LLAMAC_RUNTIME_TUNE_KERNELCODE_H

#include "runtime/engine/Model.h"
#include "runtime/tune/TuningStore.h"

#include "absl/types/span.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

/// A kernel that is not yet machine code.
struct KernelSource {
  std::string symbol; ///< That the source defines.
  std::string text;
};

/// Makes machine code of kernels, for devices that need it (needsCode()).
class VariantCompiler {
public:
  virtual ~VariantCompiler();

  /// One object that defines the symbols of `kernels`, of a plan for `target`,
  /// for the level `isa` that the plan's code runs at. Called by several
  /// threads.
  virtual absl::StatusOr<std::string>
  compile(absl::Span<const KernelSource> kernels, const std::string &target,
          const std::string &isa) = 0;
};

/// What a VariantCompiler is given for a variant, and for all kernels of a
/// schedule.
std::vector<KernelSource> sourcesOf(const schema::VariantT &variant);
std::vector<KernelSource> sourcesOf(const schema::ScheduleT &schedule);

/// Gives the code of schedules' kernels, each compiled once for all programs.
class ScheduleCompiler {
public:
  ScheduleCompiler(const Model &model, VariantCompiler *compiler)
      : model(model), compiler(compiler) {}

  /// Takes what earlier runs chose, and compiled, from `store`.
  void takeStored(TuningStore &store);

  /// Compiles the others, on several threads, until `stop`, which may be null,
  /// is set. What cannot be compiled has an error.
  void compileRest(const std::atomic<bool> *stop);

  /// Null for a schedule that needs no code, or was not compiled. Errors: the
  /// compiler's.
  absl::StatusOr<std::shared_ptr<const std::string>>
  codeOf(size_t schedule) const;

private:
  const Model &model;
  VariantCompiler *compiler;
  std::map<size_t, absl::StatusOr<std::shared_ptr<const std::string>>> codes;
};

/// Compiles what `store` has picked for the kernels and programs of `model` but
/// has no code of, as after an import; how many that were.
absl::StatusOr<int> compileStored(const Model &model, TuningStore &store,
                                  VariantCompiler &compiler);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_KERNELCODE_H
