//===- BenchCommand.cpp - Measures prefill and decode ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tools/BenchCommand.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

namespace llamac {

// Ids spread over the vocabulary, the same in every run.
static std::vector<int32_t> madeUpTokens(int64_t count, int64_t vocab) {
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>((7919 * i + 11) % vocab));
  return ids;
}

static absl::Status ignoreLogits(const LogitsRow &) { return absl::OkStatus(); }

// Seconds that `work` takes.
template <typename Work> static absl::StatusOr<double> timed(Work work) {
  const auto start = std::chrono::steady_clock::now();
  LLAMAC_RETURN_IF_ERROR(work());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// As many steps as `tokens`. A device that chooses tokens goes on with its own,
// as in use: how long a step takes hangs on no token.
static absl::Status decode(Engine &engine, Sequence &sequence,
                           absl::Span<const int32_t> tokens) {
  if (engine.model().samples()) {
    LLAMAC_ASSIGN_OR_RETURN(Sampler greedy, Sampler::create({}));
    return engine.follow({{&sequence, tokens[0], &greedy}},
                         static_cast<int64_t>(tokens.size()),
                         [](absl::Span<const int32_t>) { return true; });
  }
  for (const int32_t &token : tokens)
    LLAMAC_RETURN_IF_ERROR(
        engine.step({{&sequence, {&token, 1}, Wanted::Last}}, ignoreLogits));
  return absl::OkStatus();
}

// Code and weights come into memory before anything is measured.
static absl::Status warmUp(Engine &engine, absl::Span<const int32_t> tokens) {
  LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine.newSequence());
  LLAMAC_RETURN_IF_ERROR(engine.step(
      {{&sequence, tokens.subspan(0, 16), Wanted::Last}}, ignoreLogits));
  return decode(engine, sequence, tokens.last(1));
}

absl::Status benchCommand(const std::shared_ptr<const Model> &model,
                          const BenchOptions &options, std::FILE *out) {
  if (options.promptTokens < 1 || options.genTokens < 1)
    return usageError(absl::StrCat("--prompt-tokens and --gen-tokens: expected "
                                   "at least 1, got ",
                                   options.promptTokens, " and ",
                                   options.genTokens));
  const int64_t context = model->context();
  if (options.promptTokens > context ||
      options.genTokens > context - options.promptTokens)
    return usageError(absl::StrCat(
        "context: ", options.promptTokens, " and ", options.genTokens,
        " tokens were asked for, the plan was compiled for ", context));

  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          Engine::create(model));
  const std::vector<int32_t> tokens = madeUpTokens(
      options.promptTokens + options.genTokens, model->config().vocabSize);
  if (context > 16)
    LLAMAC_RETURN_IF_ERROR(warmUp(*engine, tokens));

  LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine->newSequence());
  const auto prompt = absl::MakeConstSpan(tokens).first(options.promptTokens);
  LLAMAC_ASSIGN_OR_RETURN(
      const double prefill, timed([&] {
        return engine->step({{&sequence, prompt, Wanted::Last}}, ignoreLogits);
      }));
  LLAMAC_ASSIGN_OR_RETURN(
      const double decoding, timed([&] {
        return decode(*engine, sequence,
                      absl::MakeConstSpan(tokens).last(options.genTokens));
      }));

  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double prefillRate =
      static_cast<double>(options.promptTokens) / prefill;
  const double decodeRate = static_cast<double>(options.genTokens) / decoding;
  const double first = model->loadSeconds() + prefill;
  const uint64_t peak = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  if (options.json) {
    const nlohmann::ordered_json report = {
        {"prefill_tok_s", prefillRate},
        {"decode_tok_s", decodeRate},
        {"prompt_tokens", options.promptTokens},
        {"gen_tokens", options.genTokens},
        {"load_s", model->loadSeconds()},
        {"first_token_s", first},
        {"threads", model->device().threads()},
        {"isa", model->code().isa()},
        {"peak_rss_bytes", peak}};
    absl::FPrintF(out, "%s\n", report.dump());
    return absl::OkStatus();
  }
  absl::FPrintF(out,
                "prefill      %10.1f tok/s  (%d tokens)\n"
                "decode       %10.1f tok/s  (%d tokens after them)\n"
                "load         %10.3f s\n"
                "first token  %10.3f s\n"
                "peak memory  %10.1f MiB\n"
                "device       %s, %s\n",
                prefillRate, options.promptTokens, decodeRate,
                options.genTokens, model->loadSeconds(), first,
                static_cast<double>(peak) / (1 << 20),
                model->device().describe(), model->code().isa());
  return absl::OkStatus();
}

} // namespace llamac
