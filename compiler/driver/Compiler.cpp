//===- Compiler.cpp - From a checkpoint to a plan -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compiler.h"

#include "codegen/cpu/CpuBackend.h"
#include "codegen/cpu/Processor.h"
#include "codegen/cuda/CudaBackend.h"
#include "codegen/sim/SimBackend.h"
#include "codegen/targets/Targets.h"
#include "compiler/driver/KernelUses.h"
#include "compiler/driver/PlanJson.h"
#include "compiler/trial/KernelVariants.h"
#include "frontends/GraphBuilder.h"
#include "runtime/base/Status.h"
#include "runtime/cuda/Driver.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/plan/PlanConfig.h"
#include "simulator/SimCode.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstdlib>
#include <filesystem>
#include <xxhash.h>

using namespace mlir;

namespace llamac {

/// The context that a plan gets when neither user nor model say less.
static constexpr int64_t defaultContext = 8192;

/// The kinds of code that the plan shall have, as `isa` of TargetAttr.
static std::string isaText(const CompileOptions &options) {
  if (options.simCheck)
    return std::string(simCheckedCode);
  if (options.simHostileRounding)
    return std::string(simHostileCode);
  return absl::StrJoin(options.isaLevels, ",",
                       [](std::string *out, IsaLevel level) {
                         absl::StrAppend(out, isaLevelName(level));
                       });
}

/// The kind that --approximate-exp asks for; nothing when there is no such
/// kind.
static std::optional<llama::ExpKind> expKindOf(const CompileOptions &options) {
  return llvm::StringSwitch<std::optional<llama::ExpKind>>(
             options.approximateExp)
      .Case("", llama::ExpKind::Exact)
      .Case("poly=3", llama::ExpKind::Poly3)
      .Case("table=256", llama::ExpKind::Table256)
      .Default(std::nullopt);
}

static double expBound(const CompileOptions &options) {
  return llama::attentionBound(*expKindOf(options), /*dropped=*/0);
}

/// Fields of describe(), with their bounds; none of exact plans. A kind that
/// does not exist, which is compared with a plan's before it is refused, has no
/// bound.
static std::string approximationText(const CompileOptions &options) {
  std::string text;
  if (!options.approximateExp.empty())
    text = absl::StrCat(" approximate-exp=", options.approximateExp);
  if (!text.empty() && expKindOf(options))
    absl::StrAppend(&text, ",bound=", expBound(options));
  if (options.sparsifyTopK)
    absl::StrAppend(&text, " sparsify-attention=", options.sparsifyTopK,
                    ",bound=2d");
  return text;
}

std::vector<std::string> CompileOptions::describeBounds() const {
  std::vector<std::string> lines;
  if (!approximateExp.empty())
    lines.push_back(absl::StrCat("approximate-exp ", approximateExp,
                                 ": attention is off by at most ",
                                 expBound(*this), " of the largest value"));
  if (sparsifyTopK)
    lines.push_back(absl::StrCat(
        "sparsify-attention ", sparsifyTopK,
        ": attention of one row is off by at most 2 d of the largest value, d "
        "the share of the softmax outside the ",
        sparsifyTopK, " largest scores; steps of several rows are exact"));
  return lines;
}

std::string CompileOptions::describe() const {
  std::vector<std::string> edited;
  for (const KernelOverride &kernel : overrides)
    edited.push_back(absl::StrCat(
        kernel.kernel, ":",
        absl::Hex(XXH3_64bits(kernel.text.data(), kernel.text.size()))));
  return absl::StrCat(
      "target=", target, " gpu=", gpu, " context=", context,
      " weights=", weightFormat, " kv=", kvFormat, " isa=", isaText(*this),
      " tune=", tuneCpu, exact ? " exact" : "",
      residentStep == "off" ? "" : " resident-step=" + residentStep,
      simCheck ? " checked" : "", simHostileRounding ? " hostile-rounding" : "",
      approximationText(*this), " embed=", embedWeights,
      hasWeights ? "" : " bare", " sequences=", maxSequences,
      stepRows == 0 ? "" : absl::StrCat(" step-rows=", stepRows),
      ranks == 1 ? "" : absl::StrCat(" ranks=", ranks),
      reproducibleRanks ? " reproducible-ranks" : "",
      featureLayers.empty()
          ? ""
          : absl::StrCat(" features=", absl::StrJoin(featureLayers, ",")),
      " skip=", absl::StrJoin(skipPasses, ","),
      " override=", absl::StrJoin(edited, ","));
}

ArrayRef<llvm::StringLiteral> phaseNames() {
  static constexpr llvm::StringLiteral names[] = {"import",   "graph", "fuse",
                                                  "schedule", "emit",  "plan"};
  return names;
}

absl::StatusOr<Phase> parsePhase(absl::string_view name) {
  for (auto [i, known] : llvm::enumerate(phaseNames()))
    if (known == StringRef(name.data(), name.size()))
      return static_cast<Phase>(i);
  return usageError(absl::StrCat("--stop-after: expected import, graph, fuse, "
                                 "schedule, emit or plan, got ",
                                 name));
}

static std::vector<PipelineStep> allPassesOf(Phase phase,
                                             const CompileOptions &options,
                                             const kernel::Target &target) {
  switch (phase) {
  case Phase::Graph:
    return graphSteps(options.weightFormat, options.ranks,
                      options.reproducibleRanks);
  case Phase::Fuse:
    return fuseSteps(options.reports.wantsRemarks(), *expKindOf(options),
                     options.stepRows);
  case Phase::Schedule:
    return scheduleSteps(target, options.reports.wantsRemarks(),
                         options.sparsifyTopK);
  default:
    return {};
  }
}

std::vector<PipelineStep> passesOf(Phase phase, const CompileOptions &options,
                                   const kernel::Target &target) {
  std::vector<PipelineStep> steps = allPassesOf(phase, options, target);
  llvm::erase_if(steps, [&](const PipelineStep &step) {
    return llvm::is_contained(options.skipPasses, step.name);
  });
  return steps;
}

/// The name of the GPU that `options` compile for; empty for cpu. It is the
/// machine's unless the user names one; a machine without GPUs is no error for
/// GPU 0. The simulator runs as the same one on every machine.
static absl::StatusOr<std::string> gpuFor(const CompileOptions &options) {
  if (options.target == "cpu")
    return std::string();
  if (!options.gpu.empty() && !findGpuSpec(options.gpu))
    return usageError(absl::StrCat("--gpu: expected one of ", gpuNames(), ", ",
                                   gpuProductNames(), ", got ", options.gpu));
  if (!options.gpu.empty())
    return options.gpu;
  if (options.target == "sim")
    return std::string(defaultGpuSpec().name);
  const absl::StatusOr<ComputeCapability> capability =
      gpuCapability(options.gpuIndex);
  if (!capability.ok() && options.gpuIndex != 0)
    return capability.status();
  const GpuSpec *spec = capability.ok() ? gpuSpecFor(*capability) : nullptr;
  return std::string((spec ? *spec : defaultGpuSpec()).name);
}

static absl::StatusOr<std::string> processorFor(const CompileOptions &options) {
  if (options.target != "cpu")
    return std::string();
  const char *environment = std::getenv("LLAMAC_TUNE_CPU");
  const bool isGiven = !options.tuneCpu.empty();
  const std::string name =
      isGiven || !environment ? options.tuneCpu : environment;
  if (name.empty())
    return std::string(processorName(hostProcessor()));
  if (!parseProcessor(name))
    return usageError(absl::StrCat(isGiven ? "--tune-cpu" : "LLAMAC_TUNE_CPU",
                                   ": expected one of ", processorNames(),
                                   ", got ", name));
  return name;
}

std::unique_ptr<MLIRContext>
createContext(llvm::function_ref<void(DialectRegistry &)> addTargets) {
  DialectRegistry registry;
  addTargets(registry);
  registry.insert<arith::ArithDialect, func::FuncDialect, kernel::KernelDialect,
                  llama::LlamaDialect, plan::PlanDialect>();
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

namespace {

/// Collects the diagnostics of a scope; the text becomes an error's message.
class DiagnosticText {
public:
  explicit DiagnosticText(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
            return;
          llvm::raw_string_ostream os(text);
          os << (text.empty() ? "" : "; ") << diagnostic.getLocation() << ": "
             << diagnostic;
          if (message.empty())
            llvm::raw_string_ostream(message) << diagnostic;
        }) {}

  absl::Status error(absl::string_view what) const {
    return internalError(absl::StrCat(what, ": ", text));
  }

  /// The error of a pass.
  absl::Status error(const PipelineStep &step,
                     const Checkpoint &checkpoint) const {
    return step.refuses
               ? unsupportedError(absl::StrCat(checkpoint.path, ": ", message))
               : error(absl::StrCat("the pass ", step.name.str(), " failed"));
  }

private:
  std::string text;
  std::string message; ///< The first, without its location.
  ScopedDiagnosticHandler handler;
};

} // namespace

absl::StatusOr<OwningOpRef<ModuleOp>>
importGraph(MLIRContext &context, const Checkpoint &checkpoint,
            ArrayRef<int64_t> featureLayers) {
  DiagnosticText diagnostics(&context);
  OwningOpRef<ModuleOp> graph = buildStepGraph(
      context, checkpoint.config,
      [&](absl::string_view name) {
        const WeightSource *weight = checkpoint.weights.find(name);
        return weight ? weight->type : DataType::BF16;
      },
      featureLayers);
  if (failed(verify(*graph)))
    return diagnostics.error("the graph does not verify");
  return graph;
}

absl::StatusOr<OwningOpRef<ModuleOp>>
importGraph(MLIRContext &context, const Checkpoint &checkpoint,
            const CompileOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(
      OwningOpRef<ModuleOp> graph,
      importGraph(context, checkpoint, options.featureLayers));
  (*graph)->setAttr(kernel::KernelDialect::getTargetAttrName(),
                    targetAttr(context, options));
  return graph;
}

absl::Status applyStep(const PipelineStep &step, ModuleOp module,
                       const Checkpoint &checkpoint) {
  const DiagnosticText diagnostics(module.getContext());
  PassManager pm(module.getContext());
  step.addTo(pm);
  return succeeded(pm.run(module)) ? absl::OkStatus()
                                   : diagnostics.error(step, checkpoint);
}

static absl::Status checkKvFormat(const CompileOptions &options) {
  const bool isCpu = options.target == "cpu";
  if (options.exact && options.kvFormat == "q8_0")
    return usageError("--kv-type: expected f16, bf16 or f32 with --exact, got "
                      "q8_0, whose scores are sums of integers");
  if (isCpu ? parseCpuKvFormat(options.kvFormat).has_value()
            : parseCudaKvFormat(options.kvFormat).has_value())
    return absl::OkStatus();
  return usageError(
      absl::StrCat("--kv-type: expected ",
                   isCpu ? "f16, bf16, f32 or q8_0" : "f16, bf16, q8_0 or fp8",
                   " for target ", options.target, ", got ", options.kvFormat));
}

kernel::TargetAttr targetAttr(MLIRContext &context,
                              const CompileOptions &options) {
  return kernel::TargetAttr::get(
      &context, options.target, options.context, options.kvFormat, options.gpu,
      options.tuneCpu, isaText(options), options.exact,
      *kernel::symbolizeResidentSteps(options.residentStep));
}

std::unique_ptr<Backend> createBackend(kernel::TargetAttr attr) {
  auto emitError = [&] {
    return mlir::emitError(UnknownLoc::get(attr.getContext()));
  };
  if (attr.getName() == "cpu") {
    std::vector<IsaLevel> levels;
    for (StringRef name : llvm::split(attr.getIsa(), ","))
      levels.push_back(*parseIsaLevel({name.data(), name.size()}));
    return std::make_unique<CpuBackend>(*cpuTargetOptions(attr, emitError),
                                        std::move(levels));
  }
  const CudaTargetOptions cuda = *cudaTargetOptions(attr, emitError);
  if (attr.getName() == "sim")
    return std::make_unique<SimBackend>(
        cuda, simFlavourOf({attr.getIsa().data(), attr.getIsa().size()}));
  return std::make_unique<CudaBackend>(cuda);
}

absl::Status checkWeightFormat(const std::string &format) {
  if (format == "keep" || findWeightRounding(format))
    return absl::OkStatus();
  return usageError(absl::StrCat("--weights: expected ", weightOptionNames(),
                                 ", got ", format));
}

absl::Status checkReproducibleRanks(const CompileOptions &options) {
  if (!options.reproducibleRanks || options.target == "cpu")
    return absl::OkStatus();
  return unsupportedError(absl::StrCat(
      "--reproducible-ranks: expected --target cpu, whose kernels sum by "
      "leaves, got ",
      options.target, "; compile without it"));
}

/// Usage error for an option that the target does not have.
static absl::Status checkTargetOptions(const CompileOptions &options) {
  struct TargetOption {
    bool isGiven;
    absl::string_view flag, targets, expected;
  };
  const TargetOption known[] = {
      {options.simCheck, "--sim-check", "sim", "sim"},
      {options.simHostileRounding, "--sim-hostile-rounding", "sim", "sim"},
      {!options.overrides.empty(), "--override-kernel", "cuda sim",
       "cuda or sim, whose kernels are .cu files"},
      {!options.tuneCpu.empty(), "--tune-cpu", "cpu", "cpu"},
      {options.exact, "--exact", "cpu",
       "cpu, whose products can keep activations in f32"},
      {options.residentStep != "off", "--resident-step", "cuda sim",
       "cuda or sim, whose steps are launches"},
      {!options.gpu.empty(), "--gpu", "cuda sim", "cuda or sim"},
      {options.gpuIndex != 0, "--gpu-index", "cuda", "cuda"},
      {!options.isaLevels.empty(), "--isa", "cpu", "cpu"}};
  if (!kernel::symbolizeResidentSteps(options.residentStep))
    return usageError(absl::StrCat("--resident-step: expected ",
                                   kernel::residentStepsNames(), ", got ",
                                   options.residentStep));
  for (const auto &[isGiven, flag, targets, expected] : known)
    if (isGiven && !absl::StrContains(targets, options.target))
      return usageError(absl::StrCat(flag, ": expected --target ", expected,
                                     ", got ", options.target));
  return absl::OkStatus();
}

static absl::Status checkRange(absl::string_view flag, int64_t value,
                               int64_t least, int64_t most,
                               absl::string_view unit) {
  if (value >= least && value <= most)
    return absl::OkStatus();
  return usageError(
      absl::StrCat(flag, ": expected 1 to ", most, " ", unit, ", got ", value));
}

static absl::Status checkFeatureLayers(const CompileOptions &options,
                                       const ModelConfig &config) {
  const absl::string_view flag = "--feature-layers";
  if (options.featureLayers.empty())
    return absl::OkStatus();
  if (config.head)
    return usageError(absl::StrCat(
        flag,
        ": expected a model, which a draft head reads, got a draft head"));
  if (options.featureLayers.size() > mostFeatures)
    return usageError(absl::StrCat(flag, ": expected at most ", mostFeatures,
                                   " layers, got ",
                                   options.featureLayers.size()));
  for (const int64_t layer : options.featureLayers)
    if (layer < 0 || layer > config.numLayers)
      return usageError(absl::StrCat(flag, ": expected numbers from 0 to ",
                                     config.numLayers,
                                     ", behind the last "
                                     "layer, got ",
                                     layer));
  if (options.residentStep != "off")
    return usageError(absl::StrCat(
        flag,
        ": expected --resident-step off, as the one launch of a resident "
        "step gives no features, got ",
        options.residentStep));
  return absl::OkStatus();
}

absl::StatusOr<CompileOptions> resolveOptions(const CompileOptions &options,
                                              const ModelConfig &config) {
  if (!llvm::is_contained({"cpu", "cuda", "sim"}, options.target))
    return usageError(absl::StrCat("--target: expected cpu, cuda or sim, got ",
                                   options.target));
  LLAMAC_RETURN_IF_ERROR(checkTargetOptions(options));
  LLAMAC_RETURN_IF_ERROR(checkReproducibleRanks(options));
  LLAMAC_RETURN_IF_ERROR(checkWeightFormat(options.weightFormat));
  LLAMAC_RETURN_IF_ERROR(checkKvFormat(options));
  if (!expKindOf(options))
    return usageError(
        absl::StrCat("--approximate-exp: expected poly=3 or table=256, got ",
                     options.approximateExp));
  LLAMAC_RETURN_IF_ERROR(checkRange("--ctx-size", options.context, 0,
                                    kernel::longestContext, "tokens"));
  LLAMAC_RETURN_IF_ERROR(checkRange("--parallel", options.maxSequences, 1,
                                    mostSequences, "sequences"));
  LLAMAC_RETURN_IF_ERROR(
      checkRange("--ranks", options.ranks, 1, mostRanks, "ranks"));
  LLAMAC_RETURN_IF_ERROR(checkFeatureLayers(options, config));
  CompileOptions resolved = options;
  LLAMAC_ASSIGN_OR_RETURN(resolved.tuneCpu, processorFor(options));
  LLAMAC_ASSIGN_OR_RETURN(resolved.gpu, gpuFor(options));
  if (resolved.context == 0)
    resolved.context = std::min(config.maxContext, defaultContext);
  if (options.target == "cpu" && options.isaLevels.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(const IsaLevel level, usableIsaLevel());
    resolved.isaLevels = {level};
  }
  return resolved;
}

/// Usage error for an approximation that the target has no kernels for.
static absl::Status checkApproximations(const CompileOptions &options,
                                        const kernel::Target &target) {
  const absl::string_view name = options.target;
  if (!target.takesExp(*expKindOf(options)))
    return usageError(absl::StrCat("--approximate-exp: expected poly=3 for "
                                   "target ",
                                   name, ", got ", options.approximateExp));
  const int64_t most = target.mostTopK();
  if (options.sparsifyTopK == 0 ||
      (options.sparsifyTopK > 0 && options.sparsifyTopK <= most))
    return absl::OkStatus();
  return usageError(
      most == 0
          ? absl::StrCat("--sparsify-attention: expected --target cpu, got ",
                         name, ", whose kernels drop no scores")
          : absl::StrCat("--sparsify-attention: expected 1 to ", most,
                         " for target ", name, ", got ", options.sparsifyTopK));
}

Compilation::Compilation(const Checkpoint &checkpoint,
                         const CompileOptions &options)
    : checkpoint(checkpoint), compileOptions(options), reports(options.reports),
      context(createContext()),
      backend(createBackend(targetAttr(*context, options))) {}

absl::StatusOr<std::unique_ptr<Compilation>>
Compilation::create(const Checkpoint &checkpoint,
                    const CompileOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(const CompileOptions resolved,
                          resolveOptions(options, checkpoint.config));
  std::unique_ptr<Compilation> compilation(
      new Compilation(checkpoint, resolved));
  LLAMAC_RETURN_IF_ERROR(compilation->backend->checkModel(checkpoint.config));
  LLAMAC_RETURN_IF_ERROR(
      checkApproximations(resolved, compilation->backend->target()));
  std::vector<StringRef> passes, optional;
  for (Phase phase : {Phase::Graph, Phase::Fuse, Phase::Schedule})
    for (const PipelineStep &step :
         allPassesOf(phase, resolved, compilation->backend->target())) {
      if (!llvm::is_contained(passes, step.name))
        passes.push_back(step.name);
      if (step.optional)
        optional.push_back(step.name);
    }
  LLAMAC_RETURN_IF_ERROR(compilation->reports.checkNames(passes));
  LLAMAC_RETURN_IF_ERROR(
      compilation->reports.checkLayer(checkpoint.config.numLayers));
  for (const std::string &name : resolved.skipPasses)
    if (!llvm::is_contained(optional, name))
      return usageError(absl::StrCat("--skip-pass: expected one of ",
                                     llvm::join(optional, ", "), ", got ",
                                     name));
  return compilation;
}

absl::Status Compilation::runTo(Phase last) {
  while (phasesRun <= static_cast<int>(last)) {
    reports.startPhase(phaseNames()[phasesRun]);
    const absl::Status status = runPhase(static_cast<Phase>(phasesRun));
    reports.endPhase(status);
    LLAMAC_RETURN_IF_ERROR(status);
    LLAMAC_RETURN_IF_ERROR(reports.status());
    ++phasesRun;
  }
  return absl::OkStatus();
}

absl::Status Compilation::runPhase(Phase phase) {
  switch (phase) {
  case Phase::Import: {
    LLAMAC_ASSIGN_OR_RETURN(graph,
                            importGraph(*context, checkpoint, compileOptions));
    reports.stepDone("import", *graph);
    return absl::OkStatus();
  }
  case Phase::Graph:
    return runPasses(phase);
  case Phase::Fuse:
    LLAMAC_RETURN_IF_ERROR(runPasses(phase));
    reports.endFusion(compileOptions.skipPasses);
    return absl::OkStatus();
  case Phase::Schedule:
    LLAMAC_RETURN_IF_ERROR(runPasses(phase));
    reports.dump("plan.json", planJson(*graph).dump(2) + "\n");
    if (compileOptions.reports.explainKernels) {
      LLAMAC_ASSIGN_OR_RETURN(const int64_t tokens,
                              countedContext(0, compileOptions.context));
      // A prompt of so many rows has as many tokens at least.
      const int64_t rows = compileOptions.reports.explainRows;
      reports.explanations() << explainKernels(
          *graph, target(),
          costStep(std::max(tokens, std::min(rows, compileOptions.context))),
          reports, rows);
      reports.explanations().flush();
    }
    return absl::OkStatus();
  case Phase::Emit:
    LLAMAC_RETURN_IF_ERROR(emit());
    for (const SourceFile &file : sources)
      reports.dump(file.name, file.text);
    return absl::OkStatus();
  case Phase::Plan:
    return compile();
  }
  llvm_unreachable("unknown phase");
}

absl::Status Compilation::runPasses(Phase phase) {
  DiagnosticText diagnostics(context.get());
  const std::vector<PipelineStep> steps =
      passesOf(phase, compileOptions, backend->target());
  // A manager for each pass: one manager would run all passes on one function
  // and then on the next. Timers know passes by their addresses, so that all
  // managers live until the last has run.
  std::vector<std::unique_ptr<PassManager>> managers;
  for (const PipelineStep &step : steps) {
    managers.push_back(std::make_unique<PassManager>(
        context.get(), ModuleOp::getOperationName()));
    step.addTo(*managers.back());
    if (failed(reports.run(step.name, *managers.back(), *graph)))
      return diagnostics.error(step, checkpoint);
  }
  return absl::OkStatus();
}

std::string Compilation::text() const {
  return phasesRun <= static_cast<int>(Phase::Emit) ? reports.print(*graph)
                                                    : joinSources(sources);
}

absl::Status Compilation::emit() {
  DiagnosticText diagnostics(context.get());
  SmallVector<plan::KernelOp> kernels(graph->getOps<plan::KernelOp>());
  FailureOr<std::vector<SourceFile>> files =
      backend->emit(kernels, sourceEdit, SourceLayout::Formatted);
  if (failed(files))
    return diagnostics.error("the kernels cannot be emitted");
  sources = std::move(files).value_or(std::vector<SourceFile>());
  if (compileOptions.overrides.empty())
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(applyOverrides(compileOptions.overrides, *graph,
                                        compileOptions.context, *backend,
                                        sources));
  // Compile what has been checked.
  sourceEdit = [this](StringRef name, const std::string &) {
    return llvm::find_if(
               sources,
               [&](const SourceFile &file) { return file.name == name; })
        ->text;
  };
  return absl::OkStatus();
}

absl::Status Compilation::compile() {
  SmallVector<plan::KernelOp> kernels(graph->getOps<plan::KernelOp>());
  LLAMAC_ASSIGN_OR_RETURN(code, backend->compile(kernels, sourceEdit));
  return absl::OkStatus();
}

absl::Status Compilation::writeSourceFiles(const std::string &folder) const {
  auto write = [&](const std::string &name, absl::string_view text) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error)
      return usageError(absl::StrCat(path.parent_path().string(),
                                     ": cannot be made: ", error.message()));
    return writeFileAtomically(path.string(), text);
  };
  for (const KernelHeader &header : backend->headers())
    LLAMAC_RETURN_IF_ERROR(
        write(header.name.str(), {header.text.data(), header.text.size()}));
  for (const SourceFile &file : sources)
    LLAMAC_RETURN_IF_ERROR(write(file.name, file.text));
  return absl::OkStatus();
}

schema::KvLayoutT Compilation::kvLayout() const {
  const ModelConfig &config = checkpoint.config;
  schema::KvLayoutT layout = backend->kvLayout(llama::KVType::get(
      context.get(), kvHeadsOfRank(config.numKvHeads, compileOptions.ranks),
      config.headSize));
  layout.maxSequences = compileOptions.maxSequences;
  if (graph)
    addKvGroups(*graph, config.numLayers, layout);
  return layout;
}

kernel::CostStep Compilation::costStep(int64_t context) const {
  return {.context = context,
          .splitContext = compileOptions.context,
          .kvTokenBytes = kvTokenBytes(kvLayout())};
}

std::optional<schema::SamplingT>
advisedSampling(const GenerationDefaults &defaults) {
  if (!defaults.temperature)
    return std::nullopt;
  schema::SamplingT sampling;
  sampling.temperature = *defaults.temperature;
  sampling.topK = defaults.topK.value_or(sampling.topK);
  sampling.topP = defaults.topP.value_or(sampling.topP);
  return sampling;
}

std::vector<int32_t> endsOfText(const Checkpoint &checkpoint,
                                const TokenizerBlob *vocabulary) {
  std::vector<int64_t> all = checkpoint.tokenizer.stopIds;
  if (vocabulary)
    for (int32_t id : vocabulary->stopIds())
      all.push_back(id);
  std::vector<int32_t> ids;
  for (int64_t id : all)
    if (id >= 0 && id < checkpoint.config.vocabSize &&
        !llvm::is_contained(ids, id))
      ids.push_back(static_cast<int32_t>(id));
  return ids;
}

/// The contents that every plan of the module holds.
PlanContents Compilation::planContents() const {
  PlanContents contents;
  contents.config = checkpoint.config;
  contents.target = compileOptions.target;
  contents.gpu = compileOptions.gpu;
  contents.context = compileOptions.context;
  contents.ranks = compileOptions.ranks;
  contents.options = compileOptions.describe();
  // Steps of one row alone leave scores out.
  contents.rowsAreAlike =
      backend->target().rowsAreAlike() && compileOptions.sparsifyTopK == 0;
  contents.featureLayers = compileOptions.featureLayers;
  contents.kv = kvLayout();
  contents.matrixLayout = backend->matrixLayout();
  return contents;
}

absl::StatusOr<schema::PlanT> Compilation::manifest() const {
  return planManifest(*graph, planContents());
}

absl::Status Compilation::writePlanFile(const std::string &path,
                                        const std::string &fingerprint,
                                        const std::string &tokenizerBlob,
                                        const PlanProgress &progress) {
  PlanContents contents = planContents();
  contents.fingerprint = fingerprint;
  contents.checkModel = [&]() -> absl::Status {
    LLAMAC_ASSIGN_OR_RETURN(const std::string now, checkpoint.fingerprint());
    if (now == fingerprint)
      return absl::OkStatus();
    return badFileError(absl::StrCat(
        checkpoint.path, ": changed while it was compiled; compile it again"));
  };
  contents.code = code;
  contents.source = backend->planSource(sources);
  contents.tokenizerKind =
      std::string(tokenizerFormatName(checkpoint.tokenizer.kind));
  contents.tokenizerBlob = tokenizerBlob;
  std::optional<TokenizerBlob> vocabulary;
  if (!tokenizerBlob.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(vocabulary, TokenizerBlob::parse(tokenizerBlob));
    contents.bos = vocabulary->bosId();
    contents.addBos = vocabulary->flags().addBos;
  }
  contents.stopIds =
      endsOfText(checkpoint, vocabulary ? &*vocabulary : nullptr);
  contents.sampling = advisedSampling(checkpoint.generation);
  contents.embedWeights = compileOptions.embedWeights;
  contents.hasWeights = compileOptions.hasWeights;
  contents.generator = generatorOf(contents.target);
  const auto edited = llvm::map_to_vector(
      compileOptions.overrides,
      [](const KernelOverride &override) { return override.kernel; });
  contents.tuning = listVariants(*graph, contents, *backend, edited);
  for (auto program : graph->getOps<plan::ProgramOp>())
    contents.programTuning[program.getSymName()] = programTuning(program);
  return writePlan(*graph, contents, checkpoint.weights, path, progress);
}

} // namespace llamac
