//===- PlanCache.h - Cached plans of raw checkpoints ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_PLANCACHE_H
#define LLAMAC_COMPILER_DRIVER_PLANCACHE_H

#include "compiler/driver/Compiler.h"

#include <memory>
#include <string>

namespace llamac {

/// The tokenizer of `checkpoint` as a plan carries it; empty when it has none.
absl::StatusOr<std::string> tokenizerBlob(const Checkpoint &checkpoint);

/// Seconds of the parts of a compilation.
struct CompileTimes {
  double graph = 0;   ///< Import and passes.
  double kernels = 0; ///< Emitting, Clang and the linker.
  double plan = 0;    ///< Packing weights and writing the file.
};

/// Runs what is left of `compilation` and writes the plan to `path`; shows
/// progress unless `quiet`.
absl::StatusOr<CompileTimes> compileToFile(Compilation &compilation,
                                           const std::string &path, bool quiet);

/// True when `path` is meant as a plan: a file that starts as one, or that by
/// its name is neither a .gguf file nor a model's configuration. Its reader
/// checks that it is a sound one.
bool namesPlan(const std::string &path);

/// Usage error where the file at `path` is a plan, not a model.
absl::Status checkNoPlan(const std::string &path);

struct ResolvedPlan {
  std::string path;
  bool verified = false; ///< Its checksums have been verified just now.
  /// Keeps a plan that could not be cached until it is loaded.
  std::shared_ptr<void> temporary = nullptr;
};

/// The plan to run for `model`: the file itself when it names one, else a
/// cached plan of the checkpoint (DiskCache.h), which is verified. It is
/// compiled when the cache has none, or, with a warning on stderr, when that is
/// corrupt or of another model or other options. Its key hashes the model's
/// contents, `options` with what they leave open, and this build of the
/// compiler. Unless `quiet`, a line on stderr says that a plan is compiled.
/// Where it `runsHere`, the device error of a missing GPU comes before that.
absl::StatusOr<ResolvedPlan> resolvePlan(const std::string &model,
                                         const CompileOptions &options,
                                         bool quiet, bool runsHere = false);

/// The cached plan of `checkpoint` that resolvePlan() would verify; empty:
/// none.
absl::StatusOr<std::string> cachedPlan(const Checkpoint &checkpoint,
                                       const CompileOptions &options);

/// The options to compile a model and its draft with.
struct DraftedPlans {
  CompileOptions ofModel, ofDraft;
};

/// The options, of `options`, with which `draft`, a plan or a model, drafts for
/// `model`, likewise; as they are where `draft` is empty. A head reads features
/// that the model then gives. Usage error for a head that is to be compiled for
/// a plan.
absl::StatusOr<DraftedPlans> resolveDraft(const std::string &model,
                                          const std::string &draft,
                                          const CompileOptions &options);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_PLANCACHE_H
