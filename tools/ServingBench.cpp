//===- ServingBench.cpp - Measures requests that come and go --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/ServingBench.h"

#include "engine/scheduler/Scheduler.h"
#include "runtime/base/Clock.h"
#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/io/JsonReader.h"
#include "runtime/io/LineFiles.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <ranges>
#include <thread>
#include <utility>
#include <vector>

namespace llamac {

using nlohmann::ordered_json;

namespace {

/// A request of a trace.
struct Arrival {
  double seconds; ///< From the start on.
  int64_t promptTokens, genTokens;
};

/// Seconds of some events.
class Times {
public:
  void add(double seconds) { all.push_back(seconds); }
  size_t size() const { return all.size(); }

  /// The smallest that `share` of all are not above (nearest rank); 0 of none.
  double percentile(double share) const {
    if (all.empty())
      return 0;
    std::vector<double> sorted = all;
    const auto rank =
        static_cast<size_t>(std::ceil(share * static_cast<double>(all.size())));
    const auto place =
        sorted.begin() + static_cast<ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
    std::ranges::nth_element(sorted, place);
    return *place;
  }
  ordered_json report() const {
    return {{"median", percentile(0.5)}, {"p99", percentile(0.99)}};
  }
  std::string text() const {
    return absl::StrFormat("%10.2f ms median %10.2f ms p99",
                           1e3 * percentile(0.5), 1e3 * percentile(0.99));
  }

private:
  std::vector<double> all;
};

/// Takes the tokens of one answer.
struct Stream {
  double arrival = 0;
  double first = 0, last = 0; ///< When tokens came; 0: none yet.
  double lastOfBefore = 0;    ///< When the last one before `step` came.
  int64_t step = 0;           ///< The step of the last token,
  int64_t tokensOfStep = 0;   ///< and its tokens behind the first of all.
  bool hasEnded = false;
};

} // namespace

/// A request of `count` random tokens, of which the first `shared` are those of
/// all requests, for `genTokens` tokens.
static Request randomRequest(RandomStream &random, int64_t vocab, int64_t count,
                             int64_t shared, int64_t genTokens) {
  RandomStream common(1);
  Request request;
  for (int64_t i = 0; i < count; ++i)
    request.prompt.push_back(static_cast<int32_t>(
        (i < shared ? common : random).next() % static_cast<uint64_t>(vocab)));
  request.options.maxTokens = genTokens;
  request.options.stopAtStopIds = false;
  request.wantsText = false;
  return request;
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

bool isServing(const BenchOptions &options) {
  return options.requests > 0 || !options.trace.empty() ||
         options.longPrompt > 0;
}

static absl::StatusOr<std::vector<Arrival>> readTrace(const std::string &path) {
  constexpr uint64_t mostBytes = 4096;
  LLAMAC_ASSIGN_OR_RETURN(const auto reader, LineReader::open(path, mostBytes));
  std::vector<Arrival> arrivals;
  while (true) {
    LLAMAC_ASSIGN_OR_RETURN(const LineReader::Outcome outcome,
                            reader->next(/*waits=*/true));
    if (outcome != LineReader::Outcome::Line)
      break;
    const absl::string_view line = reader->line().value_or("");
    if (reader->line() && absl::StripAsciiWhitespace(line).empty())
      continue;
    const std::string where = absl::StrCat(path, ":", reader->number());
    LLAMAC_ASSIGN_OR_RETURN(
        const JsonDocument document,
        parseJson(where, line, {.maxBytes = mostBytes, .isLine = true}));
    LLAMAC_ASSIGN_OR_RETURN(const JsonObject object,
                            JsonObject::root(document));
    LLAMAC_ASSIGN_OR_RETURN(const auto seconds,
                            object.optionalNumber("arrival"));
    Arrival &arrival = arrivals.emplace_back();
    arrival.seconds = seconds.value_or(-1);
    if (!(arrival.seconds >= 0 && arrival.seconds < 1e6))
      return object.fail("arrival", "seconds from 0 to 1000000",
                         seconds ? absl::StrCat(*seconds) : "none");
    for (const auto &[name, to] :
         {std::pair("prompt_tokens", &arrival.promptTokens),
          std::pair("gen_tokens", &arrival.genTokens)}) {
      LLAMAC_ASSIGN_OR_RETURN(*to, object.requiredInt(name));
      if (*to < 1)
        return object.fail(name, "at least 1", absl::StrCat(*to));
    }
  }
  if (arrivals.empty())
    return badFileError(absl::StrCat(path, ": expected requests, got none"));
  std::ranges::sort(arrivals, {}, &Arrival::seconds);
  return arrivals;
}

/// The arrivals that `options` ask for; of those by rate, the lengths go
/// through the prompt lengths in turn.
static absl::StatusOr<std::vector<Arrival>>
arrivalsOf(const BenchOptions &options) {
  if (!options.trace.empty())
    return readTrace(options.trace);
  RandomStream random(0);
  std::vector<Arrival> arrivals;
  double now = 0;
  for (int64_t i = 0; i < options.requests; ++i) {
    const auto lengths = static_cast<int64_t>(options.promptTokens.size());
    arrivals.push_back({now,
                        options.promptTokens[static_cast<size_t>(i % lengths)],
                        options.genTokens});
    if (options.rate > 0)
      now -= std::log(1 - random.nextUniform()) / options.rate;
  }
  return arrivals;
}

/// Usage error for an option that would have no effect.
static absl::Status checkTogether(const BenchOptions &options, bool hasDraft) {
  const bool hasArrivals = options.requests > 0 || !options.trace.empty();
  const struct {
    const char *flag;
    bool isGiven, isUsed;
    const char *expected;
  } uses[] = {
      {"--rate", options.rate != 0, options.requests > 0, "with --requests"},
      {"--trace", !options.trace.empty(), options.requests == 0,
       "without --requests"},
      {"--long-prompt", options.longPrompt != 0, !hasArrivals,
       "without --requests and --trace"},
      {"--shared-prefix", options.sharedPrefix != 0, hasArrivals,
       "with --requests or --trace"},
      {"--speculative", options.speculative != BenchOptions().speculative,
       hasArrivals, "with --requests or --trace; other tokens are fixed"},
      {"--draft", hasDraft, hasArrivals,
       "with --requests or --trace; other tokens are fixed"},
      {"--kv-pages", options.scheduler.kvPages != 0, isServing(options),
       "with --requests, --trace or --long-prompt"},
      {"--kv-memory", options.scheduler.kvMemory != 0, isServing(options),
       "with --requests, --trace or --long-prompt"},
      {"--prompt-rows", options.scheduler.promptRows != 0, isServing(options),
       "with --requests, --trace or --long-prompt"},
      {"--no-prefix-cache", !options.scheduler.cachesPrefixes,
       isServing(options), "with --requests, --trace or --long-prompt"},
      {"--batch-invariant", options.scheduler.batchInvariant,
       isServing(options), "with --requests, --trace or --long-prompt"},
      {"--kernels", options.kernels, !isServing(options),
       "without requests that come and go"},
      {"--compare-untuned", options.compareUntuned, !isServing(options),
       "without requests that come and go"}};
  for (const auto &use : uses)
    if (use.isGiven && !use.isUsed)
      return usageError(absl::StrCat(use.flag, ": expected it ", use.expected));
  return absl::OkStatus();
}

absl::Status checkFits(int64_t promptTokens, int64_t answerTokens,
                       int64_t steps, int64_t context) {
  return promptTokens <= context && steps <= context - promptTokens
             ? absl::OkStatus()
             : contextError(context,
                            absl::StrCat("a prompt of ", promptTokens, " and ",
                                         answerTokens, " to generate"));
}

absl::Status checkServing(const BenchOptions &options, const Model &model) {
  LLAMAC_RETURN_IF_ERROR(checkTogether(options, model.draft() != nullptr));
  if (!(options.rate >= 0) || !std::isfinite(options.rate))
    return usageError(absl::StrCat(
        "--rate: expected requests a second, at least 0, got ", options.rate));
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Arrival> arrivals, arrivalsOf(options));
  if (options.longPrompt > 0 && !options.promptTokens.empty())
    arrivals = {{0, options.longPrompt, 1},
                {0, options.promptTokens.front(), options.genTokens}};
  const int64_t context = model.context();
  for (const Arrival &arrival : arrivals)
    // The last token of an answer is not run.
    LLAMAC_RETURN_IF_ERROR(checkFits(arrival.promptTokens, arrival.genTokens,
                                     arrival.genTokens - 1, context));
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

namespace {

/// A run of arrivals, at most `atOnce` of them in the scheduler.
class ServingRun {
public:
  ServingRun(Scheduler &scheduler, const BenchOptions &options, int64_t atOnce)
      : scheduler(scheduler), options(options), atOnce(atOnce) {}

  absl::Status run(const std::vector<Arrival> &arrivals);
  void print(std::FILE *out) const;

private:
  absl::Status submit(const Arrival &arrival, RandomStream &random);
  void take(Stream &stream, const AnswerPart &part);
  void endStep(Stream &stream);
  std::string draftsLine(const SchedulerCounts &counts) const;

  Scheduler &scheduler;
  const BenchOptions &options;
  int64_t atOnce;
  int64_t open = 0; ///< Requests in the scheduler.
  std::deque<Stream> streams;
  Times firstTokens, betweenTokens, wholeAnswers;
  double start = 0, seconds = 0;
  absl::Status failure;
};

} // namespace

absl::Status ServingRun::submit(const Arrival &arrival, RandomStream &random) {
  Stream &stream = streams.emplace_back();
  stream.arrival = start + arrival.seconds;
  ++open;
  Request request = randomRequest(random, scheduler.model().config().vocabSize,
                                  arrival.promptTokens, options.sharedPrefix,
                                  arrival.genTokens);
  request.speculative = options.speculative;
  return scheduler
      .submit(std::move(request),
              [this, &stream](const AnswerPart &part) { take(stream, part); })
      .status();
}

void ServingRun::take(Stream &stream, const AnswerPart &part) {
  const double now = steadySeconds();
  if (!part.tokens.empty()) {
    const int64_t step = scheduler.counts().steps;
    if (step != stream.step)
      endStep(stream);
    stream.step = step;
    if (stream.first == 0) {
      stream.first = now;
      firstTokens.add(now - stream.arrival);
    } else {
      ++stream.tokensOfStep;
    }
    stream.last = now;
  }
  if (!part.end)
    return;
  endStep(stream);
  --open;
  wholeAnswers.add(now - stream.arrival);
  failure.Update(part.end->status);
}

/// Adds the times between the tokens of a step, which come at once, and the one
/// before them.
void ServingRun::endStep(Stream &stream) {
  const double each = (stream.last - stream.lastOfBefore) /
                      static_cast<double>(stream.tokensOfStep);
  for (int64_t i = 0; i < stream.tokensOfStep; ++i)
    betweenTokens.add(each);
  stream.lastOfBefore = stream.last;
  stream.tokensOfStep = 0;
}

absl::Status ServingRun::run(const std::vector<Arrival> &arrivals) {
  RandomStream random(2);
  start = steadySeconds();
  auto next = arrivals.begin();
  while (next != arrivals.end() || !scheduler.isIdle()) {
    const auto isDue = [&] {
      return next != arrivals.end() && open < atOnce &&
             start + next->seconds <= steadySeconds();
    };
    while (isDue())
      LLAMAC_RETURN_IF_ERROR(submit(*next++, random));
    if (scheduler.isIdle())
      std::this_thread::sleep_for(std::chrono::duration<double>(
          start + next->seconds - steadySeconds()));
    else
      scheduler.step(isDue);
    LLAMAC_RETURN_IF_ERROR(failure);
  }
  seconds = steadySeconds() - start;
  return absl::OkStatus();
}

/// The tokens that a step brings an answer that decodes in it.
static double tokensPerStep(const SchedulerCounts &counts) {
  const int64_t sampled = counts.answerTokens - counts.acceptedTokens();
  return static_cast<double>(counts.answerTokens) /
         static_cast<double>(sampled);
}

/// A line of figures; empty where nobody asks for drafts.
std::string ServingRun::draftsLine(const SchedulerCounts &counts) const {
  if (options.speculative == 0 ||
      (options.speculative == -2 && !scheduler.model().draft()))
    return "";
  const auto last = std::ranges::find_if(counts.accepted | std::views::reverse,
                                         std::identity());
  return absl::StrFormat(
      "drafts       %10.2f tokens a step  (%d of %d draft tokens accepted%s)\n",
      tokensPerStep(counts), counts.acceptedTokens(), counts.draftTokens,
      counts.acceptedTokens() == 0
          ? ""
          : absl::StrCat("; by place: ", absl::StrJoin(counts.accepted.begin(),
                                                       last.base(), " ")));
}

void ServingRun::print(std::FILE *out) const {
  const SchedulerCounts counts = scheduler.counts();
  const double rate = static_cast<double>(counts.answerTokens) / seconds;
  const double host = counts.stepSeconds > 0
                          ? 1 - counts.programSeconds / counts.stepSeconds
                          : 0;
  if (options.json) {
    const ordered_json report = {{"sequences", atOnce},
                                 {"requests", streams.size()},
                                 {"rate", options.rate},
                                 {"seconds", seconds},
                                 {"output_tok_s", rate},
                                 {"prompt_tokens", counts.promptTokens},
                                 {"cached_tokens", counts.cachedTokens},
                                 {"generated_tokens", counts.answerTokens},
                                 {"first_token_s", firstTokens.report()},
                                 {"between_tokens_s", betweenTokens.report()},
                                 {"answer_s", wholeAnswers.report()},
                                 {"steps", counts.steps},
                                 {"host_share", host},
                                 {"preemptions", counts.preemptions},
                                 {"tokens_per_step", tokensPerStep(counts)},
                                 {"draft_tokens", counts.draftTokens},
                                 {"accepted_tokens", counts.acceptedTokens()},
                                 {"accepted_by_place", counts.accepted}};
    absl::FPrintF(out, "%s\n", report.dump());
    return;
  }
  absl::FPrintF(out,
                "output       %10.1f tok/s  (%d requests, %d at once)\n"
                "first token  %s\n"
                "between      %s\n"
                "answer       %s\n"
                "host         %10.2f %% of a step outside kernels\n"
                "cached       %10d of %d prompt tokens\n"
                "preemptions  %10d\n"
                "%s",
                rate, streams.size(), atOnce, firstTokens.text(),
                betweenTokens.text(), wholeAnswers.text(), 1e2 * host,
                counts.cachedTokens, counts.promptTokens, counts.preemptions,
                draftsLine(counts));
}

//===----------------------------------------------------------------------===//
// A long prompt beside streams
//===----------------------------------------------------------------------===//

namespace {

/// Streams that decode, alone and beside a long prompt.
class LongPromptRun {
public:
  LongPromptRun(Scheduler &scheduler, const BenchOptions &options,
                int64_t count)
      : scheduler(scheduler), options(options), count(count) {}

  absl::Status round(RandomStream &random, bool isMeasured);
  void print(std::FILE *out) const;

private:
  Scheduler &scheduler;
  const BenchOptions &options;
  int64_t count; ///< Streams.
  Times alone, beside;
  Times prompts; ///< Times to the long prompts' first tokens.
};

} // namespace

absl::Status LongPromptRun::round(RandomStream &random, bool isMeasured) {
  const int64_t vocab = scheduler.model().config().vocabSize;
  std::vector<Stream> streams(static_cast<size_t>(count));
  Times *to = nullptr; // Where times between tokens go.
  absl::Status failure;
  std::vector<Scheduler::RequestId> ids;
  for (Stream &stream : streams) {
    LLAMAC_ASSIGN_OR_RETURN(
        ids.emplace_back(),
        scheduler.submit(
            randomRequest(random, vocab, options.promptTokens.front(), 0, -1),
            [&](const AnswerPart &part) {
              const double now = steadySeconds();
              if (to && !part.tokens.empty())
                to->add(now - stream.last);
              stream.last = now;
              if (!part.end)
                return;
              stream.hasEnded = true;
              failure.Update(part.end->status);
            }));
  }
  Times unused;
  // Runs steps until `isDone`, and keeps the times in `times`.
  const auto runUntil = [&](Times &times, auto isDone) -> absl::Status {
    to = isMeasured ? &times : &unused;
    while (!isDone()) {
      scheduler.step(isDone);
      LLAMAC_RETURN_IF_ERROR(failure);
      if (std::ranges::any_of(streams, &Stream::hasEnded))
        return usageError(absl::StrCat(
            "context: the streams filled it, ", scheduler.mostTokens(),
            " tokens, before the long prompt was done"));
    }
    return absl::OkStatus();
  };
  const auto tokens = [&] { return scheduler.counts().answerTokens; };
  const auto start = [&] {
    return std::ranges::all_of(
        streams, [](const Stream &stream) { return stream.last > 0; });
  };
  LLAMAC_RETURN_IF_ERROR(runUntil(unused, start));
  // A few more, so that all of them decode.
  const int64_t goal = tokens() + 8 * count;
  LLAMAC_RETURN_IF_ERROR(runUntil(unused, [&] { return tokens() >= goal; }));
  // Half of them before the long prompt and half behind it: steps take longer
  // as the streams grow.
  const auto runAlone = [&](int64_t each) {
    const int64_t end = tokens() + each * count;
    return runUntil(alone, [&] { return tokens() >= end; });
  };
  LLAMAC_RETURN_IF_ERROR(runAlone((options.genTokens + 1) / 2));
  const double arrival = steadySeconds();
  bool isDone = false;
  LLAMAC_RETURN_IF_ERROR(
      scheduler
          .submit(randomRequest(random, vocab, options.longPrompt, 0, 1),
                  [&](const AnswerPart &part) {
                    isDone |= part.end.has_value();
                    failure.Update(part.end ? part.end->status
                                            : absl::OkStatus());
                  })
          .status());
  LLAMAC_RETURN_IF_ERROR(runUntil(beside, [&] { return isDone; }));
  if (isMeasured)
    prompts.add(steadySeconds() - arrival);
  LLAMAC_RETURN_IF_ERROR(runAlone(options.genTokens / 2));
  for (const Scheduler::RequestId id : ids)
    scheduler.cancel(id);
  while (!scheduler.isIdle())
    scheduler.step();
  return failure;
}

void LongPromptRun::print(std::FILE *out) const {
  const double ratio = beside.percentile(0.99) / alone.percentile(0.99);
  if (options.json) {
    const ordered_json report = {{"streams", count},
                                 {"long_prompt", options.longPrompt},
                                 {"alone_s", alone.report()},
                                 {"beside_s", beside.report()},
                                 {"p99_ratio", ratio},
                                 {"prompt_s", prompts.report()},
                                 {"times_alone", alone.size()},
                                 {"times_beside", beside.size()}};
    absl::FPrintF(out, "%s\n", report.dump());
    return;
  }
  absl::FPrintF(out,
                "between the tokens of %d streams\n"
                "alone        %s\n"
                "beside       %s  (a prompt of %d tokens)\n"
                "p99          %10.2f x\n"
                "the prompt   %10.2f s to its first token\n",
                count, alone.text(), beside.text(), options.longPrompt, ratio,
                prompts.percentile(0.5));
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

/// Brings code and weights into memory, also those of a draft model.
static absl::Status warmUp(const std::shared_ptr<const Model> &model) {
  LLAMAC_ASSIGN_OR_RETURN(const auto scheduler, Scheduler::create(model));
  RandomStream random(3);
  const int64_t genTokens =
      model->draft() ? std::min<int64_t>(3, model->context()) : 1;
  Request request = randomRequest(
      random, model->config().vocabSize,
      std::min<int64_t>(16, model->context() + 1 - genTokens), 0, genTokens);
  request.speculative = model->draft() ? 1 : 0;
  LLAMAC_RETURN_IF_ERROR(
      scheduler->submit(std::move(request), [](const AnswerPart &) {})
          .status());
  while (!scheduler->isIdle())
    scheduler->step();
  return absl::OkStatus();
}

absl::Status servingBench(const std::shared_ptr<const Model> &model,
                          const BenchOptions &options, std::FILE *out) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Arrival> arrivals,
                          arrivalsOf(options));
  LLAMAC_RETURN_IF_ERROR(warmUp(model));
  for (const int64_t batch : options.batch) {
    LLAMAC_ASSIGN_OR_RETURN(const auto scheduler,
                            Scheduler::create(model, options.scheduler));
    if (options.longPrompt > 0) {
      RandomStream random(2);
      LongPromptRun run(*scheduler, options, batch);
      for (int64_t round = -options.warmUps; round < options.repeat; ++round)
        LLAMAC_RETURN_IF_ERROR(run.round(random, round >= 0));
      run.print(out);
      continue;
    }
    ServingRun run(*scheduler, options, batch);
    LLAMAC_RETURN_IF_ERROR(run.run(arrivals));
    run.print(out);
  }
  return absl::OkStatus();
}

} // namespace llamac
