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

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cstdio>
#include <filesystem>

namespace llamac {

void CompileFlags::addTo(CLI::App &command) {
  command.add_option("--target", options.target, "What runs the plan: cpu");
  command.add_option("-c,--ctx-size", options.context,
                     "Tokens a sequence may hold (default: the model's, at "
                     "most 8192)");
  command.add_option("--weights", options.weightFormat,
                     "Format of the matrices: keep, bf16, q8_0 or q4_0");
  command.add_flag("--reference-weights", referenceWeights,
                   "Leave the weights in the checkpoint and pack them at load");
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
  return parsed;
}

namespace {

struct CompileCommand {
  CompileFlags flags;
  std::string model, output, sourceFolder;

  absl::Status run() const {
    if (output.empty() && sourceFolder.empty())
      return usageError("compile: expected -o, --emit-source or both");
    LLAMAC_ASSIGN_OR_RETURN(const CompileOptions options, flags.parse());
    LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, open());
    if (!sourceFolder.empty())
      LLAMAC_RETURN_IF_ERROR(
          emitSourceFiles(checkpoint, options, sourceFolder));
    return output.empty() ? absl::OkStatus() : writePlan(checkpoint, options);
  }

  /// Source needs no weights, so a configuration file alone will do for it.
  absl::StatusOr<Checkpoint> open() const {
    const bool isConfig = std::filesystem::path(model).extension() == ".json";
    return output.empty() && isConfig ? openConfig(model)
                                      : openCheckpoint(model);
  }

  absl::Status writePlan(const Checkpoint &checkpoint,
                         const CompileOptions &options) const {
    LLAMAC_ASSIGN_OR_RETURN(
        const CompileTimes times,
        compileToFile(checkpoint, options, output, flags.quiet));
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
                   "A model directory or .gguf file; for --emit-source also a "
                   "params.json or config.json alone")
      ->required();
  verb->add_option("-o,--output", command->output, "The plan to write");
  verb->add_option("--emit-source", command->sourceFolder,
                   "A folder to write the kernels' C++ to: kernels.cpp and the "
                   "headers that it includes");
  command->flags.addTo(*verb);
  verb->add_option("--isa", command->flags.isa,
                   "Instruction-set levels to compile for, comma separated "
                   "(default: the host's)");
  verb->add_flag("-q,--quiet", command->flags.quiet, "No progress on stderr");
  verb->callback([command, &status] { status = command->run(); });
}

} // namespace llamac
