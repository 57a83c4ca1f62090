//===- Engine.h - Runs sequences through a model ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_STEP_ENGINE_H
#define LLAMAC_ENGINE_STEP_ENGINE_H

#include "engine/cache/KvCache.h"
#include "engine/cache/PrefixCache.h"
#include "engine/sampling/Sampler.h"
#include "engine/step/Model.h"
#include "runtime/device/LaunchObserver.h"
#include "runtime/device/Profile.h"
#include "runtime/load/PlanMemory.h"

#include "absl/functional/function_ref.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace llamac {

/// The share of the free memory that pages take by default: what is left is for
/// CUDA graphs, which come as steps of other sizes do, and for other processes.
inline constexpr double defaultKvMemory = 0.9;

struct EngineOptions {
  /// Pages of the KV pool, at most as many as all sequences of the plan can
  /// use; 0 for as many as `kvMemory` says. On the cpu memory is taken as pages
  /// are first written.
  int64_t kvPages = 0;
  /// The share of the device's memory that pages take, of what is free once all
  /// else is allocated; at most as many pages as all sequences can use. 0 for
  /// defaultKvMemory where the device has memory of its own and the model was
  /// loaded with sharesPages, and else for all that they can use.
  double kvMemory = 0;
  /// Whether pages of beginnings are kept for reuse().
  bool keepsPrefixes = false;
  /// The file that they are read from, where it is there, and saved to; empty:
  /// none.
  std::string prefixFile = {};
  /// Whether a row's results are to depend on nothing but its sequence. They
  /// always do in a plan whose rows are alike; else each kind of row then has
  /// one program, whatever runs: prompts the largest, and decode the smallest
  /// that holds a row of as many sequences as the model was loaded for.
  bool batchInvariant = false;
  /// Sees every launch of every step; outlives the engine. Null: programs run
  /// as a whole.
  LaunchObserver *observer = nullptr;
};

/// A sequence of tokens whose keys and values an engine holds; its pages are
/// freed with it. The engine outlives it.
class Sequence {
public:
  Sequence(Sequence &&other) noexcept
      : cache(std::exchange(other.cache, nullptr)), slot(other.slot),
        tokens(other.tokens), written(other.written) {}
  Sequence &operator=(Sequence &&) = delete;
  ~Sequence() {
    if (cache)
      cache->close(slot);
  }

  /// Tokens seen so far.
  int64_t length() const { return tokens; }

private:
  friend class Engine;
  Sequence(KvCache *cache, int32_t slot) : cache(cache), slot(slot) {}

  KvCache *cache;
  int32_t slot;
  int64_t tokens = 0;
  int64_t written = 0; ///< Tokens that the cache has or had, all in all.
};

/// The tokens given to a step whose logits are computed.
enum class OutputRows { None, Last, All };

/// The numbers that rows of a draft head (DraftHead) read beside their tokens;
/// zeros for null.
struct HeadRows {
  const float *features = nullptr; ///< featureDim() for each token.
  const float *state = nullptr;    ///< dim for each token.
};

/// The next tokens of one sequence.
struct SequenceTokens {
  Sequence *sequence;
  absl::Span<const int32_t> tokens; ///< At least one.
  OutputRows outputs = OutputRows::Last;
  RowKind kind = RowKind::Prompt;
  HeadRows head = {};        ///< Null but for a draft head.
  float *features = nullptr; ///< Gets Model::featureDim() numbers for each
                             ///< token, where it is not null.
};

/// Tokens of a step whose `sampler` samples the one that follows the last; null
/// for a part of a prompt, behind which none is sampled.
struct SampledTokens {
  Sequence *sequence;
  absl::Span<const int32_t> tokens; ///< At least one.
  Sampler *sampler;
  RowKind kind = RowKind::Prompt;
  /// Whether all tokens but the first are drafts of what will be sampled.
  bool isSpeculative = false;
  float *features = nullptr; ///< See SequenceTokens.
};

/// A sequence, and the tokens it is to hold.
struct SequenceGrowth {
  const Sequence *sequence;
  int64_t tokens;
};

/// A sequence with its next token, and the sampler of the one that follows.
struct DecodeItem {
  Sequence *sequence;
  int32_t token;
  Sampler *sampler;
};

/// Takes the tokens of a step, one of each item; returns whether to go on.
using TokenCallback =
    absl::FunctionRef<absl::StatusOr<bool>(absl::Span<const int32_t> tokens)>;

/// When a callback ends a decode(), steps in flight are undone, or given to the
/// callback, too, as the device runs them anyway.
enum class StepsAhead { Undone, Given };

/// The logits that follow token number `token` of item number `item` of the
/// batch; `values` has logitsSize() of them, valid during the call.
struct LogitsRow {
  size_t item;
  int64_t token;
  absl::Span<const float> values;
  /// The state of a draft head behind it, for the next token: dim numbers.
  absl::Span<const float> state = {};
};
using LogitsCallback = absl::FunctionRef<absl::Status(const LogitsRow &)>;

/// Runs steps of a model; used by one thread at a time. On cpu and cuda,
/// engines of one model may run on threads of their own. After a fork the child
/// has none of the device's threads: steps there are a device error.
class Engine {
public:
  static absl::StatusOr<std::unique_ptr<Engine>>
  create(std::shared_ptr<const Model> model, const EngineOptions &options = {});
  ~Engine();

  const Model &model() const { return *shared; }
  const std::shared_ptr<const Model> &sharedModel() const { return shared; }

  /// Whether prompts and decode may share a program, and tokens that were
  /// sampled may be run as a prompt is.
  bool mixesKinds() const {
    return !batchInvariant || shared->plan().rowsAreAlike;
  }

  /// Seconds that the host waited for programs, or ran them, since the engine
  /// was made.
  double programSeconds() const { return secondsInPrograms; }

  /// The memory that the programs are bound to.
  const PlanMemory &stepMemory() const { return *memory; }

  /// An empty sequence. Memory error when as many are in use as the model was
  /// loaded for.
  absl::StatusOr<Sequence> newSequence();

  /// Gives `sequence`, which is empty, the keys and values of the longest
  /// beginning of `tokens` that was kept, but for at least the last token.
  /// Returns its length, with which the sequence goes on.
  absl::StatusOr<int64_t> reuse(Sequence &sequence,
                                absl::Span<const int32_t> tokens);

  /// Keeps the full pages of `sequence`, whose tokens are `tokens`, until
  /// others need their memory.
  void keep(const Sequence &sequence, absl::Span<const int32_t> tokens);

  /// Saves what is kept to the file of the options, at most as many bytes as
  /// the pools of the cache have. Errors: those of PrefixCache::save().
  absl::Status savePrefixes();

  /// The cache of prefixes; null where none is ever kept.
  const PrefixCache *prefixes() const { return prefixCache.get(); }

  /// Usage error for an id outside the vocabulary.
  absl::Status checkTokens(absl::Span<const int32_t> tokens) const;

  /// Pages of the cache, and those that no sequence holds, of the group of
  /// layers that has the fewest of them.
  int64_t pages() const { return cache->pages(cache->fullestGroup()); }
  int64_t freePages() const {
    const size_t group = cache->fullestGroup();
    return cache->freePages(group) + cache->reclaimablePages(group);
  }

  /// From now on steps are added to `to`, which outlives its use, with the time
  /// of each launch; null: nothing is timed. Results do not depend on it.
  void setProfile(Profile *to) { profile = to; }

  /// The most rows of a step that decodes, one program of which takes all:
  /// where an answer's bits shall not depend on its neighbours, the program
  /// that decode has anyway.
  int64_t mostDecodeRows() const;

  /// The longest sequence that the context and the pages of the cache hold.
  int64_t mostTokens() const;

  /// Whether there are pages for all of `growths` at once, or kept ones that
  /// can be given up.
  bool hasRoom(absl::Span<const SequenceGrowth> growths) const;

  /// Whether there may be, too, for a new sequence of `tokens` tokens for which
  /// reuse() is given `prompt`; what reuse() gives it decides.
  bool mayHaveRoom(absl::Span<const SequenceGrowth> growths,
                   absl::Span<const int32_t> prompt, int64_t tokens) const;

  /// While this number stays, a sequence that found no room finds none
  /// (KvCache).
  int64_t releases() const { return cache->releases(); }

  /// Appends the tokens of each item (all of different sequences) and gives
  /// `callback` the logits of the output rows, item by item in order. A step
  /// may have any number of tokens: it is cut into pieces that the plan's
  /// programs hold. Errors, before anything is changed: usage for an invalid
  /// token, or, with both numbers, for more tokens than the context holds;
  /// memory when the KV pool is used up. Later: a device error, an accuracy
  /// error for logits that are not finite, or that of `callback`; the sequences
  /// then need a truncate().
  absl::Status step(absl::Span<const SequenceTokens> batch,
                    LogitsCallback callback);

  /// Drops all but the first `tokens` tokens of `sequence`, which has at least
  /// as many, and what a failed step left. Gives how many are left: none where
  /// newer tokens took the place of keys in a window, which never happens when
  /// fewer are dropped than the plan's largest step has rows; fewer than asked
  /// for where another sequence has the page that would be written next.
  int64_t truncate(Sequence &sequence, int64_t tokens);

  /// Runs a step(), and gives the token that follows each item, -1 for one
  /// without a sampler. An accuracy error is that of its item alone, whose
  /// sequence then needs a truncate(). The device samples where the plan does
  /// and the sampler asks for no more, else the host, on all threads of the
  /// device: one seed gives the same tokens, unless rounding decides between
  /// two.
  ///
  /// Behind a speculative item the sampler chooses one token after the other
  /// for as long as it chooses the draft that is next, which so is accepted.
  /// The sequence then ends with the last accepted draft, also where the result
  /// is an error, and the result follows that. Samplers and sequences are as if
  /// only those had been run, one in a step.
  absl::StatusOr<std::vector<absl::StatusOr<int32_t>>>
  sample(absl::Span<const SampledTokens> batch);

  /// Whether the device queues the steps of decode(), so that many of them at
  /// once are faster than one after the other; makes the queue.
  absl::StatusOr<bool> canQueue(absl::Span<const DecodeItem> batch);

  /// Multi-step decode: runs at most `steps` steps of one token of each item,
  /// first the items' own, then the tokens of the step before, until `callback`
  /// ends them. The result is that of sample() for one step after the other;
  /// where the device queues steps, some are in flight ahead of `callback`, and
  /// `ahead` says what becomes of those past the end. Errors: those of
  /// sample().
  absl::Status decode(absl::Span<const DecodeItem> batch, int64_t steps,
                      TokenCallback callback,
                      StepsAhead ahead = StepsAhead::Undone);

private:
  class InFlightSteps;
  struct Row;
  struct Choice;
  class Pages;
  /// Takes the results of program number `program` for `rows`.
  using ChunkCallback = absl::FunctionRef<absl::Status(
      absl::Span<const Row> rows, size_t program)>;

  explicit Engine(std::shared_ptr<const Model> model)
      : shared(std::move(model)) {}

  absl::Status allocate(const EngineOptions &options);
  absl::StatusOr<int64_t> pagesThatFit(double share) const;
  absl::Status checkPagesFit(int64_t pages) const;
  absl::Status allocatePools(const EngineOptions &options);
  absl::Status allocatePools(int64_t pages);
  absl::Status openPrefixFile(const std::string &path);
  absl::Status checkBatch(absl::Span<const SequenceTokens> batch) const;
  absl::Status reserve(const Sequence &sequence, int64_t tokens);
  std::vector<Growth> slotsOf(absl::Span<const SequenceGrowth> growths) const;
  absl::Status writePageTable(const Sequence &sequence);
  absl::Status admit(absl::Span<const SequenceTokens> batch);
  size_t programFor(const StepShape &shape, RowKind kind) const;

  /// The program that takes the most rows of prompts in a step; all of their
  /// rows, where an answer's bits shall not depend on its neighbours.
  size_t promptProgram() const;
  absl::Status decodeOneByOne(absl::Span<const DecodeItem> batch, int64_t steps,
                              TokenCallback callback);
  absl::Status runBatch(absl::Span<const SequenceTokens> batch,
                        absl::Span<const SamplingParams> params,
                        absl::FunctionRef<void()> meanwhile,
                        ChunkCallback callback);
  absl::Status runChunk(absl::Span<const Row> rows, int64_t outputs,
                        RowKind kind, bool samples,
                        absl::FunctionRef<void()> meanwhile,
                        ChunkCallback callback);
  void fillRows(absl::Span<const Row> rows);
  void fillHeadRows(absl::Span<const Row> rows);
  absl::Status takeFeatures(absl::Span<const Row> rows, size_t program);
  void fillOutputs(absl::Span<const Row> rows, size_t first, int64_t count,
                   bool samples);
  absl::Status runTimed(absl::Span<const Row> rows, size_t program,
                        const StepShape &shape);
  absl::Status runObserved(size_t program, const StepShape &shape,
                           RowKind kind);
  absl::Status giveLogits(absl::Span<const Row> rows, size_t program,
                          LogitsCallback callback);
  absl::Status sampleOnHost(absl::Span<const Row> rows, size_t program,
                            absl::Span<const SampledTokens> batch,
                            absl::Span<Choice> choices);
  absl::Status takeTokens(absl::Span<const Row> rows, size_t program,
                          absl::Span<const SampledTokens> batch,
                          absl::Span<Choice> choices);

  std::shared_ptr<const Model> shared;
  bool batchInvariant = false;
  LaunchObserver *observer = nullptr;
  Profile *profile = nullptr; ///< See setProfile().
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<PageMemory> pageMemory;
  /// Keeps pages of `cache`; null where no prefix is ever kept.
  std::unique_ptr<PrefixCache> prefixCache;
  std::unique_ptr<PlanMemory> memory;
  double secondsInPrograms = 0;
  std::vector<uint8_t> resultStaging;
  std::vector<uint8_t> stateStaging;
  /// Last, so that it is destroyed before what it works on. Null where the
  /// device has none.
  std::unique_ptr<StepQueue> queue;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_STEP_ENGINE_H
