//===- PlanCache.cpp - Plans of raw checkpoints, kept between runs --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PlanCache.h"

#include "compiler/driver/BuildId.h"
#include "frontends/TokenizerSources.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/io/CacheFolder.h"
#include "runtime/io/KeptFiles.h"
#include "runtime/plan/PlanReader.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

namespace llamac {

absl::StatusOr<std::string> tokenizerBlob(const Checkpoint &checkpoint) {
  switch (checkpoint.tokenizer.kind) {
  case TokenizerFormat::None:
    return std::string();
  case TokenizerFormat::Gguf:
    return buildGgufBlob(*checkpoint.tokenizer.gguf);
  case TokenizerFormat::Tiktoken:
  case TokenizerFormat::HuggingFace:
  case TokenizerFormat::SentencePiece:
    break;
  }
  LLAMAC_ASSIGN_OR_RETURN(
      std::optional<std::string> blob,
      buildDirectoryBlob(checkpoint.path,
                         static_cast<uint32_t>(checkpoint.config.vocabSize)));
  return blob.value_or("");
}

absl::StatusOr<CompileTimes>
compileToFile(Compilation &compilation, const std::string &path, bool quiet) {
  using Clock = std::chrono::steady_clock;
  CompileTimes times;
  Clock::time_point start = Clock::now();
  auto takeTime = [&](double &seconds) {
    const Clock::time_point now = Clock::now();
    seconds = std::chrono::duration<double>(now - start).count();
    start = now;
  };
  Progress progress(quiet);
  // Ahead of all that is read.
  LLAMAC_ASSIGN_OR_RETURN(const std::string fingerprint,
                          compilation.model().fingerprint());
  progress.stage("reading the tokenizer");
  LLAMAC_ASSIGN_OR_RETURN(std::string blob, tokenizerBlob(compilation.model()));
  progress.stage("compiling the graph");
  LLAMAC_RETURN_IF_ERROR(compilation.runTo(Phase::Schedule));
  takeTime(times.graph);
  progress.stage("compiling the kernels");
  LLAMAC_RETURN_IF_ERROR(compilation.runTo(Phase::Plan));
  takeTime(times.kernels);
  LLAMAC_RETURN_IF_ERROR(compilation.writePlanFile(
      path, fingerprint, blob, [&](uint64_t done, uint64_t total) {
        progress.update("packing weights", done, total);
      }));
  takeTime(times.plan);
  return times;
}

/// Succeeds when the plan at `path` is sound and of the model and the options;
/// its name alone says so, but files can be copied.
static absl::Status checkPlan(const std::string &path,
                              const std::string &fingerprint,
                              const std::string &options) {
  PlanReadOptions reading;
  reading.threads =
      static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  LLAMAC_ASSIGN_OR_RETURN(const auto reader, PlanReader::open(path, reading));
  const schema::PlanT &plan = reader->plan();
  if (plan.modelFingerprint != fingerprint)
    return badPlanError(absl::StrCat(path, ": model: expected fingerprint ",
                                     fingerprint, ", got ",
                                     plan.modelFingerprint));
  if (plan.options != options)
    return badPlanError(absl::StrCat(path, ": options: expected \"", options,
                                     "\", got \"", plan.options, "\""));
  return absl::OkStatus();
}

bool namesPlan(const std::string &path) {
  const std::string extension = std::filesystem::path(path).extension();
  std::error_code error;
  return extension != ".gguf" && extension != ".json" &&
         std::filesystem::is_regular_file(path, error);
}

absl::StatusOr<ResolvedPlan> resolvePlan(const std::string &model,
                                         const CompileOptions &options,
                                         bool quiet) {
  if (namesPlan(model))
    return ResolvedPlan{model, false};
  LLAMAC_ASSIGN_OR_RETURN(Checkpoint checkpoint, options.hasWeights
                                                     ? openCheckpoint(model)
                                                     : openConfig(model));
  LLAMAC_ASSIGN_OR_RETURN(std::string folder, cacheFolder("plans"));
  LLAMAC_ASSIGN_OR_RETURN(const std::string fingerprint,
                          checkpoint.fingerprint());
  LLAMAC_ASSIGN_OR_RETURN(const CompileOptions settled,
                          settleOptions(options, checkpoint.config));
  const std::string described = settled.describe();
  const std::string path = absl::StrCat(
      folder, "/", keyOf({fingerprint, compilerBuildId(), described}), ".plan");
  if (std::filesystem::exists(path)) {
    const absl::Status status = checkPlan(path, fingerprint, described);
    if (status.ok()) {
      std::error_code error; // Kept all the same where it may not be written.
      std::filesystem::last_write_time(
          path, std::filesystem::file_time_type::clock::now(), error);
      return ResolvedPlan{path, true};
    }
    std::fprintf(stderr, "warning: %s; the cached plan is made again\n",
                 std::string(status.message()).c_str());
  }
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, options));
  // Plans of models that nobody runs any more, and of other builds of llamac,
  // would fill the disk.
  removeUnusedFiles(folder, ".plan");
  LLAMAC_RETURN_IF_ERROR(compileToFile(*compilation, path, quiet).status());
  return ResolvedPlan{path, false};
}

} // namespace llamac
