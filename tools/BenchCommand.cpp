//===- BenchCommand.cpp - Measures prefill and decode ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/BenchCommand.h"

#include "engine/tuner/ModelRun.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/tuned/Trials.h"
#include "tools/ServingBench.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/resource.h>
#include <utility>

namespace llamac {

// Code and weights come into memory before anything is measured.
static absl::StatusOr<std::unique_ptr<Engine>>
warmEngine(const std::shared_ptr<const Model> &model) {
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Engine::create(model));
  constexpr int64_t promptTokens = 16;
  if (model->context() > promptTokens) {
    const std::vector<int32_t> tokens =
        spreadTokens(promptTokens + 1, model->config().vocabSize);
    ModelRun run(*engine, 1);
    LLAMAC_RETURN_IF_ERROR(
        run.prefill(absl::MakeConstSpan(tokens).first(promptTokens)));
    LLAMAC_RETURN_IF_ERROR(run.decode(absl::MakeConstSpan(tokens).last(1)));
  }
  return engine;
}

namespace {

struct Point {
  int64_t batch, promptTokens;
  double prefillSeconds, decodeSeconds; // Times of all sequences together.
};

} // namespace

static absl::StatusOr<Point> measure(Engine &engine,
                                     const BenchOptions &options,
                                     int64_t promptTokens, int64_t batch) {
  const std::vector<int32_t> tokens = spreadTokens(
      promptTokens + options.genTokens, engine.model().config().vocabSize);
  std::vector<double> prefill, decode;
  for (int64_t round = -options.warmUps; round < options.repeat; ++round) {
    ModelRun run(engine, batch);
    LLAMAC_ASSIGN_OR_RETURN(
        const double prompt, timed([&] {
          return run.prefill(absl::MakeConstSpan(tokens).first(promptTokens));
        }));
    LLAMAC_ASSIGN_OR_RETURN(
        const double steps, timed([&] {
          return run.decode(
              absl::MakeConstSpan(tokens).last(options.genTokens));
        }));
    if (round < 0)
      continue;
    prefill.push_back(prompt);
    decode.push_back(steps);
  }
  return Point{batch, promptTokens, medianOf(prefill), medianOf(decode)};
}

/// `deviceBytes`: the memory that is taken of a device with its own; else 0.
static void print(const Model &model, uint64_t deviceBytes,
                  const BenchOptions &options, const Point &point,
                  std::FILE *out) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto batch = static_cast<double>(point.batch);
  const double prefillRate =
      batch * static_cast<double>(point.promptTokens) / point.prefillSeconds;
  const double step =
      point.decodeSeconds / static_cast<double>(options.genTokens);
  const double decodeRate = batch / step;
  const LoadTimes &load = model.loadTimes();
  const double first = load.all() + point.prefillSeconds;
  const uint64_t peak = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  if (options.json) {
    const nlohmann::ordered_json report = {
        {"prefill_tok_s", prefillRate},
        {"decode_tok_s", decodeRate},
        {"step_ms", 1e3 * step},
        {"batch", point.batch},
        {"prompt_tokens", point.promptTokens},
        {"gen_tokens", options.genTokens},
        {"repeat", options.repeat},
        {"load_s", load.all()},
        {"load",
         {{"plan_s", load.plan},
          {"device_s", load.device},
          {"kernels_s", load.kernels},
          {"memory_s", load.memory},
          {"weights_s", load.weights},
          {"tokenizer_s", load.tokenizer}}},
        {"first_token_s", first},
        {"threads", model.loaded().threads()},
        {"isa", model.code().isa()},
        {"peak_rss_bytes", peak},
        {"device_memory_bytes", deviceBytes}};
    absl::FPrintF(out, "%s\n", report.dump());
    return;
  }
  absl::FPrintF(out,
                "prefill      %10.1f tok/s  (%d x %d tokens)\n"
                "decode       %10.1f tok/s  (%d steps after them)\n"
                "step         %10.3f ms\n"
                "load         %10.3f s\n"
                "first token  %10.3f s\n"
                "peak memory  %10.1f MiB\n"
                "device       %s, %s\n",
                prefillRate, point.batch, point.promptTokens, decodeRate,
                options.genTokens, 1e3 * step, load.all(), first,
                static_cast<double>(peak) / (1 << 20),
                model.loaded().describe(), model.code().isa());
}

// Seconds of the model as compiled, and of the same work with what was tuned.
static constexpr size_t untuned = 0, tuned = 1;

namespace {

struct Comparison {
  Trials prefill{2}; // A round is a prompt.
  Trials decode{2};  // A round is a turn of steps.
};

} // namespace

/// Adds a round to `trials`: the seconds of `work(untuned)` and `work(tuned)`,
/// of which `work(first)` goes ahead.
static absl::Status timeBoth(size_t first, Trials &trials,
                             absl::FunctionRef<absl::Status(size_t)> work) {
  std::array<std::optional<double>, 2> seconds;
  for (const size_t which : {first, 1 - first}) {
    LLAMAC_ASSIGN_OR_RETURN(seconds[which], timed([&] { return work(which); }));
  }
  trials.addRound(seconds);
  return absl::OkStatus();
}

static absl::StatusOr<Comparison>
compare(const std::array<std::shared_ptr<const Model>, 2> &models,
        const BenchOptions &options, int64_t promptTokens, int64_t batch) {
  const int64_t turn = std::min(options.genTokens, stepsOfTurn(*models[tuned]));
  const std::vector<int32_t> tokens = spreadTokens(
      promptTokens + options.genTokens, models[tuned]->config().vocabSize);
  const auto prompt = absl::MakeConstSpan(tokens).first(promptTokens);
  Comparison measured;
  for (int64_t round = -options.warmUps; round < options.repeat; ++round) {
    if (round == 0)
      measured = {};
    // Which goes ahead alternates, and so does whose memory comes first.
    size_t first = round % 2 == 0 ? untuned : tuned;
    std::array<std::unique_ptr<Engine>, 2> engines;
    for (const size_t which : {first, 1 - first}) {
      LLAMAC_ASSIGN_OR_RETURN(engines[which], warmEngine(models[which]));
    }
    std::array<ModelRun, 2> runs = {ModelRun(*engines[untuned], batch),
                                    ModelRun(*engines[tuned], batch)};
    LLAMAC_RETURN_IF_ERROR(timeBoth(first, measured.prefill, [&](size_t which) {
      return runs[which].prefill(prompt);
    }));
    for (int64_t step = 0; step + turn <= options.genTokens; step += turn) {
      const auto next =
          absl::MakeConstSpan(tokens).subspan(promptTokens + step, turn);
      LLAMAC_RETURN_IF_ERROR(
          timeBoth(first, measured.decode,
                   [&](size_t which) { return runs[which].decode(next); }));
      first = 1 - first;
    }
  }
  return measured;
}

static void print(const Comparison &measured, const BenchOptions &options,
                  int64_t promptTokens, int64_t batch, bool same,
                  std::FILE *out) {
  nlohmann::ordered_json report = {{"batch", batch},
                                   {"prompt_tokens", promptTokens},
                                   {"gen_tokens", options.genTokens},
                                   {"repeat", options.repeat},
                                   {"same", same}};
  for (const auto &[name, trials] : {std::pair{"prefill", &measured.prefill},
                                     std::pair{"decode", &measured.decode}}) {
    const Trials::Ratio speed = trials->ratioOf(untuned, tuned);
    report[name] = {{"speedup", speed.median},
                    {"noise", speed.noise},
                    {"turns", speed.rounds},
                    {"tuned_s", trials->secondsOf(tuned)},
                    {"untuned_s", trials->secondsOf(untuned)}};
    if (!options.json)
      absl::FPrintF(out, "%-8s %8.3f x as compiled, +- %.3f  (%s)\n", name,
                    speed.median, speed.noise,
                    formatCount(static_cast<int64_t>(speed.rounds), "turn"));
  }
  if (options.json)
    absl::FPrintF(out, "%s\n", report.dump());
  else if (same)
    absl::FPrintF(out, "nothing was tuned that runs otherwise than compiled\n");
}

static absl::Status benchTuned(const std::shared_ptr<const Model> &model,
                               const BenchOptions &options, std::FILE *out) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const Model> compiled,
                          model->asCompiled());
  const bool same = compiled->planReader() == model->planReader();
  for (const int64_t promptTokens : options.promptTokens)
    for (const int64_t batch : options.batch) {
      LLAMAC_ASSIGN_OR_RETURN(
          const Comparison measured,
          compare({compiled, model}, options, promptTokens, batch));
      print(measured, options, promptTokens, batch, same, out);
    }
  return absl::OkStatus();
}

// A line of JSON for what ran, or a table.
static void printKernels(const Profile &profile, absl::string_view work,
                         const std::optional<DeviceLimits> &limits,
                         const BenchOptions &options, std::FILE *out) {
  if (!options.json) {
    printText(out, absl::StrCat(work, "\n", profile.table(limits), "\n"));
    return;
  }
  nlohmann::ordered_json report = {{"work", std::string(work)}};
  if (limits)
    report["limits"] = limitsJson(*limits);
  for (const KernelSum &sum : profile.sums())
    report["kernels"].push_back({{"kernel", sum.kernel},
                                 {"launches", sum.launches},
                                 {"seconds", sum.seconds},
                                 {"bytes", sum.bytes},
                                 {"operations", sum.operations},
                                 {"int8_operations", sum.int8Operations}});
  absl::FPrintF(out, "%s\n", report.dump());
}

// Prefill and decode of every length and batch, launch by launch.
static absl::Status benchKernels(const std::shared_ptr<const Model> &model,
                                 const BenchOptions &options, std::FILE *out) {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceLimits> limits,
                          model->loaded().measureLimits());
  const Profile none(model->plan());
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          Engine::create(model));
  for (const int64_t promptTokens : options.promptTokens)
    for (const int64_t batch : options.batch) {
      const std::vector<int32_t> tokens = spreadTokens(
          promptTokens + options.genTokens, model->config().vocabSize);
      Profile prefill = none, decode = none;
      // The first launches wait for pages and threads.
      const int64_t warmUps = std::max<int64_t>(options.warmUps, 1);
      for (int64_t round = -warmUps; round < options.repeat; ++round) {
        if (round == 0)
          prefill = decode = none;
        ModelRun run(*engine, batch);
        engine->setProfile(&prefill);
        LLAMAC_RETURN_IF_ERROR(
            run.prefill(absl::MakeConstSpan(tokens).first(promptTokens)));
        engine->setProfile(&decode);
        LLAMAC_RETURN_IF_ERROR(
            run.decode(absl::MakeConstSpan(tokens).last(options.genTokens)));
      }
      printKernels(
          prefill,
          absl::StrFormat("prefill of %d x %d tokens", batch, promptTokens),
          limits, options, out);
      printKernels(decode,
                   absl::StrCat(formatCount(options.genTokens, "step"), " of ",
                                formatCount(batch, "sequence"), " after ",
                                formatCount(promptTokens, "token")),
                   limits, options, out);
    }
  return absl::OkStatus();
}

static absl::Status checkOptions(const Model &model,
                                 const BenchOptions &options) {
  const int64_t context = model.context();
  LLAMAC_RETURN_IF_ERROR(checkServing(options, model));
  const struct {
    const char *flag;
    int64_t value, least;
  } counts[] = {{"--gen-tokens", options.genTokens, 1},
                {"--warm-ups", options.warmUps, 0},
                {"--requests", options.requests, 0},
                {"--shared-prefix", options.sharedPrefix, 0},
                {"--long-prompt", options.longPrompt, 0},
                {"--repeat", options.repeat, 1}};
  for (const auto &count : counts)
    if (count.value < count.least)
      return usageError(absl::StrCat(count.flag, ": expected at least ",
                                     count.least, ", got ", count.value));
  for (const int64_t tokens : options.promptTokens) {
    if (tokens < 1)
      return usageError(
          absl::StrCat("--prompt-tokens: expected at least 1, got ", tokens));
    if (isServing(options))
      continue; // checkServing() knows which of them are used.
    LLAMAC_RETURN_IF_ERROR(
        checkFits(tokens, options.genTokens, options.genTokens, context));
  }
  const int64_t most = model.plan().kv->maxSequences;
  for (const int64_t batch : options.batch)
    if (batch < 1 || batch > most)
      return usageError(absl::StrCat("--batch: expected 1 to ", most,
                                     ", the sequences the model was loaded "
                                     "for, got ",
                                     batch));
  return absl::OkStatus();
}

void loadFor(const BenchOptions &options, ModelOptions &loading) {
  const int64_t batch =
      std::max<int64_t>(*std::ranges::max_element(options.batch), 1);
  loading.sequences = options.longPrompt > 0 ? batch + 1 : batch;
  loading.sharesPages = isServing(options);
}

absl::Status benchCommand(const std::shared_ptr<const Model> &model,
                          const BenchOptions &options, std::FILE *out) {
  LLAMAC_RETURN_IF_ERROR(checkOptions(*model, options));
  if (isServing(options))
    return servingBench(model, options, out);
  if (options.kernels)
    return benchKernels(model, options, out);
  if (options.compareUntuned)
    return benchTuned(model, options, out);
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          warmEngine(model));
  for (const int64_t promptTokens : options.promptTokens)
    for (const int64_t batch : options.batch) {
      LLAMAC_ASSIGN_OR_RETURN(const Point point,
                              measure(*engine, options, promptTokens, batch));
      LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceMemory> memory,
                              model->loaded().memory());
      print(*model, memory ? memory->taken : 0, options, point, out);
    }
  return absl::OkStatus();
}

} // namespace llamac
