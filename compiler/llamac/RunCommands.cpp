//===- RunCommands.cpp - The verbs that run a plan or model -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
// Each takes a plan, or a model that is compiled to a cached plan on the way,
// and is the runtime's command of the same name.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Devices.h"
#include "compiler/driver/KernelVariants.h"
#include "compiler/driver/PlanCache.h"
#include "compiler/driver/ReferenceLogits.h"
#include "compiler/driver/ReferenceRun.h"
#include "compiler/llamac/Commands.h"
#include "compiler/llamac/ModelCommand.h"
#include "runtime/base/Status.h"
#include "runtime/io/DiskCache.h"
#include "runtime/tools/CommandLine.h"

#include <cstdio>
#include <filesystem>

namespace llamac {

CLI::App *ModelCommand::addVerb(CLI::App &app, const char *name,
                                const char *description, bool isRequired) {
  CLI::App *verb = app.add_subcommand(name, description);
  verb->add_option("MODEL", model, "A plan, model directory or .gguf file")
      ->required(isRequired);
  return verb;
}

void ModelCommand::addCommonOptions(CLI::App &verb,
                                    const std::string &examples) {
  addModelOptions(verb, runtime);
  compile.addTo(verb);
  verb.footer("Examples:\n" + examples + compile.footer());
}

absl::StatusOr<std::shared_ptr<const Model>>
ModelCommand::load(bool quiet) const {
  if (namesPlan(model)) {
    LLAMAC_RETURN_IF_ERROR(compile.checkPlan(model));
  }
  // A plan made on the way holds code for the level that is to run.
  CompileFlags flags = compile;
  flags.isa = runtime.isa;
  LLAMAC_ASSIGN_OR_RETURN(CompileOptions options, flags.parse());
  options.hasWeights = !runtime.randomWeights;
  options.gpuIndex = runtime.gpuIndex;
  static const ClangVariantCompiler compiler;
  for (int attempt = 0;; ++attempt) {
    LLAMAC_ASSIGN_OR_RETURN(const ResolvedPlan plan,
                            resolvePlan(model, options, quiet));
    ModelOptions loading = runtime;
    loading.verify &= !plan.verified;
    loading.quiet = quiet;
    loading.devices = allDevices();
    loading.compiler = &compiler;
    auto loaded = Model::load(plan.path, loading);
    // A cached plan may be deleted at any time, and is then made again.
    if (loaded.ok() || attempt == cacheAttempts || plan.path == model ||
        std::filesystem::exists(plan.path))
      return loaded;
  }
}

void addRunCommand(CLI::App &app, absl::Status &status) {
  struct Command : ModelCommand {
    RunOptions options;
  };
  auto command = std::make_shared<Command>();
  CLI::App *verb = command->addVerb(app, "run", "Complete a prompt");
  addRunOptions(*verb, command->options);
  command->addCommonOptions(
      *verb, "  llamac run model.gguf -p \"The capital of France is\" -n 24\n"
             "  llamac run model.plan -p - --temp 0 --json <prompt.txt");
  verb->callback([command, &status] {
    status = [&]() -> absl::Status {
      LLAMAC_RETURN_IF_ERROR(prepareRun(command->options, stdin));
      if (command->compile.options.target == "reference" &&
          (command->options.profile || !command->options.trace.empty()))
        return usageError("--profile and --trace: expected a target that has "
                          "kernels, got reference");
      if (command->compile.options.target == "reference")
        return referenceRun(command->model, command->compile.options,
                            command->options, stdout, stderr);
      LLAMAC_ASSIGN_OR_RETURN(auto model,
                              command->load(command->options.quiet));
      return runCommand(model, command->options, stdout, stderr);
    }();
  });
}

void addBenchCommand(CLI::App &app, absl::Status &status) {
  struct Command : ModelCommand {
    BenchOptions options;
  };
  auto command = std::make_shared<Command>();
  CLI::App *verb = command->addVerb(app, "bench", "Measure prefill and decode");
  addBenchOptions(*verb, command->options);
  command->addCommonOptions(
      *verb, "  llamac bench model.gguf --prompt-tokens 512 -t 2\n"
             "  llamac bench model.plan --kernels");
  verb->callback([command, &status] {
    status = [&]() -> absl::Status {
      LLAMAC_ASSIGN_OR_RETURN(auto model, command->load());
      return benchCommand(model, command->options, stdout);
    }();
  });
}

void addPerplexityCommand(CLI::App &app, absl::Status &status) {
  struct Command : ModelCommand {
    PerplexityOptions options;
  };
  auto command = std::make_shared<Command>();
  CLI::App *verb = command->addVerb(app, "perplexity", "Score a text");
  addPerplexityOptions(*verb, command->options);
  command->addCommonOptions(*verb, "  llamac perplexity model.gguf text.txt");
  verb->callback([command, &status] {
    status = [&]() -> absl::Status {
      LLAMAC_ASSIGN_OR_RETURN(auto model, command->load());
      return perplexityCommand(model, command->options, stdout);
    }();
  });
}

void addLogitsCommand(CLI::App &app, absl::Status &status) {
  struct Command : ModelCommand {
    LogitsOptions options;
  };
  auto command = std::make_shared<Command>();
  CLI::App *verb = command->addVerb(
      app, "logits", "Write the logits after each token to a .npy file");
  addLogitsOptions(*verb, command->options);
  command->addCommonOptions(
      *verb, "  llamac logits model.gguf --tokens 1,2,3 -o logits.npy");
  verb->callback([command, &status] {
    status = [&]() -> absl::Status {
      if (command->compile.options.target == "reference")
        return referenceLogits(command->model,
                               command->compile.options.weightFormat,
                               command->options);
      LLAMAC_ASSIGN_OR_RETURN(auto model, command->load());
      return logitsCommand(model, command->options);
    }();
  });
}

} // namespace llamac
