//===- CompileCommand.cpp - llamac compile ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "compiler/driver/PlanCache.h"
#include "compiler/llamac/Commands.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/cpu/Processor.h"
#include "runtime/cuda/GpuSpec.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cstdio>
#include <filesystem>

namespace llamac {

void CompileFlags::addTo(CLI::App &command) {
  command.add_option(
      "--target", options.target,
      "What runs the plan: cpu, cuda, or sim, which runs cuda's kernels on "
      "the host (default: cpu)");
  command.add_option("--gpu", options.gpu,
                     "GPU that cuda's kernels are for: " + gpuNames() +
                         " (default: the first of the machine, else " +
                         defaultGpuSpec().name + ")");
  command.add_option("-c,--ctx-size", options.context,
                     "Tokens a sequence may hold (default: the model's, at "
                     "most 8192)");
  command
      .add_option("--parallel", options.maxSequences,
                  "Sequences that the KV cache holds at a time")
      ->capture_default_str();
  command.add_option("--weights", options.weightFormat,
                     "Format of the matrices: keep, bf16, mxfp8, q8_0 or q4_0");
  command
      .add_option("--kv-type", options.kvFormat,
                  "Format of the KV cache: f16, bf16 or, on cpu, f32 or q8_0")
      ->capture_default_str();
  command.add_option("--tune-cpu", options.tuneCpu,
                     "On cpu: processor whose way of reading memory the plan "
                     "suits, which changes no result: " +
                         processorNames() +
                         " (default: the most like this machine's)");
  command.add_flag("--sim-check", options.simCheck,
                   "On sim: check every access to memory for races, bounds "
                   "and bytes that nobody wrote");
  command.add_flag("--reference-weights", referenceWeights,
                   "Leave the weights in the checkpoint and pack them at load");
  command
      .add_option("--skip-pass", options.skipPasses,
                  "Optimising passes to leave out, comma separated")
      ->delimiter(',');
  command
      .add_option("--override-kernel", overrides,
                  "NAME=FILE.cu: a file of --emit-source, edited, in the place "
                  "of kernel NAME once it gives what the reference gives; can "
                  "be repeated")
      ->type_size(1)
      ->allow_extra_args(false);
}

void CompileFlags::addGpuIndexTo(CLI::App &command) {
  command
      .add_option("--gpu-index", options.gpuIndex,
                  "On cuda: which GPU of the machine to compile for where "
                  "--gpu names none")
      ->capture_default_str();
}

void CompileFlags::addReportsTo(CLI::App &command) {
  PassReportOptions &reports = options.reports;
  const std::string group = "Seeing the passes (IR goes to stderr)";
  command
      .add_option("--print-before", reports.printBefore,
                  "Print the IR before these passes, comma separated, or all")
      ->delimiter(',')
      ->group(group);
  command
      .add_option("--print-after", reports.printAfter,
                  "Print the IR after these passes, comma separated, or all")
      ->delimiter(',')
      ->group(group);
  command
      .add_flag("--print-ir-changed", reports.printChanged,
                "Print what each pass changed, as a diff")
      ->group(group);
  command
      .add_flag("--print-locations", reports.printLocations,
                "Print of each op in what layer and tensor it stands")
      ->group(group);
  command
      .add_flag("--explain-fusion", reports.explainFusion,
                "Say of every op that was not fused where it stands and why")
      ->group(group);
  command
      .add_option("--dump-dir", reports.dumpFolder,
                  "A folder for the IR after each pass, kernels.cpp and "
                  "plan.json")
      ->group(group);
  command
      .add_flag("--time-passes", reports.times,
                "Print how long phases and passes took")
      ->group(group);
  command
      .add_option("--crash-reproducer", reports.crashReproducer,
                  "A file for the IR and the passes when one fails")
      ->group(group);
}

absl::StatusOr<CompileOptions> CompileFlags::parse() const {
  CompileOptions parsed = options;
  parsed.embedWeights = !referenceWeights;
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
  for (const std::string &flag : overrides) {
    LLAMAC_ASSIGN_OR_RETURN(KernelOverride kernel, readOverride(flag));
    parsed.overrides.push_back(std::move(kernel));
  }
  return parsed;
}

namespace {

struct CompileCommand {
  CompileFlags flags;
  std::string model, output, sourceFolder, stopAfter;

  absl::Status run() const {
    LLAMAC_ASSIGN_OR_RETURN(const Phase last, lastPhase());
    LLAMAC_ASSIGN_OR_RETURN(const CompileOptions options, flags.parse());
    LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, open(last));
    LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Compilation> compilation,
                            Compilation::create(checkpoint, options));
    LLAMAC_RETURN_IF_ERROR(last == Phase::Plan ? writePlan(*compilation)
                                               : writeText(*compilation, last));
    return sourceFolder.empty() ? absl::OkStatus()
                                : compilation->writeSourceFiles(sourceFolder);
  }

  /// Usage error when nothing that a compilation makes is asked for.
  absl::StatusOr<Phase> lastPhase() const {
    const PassReportOptions &reports = flags.options.reports;
    if (output.empty() && sourceFolder.empty() && reports.dumpFolder.empty() &&
        reports.printBefore.empty() && reports.printAfter.empty() &&
        !reports.printChanged && !reports.explainFusion && !reports.times)
      return usageError("compile: expected -o, --emit-source, --dump-dir, "
                        "--time-passes, --explain-fusion or a --print flag");
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
    return last;
  }

  /// Only a plan needs weights; a configuration file alone will do for the
  /// rest.
  absl::StatusOr<Checkpoint> open(Phase last) const {
    const bool isConfig = std::filesystem::path(model).extension() == ".json";
    const bool needsWeights = last == Phase::Plan && flags.options.hasWeights;
    return !flags.options.hasWeights || (isConfig && !needsWeights)
               ? openConfig(model)
               : openCheckpoint(model);
  }

  absl::Status writeText(Compilation &compilation, Phase last) const {
    LLAMAC_RETURN_IF_ERROR(compilation.runTo(last));
    if (output.empty())
      return absl::OkStatus();
    const std::string text = compilation.text();
    if (output != "-")
      return writeFileAtomically(output, text);
    std::fputs(text.c_str(), stdout);
    return absl::OkStatus();
  }

  absl::Status writePlan(Compilation &compilation) const {
    LLAMAC_ASSIGN_OR_RETURN(const CompileTimes times,
                            compileToFile(compilation, output, flags.quiet));
    if (flags.quiet)
      return absl::OkStatus();
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(output, error);
    std::fprintf(stderr,
                 "%s: %s; graph %.2f s, kernels %.2f s, weights %.2f s\n",
                 output.c_str(), formatBytes(error ? 0 : bytes).c_str(),
                 times.graph, times.kernels, times.plan);
    return absl::OkStatus();
  }
};

} // namespace

void addCompileCommand(CLI::App &app, absl::Status &status) {
  auto command = std::make_shared<CompileCommand>();
  CLI::App *verb = app.add_subcommand("compile", "Compile a model to a plan");
  verb->add_option("model", command->model,
                   "A model directory or .gguf file; with --no-weights, or "
                   "where no plan is made, also a params.json or config.json "
                   "alone")
      ->required();
  verb->add_option("-o,--output", command->output,
                   "The plan to write, or what --stop-after leaves, as text "
                   "(-: stdout)");
  verb->add_option("--stop-after", command->stopAfter,
                   "The last phase to run: import, graph, fuse, schedule, "
                   "emit or plan (default: plan)");
  verb->add_option("--emit-source", command->sourceFolder,
                   "A folder to write the kernels' C++ to: kernels.cpp and the "
                   "headers that it includes");
  command->flags.addTo(*verb);
  command->flags.addReportsTo(*verb);
  verb->add_flag("!--no-weights", command->flags.options.hasWeights,
                 "A small plan for --random-weights alone: the configuration "
                 "decides all shapes");
  verb->add_option("--isa", command->flags.isa,
                   "Instruction-set levels to compile for, comma separated "
                   "(default: the host's)");
  command->flags.addGpuIndexTo(*verb);
  verb->add_flag("-q,--quiet", command->flags.quiet, "No progress on stderr");
  verb->callback([command, &status] { status = command->run(); });
}

} // namespace llamac
