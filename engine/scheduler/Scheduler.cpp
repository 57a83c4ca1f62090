//===- Scheduler.cpp - Many requests on one engine ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/scheduler/Scheduler.h"

#include "runtime/base/Clock.h"
#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "text/request/RequestOptions.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace llamac {

/// A request as its answers share it.
struct Scheduler::Asked {
  RequestId id;
  Request request;
  AnswerCallback callback;
  double start; ///< Seconds of the clock.
  bool isCancelled = false;
  /// Answers that wait until the first one has run the prompt.
  Jobs later = {};
};

/// One answer.
struct Scheduler::Job {
  std::shared_ptr<Asked> asked;
  int number; ///< Number of the answer within its request.
  Sampler sampler;
  Answer answer;
  std::vector<int32_t> tokens; ///< Tokens of prompt and answer.
  int64_t most;                ///< Tokens that the sequence will ever hold.
  AnswerEnd end = {};
  std::optional<Sequence> sequence = {}; ///< While it runs.
  AnswerDrafts drafts = {};
  std::vector<int32_t> drafted = {}; ///< The last token and a draft behind it.

  /// Tokens that the sequence has yet to run.
  int64_t pending() const {
    return static_cast<int64_t>(tokens.size()) - sequence->length();
  }

  bool goesBefore(const Job &other) const {
    if (asked->request.priority != other.asked->request.priority)
      return asked->request.priority > other.asked->request.priority;
    return std::pair(asked->id, number) <
           std::pair(other.asked->id, other.number);
  }

  /// Tokens that may be run as a prompt is.
  absl::Span<const int32_t> promptOf(const Engine &engine) const {
    return absl::MakeConstSpan(tokens).first(
        engine.mixesKinds() ? tokens.size() : asked->request.prompt.size());
  }

  bool isOverdue() const {
    const double limit = asked->request.timeLimit;
    return limit > 0 && secondsSinceStart() >= limit;
  }

  double secondsSinceStart() const { return steadySeconds() - asked->start; }
};

Scheduler::Scheduler(std::unique_ptr<Engine> engine, Speculator speculator,
                     const SchedulerOptions &options)
    : engine(std::move(engine)), options(options),
      speculator(std::move(speculator)) {}

Scheduler::~Scheduler() = default;

/// Bytes of a token in the caches of all layers.
static double tokenBytes(const Model &model) {
  const schema::KvLayoutT &kv = *model.plan().kv;
  return static_cast<double>(kvTokenBytes(kv)) *
         static_cast<double>(kv.layerGroups.size());
}

/// The share of the free memory that the cache of the draft model of `model`
/// takes, whose own takes `kvMemory` or what is usual, so that both hold about
/// as many tokens; 0 where memory for all sequences is reserved.
static absl::StatusOr<double> draftKvMemory(const Model &model,
                                            double kvMemory) {
  if (!model.draft() || !model.sharesPages())
    return 0;
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceMemory> memory,
                          model.draft()->loaded().memory());
  if (!memory)
    return 0;
  // Tokens of drafts, and windows of the model, take some more.
  static constexpr double spare = 1.125;
  const double draft = spare * tokenBytes(*model.draft());
  return (kvMemory == 0 ? defaultKvMemory : kvMemory) * draft /
         (draft + tokenBytes(model));
}

absl::StatusOr<std::unique_ptr<Scheduler>>
Scheduler::create(std::shared_ptr<const Model> model,
                  const SchedulerOptions &options) {
  // Before the answers' engine takes the memory that is left.
  LLAMAC_ASSIGN_OR_RETURN(const double share,
                          draftKvMemory(*model, options.kvMemory));
  Speculator speculator(model->draft(), share);
  LLAMAC_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      Engine::create(std::move(model),
                     {.kvPages = options.kvPages,
                      .kvMemory = options.kvMemory,
                      .keepsPrefixes = options.cachesPrefixes,
                      .prefixFile = options.prefixFile,
                      .batchInvariant = options.batchInvariant,
                      .observer = options.observer}));
  engine->setProfile(options.profile);
  return std::unique_ptr<Scheduler>(
      new Scheduler(std::move(engine), std::move(speculator), options));
}

//===----------------------------------------------------------------------===//
// Requests come and go
//===----------------------------------------------------------------------===//

absl::Status Scheduler::prepare(Request &request) const {
  if (request.prompt.empty())
    return fieldError("prompt", "expected at least one token, got none");
  // Whose tokenizer may have gone, too.
  LLAMAC_RETURN_IF_ERROR(model().checkFiles());
  LLAMAC_RETURN_IF_ERROR(engine->checkTokens(request.prompt));
  LLAMAC_RETURN_IF_ERROR(checkNumbers(request));
  LLAMAC_RETURN_IF_ERROR(checkGenerateOptions(
      request.options, request.wantsText, model().tokenizer()));
  SamplingOptions &sampling = request.options.sampling;
  if (request.grammar && !sampling.grammar) {
    if (!model().grammars())
      return fieldError("grammar", "expected a model with a tokenizer, got one "
                                   "without");
    LLAMAC_ASSIGN_OR_RETURN(sampling.grammar,
                            model().grammars()->compile(*request.grammar));
  }
  LLAMAC_RETURN_IF_ERROR(
      Sampler::check(sampling, stopIdsOf(request.options, model().stopIds()),
                     model().config().vocabSize));
  if (sampling.minTokens > engine->mostTokens())
    return fieldError("min_tokens",
                      absl::StrCat("expected at most ", engine->mostTokens(),
                                   ", got ", sampling.minTokens));
  const int64_t vocabSize = model().config().vocabSize;
  for (const int32_t id : request.options.stopIds)
    if (id < 0 || id >= vocabSize)
      return fieldError(
          "stop_token_ids",
          absl::StrCat("expected ids from 0 to ", vocabSize - 1, ", got ", id));
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t asked = std::max<int64_t>(request.options.maxTokens, 1);
  const int64_t most = engine->mostTokens();
  // The last token of an answer is not run.
  if (asked - 1 > most - prompt)
    // The error names no field: either the prompt or what is asked of the
    // answer may change.
    return contextError(
        most,
        absl::StrCat("a prompt of ", prompt, " and ",
                     request.options.maxTokens < 0
                         ? "an answer"
                         : absl::StrCat(asked, " to generate (max_tokens)")),
        most < model().context() ? "for which there are KV pages"
                                 : "the context of the plan");
  return absl::OkStatus();
}

absl::StatusOr<Scheduler::RequestId>
Scheduler::submit(Request request, AnswerCallback callback) {
  LLAMAC_RETURN_IF_ERROR(prepare(request));
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t most = engine->mostTokens();
  auto asked = std::make_shared<Asked>(Asked{
      ++requests, std::move(request), std::move(callback), steadySeconds()});
  const GenerateOptions &generation = asked->request.options;
  const std::vector<int32_t> stopIds = stopIdsOf(generation, model().stopIds());
  SamplingOptions sampling = generation.sampling;
  Jobs jobs;
  for (int number = 0; number < asked->request.answers; ++number) {
    LLAMAC_ASSIGN_OR_RETURN(
        Sampler sampler,
        Sampler::create(sampling, stopIds, model().config().vocabSize));
    const uint64_t seed = sampler.seed();
    sampling.seed = seed + 1; // The seed of the next answer.
    sampler.see(asked->request.prompt);
    jobs.push_back(
        {asked, number, std::move(sampler),
         Answer(generation, stopIds, most - prompt + 1,
                asked->request.wantsText, model().tokenizer()),
         asked->request.prompt,
         generation.maxTokens < 0
             ? most
             : std::min(most, prompt + std::max<int64_t>(
                                           generation.maxTokens - 1, 0))});
    jobs.back().end.seed = seed;
    jobs.back().end.promptTokens = prompt;
  }
  answers += asked->request.answers;
  move(jobs, jobs.begin(), waiting);
  asked->later = std::move(jobs);
  return asked->id;
}

void Scheduler::cancel(RequestId id) {
  for (Jobs *jobs : {&running, &waiting})
    for (Job &job : *jobs)
      if (job.asked->id == id)
        job.asked->isCancelled = true;
}

void Scheduler::failAll(const absl::Status &status) {
  for (Jobs *jobs : {&running, &waiting})
    while (!jobs->empty())
      finish(jobs->front(), status);
}

/// Moves `job` of `from` to its place in `to`.
void Scheduler::move(Jobs &from, Jobs::iterator job, Jobs &to) {
  auto place = to.end();
  while (place != to.begin() && job->goesBefore(*std::prev(place)))
    --place;
  to.splice(place, from, job);
}

/// Ends what was cancelled, has taken too long, or was asked for no token.
void Scheduler::endOverdue() {
  for (Jobs *jobs : {&running, &waiting})
    for (auto next = jobs->begin(); next != jobs->end();) {
      Job &job = *next++;
      if (job.asked->isCancelled)
        end(job, StopReason::Cancelled);
      else if (job.isOverdue())
        end(job, StopReason::Deadline);
      else if (job.answer.ended())
        end(job, *job.answer.ended());
    }
}

//===----------------------------------------------------------------------===//
// The running answers
//===----------------------------------------------------------------------===//

/// Starts waiting answers, the first ones first, as long as there are sequences
/// and pages, or running ones of a lower priority to take them from.
void Scheduler::admit() {
  while (!waiting.empty()) {
    Job &job = waiting.front();
    if (start(job))
      continue;
    if (running.empty() ||
        running.back().asked->request.priority >= job.asked->request.priority)
      return;
    preemptLast();
  }
}

/// Gives `job`, the first that waits, a sequence and what is cached of its
/// tokens; false where there are too few of them or of pages beside those that
/// run.
bool Scheduler::start(Job &job) {
  if (std::ssize(running) == model().plan().kv->maxSequences)
    return false;
  // One alone always has what it needs.
  const bool isAlone = running.empty();
  const auto now = [&] {
    return Refusal{job.asked->id, job.number, engine->releases()};
  };
  if (!isAlone && refused == now())
    return false;
  const auto prompt = job.promptOf(*engine);
  std::vector<SequenceGrowth> growths;
  for (const Job &other : running)
    growths.push_back({&*other.sequence, grown(other)});
  // Pages come from a file only where there is room for all.
  if (!isAlone && !engine->mayHaveRoom(growths, prompt, grown(job))) {
    refused = now();
    return false;
  }
  auto sequence = engine->newSequence();
  absl::Status status = sequence.status();
  absl::StatusOr<int64_t> cached = 0;
  if (status.ok()) {
    cached = engine->reuse(*sequence, prompt);
    status = cached.status();
  }
  if (!status.ok()) {
    finish(job, std::move(status));
    return true;
  }
  growths.push_back({&*sequence, grown(job)});
  if (!isAlone && !engine->hasRoom(growths)) {
    sequence = absl::CancelledError(); // Gives its pages back.
    refused = now();
    return false;
  }
  job.sequence.emplace(*std::move(sequence));
  if (job.end.queueSeconds == 0) {
    job.end.queueSeconds = job.secondsSinceStart();
    job.end.cachedTokens = std::min(*cached, job.end.promptTokens);
    total.promptTokens += job.end.promptTokens;
    total.cachedTokens += job.end.cachedTokens;
  }
  move(waiting, waiting.begin(), running);
  return true;
}

/// The tokens of `job` and a page more, so that what is started is not
/// preempted at once.
int64_t Scheduler::grown(const Job &job) const {
  const int64_t ahead = model().plan().kv->pageTokens;
  return std::min(std::ssize(job.tokens) + ahead, job.most);
}

/// Gives the pages of the last running answer to others; it waits again, and
/// goes on where it was. What it ran stays in the prefix cache as long as
/// nobody needs the pages.
void Scheduler::preemptLast() {
  const auto last = std::prev(running.end());
  Job &job = *last;
  engine->keep(*job.sequence, job.promptOf(*engine));
  job.sequence.reset();
  job.drafts.release();
  ++job.end.preemptions;
  ++total.preemptions;
  move(running, last, waiting);
}

/// Drops what a step that failed has left behind the tokens that were taken.
void Scheduler::dropFailedStep() {
  for (Job &job : running)
    engine->truncate(*job.sequence, std::min(job.sequence->length(),
                                             std::ssize(job.tokens) - 1));
}

void Scheduler::step(absl::FunctionRef<bool()> isInterrupted) {
  const double start = steadySeconds();
  endOverdue();
  admit();
  if (!running.empty())
    run(start, isInterrupted);
}

/// Whether the drafts of a running answer wait for what steps cost.
bool Scheduler::needsCosts() const {
  return std::ranges::any_of(running, [&](const Job &job) {
    return speculator.needsCosts(job.asked->request.speculative);
  });
}

/// Whether the next step may verify a draft of `job`, which decodes.
bool Scheduler::isSpeculative(const Job &job) const {
  return job.pending() == 1 && speculator.isOn(job.asked->request.speculative);
}

DraftedAnswer Scheduler::draftedAnswer(Job &job) const {
  const Request &request = job.asked->request;
  return {&job.drafts,
          job.tokens,
          std::ssize(request.prompt),
          &job.sampler,
          job.answer.stopIds(),
          request.speculative,
          job.most - std::ssize(job.tokens)};
}

/// Gives those of `batch`, all of whose answers decode, the drafts that the
/// step is to verify.
void Scheduler::addDrafts(Batch &batch) {
  std::vector<DraftedAnswer> answers;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < batch.jobs.size(); ++i)
    if (isSpeculative(*batch.jobs[i])) {
      answers.push_back(draftedAnswer(*batch.jobs[i]));
      numbers.push_back(i);
    }
  if (answers.empty())
    return;
  const std::vector<std::vector<int32_t>> drafts =
      speculator.draft(answers, batch.decodeRows, engine->mostDecodeRows());
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (drafts[i].empty())
      continue;
    Job &job = *batch.jobs[numbers[i]];
    job.drafted = {job.tokens.back()};
    job.drafted.insert(job.drafted.end(), drafts[i].begin(), drafts[i].end());
    SampledTokens &item = batch.items[numbers[i]];
    item.tokens = job.drafted;
    item.isSpeculative = true;
    batch.decodeRows += std::ssize(drafts[i]);
    batch.hasDrafts = true;
  }
}

/// The rows of a step: one of each answer that decodes, and as much of the
/// prompts, in their order, as the budget allows.
Scheduler::Batch Scheduler::chooseRows(bool mayDraft) {
  Batch batch;
  const auto add = [&](Job &job, int64_t count, RowKind kind) {
    const auto first = static_cast<size_t>(job.sequence->length());
    const bool isLast = count == job.pending();
    batch.jobs.push_back(&job);
    batch.items.push_back({&*job.sequence,
                           absl::MakeConstSpan(job.tokens)
                               .subspan(first, static_cast<size_t>(count)),
                           isLast ? &job.sampler : nullptr, kind});
  };
  const auto promptRows = [&](const Job &job) {
    return std::ssize(job.promptOf(*engine)) - job.sequence->length();
  };
  const auto decodes = [&](const Job &job) {
    return engine->mixesKinds() ? job.pending() == 1 : promptRows(job) <= 0;
  };
  for (Job &job : running)
    if (decodes(job))
      add(job, 1, RowKind::Decode);
  batch.decodeRows = std::ssize(batch.jobs);
  if (mayDraft)
    addDrafts(batch);
  int64_t left = model().plan().programs.back()->maxRows;
  if (batch.decodeRows > 0) {
    // More would take a program more than once.
    if (engine->mixesKinds())
      left = std::max<int64_t>(left - batch.decodeRows, 1);
    left = std::min(left, options.promptRows > 0 ? options.promptRows
                                                 : budget.rows());
  }
  for (Job &job : running) {
    if (decodes(job) || left == 0)
      continue;
    const int64_t count = std::min(promptRows(job), left);
    add(job, count, RowKind::Prompt);
    left -= count;
    batch.promptRows += count;
  }
  return batch;
}

/// Runs `batch`, with the features that drafts read.
absl::StatusOr<std::vector<absl::StatusOr<int32_t>>>
Scheduler::sample(Batch &batch) {
  batch.features.resize(batch.items.size());
  batch.lengths.clear();
  for (size_t i = 0; i < batch.items.size(); ++i) {
    SampledTokens &item = batch.items[i];
    batch.lengths.push_back(item.sequence->length());
    const int64_t width =
        speculator.featureDim(batch.jobs[i]->asked->request.speculative);
    if (width == 0)
      continue;
    batch.features[i].resize(item.tokens.size() * static_cast<size_t>(width));
    item.features = batch.features[i].data();
  }
  return engine->sample(batch.items);
}

/// Gives drafts what they read of a step that has run.
void Scheduler::readFeatures(const Batch &batch) {
  for (size_t i = 0; i < batch.jobs.size(); ++i) {
    if (batch.features[i].empty())
      continue;
    Job &job = *batch.jobs[i];
    const int64_t ran = job.sequence->length() - batch.lengths[i];
    const size_t width =
        batch.features[i].size() / batch.items[i].tokens.size();
    speculator.readFeatures(
        job.drafts, job.tokens, batch.lengths[i],
        absl::MakeConstSpan(batch.features[i])
            .first(width * static_cast<size_t>(std::max<int64_t>(ran, 0))));
  }
}

void Scheduler::countStep(int64_t rows) {
  ++total.steps;
  total.rows += rows;
  const auto bucket =
      static_cast<size_t>(std::bit_width(static_cast<uint64_t>(rows) - 1));
  ++total.stepRows[std::min(bucket, total.stepRows.size() - 1)];
}

/// Whether `status` of a step means that the device can run no other.
bool Scheduler::isLost(const absl::Status &status) const {
  return exitCode(status) == ExitCode::Device && !model().loaded().check().ok();
}

void Scheduler::lose(const absl::Status &status) {
  lost = status;
  failAll(lost);
}

/// Runs a step that began at `start`.
void Scheduler::run(double start, absl::FunctionRef<bool()> isInterrupted) {
  const bool learnsCosts = needsCosts();
  const double draftedBefore = speculator.draftSeconds();
  Batch batch = chooseRows();
  const auto recordSteps = [&](double seconds, int64_t steps) {
    const double drafting = speculator.draftSeconds() - draftedBefore;
    if (learnsCosts && steps > 0)
      speculator.recordStep(batch.decodeRows,
                            (seconds - drafting) / static_cast<double>(steps));
  };
  Profile profile(model().plan());
  const bool isTimed = !options.profile && options.profileInterval > 0 &&
                       start >= nextProfile && batch.promptRows == 0;
  const int64_t before = total.steps;
  if (isTimed) {
    nextProfile = start + options.profileInterval;
    engine->setProfile(&profile);
  } else if (!batch.hasDrafts && batch.decodeRows == std::ssize(running) &&
             runQueued(batch, isInterrupted)) {
    const double seconds = steadySeconds() - start;
    total.stepSeconds += seconds;
    recordSteps(seconds, total.steps - before);
    return;
  }
  auto sampled = sample(batch);
  while (exitCode(sampled.status()) == ExitCode::Memory &&
         (batch.hasDrafts || running.size() > 1)) {
    dropFailedStep();
    // An answer goes before drafts of others.
    if (!batch.hasDrafts)
      preemptLast();
    batch = chooseRows(/*mayDraft=*/false);
    sampled = sample(batch);
  }
  if (sampled.ok())
    readFeatures(batch);
  // Before anybody is told a token that was computed from what is not there.
  const absl::Status files = model().checkFiles();
  if (!files.ok())
    sampled = files;
  countStep(batch.decodeRows + batch.promptRows);
  for (size_t i = 0; i < batch.jobs.size(); ++i) {
    if (!sampled.ok())
      finish(*batch.jobs[i], sampled.status());
    else if (batch.items[i].sampler)
      take(*batch.jobs[i], batch.items[i], (*sampled)[i]);
  }
  if (!files.ok() || isLost(sampled.status()))
    lose(sampled.status());
  const double seconds = steadySeconds() - start;
  total.stepSeconds += seconds;
  if (!isTimed) {
    if (batch.promptRows == 0)
      recordSteps(seconds, 1);
    budget.record(batch.decodeRows, batch.promptRows, seconds);
    return;
  }
  engine->setProfile(nullptr);
  kernels = std::make_shared<const std::vector<KernelSum>>(profile.sums());
}

/// Runs steps of `batch`, which decodes, where the device queues them; false
/// where one step of `batch` is to be run otherwise, to find out whose an error
/// is.
bool Scheduler::runQueued(Batch &batch,
                          absl::FunctionRef<bool()> isInterrupted) {
  // So many that those who watch the counts see them change, and fewer where
  // drafts wait for what a step costs.
  int64_t steps = 64;
  if (needsCosts() && speculator.needsCostOf(std::ssize(running)))
    steps = 8;
  std::vector<DecodeItem> items;
  for (Job *job : batch.jobs) {
    // Steps in flight give no features.
    if (job->pending() != 1 ||
        speculator.featureDim(job->asked->request.speculative) != 0)
      return false;
    items.push_back({&*job->sequence, job->tokens.back(), &job->sampler});
    steps = std::min(steps, job->most - job->sequence->length());
  }
  const absl::StatusOr<bool> isQueued = engine->canQueue(items);
  if (!isQueued.ok() || !*isQueued)
    return false;
  // Sequences stay until all steps in flight are done.
  std::vector<std::pair<Job *, AnswerPart>> ended;
  const absl::Status status = engine->decode(
      items, steps,
      [&](absl::Span<const int32_t> tokens) -> absl::StatusOr<bool> {
        LLAMAC_RETURN_IF_ERROR(model().checkFiles());
        countStep(std::ssize(tokens));
        bool goesOn = !isInterrupted();
        for (size_t i = 0; i < tokens.size(); ++i) {
          Job &job = *batch.jobs[i];
          // Steps in flight go past an end, for the others' sake.
          if (job.answer.ended())
            continue;
          if (std::optional<AnswerPart> last = add(job, tokens[i]))
            ended.emplace_back(&job, *std::move(last));
          goesOn &=
              !job.answer.ended() && !job.isOverdue() &&
              !(isSpeculative(job) &&
                speculator.wantsDraft(draftedAnswer(job), std::ssize(running),
                                      engine->mostDecodeRows()));
        }
        return goesOn;
      },
      StepsAhead::Given);
  for (auto &[job, part] : ended)
    end(*job, *job->answer.ended(), std::move(part));
  if (status.ok())
    return true;
  if (exitCode(status) == ExitCode::Device) {
    while (!running.empty())
      finish(running.front(), status);
    if (isLost(status))
      lose(status);
    return true;
  }
  dropFailedStep();
  if (!ended.empty())
    return true;
  batch = chooseRows(); // Its items were of tokens that have moved on.
  return false;
}

/// Makes the drafts of `ran` that were accepted, and `token`, part of an answer
/// that has run all others, or ends it.
void Scheduler::take(Job &job, const SampledTokens &ran,
                     const absl::StatusOr<int32_t> &token) {
  const int64_t accepted = job.sequence->length() - std::ssize(job.tokens);
  if (ran.isSpeculative) {
    const int64_t drafted = std::ssize(ran.tokens) - 1;
    ++total.drafts;
    total.draftTokens += drafted;
    job.end.draftTokens += drafted;
    job.end.acceptedTokens += accepted;
    speculator.record(job.drafts, drafted, accepted);
    for (int64_t i = 0; i < accepted; ++i)
      ++total.accepted[static_cast<size_t>(i)];
  }
  const std::vector<TokenLogprobs> logprobs = job.sampler.takeLogprobs();
  for (int64_t i = 0; i <= accepted; ++i) {
    if (i == accepted && !token.ok())
      return finish(job, token.status());
    const auto at = static_cast<size_t>(i);
    const int32_t next = i == accepted ? *token : ran.tokens[at + 1];
    if (std::optional<AnswerPart> last =
            add(job, next,
                absl::MakeConstSpan(logprobs).subspan(
                    std::min(at, logprobs.size()), 1)))
      return end(job, *job.answer.ended(), *std::move(last));
  }
}

/// Adds `token` to an answer. Gives the caller what came of it, or returns it
/// where the answer has ended.
std::optional<AnswerPart>
Scheduler::add(Job &job, int32_t token,
               absl::Span<const TokenLogprobs> logprobs) {
  if (job.end.firstTokenSeconds == 0) {
    job.end.firstTokenSeconds = job.secondsSinceStart();
    engine->keep(*job.sequence, job.promptOf(*engine));
    startLater(*job.asked);
  }
  AnswerPart part{.answer = job.number};
  const size_t before = job.answer.textBytes();
  part.text = job.answer.add(token);
  part.textBytes = job.answer.textBytes() - before;
  if (job.answer.ended() != StopReason::StopId) {
    part.tokens.push_back(token);
    part.logprobs.assign(logprobs.begin(), logprobs.end());
    job.tokens.push_back(token);
    ++job.end.answerTokens;
    ++total.answerTokens;
  }
  if (job.answer.ended())
    return part;
  job.asked->callback(part);
  return std::nullopt;
}

/// Ends an answer as it is; `part` is what the last step brought.
void Scheduler::end(Job &job, StopReason why, AnswerPart part) {
  if (!job.answer.ended()) {
    const size_t before = job.answer.textBytes();
    part.text += job.answer.end(why);
    part.textBytes += job.answer.textBytes() - before;
  }
  job.end.reason = *job.answer.ended();
  if (job.sequence)
    engine->keep(*job.sequence, job.promptOf(*engine));
  finish(job, absl::OkStatus(), std::move(part));
}

/// Tells the caller that `job` has ended, and forgets it.
void Scheduler::finish(Job &job, absl::Status status, AnswerPart part) {
  total.failed += !status.ok();
  ++total.finished;
  part.answer = job.number;
  job.end.seconds = job.secondsSinceStart();
  job.end.status = std::move(status);
  part.end = job.end;
  const std::shared_ptr<Asked> asked = job.asked;
  startLater(*asked);
  Jobs &jobs = job.sequence ? running : waiting;
  jobs.erase(std::ranges::find(jobs, &job, [](Job &of) { return &of; }));
  asked->callback(part);
}

/// Queues the other answers of a request, whose prompt is in the cache now.
void Scheduler::startLater(Asked &asked) {
  while (!asked.later.empty())
    move(asked.later, asked.later.begin(), waiting);
}

SchedulerCounts Scheduler::counts() const {
  SchedulerCounts counts = total;
  counts.running = std::ssize(running);
  counts.waiting = answers - counts.finished - counts.running;
  if (const PrefixCache *prefixes = engine->prefixes())
    counts.loadedTokens = prefixes->counts().loaded;
  counts.programSeconds =
      engine->programSeconds() + speculator.programSeconds();
  counts.pages = engine->pages();
  counts.freePages = engine->freePages();
  return counts;
}

} // namespace llamac
