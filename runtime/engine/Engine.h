//===- Engine.h - Runs sequences through a model ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_ENGINE_H
#define LLAMAC_RUNTIME_ENGINE_ENGINE_H

#include "runtime/engine/KvCache.h"
#include "runtime/engine/LaunchObserver.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/Profile.h"
#include "runtime/engine/Sampler.h"

#include "absl/functional/function_ref.h"

#include <memory>
#include <utility>
#include <vector>

namespace llamac {

struct EngineOptions {
  /// Pages of the KV pool; 0 for as many as all sequences of the plan can use.
  /// Memory is taken as pages are first written.
  int64_t kvPages = 0;
  /// Sees every launch of every step; outlives the engine. Null: nobody does,
  /// and a program runs as a whole.
  LaunchObserver *observer = nullptr;
  /// Is given every step with the time of each launch; outlives the engine.
  /// Null: steps run as they do alone.
  Profile *profile = nullptr;
};

/// A sequence of tokens whose keys and values an engine holds; it gives its
/// pages back when it goes, which is before the engine does.
class Sequence {
public:
  Sequence(Sequence &&other) noexcept
      : cache(std::exchange(other.cache, nullptr)), slot(other.slot),
        tokens(other.tokens) {}
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
};

/// Which of the tokens given to a step have their logits computed.
enum class Wanted { None, Last, All };

/// The next tokens of one sequence.
struct SequenceTokens {
  Sequence *sequence;
  absl::Span<const int32_t> tokens; ///< At least one.
  Wanted wanted = Wanted::Last;
};

/// The same, with what chooses the token that follows the last one.
struct SampledTokens {
  Sequence *sequence;
  absl::Span<const int32_t> tokens; ///< At least one.
  Sampler *sampler;
};

/// A sequence with its next token, and what chooses the one that follows.
struct FollowedSequence {
  Sequence *sequence;
  int32_t token;
  Sampler *sampler;
};

/// Takes the tokens that a step chose, one of each item; whether to go on.
using TokenSink =
    absl::FunctionRef<absl::StatusOr<bool>(absl::Span<const int32_t> tokens)>;

/// The logits that follow token number `token` of item number `item` of the
/// batch; `values` has vocabSize of them, valid during the call.
struct LogitsRow {
  size_t item;
  int64_t token;
  absl::Span<const float> values;
};
using LogitsSink = absl::FunctionRef<absl::Status(const LogitsRow &)>;

/// Runs steps of a model; used by one thread at a time. On cpu and cuda,
/// engines of one model may run on threads of their own. After a fork the child
/// has none of the device's threads: steps there are a device error.
class Engine {
public:
  static absl::StatusOr<std::unique_ptr<Engine>>
  create(std::shared_ptr<const Model> model, const EngineOptions &options = {});
  ~Engine();

  const Model &model() const { return *shared; }

  /// Bytes of the pool of one layer's cache.
  uint64_t poolBytes() const { return kvPools.front()->size(); }

  /// What the programs are bound to.
  const ProgramBindings &bindings() const { return bound; }

  /// An empty sequence. Memory error when the plan's number of sequences is
  /// in use.
  absl::StatusOr<Sequence> newSequence();

  /// Appends the tokens of each item (all of different sequences) and gives
  /// `sink` the logits that are wanted, item by item in order. Any number of
  /// tokens may be given: the step is cut into pieces that the plan's programs
  /// hold. Errors, before anything is changed: usage for a token that is none,
  /// and, with both numbers, for more tokens than the context holds; memory
  /// when the KV pool is used up. Later: a device error, an accuracy error for
  /// logits that are not finite, or what `sink` gives; the sequences are then
  /// of no more use until truncate().
  absl::Status step(absl::Span<const SequenceTokens> batch, LogitsSink sink);

  /// Forgets all but the first `tokens` tokens of `sequence`, which has seen at
  /// least so many, and what a step left behind that ended with an error.
  void truncate(Sequence &sequence, int64_t tokens);

  /// As step(); gives the token that follows each item. The device chooses
  /// where the plan does, else the host: with one seed the same tokens, but for
  /// a draw within rounding of the border between two.
  absl::StatusOr<std::vector<int32_t>>
  sample(absl::Span<const SampledTokens> batch);

  /// Runs at most `steps` steps of one token of each item: first the items'
  /// own, then what the step before chose, until `sink` ends them. All is as if
  /// sample() were called for one step after the other; where the device queues
  /// steps it is some ahead of `sink`, and what it did past the end is undone.
  /// Errors: those of sample().
  absl::Status follow(absl::Span<const FollowedSequence> batch, int64_t steps,
                      TokenSink sink);

private:
  class Chain;
  struct Row;
  class Memory;
  /// Takes what program number `program` has given for `rows`.
  using ChunkSink = absl::FunctionRef<absl::Status(absl::Span<const Row> rows,
                                                   size_t program)>;

  explicit Engine(std::shared_ptr<const Model> model)
      : shared(std::move(model)) {}

  absl::Status allocate(const EngineOptions &options);
  absl::Status checkBatch(absl::Span<const SequenceTokens> batch) const;
  absl::Status reserve(const Sequence &sequence, int64_t tokens);
  absl::Status admit(absl::Span<const SequenceTokens> batch);
  size_t programFor(const StepShape &shape) const;
  /// Whether steps of `rows` sequences are queued, in a queue that is then
  /// there.
  absl::StatusOr<bool> queues(size_t rows);
  absl::Status followOneByOne(absl::Span<const FollowedSequence> batch,
                              int64_t steps, TokenSink sink);
  absl::Status runBatch(absl::Span<const SequenceTokens> batch,
                        absl::Span<const Draw> draws, ChunkSink sink);
  absl::Status runChunk(absl::Span<const Row> rows, int64_t wanted,
                        bool samples, ChunkSink sink);
  absl::Status writeInputs(absl::Span<const Row> rows, bool samples);
  absl::Status runTimed(absl::Span<const Row> rows, size_t program,
                        const StepShape &shape);
  absl::Status runObserved(size_t program, const StepShape &shape);
  absl::Status giveLogits(absl::Span<const Row> rows, size_t program,
                          LogitsSink sink);
  absl::Status giveTokens(absl::Span<const Row> rows, size_t program,
                          std::vector<int32_t> &tokens);

  std::shared_ptr<const Model> shared;
  LaunchObserver *observer = nullptr;
  Profile *profile = nullptr;
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<Buffer> arena, counters;
  std::vector<std::unique_ptr<Buffer>> kvPools; ///< By layer.
  std::vector<std::unique_ptr<Buffer>> inputs;  ///< By schema::InputRole.
  ProgramBindings bound;
  std::vector<std::unique_ptr<PreparedProgram>> programs;
  std::vector<int32_t> inputStaging;
  std::vector<Draw> drawStaging;
  std::vector<uint8_t> resultStaging;
  /// Last, as it goes before what it works on. Null where the device has none.
  std::unique_ptr<StepQueue> queue;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_ENGINE_H
