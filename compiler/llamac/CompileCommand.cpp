//===- CompileCommand.cpp - llamac compile ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "codegen/cpu/Processor.h"
#include "compiler/driver/PlanCache.h"
#include "compiler/llamac/Commands.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/IsaLevel.h"
#include "runtime/cuda/GpuSpec.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/DiskCache.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/PlanReader.h"
#include "tools/CommandTree.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "llvm/ADT/StringExtras.h"

#include <cstdio>
#include <filesystem>
#include <map>

namespace llamac {

static std::string headingOf(CompileFlags::Help help, const char *heading) {
  return help == CompileFlags::Help::Listed ? heading : unlistedHeading;
}

std::string CompileFlags::footer() const {
  std::string text = "\n\nA MODEL that is not a plan is compiled first, with "
                     "these options of\n`llamac compile`:";
  size_t column = 80;
  for (const auto &[flag, name] : given) {
    const std::string flagName = flag->get_name();
    if (column + flagName.size() > 78) {
      text += "\n ";
      column = 1;
    }
    absl::StrAppend(&text, " ", flagName);
    column += 1 + flagName.size();
  }
  return text;
}

void CompileFlags::addTo(CLI::App &command, Help help) {
  auto keep = [this](CLI::Option *option, const char *name) {
    given.emplace_back(option, name);
    return option;
  };
  const OptionGroup compiling{command, headingOf(help, "Compilation")};
  keep(compiling.add("--target", options.target, "TARGET",
                     "Device that runs the plan: cpu, cuda, sim, which runs "
                     "cuda's kernels on the host, or reference, which computes "
                     "by the formulas (default: cpu)"),
       "target")
      ->transform(knownValues("cpu, cuda, sim, reference"));
  keep(compiling.add("--gpu", options.gpu, "GPU",
                     "GPU that cuda's kernels are compiled for: " + gpuNames() +
                         ", or " + gpuProductNames() +
                         " (default: this machine's first GPU, else " +
                         defaultGpuSpec().name + ")"),
       "gpu")
      ->transform(knownValues(gpuNames() + ", " + gpuProductNames()));
  keep(compiling.add("-c,--ctx-size,--max-model-len", options.context, "N",
                     "Most tokens of a sequence (default: the model's limit, "
                     "at most 8192)"),
       "context")
      ->check(wholeNumber(1, mostTokens));
  // A verb that runs several has an option of that name of its own.
  if (!command.get_option_no_throw("--parallel"))
    keep(compiling.addDefault("--parallel,--max-num-seqs", options.maxSequences,
                              "N",
                              "Sequences that the KV cache has room for, "
                              "unless a verb says how many it runs"),
         "sequences");
  keep(compiling.add("--step-rows", options.stepRows, "N",
                     "Leave out what only steps of more than N rows need: a "
                     "smaller plan, compiled faster, that takes longer prompts "
                     "in parts (default: all that the target has)"),
       "step-rows")
      ->check(wholeNumber(1, mostTokens));
  keep(compiling.addDefault(
           "--ranks,--tensor-parallel-size", options.ranks, "N",
           "Ranks over which weights, heads and vocabulary are partitioned"),
       "ranks")
      ->check(wholeNumber(1, mostRanks));
  keep(compiling.addFlag(
           "--reproducible-ranks", options.reproducibleRanks,
           "On cpu: give results the same bits with 1, 2, 4 and 8 ranks"),
       "reproducible-ranks");
  keep(compiling.add("--weights", options.weightFormat, "FORMAT",
                     "Format of the matrices: " + weightOptionNames() +
                         " (default: keep)"),
       "weights")
      ->transform(knownValues(weightOptionNames()));
  keep(compiling.addDefault("--kv-type", options.kvFormat, "FORMAT",
                            "Format of the KV cache: f16, bf16, q8_0 or, on "
                            "cpu, f32 or, on cuda, fp8"),
       "kv")
      ->transform(knownValues("f16, bf16, f32, q8_0, fp8"));
  keep(compiling.add("--feature-layers", featureLayers, "LAYERS",
                     "Layers whose inputs steps also give, comma separated, "
                     "for an EAGLE-3 head that reads them (default: none)"),
       "features");
  keep(compiling.add("--tune-cpu", options.tuneCpu, "CPU",
                     "On cpu: CPU to tune for; results are unchanged: " +
                         processorNames() +
                         " (default: the most like this machine's)"),
       "tune")
      ->transform(knownValues(processorNames()));
  keep(compiling.addFlag(
           "--exact", options.exact,
           "On cpu: keep activations in f32, also before weights in blocks "
           "of integers (default: 8 bits there); slower"),
       "exact");
  keep(compiling.addDefault(
           "--resident-step", options.residentStep, "WHEN",
           "On cuda: whether the step of one row is one launch, "
           "all of whose blocks run at once: off, auto (where "
           "that is expected to be faster) or on"),
       "resident-step")
      ->transform(knownValues(kernel::residentStepsNames()));
  keep(compiling.addFlag("--sim-check", options.simCheck,
                         "On sim: check every access to memory for races, "
                         "bounds and uninitialised reads"),
       "checked");
  keep(compiling.addFlag("--sim-hostile-rounding", options.simHostileRounding,
                         "On sim: make the last bit of each rounded number "
                         "depend on the line of the kernel that rounds it"),
       "hostile-rounding")
      ->excludes("--sim-check");
  keep(compiling.addFlag("--reference-weights", referenceWeights,
                         "Leave the weights in the checkpoint, and pack them "
                         "when the plan is loaded"),
       "embed");
  keep(
      compiling.add("--approximate-exp", options.approximateExp, "KIND",
                    "Approximate attention's exponentials by a polynomial, "
                    "poly=3, or on cpu by a table, table=256 (default: exact)"),
      "approximate-exp");
  keep(compiling.add("--sparsify-attention", options.sparsifyTopK, "K",
                     "On cpu, in decode: keep only the K largest scores of "
                     "each 256 keys (default: all)"),
       "sparsify-attention")
      ->check(wholeNumber(1, mostTokens));
  keep(compiling.add("--skip-pass", options.skipPasses, "PASSES",
                     "Optimising passes to leave out, comma separated"),
       "skip")
      ->delimiter(',');
  keep(compiling.addRepeated(
           "--override-kernel", overrides, "NAME=FILE.cu",
           "Replace kernel NAME by a file of --emit-source that was "
           "edited, after checking it against the reference"),
       "override");
}

void CompileFlags::addGpuIndexTo(CLI::App &command, Help help) {
  const OptionGroup compiling{command, headingOf(help, "Compilation")};
  compiling.addDefault(
      "--gpu-index", options.gpuIndex, "N",
      "On cuda: index of the GPU to compile for, if --gpu is not given");
}

void CompileFlags::addReportsTo(CLI::App &command, Help help) {
  PassReportOptions &reports = options.reports;
  const OptionGroup seeing{
      command, headingOf(help, "Seeing the passes (IR goes to stderr)")};
  CLI::Option *const flags[] = {
      seeing
          .add("--print-before", reports.printBefore, "PASSES",
               "Print the IR before these passes, comma separated, or all")
          ->delimiter(','),
      seeing
          .add("--print-after", reports.printAfter, "PASSES",
               "Print the IR after these passes, comma separated, or all")
          ->delimiter(','),
      seeing.addFlag("--print-ir-changed", reports.printChanged,
                     "Print what each pass changed, as a diff"),
      seeing.addFlag("--print-locations", reports.printLocations,
                     "Print the layer and tensor of each op"),
      seeing.add("--layer", reports.layer, "N",
                 "Print the ops of this layer and no others"),
      seeing.addFlag(
          "--explain-fusion", reports.explainFusion,
          "Print each op that was not fused, with its place and the reason"),
      seeing.addFlag("--explain-kernels", reports.explainKernels,
                     "Print each kernel's config, what bounds it, and why it "
                     "takes a slow path"),
      seeing
          .add("--explain-rows", reports.explainRows, "N",
               "With --explain-kernels: count a step of N rows (default: as "
               "many as each program takes)")
          ->check(wholeNumber(1, mostTokens)),
      seeing.add("--dump-dir", reports.dumpFolder, "DIR",
                 "Write the IR after each pass, kernels.cpp and plan.json"),
      seeing.addFlag("--time-passes", reports.times,
                     "Print how long phases and passes took"),
      seeing.add("--crash-reproducer", reports.crashReproducer, "FILE",
                 "Write the IR and the passes when one fails")};
  for (const CLI::Option *flag : flags)
    given.emplace_back(flag, "");
}

/// The values of what CompileOptions::describe() gives: "name=value" or "name".
static std::map<std::string, std::string> fieldsOf(absl::string_view options) {
  std::map<std::string, std::string> fields;
  for (const absl::string_view field :
       absl::StrSplit(options, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    fields.emplace(parts.first,
                   absl::StrContains(field, '=') ? parts.second : "yes");
  }
  return fields;
}

absl::StatusOr<Checkpoint> openModelOrConfig(const std::string &path,
                                             const OpenOptions &opening) {
  LLAMAC_RETURN_IF_ERROR(checkNoPlan(path));
  namespace fs = std::filesystem;
  const auto isConfig = [](const fs::path &file) {
    return file.extension() == ".json";
  };
  std::error_code error;
  const fs::directory_iterator files(path, error);
  const bool isAlone =
      error ? isConfig(path)
            : llvm::none_of(files, [](const fs::directory_entry &entry) {
                const fs::path kind = entry.path().extension();
                return kind == ".pth" || kind == ".safetensors" ||
                       kind == ".gguf";
              });
  return isAlone ? openConfig(path, opening) : openCheckpoint(path, opening);
}

absl::Status CompileFlags::checkPlan(const std::string &path) const {
  if (llvm::none_of(given, [](const auto &flag) { return bool(*flag.first); }))
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(const auto plan,
                          PlanReader::open(path, {.verify = false}));
  // An unknown target is unknown for a plan too.
  CompileOptions target;
  target.target = options.target;
  LLAMAC_RETURN_IF_ERROR(
      resolveOptions(target, fromPlan(*plan->plan().config)).status());
  LLAMAC_ASSIGN_OR_RETURN(const CompileOptions parsed, parse());
  std::map<std::string, std::string> asked = fieldsOf(parsed.describe());
  std::map<std::string, std::string> held = fieldsOf(plan->plan().options);
  for (const auto &[flag, name] : given) {
    if (!*flag)
      continue;
    if (name.empty())
      return usageError(absl::StrCat(flag->get_name(),
                                     ": expected a model to compile, got ",
                                     path, ", a plan"));
    const std::string &value = held[name];
    if (asked[name] != value)
      return usageError(absl::StrCat(
          flag->get_name(), ": expected ", value.empty() ? "none" : value,
          ", which ", path, " was compiled with, got ", asked[name],
          "; compile the model again for that"));
  }
  return absl::OkStatus();
}

void printWritten(const std::string &path, absl::string_view more) {
  std::error_code error;
  uint64_t bytes = 0;
  if (std::filesystem::is_directory(path, error)) {
    // Errors end the sum: what a user keeps beside the files may be closed.
    std::filesystem::recursive_directory_iterator entry(path, error), end;
    for (; !error && entry != end; entry.increment(error))
      if (entry->is_regular_file(error))
        if (const uint64_t size = entry->file_size(error); !error)
          bytes += size;
  } else if (std::filesystem::is_regular_file(path, error)) {
    bytes = std::filesystem::file_size(path, error);
  } else {
    return;
  }
  absl::FPrintF(stderr, "%s: %s%s\n", printable(path), formatBytes(bytes),
                more);
}

absl::StatusOr<std::optional<DeviceLimits>> hostLimits() {
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<CpuDevice> device,
                          CpuDevice::create());
  return device->measureLimits();
}

bool CompileFlags::isForThisMachine() const {
  return options.target == "cpu" && options.tuneCpu.empty();
}

absl::StatusOr<CompileOptions> CompileFlags::parse() const {
  CompileOptions parsed = options;
  parsed.embedWeights = !referenceWeights;
  if (const GpuProduct *product = findGpuProduct(options.gpu))
    parsed.gpu = product->gpu;
  for (absl::string_view name : absl::StrSplit(isa, ',', absl::SkipEmpty())) {
    std::optional<IsaLevel> level = parseIsaLevel(name);
    if (!level) {
      std::vector<absl::string_view> names;
      for (IsaLevel known : isaLevels())
        names.push_back(isaLevelName(known));
      return usageError(absl::StrCat(
          "--isa: expected ", absl::StrJoin(names, ", "), ", got ", name));
    }
    parsed.isaLevels.push_back(*level);
  }
  for (absl::string_view layer :
       absl::StrSplit(featureLayers, ',', absl::SkipEmpty()))
    if (int64_t number = 0; absl::SimpleAtoi(layer, &number))
      parsed.featureLayers.push_back(number);
    else
      return usageError(absl::StrCat(
          "--feature-layers: expected numbers of layers, got ", layer));
  for (const std::string &flag : overrides) {
    LLAMAC_ASSIGN_OR_RETURN(KernelOverride kernel, readOverride(flag));
    parsed.overrides.push_back(std::move(kernel));
  }
  if (options.reports.explainKernels && isForThisMachine()) {
    LLAMAC_ASSIGN_OR_RETURN(parsed.reports.hostLimits, hostLimits());
  }
  return parsed;
}

namespace {

struct CompileCommand {
  CompileFlags flags;
  std::string model, output, sourceFolder, stopAfter;
  bool cached = false;

  absl::Status run() const {
    if (cached)
      return findCached();
    LLAMAC_ASSIGN_OR_RETURN(const Phase last, lastPhase());
    LLAMAC_ASSIGN_OR_RETURN(CompileOptions options, flags.parse());
    options.reports.explainsOnStderr = output == "-";
    LLAMAC_RETURN_IF_ERROR(checkNotInput("-o", output, model));
    LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, open(last));
    LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Compilation> compilation,
                            Compilation::create(checkpoint, options));
    warnOfLongContext(compilation->options().context,
                      checkpoint.config.maxContext);
    LLAMAC_RETURN_IF_ERROR(last == Phase::Plan ? writePlan(*compilation)
                                               : writeText(*compilation, last));
    if (!sourceFolder.empty())
      LLAMAC_RETURN_IF_ERROR(compilation->writeSourceFiles(sourceFolder));
    if (!flags.quiet)
      for (const std::string &folder :
           {sourceFolder, flags.options.reports.dumpFolder})
        if (!folder.empty())
          printWritten(folder);
    return absl::OkStatus();
  }

  /// Prints the path of the plan that verbs which run a model use for it.
  absl::Status findCached() const {
    if (!output.empty() || !sourceFolder.empty() || !stopAfter.empty())
      return usageError("--cached: expected no -o, --emit-source or "
                        "--stop-after, which write files of their own");
    if (!DiskCache(CacheKind::Plans).usable())
      return usageError("--cached: expected a cache, got a folder that cannot "
                        "be used as one; set XDG_CACHE_HOME to another, or use "
                        "-o");
    if (namesPlan(model))
      LLAMAC_RETURN_IF_ERROR(flags.checkPlan(model));
    LLAMAC_ASSIGN_OR_RETURN(const CompileOptions options, flags.parse());
    LLAMAC_ASSIGN_OR_RETURN(const ResolvedPlan plan,
                            resolvePlan(model, options, flags.quiet));
    LLAMAC_ASSIGN_OR_RETURN(const auto reader,
                            PlanReader::open(plan.path, {.verify = false}));
    warnOfLongContext(reader->plan().context,
                      reader->plan().config->maxContext);
    std::printf("%s\n", plan.path.c_str());
    return absl::OkStatus();
  }

  /// Usage error when nothing that a compilation makes is asked for.
  absl::StatusOr<Phase> lastPhase() const {
    const PassReportOptions &reports = flags.options.reports;
    if (output.empty() && sourceFolder.empty() && reports.dumpFolder.empty() &&
        reports.printBefore.empty() && reports.printAfter.empty() &&
        !reports.printChanged && !reports.wantsRemarks() && !reports.times)
      return usageError(
          "compile: expected -o, --cached, --emit-source, --dump-dir, "
          "--time-passes, --explain-fusion, --explain-kernels or a "
          "--print flag");
    Phase last = output.empty() ? Phase::Emit : Phase::Plan;
    if (!stopAfter.empty()) {
      LLAMAC_ASSIGN_OR_RETURN(last, parsePhase(stopAfter));
    }
    if (last == Phase::Plan && output.empty())
      return usageError("--stop-after plan: expected -o, the plan to write");
    if (last == Phase::Plan && output == "-")
      return usageError("-o -: expected a file for the plan, which is written "
                        "out of order, got stdout; --stop-after emit and "
                        "earlier phases can be written there");
    if (last < Phase::Emit && !sourceFolder.empty())
      return usageError(absl::StrCat("--emit-source: expected --stop-after "
                                     "emit or plan, got ",
                                     stopAfter));
    if (reports.explainRows != 0 && !reports.explainKernels)
      return usageError("--explain-rows: expected it with --explain-kernels");
    if (last < Phase::Fuse && reports.explainFusion)
      return usageError(absl::StrCat("--explain-fusion: expected --stop-after "
                                     "fuse or later, got ",
                                     stopAfter));
    if (last < Phase::Schedule && reports.explainKernels)
      return usageError(absl::StrCat("--explain-kernels: expected --stop-after "
                                     "schedule or later, got ",
                                     stopAfter));
    return last;
  }

  /// Only a plan needs weights; a configuration file alone will do for the
  /// rest.
  absl::StatusOr<Checkpoint> open(Phase last) const {
    const bool isConfig = std::filesystem::path(model).extension() == ".json";
    const bool needsWeights = last == Phase::Plan && flags.options.hasWeights;
    const OpenOptions opening = {.headOf = flags.options.headOf};
    LLAMAC_RETURN_IF_ERROR(checkNoPlan(model));
    return !flags.options.hasWeights || (isConfig && !needsWeights)
               ? openConfig(model, opening)
               : openCheckpoint(model, opening);
  }

  absl::Status writeText(Compilation &compilation, Phase last) const {
    LLAMAC_RETURN_IF_ERROR(compilation.runTo(last));
    if (output.empty())
      return absl::OkStatus();
    const std::string text = compilation.text();
    if (output == "-") {
      std::fputs(text.c_str(), stdout);
      return absl::OkStatus();
    }
    LLAMAC_RETURN_IF_ERROR(writeFileAtomically(output, text));
    if (!flags.quiet)
      printWritten(output);
    return absl::OkStatus();
  }

  absl::Status writePlan(Compilation &compilation) const {
    LLAMAC_ASSIGN_OR_RETURN(const CompileTimes times,
                            compileToFile(compilation, output, flags.quiet));
    if (flags.quiet)
      return absl::OkStatus();
    printWritten(output, absl::StrFormat(
                             "; graph %.2f s, kernels %.2f s, weights %.2f s",
                             times.graph, times.kernels, times.plan));
    for (const std::string &line : compilation.options().describeBounds())
      std::fprintf(stderr, "%s\n", line.c_str());
    return absl::OkStatus();
  }
};

} // namespace

void addCompileCommand(CLI::App &app, absl::Status &status) {
  auto command = std::make_shared<CompileCommand>();
  CLI::App *verb = app.add_subcommand("compile", "Compile a model to a plan");
  addModelArgument(*verb, command->model,
                   "A model directory or .gguf file; with --no-weights, or "
                   "where no plan is made, also a params.json or config.json "
                   "alone")
      ->required();
  const OptionGroup output{*verb, "Output"};
  output.add("-o,--output", command->output, "FILE",
             "File to write: the plan, or as text what --stop-after leaves (-: "
             "stdout)");
  output.addFlag(
      "--cached", command->cached,
      "Write the plan to the cache unless it is there, and print its path");
  output
      .add("--stop-after", command->stopAfter, "PHASE",
           "The last phase to run: import, graph, fuse, schedule, emit or "
           "plan (default: plan)")
      ->transform(knownValues(llvm::join(phaseNames(), ", ")));
  output.add("--emit-source", command->sourceFolder, "DIR",
             "Write the kernels' C++: kernels.cpp and the headers that it "
             "includes");
  output.addFlag("-q,--quiet", command->flags.quiet, "Print no progress");
  CompileFlags &flags = command->flags;
  flags.addTo(*verb, CompileFlags::Help::Listed);
  const OptionGroup compiling{*verb, "Compilation"};
  compiling
      .add("--isa", flags.isa, "LEVELS",
           "Instruction-set levels to compile for, comma separated (default: "
           "the host's)")
      ->check(suggestedValues(isaLevelNames()));
  compiling.add("--head-of", flags.options.headOf, "MODEL",
                "The model that MODEL, an EAGLE-3 head, drafts for; it has to "
                "be compiled with the --feature-layers that the head reads");
  compiling.addFlag("!--no-weights", flags.options.hasWeights,
                    "A small plan for --random-weights alone: the "
                    "configuration decides all shapes");
  flags.addGpuIndexTo(*verb, CompileFlags::Help::Listed);
  flags.addReportsTo(*verb, CompileFlags::Help::Listed);
  verb->footer("Examples:\n"
               "  llamac compile model.gguf -o model.plan\n"
               "  llamac compile Llama-3.2-1B -o q8.plan --weights q8_0 -c "
               "4096\n"
               "  llamac compile model.gguf --stop-after fuse -o -");
  verb->callback([command, &status] { status = command->run(); });
}

} // namespace llamac
