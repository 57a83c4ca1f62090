//===- Check.cpp - Every pass and target against the reference --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/check/Check.h"

#include "compiler/check/LaunchCheck.h"
#include "compiler/check/Reproducer.h"
#include "compiler/check/ValueTrace.h"
#include "compiler/driver/Devices.h"
#include "compiler/driver/PlanCache.h"
#include "compiler/driver/ReferenceTarget.h"
#include "compiler/reference/ReferenceModel.h"
#include "engine/step/Engine.h"
#include "engine/tuner/ModelRun.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

using namespace mlir;

namespace llamac {

bool CheckReport::passed() const {
  auto isGood = [](const auto &part) { return part.passed(); };
  return llvm::all_of(passes, isGood) && llvm::all_of(kernels, isGood) &&
         llvm::all_of(targets, isGood);
}

namespace {

/// A function of a module and how many rows a step of it takes.
struct EntryPoint {
  std::string function;
  int64_t rows;
};

class Checker {
public:
  Checker(const Checkpoint &checkpoint, const CompileOptions &compileOptions,
          const CheckOptions &options)
      : checkpoint(checkpoint), compileOptions(compileOptions),
        options(options) {}

  absl::Status run(ArrayRef<PipelineStep> passes);
  absl::Status checkTarget();

  CheckReport report;

private:
  absl::Status resolveTokens();
  std::vector<EntryPoint> entryPointsOf(ModuleOp module) const;
  absl::StatusOr<std::vector<float>>
  logits(ModuleOp module, const EntryPoint &entry,
         const ValueTrace::Callback &callback = {}) const;
  absl::StatusOr<CheckedStep> compareLogits(ModuleOp module, StringRef pass);
  std::string describe(const Difference &difference) const;
  absl::Status bisect(StringRef pass, ModuleOp before, ModuleOp after,
                      const EntryPoint &entry);
  absl::Status writeReproducer(ModuleOp before, const ValueMismatch *mismatch,
                               Culprit &culprit);

  const Checkpoint &checkpoint;
  const CompileOptions &compileOptions;
  const CheckOptions &options;
  std::vector<int32_t> tokens;
  int64_t firstRows = 0; ///< Rows of the first step: the second reads them.
  std::vector<float> expected;
  EntryPoint worstEntry; ///< The entry with the largest error in the last call
                         ///< of compareLogits.
};

} // namespace

absl::Status Checker::resolveTokens() {
  const int64_t vocab = checkpoint.config.vocabSize;
  tokens = options.tokens;
  if (tokens.empty())
    tokens = spreadTokens(24, vocab);
  LLAMAC_ASSIGN_OR_RETURN(const CompileOptions resolved,
                          resolveOptions(compileOptions, checkpoint.config));
  if (static_cast<int64_t>(tokens.size()) > resolved.context)
    return usageError(absl::StrCat("--tokens: got ", tokens.size(),
                                   " ids, the context holds ",
                                   resolved.context));
  for (int32_t token : tokens)
    if (token < 0 || token >= vocab)
      return usageError(absl::StrCat("--tokens: expected ids in [0, ", vocab,
                                     "), got ", token));
  firstRows = (2 * static_cast<int64_t>(tokens.size()) + 2) / 3;
  return absl::OkStatus();
}

std::vector<EntryPoint> Checker::entryPointsOf(ModuleOp module) const {
  std::vector<EntryPoint> entries;
  for (auto function : module.getOps<func::FuncOp>()) {
    int64_t rows = firstRows;
    for (StringRef bound : {"llamac.max_rows", "llamac.max_logits_rows"})
      if (auto limit = function->getAttrOfType<IntegerAttr>(bound))
        rows = std::min(rows, limit.getInt());
    entries.push_back({function.getName().str(), rows});
  }
  return entries;
}

/// All logits of the tokens, [tokens, vocabulary], in steps of `entry.rows`.
absl::StatusOr<std::vector<float>>
Checker::logits(ModuleOp module, const EntryPoint &entry,
                const ValueTrace::Callback &callback) const {
  reference::ReferenceOptions reading;
  reading.function = entry.function;
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<reference::ReferenceModel> model,
                          reference::ReferenceModel::create(
                              module, checkpointReader(checkpoint), reading));
  std::vector<float> result;
  const auto count = static_cast<int64_t>(tokens.size());
  for (int64_t first = 0; first < count; first += entry.rows) {
    const int64_t rows = std::min(entry.rows, count - first);
    if (callback)
      model->setHook([&](Operation &op, ArrayRef<reference::ValuePtr> results) {
        callback(first, op, results);
      });
    std::vector<int32_t> positions(rows), logitsRows(rows);
    std::iota(positions.begin(), positions.end(), first);
    std::iota(logitsRows.begin(), logitsRows.end(), 0);
    LLAMAC_ASSIGN_OR_RETURN(
        std::vector<float> part,
        model->step(absl::MakeConstSpan(tokens).subspan(first, rows), positions,
                    std::vector<int32_t>(rows, 0), logitsRows));
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

std::string Checker::describe(const Difference &difference) const {
  const auto vocab = static_cast<size_t>(checkpoint.config.vocabSize);
  if (difference.nmse == 0)
    return "nowhere";
  return absl::StrCat("token ", difference.worst / vocab, ", entry ",
                      difference.worst % vocab);
}

/// The worst of the module's functions.
absl::StatusOr<CheckedStep> Checker::compareLogits(ModuleOp module,
                                                   StringRef pass) {
  CheckedStep step{pass.str(), {}, {}, options.tolerance};
  bool isFirst = true;
  for (const EntryPoint &entry : entryPointsOf(module)) {
    const absl::StatusOr<std::vector<float>> got = logits(module, entry);
    // IR that cannot run has an infinite error; files that cannot be read are
    // no fault of the pass.
    if (!got.ok() && exitCode(got.status()) != ExitCode::Internal)
      return got.status();
    const Difference difference =
        compareValues(got.ok() ? *got : std::vector<float>(), expected);
    if (!isFirst && difference.nmse <= step.difference.nmse)
      continue;
    isFirst = false;
    worstEntry = entry;
    step.difference = difference;
    step.where = absl::StrCat("@", entry.function, ", ",
                              got.ok() ? describe(difference)
                                       : std::string(got.status().message()));
  }
  if (isFirst)
    return internalError(
        absl::StrCat("no function is left after ", pass.str()));
  return step;
}

absl::Status Checker::run(ArrayRef<PipelineStep> passes) {
  LLAMAC_RETURN_IF_ERROR(resolveTokens());
  const std::unique_ptr<MLIRContext> context = createContext();
  LLAMAC_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module,
                          importGraph(*context, checkpoint, compileOptions));
  options.progress("computing the reference");
  LLAMAC_ASSIGN_OR_RETURN(expected, logits(*module, {"step", firstRows}));
  for (const PipelineStep &pass : passes) {
    options.progress("checking pass " + pass.name.str());
    OwningOpRef<ModuleOp> before = module->clone();
    LLAMAC_RETURN_IF_ERROR(applyStep(pass, *module, checkpoint));
    LLAMAC_ASSIGN_OR_RETURN(CheckedStep step,
                            compareLogits(*module, pass.name));
    const WeightRounding *rounding =
        findWeightRounding(compileOptions.weightFormat);
    if (pass.name == "assign-weight-formats" && rounding) {
      step.tolerance = std::max(step.tolerance, rounding->logitsError);
      LLAMAC_ASSIGN_OR_RETURN(expected, logits(*module, worstEntry));
    }
    if (pass.rounds)
      step.tolerance =
          std::max(step.tolerance,
                   options.targetTolerance.value_or(defaultTargetTolerance));
    report.passes.push_back(step);
    // All that follows is wrong too.
    if (!step.passed() && options.bisect)
      return bisect(pass.name, *before, *module, worstEntry);
  }
  return absl::OkStatus();
}

absl::Status Checker::bisect(StringRef pass, ModuleOp before, ModuleOp after,
                             const EntryPoint &entry) {
  EntryPoint entryBefore{"step", entry.rows};
  for (const EntryPoint &known : entryPointsOf(before))
    if (known.function == entry.function)
      entryBefore.function = entry.function;
  ValueTrace trace(options.tolerance);
  LLAMAC_RETURN_IF_ERROR(
      logits(before, entryBefore, trace.recorder()).status());
  // Where the IR cannot run to its end, what ran has been compared.
  logits(after, entry, trace.comparer()).status().IgnoreError();
  Culprit culprit;
  culprit.pass = pass.str();
  const ValueMismatch *mismatch = trace.first();
  if (mismatch) {
    culprit.op = mismatch->op;
    culprit.location = mismatch->location;
    culprit.layer = mismatch->layer;
    culprit.difference = mismatch->difference;
  }
  LLAMAC_RETURN_IF_ERROR(writeReproducer(before, mismatch, culprit));
  report.culprit = std::move(culprit);
  return absl::OkStatus();
}

/// Writes the module before the pass, the tokens, and the tensors that the
/// first wrong op read, and notes their files.
absl::Status Checker::writeReproducer(ModuleOp before,
                                      const ValueMismatch *mismatch,
                                      Culprit &culprit) {
  LLAMAC_ASSIGN_OR_RETURN(
      Reproducer reproducer,
      Reproducer::create(options.reproducerFolder, culprit.pass));
  LLAMAC_RETURN_IF_ERROR(reproducer.writeModule(before));
  LLAMAC_RETURN_IF_ERROR(reproducer.writeNpy(
      "tokens", 1, std::vector<float>(tokens.begin(), tokens.end())));
  if (mismatch)
    for (const auto &[number, value] : mismatch->inputs) {
      const auto *tensor = std::get_if<reference::Tensor>(value.get());
      if (tensor && !tensor->shape.empty())
        LLAMAC_RETURN_IF_ERROR(
            reproducer.writeNpy(absl::StrCat("operand", number),
                                tensor->shape.front(), tensor->data));
    }
  culprit.files = reproducer.takeFiles();
  return absl::OkStatus();
}

/// The error that the cache of the target may cause.
static absl::StatusOr<double> cacheTolerance(const CompileOptions &options,
                                             const ModelConfig &config) {
  LLAMAC_ASSIGN_OR_RETURN(const CompileOptions resolved,
                          resolveOptions(options, config));
  const std::unique_ptr<MLIRContext> context = createContext();
  return createBackend(targetAttr(*context, resolved))
      ->numerics()
      .cacheTolerance();
}

absl::Status Checker::checkTarget() {
  options.progress("compiling");
  LLAMAC_ASSIGN_OR_RETURN(
      const ResolvedPlan plan,
      resolvePlan(checkpoint.path, compileOptions, /*quiet=*/true));
  ModelOptions loading;
  loading.devices = allDevices();
  loading.verify = !plan.verified;
  loading.simSchedule = options.simSchedule;
  loading.gpuIndex = compileOptions.gpuIndex;
  loading.tuned = false;
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model,
                          Model::load(plan.path, loading));
  // The operands of a launch differ between several ranks; plans for these are
  // compared from end to end alone.
  if (compileOptions.ranks == 1) {
    options.progress("checking kernels");
    LLAMAC_ASSIGN_OR_RETURN(
        LaunchCheckResult launches,
        checkLaunches(checkpoint, compileOptions, model, options));
    report.kernels = std::move(launches.kernels);
    report.culprit = std::move(launches.culprit);
  }
  LLAMAC_ASSIGN_OR_RETURN(const double ofCache,
                          cacheTolerance(compileOptions, checkpoint.config));
  const double tolerance =
      options.targetTolerance.value_or(defaultTargetTolerance + ofCache);
  for (int64_t rows : {firstRows, int64_t{1}}) {
    options.progress(
        absl::StrCat("checking ", compileOptions.target, " by ", rows));
    LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            Engine::create(model));
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine->newSequence());
    std::vector<float> got;
    for (size_t first = 0; first < tokens.size(); first += rows)
      LLAMAC_RETURN_IF_ERROR(engine->step(
          {{&sequence, absl::MakeConstSpan(tokens).subspan(first, rows),
            OutputRows::All}},
          [&](const LogitsRow &row) {
            got.insert(got.end(), row.values.begin(), row.values.end());
            return absl::OkStatus();
          }));
    const Difference difference = compareValues(got, expected);
    report.targets.push_back({absl::StrCat(compileOptions.target, " by ", rows),
                              difference, describe(difference), tolerance});
  }
  return absl::OkStatus();
}

std::vector<PipelineStep> checkableSteps(const CompileOptions &options,
                                         const kernel::Target &target) {
  std::vector<PipelineStep> steps;
  for (Phase phase : {Phase::Graph, Phase::Fuse, Phase::Schedule})
    for (PipelineStep &step : passesOf(phase, options, target)) {
      if (step.name == "lower-to-plan")
        return steps;
      steps.push_back(std::move(step));
    }
  return steps;
}

absl::StatusOr<CheckReport> checkPasses(const Checkpoint &checkpoint,
                                        const CompileOptions &compileOptions,
                                        ArrayRef<PipelineStep> passes,
                                        const CheckOptions &options) {
  Checker checker(checkpoint, compileOptions, options);
  LLAMAC_RETURN_IF_ERROR(checker.run(passes));
  return std::move(checker.report);
}

absl::StatusOr<CheckReport> checkModel(const Checkpoint &checkpoint,
                                       const CompileOptions &compileOptions,
                                       const CheckOptions &options) {
  // Refuses invalid options before anything runs.
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, compileOptions));
  const CompileOptions &resolved = compilation->options();
  Checker checker(checkpoint, resolved, options);
  LLAMAC_RETURN_IF_ERROR(
      checker.run(checkableSteps(resolved, compilation->target())));
  if (!checker.report.culprit)
    LLAMAC_RETURN_IF_ERROR(checker.checkTarget());
  return std::move(checker.report);
}

} // namespace llamac
