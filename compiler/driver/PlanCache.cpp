//===- PlanCache.cpp - Cached plans of raw checkpoints --------------------===//
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
#include "runtime/base/Terminal.h"
#include "runtime/cuda/Driver.h"
#include "runtime/io/DiskCache.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/PlanReader.h"

#include "absl/strings/str_cat.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
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

static bool isFile(const std::string &path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

/// Whether `path` is a file with a plan's magic number.
static bool startsAsPlan(const std::string &path) {
  if (!isFile(path))
    return false;
  std::array<char, planMagic.size()> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return std::memcmp(start.data(), planMagic.data(), start.size()) == 0;
}

bool namesPlan(const std::string &path) {
  const std::string extension = std::filesystem::path(path).extension();
  const bool isModel = extension == ".gguf" || extension == ".json";
  return isModel ? startsAsPlan(path) : isFile(path);
}

absl::Status checkNoPlan(const std::string &path) {
  return startsAsPlan(path)
             ? usageError(absl::StrCat(path,
                                       ": expected a model, got a plan, which "
                                       "is compiled already; llamac inspect "
                                       "shows it"))
             : absl::OkStatus();
}

/// A place for `name` in a temporary folder, which is removed with the object.
static absl::StatusOr<ResolvedPlan> temporaryPlan(const std::string &name) {
  std::error_code error;
  std::string folder =
      std::filesystem::temp_directory_path(error) / "llamac-XXXXXX";
  if (error || !mkdtemp(folder.data()))
    return usageError(absl::StrCat(folder, ": cannot be made; set TMPDIR to a "
                                           "writable folder"));
  return ResolvedPlan{absl::StrCat(folder, "/", name), false,
                      std::shared_ptr<void>(nullptr, [folder](void *) {
                        std::error_code ignored;
                        std::filesystem::remove_all(folder, ignored);
                      })};
}

namespace {
/// All that decides a plan: its key, and what the plan itself has of it.
struct PlanKey {
  std::string key, fingerprint, options;
};
} // namespace

static absl::StatusOr<PlanKey> planKey(const Checkpoint &checkpoint,
                                       const CompileOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string fingerprint,
                          checkpoint.fingerprint());
  LLAMAC_ASSIGN_OR_RETURN(const CompileOptions resolved,
                          resolveOptions(options, checkpoint.config));
  const std::string described = resolved.describe();
  return PlanKey{keyOf({fingerprint, compilerBuildId(), described}),
                 fingerprint, described};
}

absl::StatusOr<std::string> cachedPlan(const Checkpoint &checkpoint,
                                       const CompileOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(const PlanKey key, planKey(checkpoint, options));
  const DiskCache cache(CacheKind::Plans);
  for (const CacheFile &file : cache.files())
    if (!file.temporary && file.path.stem() == key.key)
      return file.path.string();
  return std::string();
}

absl::StatusOr<ResolvedPlan> resolvePlan(const std::string &model,
                                         const CompileOptions &options,
                                         bool quiet, bool runsHere) {
  if (namesPlan(model))
    return ResolvedPlan{model, false};
  const OpenOptions opening = {.headOf = options.headOf};
  LLAMAC_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                          options.hasWeights ? openCheckpoint(model, opening)
                                             : openConfig(model, opening));
  LLAMAC_ASSIGN_OR_RETURN(const auto decided, planKey(checkpoint, options));
  const auto &[key, fingerprint, described] = decided;
  const DiskCache cache(CacheKind::Plans);
  const bool usable = cache.usable();
  ResolvedPlan plan;
  if (usable) {
    plan.path = cache.pathOf(key);
  } else {
    LLAMAC_ASSIGN_OR_RETURN(plan, temporaryPlan(key + ".plan"));
  }
  if (usable && cache.has(key)) {
    const absl::Status status = checkPlan(plan.path, fingerprint, described);
    if (status.ok()) {
      plan.verified = true;
      return plan;
    }
    printWarning(
        absl::StrCat(status.message(), "; the cached plan is compiled again"));
  }
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, options));
  if (runsHere && options.target == "cuda")
    LLAMAC_RETURN_IF_ERROR(gpuCapability(options.gpuIndex).status());
  if (!quiet)
    std::fprintf(stderr, "compiling %s for %s%s\n", printable(model).c_str(),
                 compilation->options().target.c_str(),
                 usable ? "; later runs use the cached plan" : "");
  absl::Status made;
  // The folder may be deleted at any time, and is then made again.
  for (int attempt = 0; attempt < cacheAttempts; ++attempt) {
    made = compileToFile(*compilation, plan.path, quiet).status();
    const bool cannotWrite =
        exitCode(made) == ExitCode::Usage || exitCode(made) == ExitCode::Device;
    if (!usable || !cannotWrite || !cache.usable())
      break;
  }
  LLAMAC_RETURN_IF_ERROR(made);
  if (usable)
    cache.added(key);
  return plan;
}

absl::StatusOr<DraftedPlans> resolveDraft(const std::string &model,
                                          const std::string &draft,
                                          const CompileOptions &options) {
  DraftedPlans plans = {options, options};
  if (draft.empty())
    return plans;
  plans.ofDraft.featureLayers.clear();
  std::optional<DraftHead> head;
  if (namesPlan(draft)) {
    LLAMAC_ASSIGN_OR_RETURN(const auto reader,
                            PlanReader::open(draft, {.verify = false}));
    head = fromPlan(*reader->plan().config).head;
  } else {
    LLAMAC_ASSIGN_OR_RETURN(const bool isHead, isDraftHead(draft));
    if (!isHead)
      return plans;
    if (namesPlan(model))
      return usageError(
          absl::StrCat("--draft ", draft,
                       ": expected the model's directory or file to run, "
                       "as an EAGLE-3 head is compiled for it, got ",
                       model, ", a plan; or compile the head: llamac compile ",
                       draft, " --head-of MODEL -o head.plan"));
    plans.ofDraft.headOf = model;
    // The features are whole on the first rank, and the head is small.
    plans.ofDraft.ranks = 1;
    plans.ofDraft.reproducibleRanks = false;
    LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                            openConfig(draft, {.headOf = model}));
    head = checkpoint.config.head;
  }
  if (head && plans.ofModel.featureLayers.empty())
    plans.ofModel.featureLayers = head->layers;
  return plans;
}

} // namespace llamac
