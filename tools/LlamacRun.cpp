//===- LlamacRun.cpp - Runs a compiled plan -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// llamac-run PLAN TEXT               answers or completes a prompt
// llamac-run chat PLAN               talks with it
// llamac-run bench PLAN              measures it
// llamac-run generate PLAN ...       answers a file of requests
// llamac-run logits PLAN ...         writes logits to a file
// llamac-run perplexity PLAN FILE    scores a text
// llamac-run tune PLAN               finds the fastest tiles of a plan for cuda
// llamac-run doctor | cache | completion | manual
// mpirun -n N llamac-run ...         the same, each rank a process
//
// The runtime alone: no compiler is linked.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/load/RankFollower.h"
#include "runtime/load/RankLeader.h"
#include "tools/CommandLine.h"
#include "tools/ToolVerbs.h"

#include "absl/strings/str_cat.h"

#include <cstdio>
#include <filesystem>
#include <string>

using namespace llamac;

namespace {

/// The plan and the options of all verbs, as the command line gives them.
struct Invocation {
  std::string plan;
  LoadOptions model;
  RunOptions run;
  ChatCommandOptions chat;
  BenchOptions bench;
  GenerateCommandOptions generate;
  LogitsOptions logits;
  PerplexityOptions perplexity;
  ServeOptions serve;
  TuneCommandOptions tune;
};

} // namespace

template <typename Options>
static void addCommand(CLI::App &app, Invocation &invocation, const char *name,
                       const char *description,
                       void (*addOptions)(CLI::App &, Options &),
                       Options &options) {
  CLI::App *command = app.add_subcommand(name, description);
  const auto takes = [&](auto &plans) {
    addModelArgument(*command, plans, "A compiled plan", "PLAN")->required();
  };
  if constexpr (requires { options.models; })
    takes(options.models);
  else
    takes(invocation.plan);
  addOptions(*command, options);
  addModelOptions(*command, invocation.model);
  if constexpr (answersRequests<Options>)
    addDraftOption(*command, invocation.model);
  addRankOptions(*command, invocation.model);
  command->group("Other verbs");
}

/// The command that was asked for; `run` has no name of its own.
static absl::Status execute(Invocation &invocation,
                            const std::string &command) {
  if (const ModelOptions &model = invocation.model, usual;
      !model.ranks && (model.rankCopies != usual.rankCopies ||
                       model.rankTimeout != usual.rankTimeout))
    return usageError("--rank-copies, --rank-timeout: expected processes that "
                      "mpirun has started, got one alone");
  if (command == "serve") {
    ModelOptions loading = invocation.model;
    loadFor(invocation.serve, loading);
    return serveCommand(
        invocation.serve,
        [&](const std::string &plan) { return Model::load(plan, loading); },
        stderr);
  }
  if (invocation.plan.empty())
    return usageError("PLAN: expected a file, got none; see llamac-run --help");
  if (std::error_code error;
      std::filesystem::is_directory(invocation.plan, error))
    return badPlanError(absl::StrCat(
        invocation.plan,
        ": expected a plan, got a folder; make a plan of a model: llamac "
        "compile ",
        invocation.plan, " -o FILE.plan"));
  if (command.empty())
    LLAMAC_RETURN_IF_ERROR(prepareRun(invocation.run, stdin));
  if (command == "chat")
    LLAMAC_RETURN_IF_ERROR(prepareChatCommand(invocation.chat));
  if (command == "generate")
    LLAMAC_RETURN_IF_ERROR(checkGenerate(invocation.generate));
  ModelOptions loading = invocation.model;
  loading.quiet |= invocation.run.quiet || invocation.chat.quiet ||
                   invocation.generate.quiet;
  loading.sequences = 1;
  if (command == "bench")
    loadFor(invocation.bench, loading);
  if (command == "generate")
    loadFor(invocation.generate, loading);
  if (command == "tune") {
    invocation.tune.quiet = loading.quiet;
    return tuneCommand(
        [&]() -> absl::StatusOr<std::shared_ptr<const Model>> {
          ModelOptions untuned = invocation.model;
          untuned.tuned = false;
          return Model::load(invocation.plan, untuned);
        },
        invocation.tune, /*compiler=*/nullptr, stdout);
  }
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model,
                          Model::load(invocation.plan, loading));
  if (invocation.model.verbose)
    printLoaded(*model);
  if (command == "chat")
    return chatCommand(model, invocation.chat, stdin, stdout, stderr);
  if (command == "bench")
    return benchCommand(model, invocation.bench, stdout);
  if (command == "generate")
    return generateCommand(model, invocation.generate, stdout, stderr);
  if (command == "logits") {
    LLAMAC_RETURN_IF_ERROR(
        checkNotInput("-o", invocation.logits.output, model->name()));
    return logitsCommand(model, invocation.logits);
  }
  invocation.perplexity.quiet = loading.quiet;
  if (command == "perplexity")
    return perplexityCommand(model, invocation.perplexity, stdout);
  return runCommand(model, invocation.run, stdout, stderr);
}

/// `ranks`: of rank 0, where each rank is a process; else null.
static int llamacRun(int argc, char **argv, RankWorld *ranks) {
  Invocation invocation;
  invocation.model.ranks = ranks;
  CLI::App app("Runs a plan that llamac compiled.", "llamac-run");
  formatHelp(app);
  app.require_subcommand(0, 1);
  addModelArgument(app, invocation.plan, "A compiled plan", "PLAN");
  addRunOptions(app, invocation.run);
  addModelOptions(app, invocation.model);
  addDraftOption(app, invocation.model);
  addRankOptions(app, invocation.model);
  addCommand(app, invocation, "chat", "Talk with a model", addChatOptions,
             invocation.chat);
  addCommand(app, invocation, "bench", "Measure prefill and decode",
             addBenchOptions, invocation.bench);
  addCommand(app, invocation, "generate", "Answer a file of requests",
             addGenerateOptions, invocation.generate);
  addCommand(app, invocation, "logits", "Write logits to a .npy file",
             addLogitsOptions, invocation.logits);
  addCommand(app, invocation, "perplexity", "Score a text",
             addPerplexityOptions, invocation.perplexity);
  addCommand(app, invocation, "serve", "Serve OpenAI's interface over HTTP",
             addServeOptions, invocation.serve);
  addCommand(app, invocation, "tune", "Find the fastest tiles for this machine",
             addTuneOptions, invocation.tune);
  absl::Status status;
  addToolVerbs(app, {.name = "llamac-run"}, status);
  app.footer("Examples:\n"
             "  llamac-run model.plan \"How many days are in a week?\"\n"
             "  llamac-run chat model.plan\n"
             "  llamac-run bench model.plan --prompt-tokens 512");

  if (const std::optional<int> code = parseCommandLine(app, argc, argv))
    return *code;
  const std::vector<CLI::App *> commands = app.get_subcommands();
  const std::string command = commands.empty() ? "" : commands[0]->get_name();
  if (commands.empty() || commands[0]->get_group() != toolVerbsHeading)
    status = execute(invocation, command);
  return finishTool("llamac-run", status);
}

/// Rank 0 is the tool, the other processes that mpirun has started follow it.
static int runRank(int argc, char **argv) {
  const auto ranks = RankWorld::ofLaunch();
  if (!ranks.ok())
    return RankWorld::launchedRank() > 0
               ? static_cast<int>(exitCode(ranks.status()))
               : finishTool("llamac-run", ranks.status());
  RankWorld *const world = ranks->get();
  if (world && world->rank() != 0) {
    followRanks(*world);
    return 0;
  }
  const int code = llamacRun(argc, argv, world);
  if (world)
    endRanks(*world);
  return code;
}

int main(int argc, char **argv) {
  return runTool("llamac-run", [&] { return runRank(argc, argv); });
}
