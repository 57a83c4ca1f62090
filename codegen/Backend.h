//===- Backend.h - A target as the driver sees it ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A backend answers what the passes ask, emits the source of kernels and
// compiles it to machine code.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_BACKEND_H
#define LLAMAC_CODEGEN_BACKEND_H

#include "codegen/SourceFile.h"
#include "codegen/plan/PlanBuilder.h"
#include "ir/kernel/Target.h"
#include "ir/kernel/TargetNumerics.h"
#include "ir/llama/Llama.h"
#include "ir/plan/Plan.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/status/statusor.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>
#include <vector>

namespace llamac {

/// Changes the text of a file before it is shown or compiled.
using SourceEdit =
    std::function<std::string(llvm::StringRef file, std::string text)>;

/// How emitted source is laid out: formatted for people, or as it is written,
/// which takes a fraction of the time.
enum class SourceLayout { Formatted, AsWritten };

class Backend {
public:
  virtual ~Backend() = default;

  virtual const kernel::Target &target() const = 0;

  /// How the results of its kernels compare with the reference.
  virtual const kernel::TargetNumerics &numerics() const = 0;

  /// Unsupported, with the field, for a model that no family takes.
  virtual absl::Status checkModel(const ModelConfig &config) const = 0;

  virtual schema::WeightLayout matrixLayout() const = 0;

  /// How the KV cache lies in memory; for how many sequences is not said.
  virtual schema::KvLayoutT kvLayout(llama::KVType kv) const = 0;

  /// The source of `kernels`: files that compile with headers() in the same
  /// folder. Fails with a diagnostic at the kernel that no family implements.
  virtual mlir::FailureOr<std::vector<SourceFile>>
  emit(llvm::ArrayRef<plan::KernelOp> kernels, const SourceEdit &edit,
       SourceLayout layout) const = 0;

  virtual llvm::ArrayRef<KernelHeader> headers() const = 0;

  /// The source that a plan keeps: `files`, which emit() gave, and what else
  /// the runtime needs to compile them, as joinSources() joins it.
  virtual std::string planSource(const std::vector<SourceFile> &files) const {
    return joinSources(files);
  }

  /// The file that defines the kernel `symbol` alone, out of planSource().
  /// Empty when there is none.
  virtual SourceFile kernelSource(llvm::StringRef source,
                                  llvm::StringRef symbol) const = 0;

  /// Machine code of `kernels`, best first, which emit() has taken.
  virtual absl::StatusOr<std::vector<PlanCode>>
  compile(llvm::ArrayRef<plan::KernelOp> kernels,
          const SourceEdit &edit) const = 0;
};

/// A backend whose target also knows its numerics.
template <typename Target> class TargetBackend : public Backend {
public:
  explicit TargetBackend(const Target &target) : ownTarget(target) {}

  const Target &target() const override { return ownTarget; }
  const kernel::TargetNumerics &numerics() const override { return ownTarget; }

  schema::KvLayoutT kvLayout(llama::KVType kv) const override {
    const auto config = kvConfig(kv, ownTarget.options());
    schema::KvLayoutT layout;
    layout.pageTokens = config.pageTokens;
    layout.pageBytes = kvPageBytes(config);
    layout.pagesPerSequence = config.pagesPerSequence;
    layout.type = toPlan(dataTypeOf(config.format));
    return layout;
  }

private:
  Target ownTarget;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_BACKEND_H
