//===- TuneCommand.cpp - Finds the fastest configs for a machine ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tools/TuneCommand.h"

#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>

namespace llamac {

static std::atomic<bool> interrupted{false};

/// The first Ctrl-C asks to end, and the second ends at once.
static void interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

//===----------------------------------------------------------------------===//
// What is known
//===----------------------------------------------------------------------===//

static std::string configText(const std::string &config) {
  return config.empty() ? "default" : config;
}

/// "12.3 us".
static std::string timeText(double seconds) {
  return seconds < 1e-3 ? absl::StrFormat("%.1f us", 1e6 * seconds)
                        : absl::StrFormat("%.3f ms", 1e3 * seconds);
}

static void listCandidates(const schema::PlanT &plan, std::FILE *out) {
  size_t kernels = 0, all = 0;
  const auto print = [&](const std::string &config, double predicted) {
    absl::FPrintF(out, "  %s%s\n", configText(config),
                  predicted > 0 ? "  predicted " + timeText(predicted) : "");
    ++all;
  };
  for (const auto &kernel : plan.kernels) {
    if (kernel->variants.empty())
      continue;
    ++kernels;
    absl::FPrintF(out, "%s  (%d candidates)\n", kernel->symbol,
                  kernel->variants.size() + 1);
    print("", kernel->predicted);
    for (const auto &variant : kernel->variants)
      print(variant->tiles, variant->predicted);
  }
  absl::FPrintF(out, "%d candidates of %d kernels\n", all, kernels);
}

/// What `tuned` has for the kernel or program `tuning`, called `name`.
static void explain(const std::string &name, const std::string &tuning,
                    const TunedEntries &tuned, std::FILE *out) {
  if (tuning.empty())
    return;
  const auto found = tuned.find(tuning);
  if (found == tuned.end()) {
    absl::FPrintF(out, "%s\n  selected   default  (not tuned)\n", name);
    return;
  }
  const TuningEntry &entry = found->second;
  absl::FPrintF(out, "%s\n  selected   %s  %s  (%s)\n", name,
                configText(entry.config), timeText(entry.seconds),
                entry.imported ? "imported" : "measured");
  for (const auto &[what, config, seconds] :
       {std::tuple("default", std::string(), entry.defaultSeconds),
        std::tuple("runner-up", entry.runnerUp, entry.runnerUpSeconds)})
    if (config != entry.config && seconds > 0)
      absl::FPrintF(out, "  %-9s  %s  %s, %.3f of that time\n", what,
                    configText(config), timeText(seconds),
                    seconds / entry.seconds);
}

static absl::Status explainKernels(const Model &model, TuningStore *store,
                                   std::FILE *out) {
  const schema::PlanT &plan = model.plan();
  TunedEntries tuned;
  if (store) {
    LLAMAC_ASSIGN_OR_RETURN(tuned, tunedEntries(plan, model.device(), *store));
  }
  absl::FPrintF(out, "device  %s\n", model.device().identity(plan));
  for (const auto &program : plan.programs)
    explain(program->name + "  whole step", program->tuning, tuned, out);
  for (const auto &kernel : plan.kernels)
    explain(kernel->symbol, kernel->tuning, tuned, out);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// What was found
//===----------------------------------------------------------------------===//

static void printChoice(const std::string &name, const Choice &choice,
                        std::FILE *out) {
  absl::FPrintF(out, "  %-44s %s", name,
                configText(choice.candidates[choice.selected].config));
  const Trials::Ratio ratio = choice.trials.ratioOf(choice.selected);
  if (choice.selected != 0 && ratio.rounds != 0)
    absl::FPrintF(out, "  %.1f %% less time, noise %.1f %%",
                  100 * (1 - ratio.median), 100 * ratio.noise);
  absl::FPrintF(out, "\n");
  for (const Candidate &candidate : choice.candidates)
    if (!candidate.rejected.empty())
      absl::FPrintF(out, "    rejected %s: %s\n", candidate.config,
                    candidate.rejected);
}

static void printResults(const std::vector<ProgramResult> &results,
                         std::FILE *out) {
  for (const ProgramResult &result : results) {
    if (!result.skipped.empty()) {
      absl::FPrintF(out, "%s: not tuned: %s\n", result.step.name,
                    result.skipped);
      continue;
    }
    absl::FPrintF(out, "%s, steps of %d rows at a context of %d%s\n",
                  result.step.name, result.rows, result.context,
                  result.isDecided ? "" : ": not decided, nothing was changed");
    for (const Choice &kernel : result.kernels)
      printChoice(kernel.name, kernel, out);
    if (result.isDecided)
      printChoice("whole step", result.step, out);
  }
}

using Json = nlohmann::ordered_json;

static Json choiceJson(const Choice &choice) {
  Json candidates = Json::array();
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    const Trials::Ratio ratio = choice.trials.ratioOf(i);
    candidates.push_back({{"config", choice.candidates[i].config},
                          {"seconds", choice.trials.secondsOf(i)},
                          {"ratio", ratio.median},
                          {"noise", ratio.noise},
                          {"rounds", ratio.rounds},
                          {"rejected", choice.candidates[i].rejected}});
  }
  return {{"name", choice.name},
          {"selected", choice.selected},
          {"candidates", std::move(candidates)}};
}

static void printJson(const std::vector<ProgramResult> &results,
                      std::FILE *out) {
  Json report = Json::array();
  for (const ProgramResult &result : results) {
    Json &program = report.emplace_back(choiceJson(result.step));
    program["rows"] = result.rows;
    program["context"] = result.context;
    program["decided"] = result.isDecided;
    program["skipped"] = result.skipped;
    program["kernels"] = Json::array();
    for (const Choice &kernel : result.kernels)
      program["kernels"].push_back(choiceJson(kernel));
  }
  absl::FPrintF(out, "%s\n", report.dump(1));
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

static void warn(absl::string_view what) {
  absl::FPrintF(stderr, "warning: %s\n", what);
}

static absl::Status tune(const std::shared_ptr<const Model> &model,
                         const TuneCommandOptions &options,
                         const VariantCompiler *compiler, TuningStore &store,
                         std::FILE *out) {
  Progress progress(options.quiet);
  std::signal(SIGINT, interrupt);
  const double start = steadySeconds();
  LLAMAC_ASSIGN_OR_RETURN(
      const std::vector<ProgramResult> results,
      tuneModel(model, store,
                {.budget = options.budget,
                 .candidates = static_cast<size_t>(options.candidates),
                 .compiler = compiler,
                 .stop = &interrupted,
                 .progress = [&](const std::string &what) {
                   progress.stage(absl::StrFormat("%.0f of %.0f s, %s",
                                                  steadySeconds() - start,
                                                  options.budget, what));
                 }}));
  progress.finish();
  if (options.json)
    printJson(results, out);
  else
    printResults(results, out);
  if (interrupted && !options.json)
    absl::FPrintF(out, "interrupted after %.0f s; what was decided is kept\n",
                  steadySeconds() - start);
  return absl::OkStatus();
}

absl::Status tuneCommand(ModelSource load, const TuneCommandOptions &options,
                         const VariantCompiler *compiler, std::FILE *out) {
  if (!(options.budget > 0))
    return usageError(absl::StrCat("--budget: expected seconds over 0, got ",
                                   options.budget));
  if (options.candidates < 1)
    return usageError(absl::StrCat("--candidates: expected at least 1, got ",
                                   options.candidates));
  std::vector<TuningEntry> imported;
  const bool imports = !options.importFrom.empty();
  if (imports) {
    LLAMAC_ASSIGN_OR_RETURN(imported, importTuning(options.importFrom));
  }
  const bool tunes =
      !imports && options.exportTo.empty() && !options.list && !options.explain;
  // Before the time for a model is spent.
  LLAMAC_ASSIGN_OR_RETURN(const std::string path, tuningStorePath());
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store,
                          tunes || imports ? TuningStore::open(path, warn)
                                           : TuningStore::openExisting(path));
  if (imports) {
    LLAMAC_ASSIGN_OR_RETURN(const int count, store->keep(imported));
    absl::FPrintF(out, "%s: %d entries taken\n", options.importFrom, count);
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, load());
  if (!model && !imports && options.exportTo.empty())
    return usageError("model: expected a plan, model directory or .gguf file, "
                      "--import or --export, got none; see --help");
  if (tunes)
    LLAMAC_RETURN_IF_ERROR(tune(model, options, compiler, *store, out));
  if (model && options.list)
    listCandidates(model->plan(), out);
  if (model && options.explain)
    LLAMAC_RETURN_IF_ERROR(explainKernels(*model, store.get(), out));
  if (options.exportTo.empty())
    return absl::OkStatus();
  std::vector<TuningEntry> all;
  if (store) {
    LLAMAC_ASSIGN_OR_RETURN(all, store->entries());
  }
  return exportTuning(all, options.exportTo);
}

} // namespace llamac
