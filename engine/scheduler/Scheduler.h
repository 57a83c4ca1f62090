//===- Scheduler.h - Many requests on one engine ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Continuous batching: a step has the next tokens of every running answer, one
// of each that decodes and pieces of prompts beside them, and answers join and
// leave between any two steps.
//
// An answer has yet to run the tokens that its sequence has not seen: a prompt,
// the one token that was sampled last, or, after a preemption, both. So there
// is one kind of running answer, and preemption is to drop a sequence.
//
// An answer has the tokens that it has alone, whatever else runs. Where a row
// has the same results in every program that is so by itself. Where it has not,
// each kind of row keeps to one program: what was sampled is run one token at a
// time even after a preemption, and only prompts are kept for others.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SCHEDULER_SCHEDULER_H
#define LLAMAC_ENGINE_SCHEDULER_SCHEDULER_H

#include "engine/scheduler/RowBudget.h"
#include "engine/speculation/Speculator.h"
#include "engine/step/Engine.h"
#include "runtime/device/Profile.h"
#include "text/request/Request.h"

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace llamac {

struct SchedulerOptions {
  /// Pages of the KV pool, or the share of the free memory that they take
  /// (EngineOptions).
  int64_t kvPages = 0;
  double kvMemory = 0;
  /// Whether an answer has the same bits whatever else runs (EngineOptions).
  bool batchInvariant = false;
  /// Whether beginnings that were seen before are computed once.
  bool cachesPrefixes = true;
  /// The file that they are read from and saved to (EngineOptions).
  std::string prefixFile = {};
  /// Rows of prompts in a step beside answers that decode; 0 for as many as the
  /// times of earlier steps allow (RowBudget).
  int64_t promptRows = 0;
  /// Seconds between steps whose launches are timed; 0: none is.
  double profileInterval = 0;
  /// The profile that the times of all launches are added to, in place of those
  /// intervals; outlives the scheduler. Null: none.
  Profile *profile = nullptr;
  /// Sees every launch of every step (EngineOptions).
  LaunchObserver *observer = nullptr;
};

/// The totals of a scheduler since it was made, and its current state.
struct SchedulerCounts {
  int64_t running = 0, waiting = 0; ///< Answers.
  int64_t steps = 0, preemptions = 0;
  int64_t rows = 0; ///< Rows of all steps.
  /// Steps of more than 2^(i - 1) to 2^i rows; the last ones of more, too.
  std::array<int64_t, 15> stepRows = {};
  int64_t promptTokens = 0; ///< Prompt tokens of answers that were begun.
  int64_t cachedTokens = 0; ///< Prompt tokens found in the prefix cache.
  int64_t loadedTokens = 0; ///< Tokens that the cache had to bring from its
                            ///< file.
  int64_t answerTokens = 0;
  int64_t drafts = 0; ///< Drafts that steps verified, of a token or more.
  int64_t draftTokens = 0;
  /// Draft tokens that were accepted, by their place in the draft.
  std::array<int64_t, mostDrafts> accepted = {};
  int64_t acceptedTokens() const {
    return std::accumulate(accepted.begin(), accepted.end(), int64_t{0});
  }
  int64_t finished = 0; ///< Answers, those with an error included.
  int64_t failed = 0;
  /// Steps took so long in all, and so long the host ran programs or waited for
  /// them. What is left costs nothing beside steps in flight as long as it is
  /// less than these take.
  double stepSeconds = 0, programSeconds = 0;
  int64_t pages = 0, freePages = 0; ///< Pages of the fullest group; kept ones
                                    ///< count as free.
};

/// Runs requests on an engine of its own; used by one thread at a time.
class Scheduler {
public:
  using RequestId = uint64_t;

  static absl::StatusOr<std::unique_ptr<Scheduler>>
  create(std::shared_ptr<const Model> model,
         const SchedulerOptions &options = {});
  Scheduler(const Scheduler &) = delete;
  Scheduler &operator=(const Scheduler &) = delete;
  ~Scheduler();

  const Model &model() const { return engine->model(); }
  std::shared_ptr<const Model> sharedModel() const {
    return engine->sharedModel();
  }

  /// The most tokens of a prompt and its answer together.
  int64_t mostTokens() const { return engine->mostTokens(); }

  /// Usage error, with the numbers, for what can never be run. Compiles the
  /// request's grammar, which may take seconds; errors: those of
  /// GrammarCompiler. May be called by any thread.
  absl::Status prepare(Request &request) const;

  /// Queues `request`, whose parts `callback` gets. Errors: those of prepare().
  absl::StatusOr<RequestId> submit(Request request, AnswerCallback callback);

  /// Ends all answers of a request in the next step; nothing for one that has
  /// ended.
  void cancel(RequestId id);

  /// Whether no answer runs or waits.
  bool isIdle() const { return running.empty() && waiting.empty(); }

  /// Device error once the device can run nothing more, and plan error once the
  /// model's files cannot be read: with it all answers have ended.
  const absl::Status &deviceStatus() const { return lost; }

  /// Ends all answers with `status`.
  void failAll(const absl::Status &status);

  /// Runs one step, or, where the device queues steps that decode, some of
  /// them, until an answer ends or `isInterrupted` says so. Errors go to the
  /// answers they concern.
  void step(absl::FunctionRef<bool()> isInterrupted = [] { return false; });

  /// Saves the prefix cache to its file, if it has one. Errors: those of
  /// Engine::savePrefixes().
  absl::Status savePrefixes() { return engine->savePrefixes(); }

  SchedulerCounts counts() const;

  /// Times of the last step that was timed, all of whose rows decoded; null
  /// before.
  std::shared_ptr<const std::vector<KernelSum>> kernelTimes() const {
    return kernels;
  }

private:
  struct Asked;
  struct Job;
  using Jobs = std::list<Job>;

  /// The rows of a step.
  struct Batch {
    std::vector<Job *> jobs;
    std::vector<SampledTokens> items; ///< One for each job.
    int64_t decodeRows = 0, promptRows = 0;
    bool hasDrafts = false;
    /// The features that drafts read of each item, and the length of its
    /// sequence before.
    std::vector<std::vector<float>> features = {};
    std::vector<int64_t> lengths = {};
  };

  /// An answer that found no room, and Engine::releases() when that was so.
  struct Refusal {
    RequestId id = 0;
    int number = 0;
    int64_t releases = 0;
    bool operator==(const Refusal &) const = default;
  };

  Scheduler(std::unique_ptr<Engine> engine, Speculator speculator,
            const SchedulerOptions &options);

  static void move(Jobs &from, Jobs::iterator job, Jobs &to);
  void startLater(Asked &asked);
  void endOverdue();
  void admit();
  bool start(Job &job);
  int64_t grown(const Job &job) const;
  void preemptLast();
  void dropFailedStep();
  bool needsCosts() const;
  bool isSpeculative(const Job &job) const;
  DraftedAnswer draftedAnswer(Job &job) const;
  void addDrafts(Batch &batch);
  Batch chooseRows(bool mayDraft = true);
  absl::StatusOr<std::vector<absl::StatusOr<int32_t>>> sample(Batch &batch);
  void readFeatures(const Batch &batch);
  void countStep(int64_t rows);
  bool isLost(const absl::Status &status) const;
  void lose(const absl::Status &status);
  void run(double start, absl::FunctionRef<bool()> isInterrupted);
  bool runQueued(Batch &batch, absl::FunctionRef<bool()> isInterrupted);
  void take(Job &job, const SampledTokens &ran,
            const absl::StatusOr<int32_t> &token);
  std::optional<AnswerPart> add(Job &job, int32_t token,
                                absl::Span<const TokenLogprobs> logprobs = {});
  void end(Job &job, StopReason why, AnswerPart part = {});
  void finish(Job &job, absl::Status status, AnswerPart part = {});

  std::unique_ptr<Engine> engine;
  SchedulerOptions options;
  RowBudget budget;
  Speculator speculator; ///< Outlives the answers.
  /// In the order in which they go: the last one is preempted first.
  Jobs running, waiting;
  Refusal refused; ///< The last one.
  uint64_t requests = 0;
  int64_t answers = 0; ///< Answers that were asked for.
  SchedulerCounts total;
  double nextProfile = 0; ///< When a step is timed again.
  std::shared_ptr<const std::vector<KernelSum>> kernels;
  absl::Status lost; ///< deviceStatus()
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SCHEDULER_SCHEDULER_H
