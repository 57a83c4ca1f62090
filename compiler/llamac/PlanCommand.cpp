//===- PlanCommand.cpp - llamac plan --------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/DryRun.h"
#include "compiler/driver/PlanCache.h"
#include "compiler/llamac/Commands.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/cuda/GpuSpec.h"
#include "runtime/io/JsonText.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace llamac {

using Json = nlohmann::ordered_json;

static uint64_t whole(double value) {
  return static_cast<uint64_t>(std::llround(value));
}

/// Tokens a second of `step` where only reads take time, at the memory's
/// bandwidth.
static double limitOf(const DecodeStep &step, const DeviceFacts &device) {
  return device.bandwidth / step.totals.bytes() *
         static_cast<double>(step.sequences);
}

/// Tokens a second of `step` at the share of the bandwidth that decode reaches,
/// with the time that ranks wait for each other.
static double expectedOf(const DecodeStep &step, const DeviceFacts &device) {
  const double seconds =
      step.totals.bytes() / (device.bandwidth * device.decodeShare) +
      static_cast<double>(step.collectives) * device.collectiveSeconds;
  return static_cast<double>(step.sequences) / seconds;
}

static Json decodeJson(const DecodeStep &step, int64_t context,
                       const DeviceFacts &device) {
  return {{"sequences", step.sequences},
          {"context", context},
          {"weight_bytes", whole(step.totals.weightBytes)},
          {"cache_bytes", whole(step.totals.keyBytes)},
          {"activation_bytes", whole(step.totals.rowBytes)},
          {"collectives", step.collectives},
          {"limit_tokens_per_second", limitOf(step, device)},
          {"expected_tokens_per_second", expectedOf(step, device)}};
}

static Json memoryJson(const MemoryNeeds &memory) {
  return {{"weights", memory.weights},   {"kv", memory.kv},
          {"arena", memory.arena},       {"inputs", memory.inputs},
          {"counters", memory.counters}, {"exchange", memory.exchange},
          {"gathered", memory.gathered}};
}

/// `models` are those of dryRun().
static Json toJson(absl::Span<const DryRunModel> models, const DryRun &run,
                   const DeviceFacts &device) {
  const CompileOptions &options = models.front().options;
  const bool fits = run.fits(device);
  Json memory = memoryJson(run.memory);
  if (models.size() > 1)
    memory["draft"] = run.draft.total();
  memory["total"] = run.total();
  if (options.target == "cuda")
    memory["not_included"] = "the driver's own";
  Json json = {{"model", models.front().checkpoint.name},
               {"target", options.target},
               {"gpu", options.gpu},
               {"context", options.context},
               {"sequences", options.maxSequences},
               {"ranks", options.ranks},
               {"device",
                {{"name", device.name},
                 {"memory", device.memoryBytes},
                 {"bandwidth", whole(device.bandwidth)},
                 {"bandwidth_from", device.bandwidthFrom},
                 {"decode_share", device.decodeShare},
                 {"decode_share_from", device.shareFrom},
                 {"collective_seconds", device.collectiveSeconds},
                 {"collective_seconds_from", device.collectiveFrom}}},
               {"memory", std::move(memory)}};
  if (models.size() > 1)
    json["draft"] = {{"model", models.back().checkpoint.name},
                     {"context", models.back().options.context},
                     {"memory", memoryJson(run.draft)}};
  json["fits"] = fits;
  if (fits)
    json["largest_context"] = run.largestContext;
  else
    json["advice"] = run.advice;
  json["decode"] = Json::array();
  for (const DecodeStep &step : run.decode)
    json["decode"].push_back(decodeJson(step, options.context, device));
  return json;
}

static void printMemory(const CompileOptions &options, const DryRun &run,
                        const DeviceFacts &device) {
  const MemoryNeeds &memory = run.memory;
  const std::string cache = absl::StrCat(
      options.maxSequences, " x ", options.context, " tokens in ",
      options.kvFormat, ", ",
      formatBytes(memory.kv / static_cast<uint64_t>(options.maxSequences)),
      " each");
  const auto line = [](const char *what, uint64_t bytes,
                       const std::string &note = "") {
    std::printf("  %-9s %11s%s%s\n", what, formatBytes(bytes).c_str(),
                note.empty() ? "" : "  ", note.c_str());
  };
  if (options.ranks == 1)
    std::printf("memory of %s\n", device.name.c_str());
  else
    std::printf("memory of each of %lld ranks, %s\n",
                static_cast<long long>(options.ranks), device.name.c_str());
  line("weights", memory.weights);
  line("KV cache", memory.kv, cache);
  line("arena", memory.arena, "what launches leave for each other");
  line("inputs", memory.inputs + memory.counters);
  if (memory.exchange != 0)
    line("exchange", memory.exchange + memory.gathered,
         "what ranks bring to each other");
  if (const MemoryNeeds &draft = run.draft; draft.total() != 0)
    line("draft", draft.total(),
         absl::StrCat("weights ", formatBytes(draft.weights), ", KV cache ",
                      formatBytes(draft.kv), ", the rest ",
                      formatBytes(draft.rest())));
  line("total", run.total(),
       options.target == "cuda" ? "the driver's own is not included" : "");
  line("there is", device.memoryBytes);
  if (!run.fits(device))
    std::printf("does not fit, %s missing; %s\n",
                formatBytes(run.total() - device.memoryBytes).c_str(),
                run.advice.c_str());
  else
    std::printf("fits, %s left; it fits up to -c %lld\n",
                formatBytes(device.memoryBytes - run.total()).c_str(),
                static_cast<long long>(run.largestContext));
}

static void printDecode(const CompileOptions &options, const DryRun &run,
                        const DeviceFacts &device) {
  std::printf("\ndecode, %lld tokens in each sequence\n",
              static_cast<long long>(options.context));
  std::printf("  %9s  %11s  %11s  %11s  %11s\n", "sequences", "weights",
              "attention", "limit tok/s", "expected");
  for (const DecodeStep &step : run.decode)
    std::printf("  %9lld  %11s  %11s  %11.1f  %11.1f\n",
                static_cast<long long>(step.sequences),
                formatBytes(whole(step.totals.weightBytes)).c_str(),
                formatBytes(whole(step.totals.keyBytes)).c_str(),
                limitOf(step, device), expectedOf(step, device));
  std::printf("limit: all that a step reads, at %.0f GB/s (%s)\n",
              device.bandwidth * 1e-9, device.bandwidthFrom.c_str());
  std::printf("expected: %.2f of it (%s)\n", device.decodeShare,
              device.shareFrom.c_str());
  if (const int64_t collectives = run.decode.front().collectives)
    std::printf("  and %lld collectives of %.0f us (%s)\n",
                static_cast<long long>(collectives),
                device.collectiveSeconds * 1e6, device.collectiveFrom.c_str());
}

namespace {

struct PlanCommand {
  std::string model, draft;
  CompileFlags flags;
  bool asJson = false;

  absl::Status run() {
    // A GPU says what the plan is for.
    const CLI::App &verb = *command;
    if (verb["--gpu"]->count() > 0 && verb["--target"]->count() == 0)
      flags.options.target = "cuda";
    LLAMAC_ASSIGN_OR_RETURN(const CompileOptions asked, flags.parse());
    LLAMAC_ASSIGN_OR_RETURN(const DraftedPlans plans,
                            resolveDraft(model, draft, asked));
    std::vector<DryRunModel> models;
    for (const auto &[path, of] :
         {std::pair(model, plans.ofModel), std::pair(draft, plans.ofDraft)}) {
      if (path.empty())
        continue;
      LLAMAC_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                              openModelOrConfig(path, {.headOf = of.headOf}));
      LLAMAC_ASSIGN_OR_RETURN(CompileOptions options,
                              resolveOptions(of, checkpoint.config));
      warnOfLongContext(options.context, checkpoint.config.maxContext);
      models.push_back({std::move(checkpoint), std::move(options)});
    }
    LLAMAC_RETURN_IF_ERROR(checkDraft(models.front(), models.back()));
    const CompileOptions &options = models.front().options;
    LLAMAC_ASSIGN_OR_RETURN(const DeviceFacts device, deviceOf(options));
    LLAMAC_ASSIGN_OR_RETURN(const DryRun result, dryRun(models, device));
    if (asJson) {
      std::printf("%s\n", jsonText(toJson(models, result, device), 2).c_str());
    } else {
      printMemory(options, result, device);
      printDecode(options, result, device);
    }
    if (result.fits(device))
      return absl::OkStatus();
    return memoryError(absl::StrCat(
        model, ": does not fit ", device.name, ": expected at most ",
        formatBytes(device.memoryBytes), ", got ", formatBytes(result.total()),
        "; ", result.advice));
  }

  /// Usage error where `drafting` could not draft for `of`, which may be
  /// itself.
  absl::Status checkDraft(const DryRunModel &of,
                          const DryRunModel &drafting) const {
    const int64_t tokens = of.checkpoint.config.vocabSize;
    const int64_t got = drafting.checkpoint.config.vocabSize;
    if (got != tokens)
      return usageError(absl::StrCat("--draft ", draft,
                                     ": expected a vocabulary of ", tokens,
                                     " tokens, as ", model, " has, got ", got));
    if (drafting.options.context < of.options.context)
      return usageError(
          absl::StrCat("--draft ", draft, ": expected a context of at least ",
                       of.options.context, " tokens, as ", model, " has, got ",
                       drafting.options.context, "; -c gives both the same"));
    return absl::OkStatus();
  }

  /// The product that was named, not only its architecture.
  absl::StatusOr<DeviceFacts> deviceOf(const CompileOptions &options) const {
    if (options.gpu.empty())
      return hostFacts();
    const std::string &named = flags.options.gpu;
    return *gpuFacts(named.empty() ? options.gpu : named);
  }

  CLI::App *command = nullptr;
};

} // namespace

void addPlanCommand(CLI::App &app, absl::Status &status) {
  auto command = std::make_shared<PlanCommand>();
  CLI::App *verb = app.add_subcommand(
      "plan", "Say whether a model fits a device, and how fast it would be");
  command->command = verb;
  addModelArgument(*verb, command->model,
                   "A model, or its params.json or config.json alone")
      ->required();
  const OptionGroup group{*verb};
  group.addFlag("--json", command->asJson,
                "Print one JSON object, with bytes as whole numbers");
  group.add("--draft", command->draft, "MODEL",
            "Count the memory of a smaller model or an EAGLE-3 head that "
            "drafts answers, too");
  command->flags.addTo(*verb, CompileFlags::Help::Listed);
  verb->footer("Nothing is written, and weights are not read.\n\n"
               "Examples:\n"
               "  llamac plan params.json --gpu h200 -c 32768\n"
               "  llamac plan large.gguf --draft small.gguf --gpu h100\n"
               "  llamac plan model.gguf --parallel 4");
  verb->callback([command, &status] { status = command->run(); });
}

} // namespace llamac
