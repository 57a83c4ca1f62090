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
#include "compiler/driver/ReferenceTarget.h"
#include "compiler/llamac/Commands.h"
#include "compiler/trial/KernelVariants.h"
#include "engine/step/Model.h"
#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/DiskCache.h"
#include "runtime/plan/PlanReader.h"
#include "tools/CommandLine.h"
#include "tools/TuneCommand.h"

#include "absl/strings/str_cat.h"

#include <cstdio>
#include <filesystem>

namespace llamac {

namespace {

using LoadedModel = absl::StatusOr<std::shared_ptr<const Model>>;

struct ModelCommand {
  std::string model;
  CompileFlags compile;
  LoadOptions runtime;

  ModelCommand() { runtime.sequences = 1; }

  bool onReference() const { return compile.options.target == "reference"; }

  /// The plan that the flags name, or one that is compiled on the way, loaded.
  /// Usage error for flags that a plan was not compiled with.
  LoadedModel load() const;
};

} // namespace

LoadedModel ModelCommand::load() const {
  if (namesPlan(model)) {
    LLAMAC_RETURN_IF_ERROR(compile.checkPlan(model));
  }
  // A plan made on the way holds code for the level that is to run.
  CompileFlags flags = compile;
  flags.isa = runtime.isa;
  LLAMAC_ASSIGN_OR_RETURN(CompileOptions options, flags.parse());
  options.hasWeights = !runtime.randomWeights;
  options.gpuIndex = runtime.gpuIndex;
  LLAMAC_ASSIGN_OR_RETURN(const DraftedPlans drafted,
                          resolveDraft(model, runtime.draft, options));
  static const ClangVariantCompiler compiler;
  for (int attempt = 0;; ++attempt) {
    LLAMAC_ASSIGN_OR_RETURN(
        const ResolvedPlan plan,
        resolvePlan(model, drafted.ofModel, runtime.quiet, /*runsHere=*/true));
    ModelOptions loading = runtime;
    loading.verify &= !plan.verified;
    loading.name = model;
    if (!runtime.draft.empty()) {
      LLAMAC_ASSIGN_OR_RETURN(const ResolvedPlan draft,
                              resolvePlan(runtime.draft, drafted.ofDraft,
                                          runtime.quiet, /*runsHere=*/true));
      loading.draft = draft.path;
    }
    loading.devices = allDevices();
    loading.compiler = &compiler;
    auto loaded = Model::load(plan.path, loading);
    if (loaded.ok() && runtime.verbose)
      printLoaded(**loaded);
    // A cached plan may be deleted at any time, and is then made again.
    if (loaded.ok() || attempt == cacheAttempts || plan.path == model ||
        std::filesystem::exists(plan.path))
      return loaded;
  }
}

/// `status`, with the option that makes the context of `model` longer where
/// that is what was wrong.
static absl::Status withContextOption(const absl::Status &status,
                                      const std::string &model) {
  return reasonOf(status) == contextExceeded && !namesPlan(model)
             ? remade(status, status.code(),
                      absl::StrCat(status.message(),
                                   "; -c N compiles a longer context"))
             : status;
}

/// Adds the verb `name` with the model as its first argument, then its own
/// options, by `addOptions`, then those that such verbs have in common. `run`
/// takes the ModelCommand and the verb's options.
template <typename Options, typename Run>
static void
addModelVerb(CLI::App &app, absl::Status &status, const char *name,
             const char *description, void (*addOptions)(CLI::App &, Options &),
             const std::string &examples, Run run, bool needsModel = true) {
  struct Command : ModelCommand {
    Options options;
  };
  auto command = std::make_shared<Command>();
  CLI::App *verb = app.add_subcommand(name, description);
  static constexpr const char *what =
      "A plan, model directory, .gguf file or name of a pulled model";
  if constexpr (requires { command->options.models; })
    addModelArgument(*verb, command->options.models,
                     absl::StrCat(what, "; NAME=MODEL gives it another name"))
        ->required();
  else
    addModelArgument(*verb, command->model, what)->required(needsModel);
  addOptions(*verb, command->options);
  addModelOptions(*verb, command->runtime);
  if constexpr (answersRequests<Options>)
    addDraftOption(*verb, command->runtime);
  command->compile.addTo(*verb);
  verb->footer("Examples:\n" + examples + command->compile.footer());
  verb->callback([command, run, &status] {
    status = withContextOption(
        run(static_cast<ModelCommand &>(*command), command->options),
        command->model);
  });
}

static absl::Status run(ModelCommand &command, RunOptions &options) {
  if (const absl::Status status = prepareRun(options, stdin); !status.ok()) {
    // A file that is no plan needs no prompt.
    if (namesPlan(command.model))
      LLAMAC_RETURN_IF_ERROR(
          PlanReader::open(command.model, {.verify = false}).status());
    return status;
  }
  if (command.onReference() && !command.runtime.draft.empty())
    return usageError("--draft: expected a target that has kernels, got "
                      "reference, which verifies no drafts");
  if (command.onReference() && (options.profile || !options.trace.empty()))
    return usageError("--profile and --trace: expected a target that has "
                      "kernels, got reference");
  if (command.onReference())
    return referenceRun(command.model, command.compile.options, options, stdout,
                        stderr);
  command.runtime.quiet = options.quiet;
  LLAMAC_ASSIGN_OR_RETURN(auto model, command.load());
  return runCommand(model, options, stdout, stderr);
}

void addRunCommand(CLI::App &app, absl::Status &status) {
  addModelVerb(app, status, "run", "Answer a message or complete a text",
               addRunOptions,
               "  llamac run model.gguf \"What is the capital of Germany?\"\n"
               "  llamac run model.gguf --raw -p \"Once upon a time\" -n 40\n"
               "  llamac run model.plan -f prompt.txt --temp 0 --json",
               run);
}

void addChatCommand(CLI::App &app, absl::Status &status) {
  addModelVerb(
      app, status, "chat", "Talk with a model", addChatOptions,
      "  llamac chat model.gguf\n"
      "  llamac chat model.plan --system \"Answer in one sentence.\"\n"
      "  echo \"Name three fruits.\" | llamac chat model.gguf",
      [](ModelCommand &command, ChatCommandOptions &options) -> absl::Status {
        LLAMAC_RETURN_IF_ERROR(prepareChatCommand(options));
        if (command.onReference())
          return usageError("chat: expected a target that has kernels, got "
                            "reference");
        command.runtime.quiet = options.quiet;
        LLAMAC_ASSIGN_OR_RETURN(auto model, command.load());
        return chatCommand(model, options, stdin, stdout, stderr);
      });
}

void addGenerateCommand(CLI::App &app, absl::Status &status) {
  addModelVerb(
      app, status, "generate", "Answer a file of requests", addGenerateOptions,
      "  llamac generate model.gguf --prompts requests.jsonl -o answers.jsonl\n"
      "  echo '{\"prompt\": \"Hello\"}' | llamac generate model.plan --prompts "
      "- -o -",
      [](ModelCommand &command,
         GenerateCommandOptions &options) -> absl::Status {
        LLAMAC_RETURN_IF_ERROR(checkGenerate(options));
        if (command.onReference())
          return usageError("generate: expected a target that has kernels, got "
                            "reference");
        loadFor(options, command.runtime);
        command.runtime.quiet = options.quiet;
        LLAMAC_ASSIGN_OR_RETURN(auto model, command.load());
        return generateCommand(model, options, stdout, stderr);
      });
}

void addServeCommand(CLI::App &app, absl::Status &status) {
  addModelVerb(
      app, status, "serve", "Serve OpenAI's interface over HTTP",
      addServeOptions,
      "  llamac serve model.gguf\n"
      "  llamac serve small=a.plan large=b.plan --host 0.0.0.0 --api-key-file "
      "keys",
      [](ModelCommand &command, ServeOptions &options) -> absl::Status {
        LLAMAC_RETURN_IF_ERROR(checkServe(options));
        if (command.onReference())
          return usageError("serve: expected a target that has kernels, got "
                            "reference");
        loadFor(options, command.runtime);
        const auto load = [&](const std::string &path) {
          command.model = path;
          return command.load();
        };
        return serveCommand(options, load, stderr);
      });
}

void addBenchCommand(CLI::App &app, absl::Status &status) {
  addModelVerb(
      app, status, "bench", "Measure prefill and decode", addBenchOptions,
      "  llamac bench model.gguf --prompt-tokens 512 -t 2\n"
      "  llamac bench model.plan --kernels",
      [](ModelCommand &command, BenchOptions &options) -> absl::Status {
        loadFor(options, command.runtime);
        LLAMAC_ASSIGN_OR_RETURN(auto model, command.load());
        return benchCommand(model, options, stdout);
      });
}

void addPerplexityCommand(CLI::App &app, absl::Status &status) {
  addModelVerb(
      app, status, "perplexity", "Score a text", addPerplexityOptions,
      "  llamac perplexity model.gguf text.txt",
      [](ModelCommand &command, PerplexityOptions &options) -> absl::Status {
        options.quiet = command.runtime.quiet;
        LLAMAC_ASSIGN_OR_RETURN(auto model, command.load());
        return perplexityCommand(model, options, stdout);
      });
}

void addLogitsCommand(CLI::App &app, absl::Status &status) {
  addModelVerb(
      app, status, "logits", "Write the logits after each token to a .npy file",
      addLogitsOptions,
      "  llamac logits model.gguf --tokens 1,2,3 -o logits.npy\n"
      "  llamac logits model.gguf -o logits.npy \\\n"
      "    --tokens \"$(llamac tokenize model.gguf Hi)\"",
      [](ModelCommand &command, LogitsOptions &options) -> absl::Status {
        LLAMAC_RETURN_IF_ERROR(
            checkNotInput("-o", options.output, command.model));
        if (command.onReference())
          return referenceLogits(command.model, command.compile.options,
                                 options);
        LLAMAC_ASSIGN_OR_RETURN(auto model, command.load());
        return logitsCommand(model, options);
      });
}

void addTuneCommand(CLI::App &app, absl::Status &status) {
  addModelVerb(
      app, status, "tune",
      "Find the fastest configs for this machine and keep them", addTuneOptions,
      "  llamac tune model.gguf --budget 60\n"
      "  llamac tune --export tuned.json",
      [](ModelCommand &command, TuneCommandOptions &options) {
        command.runtime.tuned = false;
        command.runtime.sequences = 0; // The plan's: its programs of decode.
        options.quiet = command.runtime.quiet;
        const ClangVariantCompiler compiler;
        auto load = [&]() -> LoadedModel {
          if (command.model.empty())
            return nullptr;
          return command.load();
        };
        return tuneCommand(load, options, &compiler, stdout);
      },
      /*needsModel=*/false);
}

} // namespace llamac
