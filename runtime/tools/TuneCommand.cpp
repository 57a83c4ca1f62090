//===- TuneCommand.cpp - Finds the best tiles for this machine ------------===//
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

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

namespace llamac {

//===----------------------------------------------------------------------===//
// Ending early
//===----------------------------------------------------------------------===//

static std::atomic<bool> &interrupted() {
  static std::atomic<bool> flag{false};
  return flag;
}

namespace {

/// While it lives, the first Ctrl-C asks to end, and the second ends at once.
class InterruptScope {
public:
  InterruptScope() {
    interrupted() = false;
    before = std::signal(SIGINT, [](int) {
      interrupted() = true;
      std::signal(SIGINT, SIG_DFL);
    });
  }
  ~InterruptScope() { std::signal(SIGINT, before); }
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;

private:
  void (*before)(int);
};

} // namespace

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Tiles, or a way to run a step, by name.
static std::string tilesText(const std::string &tiles) {
  return tiles.empty() ? "own" : tiles;
}

/// "12.3 us".
static std::string timeText(double seconds) {
  if (seconds <= 0)
    return "-";
  if (seconds < 1e-3)
    return absl::StrFormat("%.1f us", 1e6 * seconds);
  return absl::StrFormat("%.3f ms", 1e3 * seconds);
}

/// A step as wide as the program takes, for predictions without a run.
static TunedStep widestStep(const schema::PlanT &plan, size_t program) {
  const int64_t rows = plan.programs[program]->maxRows;
  return {rows, std::min(plan.context, std::max<int64_t>(rows, 512))};
}

static void listCandidates(const Model &model, TuningStore &store,
                           std::FILE *out) {
  const schema::PlanT &plan = model.plan();
  const MachineSpec machine = machineOf(model.device(), plan, &store);
  size_t kernels = 0, all = 0, ways = 0;
  for (size_t program = 0; program < plan.programs.size(); ++program) {
    const std::vector<ProgramPick> schedules =
        schedulesOf(plan, program, schema::Overlap::FromStart);
    const std::vector<ProgramPick> overlaps = overlapsOf(plan, program, {});
    ways += schedules.size() * overlaps.size();
    absl::FPrintF(out, "%s  (%d schedules in %d overlaps)\n",
                  plan.programs[program]->name, schedules.size(),
                  overlaps.size());
    for (const auto *picks : {&schedules, &overlaps})
      for (const ProgramPick &way : *picks)
        if (way != ProgramPick{})
          absl::FPrintF(out, "  %s\n", wayName(plan, way));
    for (const TunedKernel &kernel :
         candidatesOf(plan, program, widestStep(plan, program), machine)) {
      ++kernels;
      all += kernel.candidates.size();
      absl::FPrintF(
          out, "%s  %s  (%d candidates)\n", plan.programs[program]->name,
          plan.kernels[kernel.number]->symbol, kernel.candidates.size());
      for (const Candidate &candidate : kernel.candidates)
        absl::FPrintF(out, "  %-28s predicted %10s  (%s)\n",
                      tilesText(candidate.tiles),
                      timeText(candidate.prediction.seconds),
                      limitName(candidate.prediction.limit));
    }
  }
  absl::FPrintF(out, "%d candidates of %d kernels, %d ways of %d programs\n",
                all, kernels, ways, plan.programs.size());
}

static const char *originName(const std::optional<TuningEntry> &entry) {
  if (!entry)
    return "modelled";
  switch (entry->origin) {
  case TuningOrigin::Measured:
    return "measured";
  case TuningOrigin::Imported:
    return "imported";
  case TuningOrigin::Modelled:
    return "modelled";
  }
  return "modelled";
}

/// What `entry` says of the plan's own choice, which `own` is called, and of
/// the second best.
static void explainOthers(const TuningEntry &entry, const char *own,
                          std::FILE *out) {
  absl::FPrintF(out, "  %-9s  %s, %.1f %% slower\n", own,
                timeText(entry.firstSeconds),
                100 * (entry.firstSeconds / entry.seconds - 1));
  if (entry.runnerUpSeconds > 0)
    absl::FPrintF(out, "  runner-up  %s: %s, %.1f %% slower\n",
                  tilesText(entry.runnerUp), timeText(entry.runnerUpSeconds),
                  100 * (entry.runnerUpSeconds / entry.seconds - 1));
}

/// What is known of each program and kernel: what was tuned, else what the
/// model says.
static absl::Status explainKernels(const Model &model, TuningStore &store,
                                   std::FILE *out) {
  const schema::PlanT &made = model.plan();
  const std::string device = model.device().identity(made);
  const MachineSpec machine = machineOf(model.device(), made, &store);
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const PlanReader> run,
                          model.planReader()->withSchedules(
                              storedWays(made, device, store).programs));
  const schema::PlanT &plan = run->plan();
  absl::FPrintF(out, "device  %s\nread    %.1f GB/s, %.1f Gop/s in f32\n",
                device, 1e-9 * machine.bandwidth, 1e-9 * machine.operations);
  for (size_t program = 0; program < plan.programs.size(); ++program) {
    const std::string &name = plan.programs[program]->name;
    if (const auto entry = store.find(wayKey(made, program, device))) {
      absl::FPrintF(out, "%s  whole step\n  pick       %s  (%s)\n", name,
                    tilesText(entry->tiles), originName(entry));
      absl::FPrintF(out, "  measured   %s\n", timeText(entry->seconds));
      explainOthers(*entry, "own way", out);
    }
    const TunedStep step = widestStep(plan, program);
    for (const TunedKernel &kernel :
         candidatesOf(plan, program, step, machine)) {
      const schema::KernelT &of = *plan.kernels[kernel.number];
      const auto entry = store.find(tuningKey(plan, kernel.number, device));
      const std::string pick = entry ? entry->tiles : "";
      auto chosen = std::find_if(
          kernel.candidates.begin(), kernel.candidates.end(),
          [&](const Candidate &candidate) { return candidate.tiles == pick; });
      if (chosen == kernel.candidates.end())
        chosen = kernel.candidates.begin();
      absl::FPrintF(out, "%s  %s\n  pick       %s  (%s)\n", name, of.symbol,
                    tilesText(chosen->tiles), originName(entry));
      absl::FPrintF(out, "  predicted  %s, limited by %s\n",
                    timeText(chosen->prediction.seconds),
                    limitName(chosen->prediction.limit));
      if (!entry)
        continue;
      const double bytes = leastBytes(kernel.cost, step);
      absl::FPrintF(out, "  measured   %s, %.1f GB/s, %.0f %% of a read\n",
                    timeText(entry->seconds), 1e-9 * bytes / entry->seconds,
                    100 * bytes / entry->seconds / machine.bandwidth);
      explainOthers(*entry, "own tiles", out);
    }
  }
  return absl::OkStatus();
}

/// The ways that were compared, behind the one that was chosen.
static void printWays(const ProgramTuningResult &result, std::FILE *out) {
  if (result.ways.empty())
    return;
  absl::FPrintF(out, "  %-44s %s\n", result.program + ": whole step",
                tilesText(result.way));
  for (const WayTuningResult &way : result.ways)
    if (!way.rejected.empty())
      absl::FPrintF(out, "    rejected %s: %s\n", way.way, way.rejected);
    else if (way.ratio > 0 && way.ratio != 1)
      absl::FPrintF(out, "    %-42s %.3f of the time\n", tilesText(way.way),
                    way.ratio);
}

static void printResults(const std::vector<ProgramTuningResult> &results,
                         std::FILE *out) {
  for (const ProgramTuningResult &result : results) {
    absl::FPrintF(out, "%s", result.program);
    if (!result.skipped.empty()) {
      absl::FPrintF(out, ": not tuned: %s\n", result.skipped);
      continue;
    }
    absl::FPrintF(out, ", steps of %d rows at a context of %d",
                  result.step.rows, result.step.context);
    if (result.wholeRatio > 0)
      absl::FPrintF(out, ": %.1f %% less time%s", 100 * (1 - result.wholeRatio),
                    result.kept ? "" : ", so nothing was changed");
    absl::FPrintF(out, "\n");
    printWays(result, out);
    for (const KernelTuningResult &kernel : result.kernels) {
      const Candidate &pick = kernel.candidates[kernel.pick];
      absl::FPrintF(out, "  %-44s %-24s", kernel.kernel, tilesText(pick.tiles));
      if (kernel.pick != 0)
        absl::FPrintF(out, " %5.1f %% less time, noise %.1f %%",
                      100 * (1 - kernel.ratio), 100 * kernel.noise);
      absl::FPrintF(out, "\n");
      for (const Candidate &candidate : kernel.candidates)
        if (!candidate.rejected.empty())
          absl::FPrintF(out, "    rejected %s: %s\n", candidate.tiles,
                        candidate.rejected);
    }
  }
}

static void printJson(const std::vector<ProgramTuningResult> &results,
                      std::FILE *out) {
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  for (const ProgramTuningResult &result : results) {
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (const KernelTuningResult &kernel : result.kernels) {
      nlohmann::ordered_json candidates = nlohmann::ordered_json::array();
      for (size_t i = 0; i < kernel.candidates.size(); ++i)
        candidates.push_back(
            {{"tiles", kernel.candidates[i].tiles},
             {"predicted_s", kernel.candidates[i].prediction.seconds},
             {"launch_s", kernel.seconds[i]},
             {"ratio", kernel.ratios[i].median},
             {"noise", kernel.ratios[i].noise},
             {"rounds", kernel.ratios[i].rounds},
             {"rejected", kernel.candidates[i].rejected}});
      kernels.push_back({{"kernel", kernel.kernel},
                         {"pick", kernel.candidates[kernel.pick].tiles},
                         {"ratio", kernel.ratio},
                         {"noise", kernel.noise},
                         {"candidates", std::move(candidates)}});
    }
    nlohmann::ordered_json ways = nlohmann::ordered_json::array();
    for (const WayTuningResult &way : result.ways)
      ways.push_back({{"way", way.way},
                      {"step_s", way.seconds},
                      {"ratio", way.ratio},
                      {"rejected", way.rejected}});
    report.push_back({{"program", result.program},
                      {"rows", result.step.rows},
                      {"context", result.step.context},
                      {"skipped", result.skipped},
                      {"ratio", result.wholeRatio},
                      {"way", result.way},
                      {"ways", std::move(ways)},
                      {"kernels", std::move(kernels)}});
  }
  absl::FPrintF(out, "%s\n", report.dump(1));
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

static absl::Status tune(const std::shared_ptr<const Model> &model,
                         const TuneCommandOptions &options,
                         VariantCompiler *compiler, TuningStore &store,
                         std::FILE *out) {
  Progress progress(options.quiet);
  const InterruptScope interrupts;
  const auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  TuneOptions tuning;
  tuning.budget = options.budget;
  tuning.candidates = static_cast<size_t>(options.candidates);
  tuning.turns = static_cast<size_t>(options.turns);
  tuning.triesWays = !options.tilesOnly;
  tuning.compiler = compiler;
  tuning.store = &store;
  tuning.stop = &interrupted();
  tuning.progress = [&](const std::string &what) {
    progress.stage(
        absl::StrFormat("%.0f of %.0f s, %s", elapsed(), options.budget, what));
  };
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<ProgramTuningResult> results,
                          tuneModel(model, tuning));
  progress.finish();
  if (options.json)
    printJson(results, out);
  else
    printResults(results, out);
  if (interrupted() && !options.json)
    absl::FPrintF(out, "interrupted after %.0f s; what is listed was kept\n",
                  elapsed());
  return absl::OkStatus();
}

absl::Status tuneCommand(ModelSource load, const TuneCommandOptions &options,
                         VariantCompiler *compiler, std::FILE *out) {
  if (!(options.budget > 0))
    return usageError(absl::StrCat("--budget: expected seconds over 0, got ",
                                   options.budget));
  for (const auto &[name, value] :
       {std::pair("--candidates", options.candidates),
        std::pair("--turns", options.turns)})
    if (value < 1)
      return usageError(
          absl::StrCat(name, ": expected at least 1, got ", value));
  LLAMAC_ASSIGN_OR_RETURN(const std::string path, tuningStorePath());
  const std::unique_ptr<TuningStore> store =
      TuningStore::open(path, [](absl::string_view what) {
        absl::FPrintF(stderr, "warning: %s\n", what);
      });
  if (!options.importFrom.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(const int count,
                            store->importFrom(options.importFrom));
    absl::FPrintF(out, "%s: %d entries taken\n", options.importFrom, count);
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, load());
  const bool moves = !options.importFrom.empty() || !options.exportTo.empty();
  if (!model && !moves)
    return usageError("model: expected a plan, model directory or .gguf file, "
                      "--import or --export, got none; see --help");
  if (model && !options.importFrom.empty() && compiler)
    LLAMAC_RETURN_IF_ERROR(compileStored(*model, *store, *compiler).status());
  if (model && options.list)
    listCandidates(*model, *store, out);
  else if (model && !moves && !options.explain)
    LLAMAC_RETURN_IF_ERROR(tune(model, options, compiler, *store, out));
  if (model && options.explain)
    LLAMAC_RETURN_IF_ERROR(explainKernels(*model, *store, out));
  if (options.exportTo.empty())
    return absl::OkStatus();
  return store->exportTo(options.exportTo);
}

} // namespace llamac
