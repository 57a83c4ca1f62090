//===- RunCommand.cpp - Completes a prompt --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tools/RunCommand.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace llamac {

absl::StatusOr<std::vector<int32_t>> parseTokenIds(absl::string_view text) {
  std::vector<int32_t> ids;
  for (absl::string_view part :
       absl::StrSplit(text, absl::ByAnyChar(", \t\n"), absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(part, &ids.emplace_back()) || ids.back() < 0)
      return usageError(
          absl::StrCat("--tokens: expected ids such as 1,2,3, got ", part));
  }
  if (ids.empty())
    return usageError("--tokens: expected ids such as 1,2,3, got none");
  return ids;
}

/// `options` over `advised`, which may be null.
static SamplingOptions samplingOf(const RunOptions &options,
                                  const schema::SamplingT *advised) {
  SamplingOptions sampling = options.generate.sampling;
  if (advised) {
    sampling.temperature = advised->temperature;
    sampling.topK = advised->topK;
    sampling.topP = advised->topP;
  }
  sampling.temperature = options.temperature.value_or(sampling.temperature);
  sampling.topK = options.topK.value_or(sampling.topK);
  sampling.topP = options.topP.value_or(sampling.topP);
  return sampling;
}

absl::Status checkRunOptions(const RunOptions &options) {
  if (options.prompt.has_value() == options.tokens.has_value())
    return usageError(absl::StrCat("prompt: expected -p TEXT or --tokens IDS, "
                                   "got ",
                                   options.prompt ? "both" : "neither"));
  if (options.tokens)
    LLAMAC_RETURN_IF_ERROR(parseTokenIds(*options.tokens).status());
  if (options.generate.maxTokens < -1)
    return usageError(absl::StrCat("-n: expected -1 or more, got ",
                                   options.generate.maxTokens));
  return Sampler::create(samplingOf(options, nullptr)).status();
}

static double rate(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// One line for people, or one JSON object for programs.
static void printTimes(double loadSeconds, const GenerateResult &result,
                       bool json, std::FILE *log) {
  const GenerateTimes &times = result.times;
  const double first = loadSeconds + times.prefillSeconds;
  const double prefillRate = rate(times.promptTokens, times.prefillSeconds);
  const double decodeRate = rate(times.decodeSteps, times.decodeSeconds);
  if (json) {
    const nlohmann::ordered_json report = {
        {"load_s", loadSeconds},
        {"prompt_tokens", times.promptTokens},
        {"prefill_s", times.prefillSeconds},
        {"prefill_tok_s", prefillRate},
        {"first_token_s", first},
        {"generated_tokens", result.ids.size()},
        {"decode_s", times.decodeSeconds},
        {"decode_tok_s", decodeRate},
        {"stop", std::string(stopReasonName(result.reason))},
        {"seed", result.seed}};
    absl::FPrintF(log, "%s\n", report.dump());
    return;
  }
  absl::FPrintF(
      log,
      "load %.2f s, prompt %d tokens at %.1f tok/s, first token after "
      "%.2f s, decode %d tokens at %.1f tok/s, stopped by %s\n",
      loadSeconds, times.promptTokens, prefillRate, first, times.decodeSteps,
      decodeRate, stopReasonName(result.reason));
}

absl::Status runDecoder(const RunSubject &subject, const RunOptions &options,
                        std::FILE *out, std::FILE *log) {
  LLAMAC_RETURN_IF_ERROR(checkRunOptions(options));
  LLAMAC_ASSIGN_OR_RETURN(
      const std::vector<int32_t> prompt,
      options.tokens
          ? parseTokenIds(*options.tokens)
          : subject.encode(options.prompt.value_or(""), options.special));
  if (!options.printIds && !subject.decoder.tokenizer())
    return usageError(absl::StrCat(subject.path,
                                   ": there is no tokenizer to make text "
                                   "with; ask for ids by --print-ids"));

  GenerateOptions generation = options.generate;
  generation.sampling = samplingOf(options, subject.sampling);
  bool first = true;
  bool writes = true;
  auto print = [&](absl::string_view text) {
    writes = std::fwrite(text.data(), 1, text.size(), out) == text.size() &&
             std::fflush(out) == 0;
    return writes;
  };
  GenerateCallbacks callbacks;
  if (options.printIds)
    callbacks.onToken = [&](int32_t id) {
      const bool isFirst = std::exchange(first, false);
      return print(absl::StrCat(isFirst ? "" : " ", id));
    };
  else
    callbacks.onText = print;

  LLAMAC_ASSIGN_OR_RETURN(
      const GenerateResult result,
      generate(subject.decoder, prompt, generation, callbacks));
  if (!writes || !print("\n"))
    return memoryError(
        absl::StrCat("cannot write the output: ", std::strerror(errno)));
  if (options.quiet)
    return absl::OkStatus();
  if (generation.sampling.temperature > 0 && !options.json)
    absl::FPrintF(log, "seed %d\n", result.seed);
  printTimes(subject.loadSeconds, result, options.json, log);
  return absl::OkStatus();
}

absl::Status runCommand(const std::shared_ptr<const Model> &model,
                        const RunOptions &options, std::FILE *out,
                        std::FILE *log) {
  LLAMAC_RETURN_IF_ERROR(checkRunOptions(options));
  Profile profile(model->plan());
  Profile *wanted =
      options.profile || !options.trace.empty() ? &profile : nullptr;
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          Engine::create(model, {.profile = wanted}));
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Decoder> decoder,
                          newDecoder(*engine));
  auto encode = [&](absl::string_view text, bool special) {
    return model->encode(text, special);
  };
  LLAMAC_RETURN_IF_ERROR(
      runDecoder({*decoder, model->path(), encode, model->plan().sampling.get(),
                  model->loadTimes().all()},
                 options, out, log));
  if (options.profile) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceLimits> limits,
                            model->device().measureLimits());
    absl::FPrintF(log, "%s", profile.table(limits));
  }
  return options.trace.empty()
             ? absl::OkStatus()
             : writeFileAtomically(options.trace, profile.trace());
}

} // namespace llamac
