//===- RunCommand.cpp - Completes a prompt --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tools/RunCommand.h"

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/engine/tokenizer/CharClasses.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <array>
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
  const SamplingOptions model = advisedSampling(advised);
  SamplingOptions sampling = options.generate.sampling;
  sampling.temperature = options.temperature.value_or(model.temperature);
  sampling.topK = options.topK.value_or(model.topK);
  sampling.topP = options.topP.value_or(model.topP);
  return sampling;
}

static bool isUtf8(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const DecodedChar decoded = decodeChar(text, at);
    if (decoded.length == 1 && static_cast<uint8_t>(text[at]) >= 0x80)
      return false;
    at += decoded.length;
  }
  return true;
}

absl::Status prepareRun(RunOptions &options, std::FILE *in) {
  if (options.prompt.has_value() == options.tokens.has_value())
    return usageError(absl::StrCat("prompt: expected -p TEXT or --tokens IDS, "
                                   "got ",
                                   options.prompt ? "both" : "neither"));
  if (options.tokens)
    LLAMAC_RETURN_IF_ERROR(parseTokenIds(*options.tokens).status());
  if (options.prompt == "-") {
    options.prompt->clear();
    std::array<char, 1 << 16> piece;
    while (const size_t size = std::fread(piece.data(), 1, piece.size(), in))
      options.prompt->append(piece.data(), size);
    if (absl::EndsWith(*options.prompt, "\n"))
      options.prompt->pop_back();
  }
  if (options.prompt && !isUtf8(*options.prompt))
    return usageError("prompt: expected UTF-8 text, got other bytes");
  if (options.generate.maxTokens < -1)
    return usageError(absl::StrCat("-n: expected -1 or more, got ",
                                   options.generate.maxTokens));
  return Sampler::create(samplingOf(options, nullptr)).status();
}

static double rate(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

/// One line for people.
static void printTimes(double loadSeconds, const GenerateResult &result,
                       std::FILE *log) {
  const GenerateTimes &times = result.times;
  absl::FPrintF(log,
                "load %.2f s, prompt %d tokens at %.1f tok/s, time to first "
                "token %.2f s, decode %d tokens at %.1f tok/s, stopped by %s\n",
                loadSeconds, times.promptTokens,
                rate(times.promptTokens, times.prefillSeconds),
                loadSeconds + times.prefillSeconds, times.decodeSteps,
                rate(times.decodeSteps, times.decodeSeconds),
                stopReasonName(result.reason));
}

/// One JSON object for programs: the answer, `text` unless ids are asked for,
/// and the times.
static std::string answerJson(double loadSeconds, const GenerateResult &result,
                              const RunOptions &options,
                              const std::string &text) {
  const GenerateTimes &times = result.times;
  nlohmann::ordered_json answer;
  if (options.printIds)
    answer["ids"] = result.ids;
  else
    answer["text"] = text;
  answer.update(
      {{"load_s", loadSeconds},
       {"prompt_tokens", times.promptTokens},
       {"prefill_s", times.prefillSeconds},
       {"prefill_tok_s", rate(times.promptTokens, times.prefillSeconds)},
       {"first_token_s", loadSeconds + times.prefillSeconds},
       {"generated_tokens", result.ids.size()},
       {"decode_s", times.decodeSeconds},
       {"decode_tok_s", rate(times.decodeSteps, times.decodeSeconds)},
       {"stop", std::string(stopReasonName(result.reason))},
       {"seed", result.seed}});
  return answer.dump(-1, ' ', false,
                     nlohmann::ordered_json::error_handler_t::replace);
}

absl::Status runDecoder(const RunSubject &subject, const RunOptions &options,
                        std::FILE *out, std::FILE *log) {
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
  std::string answer; // What is printed when done.
  bool first = true;
  bool writes = true;
  auto print = [&](absl::string_view text) {
    writes = std::fwrite(text.data(), 1, text.size(), out) == text.size() &&
             std::fflush(out) == 0;
    return writes;
  };
  GenerateCallbacks callbacks;
  if (options.printIds && !options.json)
    callbacks.onToken = [&](int32_t id) {
      const bool isFirst = std::exchange(first, false);
      return print(absl::StrCat(isFirst ? "" : " ", id));
    };
  else if (!options.printIds)
    callbacks.onText = [&](absl::string_view text) {
      if (!options.json)
        return print(text);
      absl::StrAppend(&answer, text);
      return true;
    };

  LLAMAC_ASSIGN_OR_RETURN(
      const GenerateResult result,
      generate(subject.decoder, prompt, generation, callbacks));
  if (options.json)
    answer = answerJson(subject.loadSeconds, result, options, answer);
  if (!writes || !print(answer + "\n"))
    return memoryError(
        absl::StrCat("cannot write the output: ", std::strerror(errno)));
  if (options.quiet || options.json)
    return absl::OkStatus();
  if (generation.sampling.temperature > 0)
    absl::FPrintF(log, "seed %d\n", result.seed);
  printTimes(subject.loadSeconds, result, log);
  return absl::OkStatus();
}

absl::Status runCommand(const std::shared_ptr<const Model> &model,
                        const RunOptions &options, std::FILE *out,
                        std::FILE *log) {
  Profile profile(model->plan());
  Profile *used =
      options.profile || !options.trace.empty() ? &profile : nullptr;
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          Engine::create(model, {.profile = used}));
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
    printText(log, profile.table(limits));
  }
  return options.trace.empty()
             ? absl::OkStatus()
             : writeFileAtomically(options.trace, profile.trace());
}

} // namespace llamac
