//===- TuneCommand.cpp - Finds the fastest configs for a machine ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/TuneCommand.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Interrupts.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace llamac {

static std::string configText(const std::string &config) {
  return config.empty() ? "default" : config;
}

/// "12.3 us".
static std::string timeText(double seconds) {
  return seconds < 1e-3 ? absl::StrFormat("%.1f us", 1e6 * seconds)
                        : absl::StrFormat("%.3f ms", 1e3 * seconds);
}

static std::string candidatesText(const schema::PlanT &plan) {
  std::string text;
  const auto add = [&](const std::string &config, double predicted) {
    absl::StrAppend(&text, "  ", configText(config),
                    predicted > 0 ? "  predicted " + timeText(predicted) : "",
                    "\n");
  };
  size_t kernels = 0, all = 0;
  for (const auto &kernel : plan.kernels) {
    const size_t count = kernel->variants.size() + 1;
    if (count == 1)
      continue;
    ++kernels;
    all += count;
    absl::StrAppend(&text, kernel->symbol, "  (", count, " candidates)\n");
    add("", kernel->predicted);
    for (const auto &variant : kernel->variants)
      add(variant->tiles, variant->predicted);
  }
  return absl::StrCat(text, all, " candidates of ", kernels, " kernels\n");
}

/// The entry of `tuned` for the kernel or program `tuning`, called `name`.
static std::string entryText(const std::string &name, const std::string &tuning,
                             const TunedEntries &tuned) {
  if (tuning.empty())
    return "";
  const auto found = tuned.find(tuning);
  if (found == tuned.end())
    return name + "\n  selected   default  (not tuned)\n";
  const TuningEntry &entry = found->second;
  std::string text = absl::StrFormat(
      "%s\n  selected   %s  %s  (%s)\n", name, configText(entry.config),
      timeText(entry.seconds), entry.imported ? "imported" : "measured");
  for (const auto &[what, config, seconds] :
       {std::tuple("default", std::string(), entry.defaultSeconds),
        std::tuple("runner-up", entry.runnerUp, entry.runnerUpSeconds)})
    if (config != entry.config && seconds > 0)
      absl::StrAppendFormat(&text, "  %-9s  %s  %s, %.3f of that time\n", what,
                            configText(config), timeText(seconds),
                            seconds / entry.seconds);
  return text;
}

static absl::StatusOr<std::string> entriesText(const Model &model,
                                               const TuningStore &store) {
  const schema::PlanT &plan = model.plan();
  LLAMAC_ASSIGN_OR_RETURN(const TunedEntries tuned,
                          tunedEntries(plan, model.loaded().identity(), store));
  std::string text = absl::StrCat("device  ", model.loaded().identity(), "\n");
  for (const auto &program : plan.programs)
    text += entryText(program->name + "  whole step", program->tuning, tuned);
  for (const auto &kernel : plan.kernels)
    text += entryText(kernel->symbol, kernel->tuning, tuned);
  if (std::ranges::any_of(tuned, [](const auto &each) {
        const TuningEntry &entry = each.second;
        return entry.runnerUpSeconds > 0 &&
               entry.runnerUpSeconds < entry.seconds;
      }))
    text += "A runner-up of less time was left: the difference was within the "
            "noise, or the whole\nstep was no faster with it.\n";
  return text;
}

/// Candidates that there was no time for.
static size_t leftOut(const Choice &choice) {
  return static_cast<size_t>(
      std::ranges::count(choice.candidates, outOfTime, &Candidate::rejected));
}

static std::string choiceText(const std::string &name, const Choice &choice) {
  std::string text =
      absl::StrFormat("  %-44s %s", name,
                      configText(choice.candidates[choice.selected].config));
  const Trials::Ratio ratio = choice.trials.ratioOf(choice.selected);
  if (choice.selected != 0 && ratio.rounds != 0)
    absl::StrAppendFormat(&text, "  %.1f %% less time, noise %.1f %%",
                          100 * (1 - ratio.median), 100 * ratio.noise);
  if (const size_t left = leftOut(choice))
    absl::StrAppend(&text, "  ", left, " ", outOfTime);
  text += '\n';
  for (const Candidate &candidate : choice.candidates)
    if (!candidate.rejected.empty() && candidate.rejected != outOfTime)
      absl::StrAppend(&text, "    rejected ", candidate.config, ": ",
                      candidate.rejected, "\n");
  return text;
}

static std::string resultText(const ProgramResult &result) {
  if (!result.skipped.empty())
    return absl::StrCat(result.step.name, ": not tuned: ", result.skipped,
                        "\n");
  std::string text = absl::StrFormat(
      "%s, steps of %s at a context of %d%s\n", result.step.name,
      formatCount(result.rows, "row"), result.context,
      result.isDecided ? "" : ": not decided, nothing was changed");
  // Kernels of which nothing was tried are one line.
  size_t untried = 0, left = 0;
  for (const Choice &kernel : result.kernels) {
    const size_t out = leftOut(kernel);
    if (out == 0 || out + 1 < kernel.candidates.size()) {
      text += choiceText(kernel.name, kernel);
      continue;
    }
    ++untried;
    left += out;
  }
  if (untried > 0)
    absl::StrAppendFormat(&text, "  %-44s default  %d %s\n",
                          absl::StrCat(untried, " kernels"), left, outOfTime);
  if (result.isDecided)
    text += choiceText("whole step", result.step);
  if (const Trials::Ratio ratio = result.asUsed.trials.ratioOf(1);
      ratio.rounds != 0)
    absl::StrAppendFormat(
        &text, "  %-44s %.3f of the time as compiled, noise %.1f %%%s\n",
        "as used", ratio.median, 100 * ratio.noise,
        result.step.selected == 0 ? ": back to the defaults" : "");
  return text;
}

/// How many candidates of kernels were tried in `seconds`, the budget that all
/// would take at that rate, and what the selected ones bring.
static std::string summaryText(absl::Span<const ProgramResult> results,
                               double seconds) {
  size_t all = 0, left = 0;
  std::string speeds;
  for (const ProgramResult &result : results) {
    if (!result.skipped.empty())
      continue;
    for (const Choice &kernel : result.kernels) {
      all += kernel.candidates.size() - 1;
      left += leftOut(kernel);
    }
    const Choice &step = result.step;
    const Trials::Ratio ratio = step.trials.ratioOf(step.selected);
    const bool differs = step.selected != 0 && ratio.rounds != 0;
    if (result.isDecided)
      absl::StrAppendFormat(&speeds, "%s %s %.2fx", speeds.empty() ? "" : ",",
                            step.name, differs ? 1 / ratio.median : 1);
  }
  if (all == 0)
    return "";
  std::string text = absl::StrFormat("%d of %d candidates tried in %.0f s",
                                     all - left, all, seconds);
  if (left == all)
    absl::StrAppend(&text, "; a larger --budget tries them");
  else if (left > 0)
    absl::StrAppendFormat(&text, "; --budget %.0f may do for all",
                          std::ceil(seconds * static_cast<double>(all) /
                                    static_cast<double>(all - left)));
  return absl::StrCat(text, "\nspeed against the defaults:",
                      speeds.empty() ? " nothing was decided" : speeds, "\n");
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

static Json resultJson(const ProgramResult &result) {
  Json program = choiceJson(result.step);
  program["rows"] = result.rows;
  program["context"] = result.context;
  program["decided"] = result.isDecided;
  program["skipped"] = result.skipped;
  const Trials::Ratio asUsed = result.asUsed.trials.ratioOf(1);
  program["as_used"] = {{"ratio", asUsed.median},
                        {"noise", asUsed.noise},
                        {"rounds", asUsed.rounds}};
  program["kernels"] = Json::array();
  for (const Choice &kernel : result.kernels)
    program["kernels"].push_back(choiceJson(kernel));
  return program;
}

static absl::Status tune(const std::shared_ptr<const Model> &model,
                         const TuneCommandOptions &options,
                         const VariantCompiler *compiler,
                         const TuningStore &store, std::FILE *out) {
  Progress progress(options.quiet);
  Interrupts interrupts;
  const double start = steadySeconds();
  TuneOptions tuning = options.tune;
  tuning.compiler = compiler;
  tuning.stop = [&] { return interrupts.signal() != 0; };
  tuning.progress = [&](const std::string &what) {
    progress.stage(absl::StrFormat(
        "%.0f of %.0f s, %s", steadySeconds() - start, tuning.budget, what));
  };
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<ProgramResult> results,
                          tuneModel(model, store, tuning));
  progress.finish();
  Json report = Json::array();
  std::string text;
  for (const ProgramResult &result : results) {
    report.push_back(resultJson(result));
    text += resultText(result);
  }
  if (interrupts.signal() != 0)
    absl::StrAppendFormat(
        &text, "interrupted after %.0f s; what was decided is kept\n",
        steadySeconds() - start);
  text += summaryText(results, steadySeconds() - start);
  printText(out, options.json ? report.dump(1) + "\n" : text);
  std::fflush(out);
  if (interrupts.signal() != 0)
    interrupts.endProcess();
  return absl::OkStatus();
}

absl::Status tuneCommand(ModelSource load, const TuneCommandOptions &options,
                         const VariantCompiler *compiler, std::FILE *out) {
  if (!(options.tune.budget > 0))
    return usageError(absl::StrCat("--budget: expected seconds over 0, got ",
                                   options.tune.budget));
  if (options.tune.candidates < 1)
    return usageError(absl::StrCat("--candidates: expected at least 1, got ",
                                   options.tune.candidates));
  std::vector<TuningEntry> imported;
  const bool imports = !options.importFrom.empty();
  if (imports) {
    LLAMAC_ASSIGN_OR_RETURN(imported, importTuning(options.importFrom));
    for (TuningEntry &entry : imported)
      entry.imported = true;
  }
  const bool tunes =
      !imports && options.exportTo.empty() && !options.list && !options.explain;
  LLAMAC_ASSIGN_OR_RETURN(const std::string path, tuningStorePath());
  const TuningStore store(path);
  // A store that cannot be written fails before the time for a model is spent.
  if (tunes)
    LLAMAC_RETURN_IF_ERROR(store.keep({}).status());
  if (imports) {
    LLAMAC_ASSIGN_OR_RETURN(const int count, store.keep(imported));
    const auto all = static_cast<int>(imported.size());
    printText(
        out, absl::StrCat(
                 options.importFrom, ": ", count, " of ", all, " entries taken",
                 count < all ? "; what was measured here stays" : "", "\n"));
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, load());
  if (!model && !imports && options.exportTo.empty())
    return usageError("model: expected a plan, model directory or .gguf file, "
                      "--import or --export, got none; see llamac tune --help");
  if (tunes)
    LLAMAC_RETURN_IF_ERROR(tune(model, options, compiler, store, out));
  if (model && options.list)
    printText(out, candidatesText(model->plan()));
  if (model && options.explain) {
    LLAMAC_ASSIGN_OR_RETURN(const std::string text, entriesText(*model, store));
    printText(out, text);
  }
  if (options.exportTo.empty())
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(const auto all, store.entries());
  return exportTuning(all, options.exportTo);
}

} // namespace llamac
