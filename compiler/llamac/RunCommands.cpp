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
#include "compiler/driver/PlanCache.h"
#include "compiler/driver/ReferenceLogits.h"
#include "compiler/driver/ReferenceRun.h"
#include "compiler/llamac/Commands.h"
#include "compiler/llamac/ModelCommand.h"
#include "runtime/base/Status.h"
#include "runtime/tools/CommandLine.h"

#include <cstdio>

namespace llamac {

void ModelCommand::addTo(CLI::App &verb, bool isRequired) {
  verb.add_option("model", model, "A plan, model directory or .gguf file")
      ->required(isRequired);
  compile.addTo(verb);
  addModelOptions(verb, runtime);
}

absl::StatusOr<std::shared_ptr<const Model>>
ModelCommand::load(bool quiet) const {
  // A plan made on the way holds code for the level that is to run.
  CompileFlags flags = compile;
  flags.isa = runtime.isa;
  LLAMAC_ASSIGN_OR_RETURN(CompileOptions options, flags.parse());
  options.hasWeights = !runtime.randomWeights;
  options.gpuIndex = runtime.gpuIndex;
  LLAMAC_ASSIGN_OR_RETURN(ResolvedPlan plan,
                          resolvePlan(model, options, quiet));
  ModelOptions loading = runtime;
  loading.verify &= !plan.verified;
  loading.quiet = quiet;
  loading.devices = allDevices();
  return Model::load(plan.path, loading);
}

void addRunCommand(CLI::App &app, absl::Status &status) {
  struct Command : ModelCommand {
    RunOptions options;
  };
  auto command = std::make_shared<Command>();
  CLI::App *verb = app.add_subcommand("run", "Complete a prompt");
  command->addTo(*verb);
  addRunOptions(*verb, command->options);
  verb->callback([command, &status] {
    status = [&]() -> absl::Status {
      LLAMAC_RETURN_IF_ERROR(checkRunOptions(command->options));
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
  CLI::App *verb = app.add_subcommand("bench", "Measure prefill and decode");
  command->addTo(*verb);
  addBenchOptions(*verb, command->options);
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
  CLI::App *verb = app.add_subcommand("perplexity", "Score a text");
  command->addTo(*verb);
  addPerplexityOptions(*verb, command->options);
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
  CLI::App *verb = app.add_subcommand(
      "logits", "Write the logits after each token to a .npy file");
  command->addTo(*verb);
  addLogitsOptions(*verb, command->options);
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
