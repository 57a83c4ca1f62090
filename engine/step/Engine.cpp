//===- Engine.cpp - Runs sequences through a model ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/step/Engine.h"

#include "runtime/base/Clock.h"
#include "runtime/base/FieldError.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/load/MemoryNeeds.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

namespace llamac {

/// One token of a step.
struct Engine::Row {
  Sequence *sequence;
  int32_t token;
  int32_t position;
  bool isOutput;
  SamplingParams params; ///< For the token that follows an output row.
  size_t item;           ///< The number of its item in the batch.
  int64_t index;         ///< In the item's tokens.
  HeadRows head;         ///< The row's own.
  float *features;       ///< Null where they are not wanted.
};

/// The token that is sampled behind an item, whose rows come in order.
struct Engine::Choice {
  absl::StatusOr<int32_t> token =
      -1; ///< The one behind the last row that counts.
  int64_t accepted = 0;
  bool isMade = false; ///< Whether no further row counts.

  /// Takes what is sampled behind `row` of `item`.
  void take(absl::StatusOr<int32_t> sampled, const SampledTokens &item,
            const Row &row) {
    const auto draft = static_cast<size_t>(row.index) + 1;
    isMade = !sampled.ok() || draft == item.tokens.size() ||
             *sampled != item.tokens[draft];
    accepted += !isMade;
    token = std::move(sampled);
  }
};

/// The pages of the pools as they are copied to and from a file.
class Engine::Pages final : public PageMemory {
public:
  explicit Pages(Engine &engine) : engine(engine) {}

  uint64_t pageBytes(size_t group) const override {
    const auto layers = static_cast<uint64_t>(
        std::ranges::count(engine.shared->plan().kv->layerGroups, group));
    return layers * layerBytes();
  }

  absl::Status read(size_t group, int32_t page,
                    std::vector<uint8_t> &bytes) override {
    return forEachLayer(group, [&](Buffer &pool) -> absl::Status {
      LLAMAC_ASSIGN_OR_RETURN(
          const absl::Span<const uint8_t> part,
          engine.shared->device().read(pool, page * layerBytes(), layerBytes(),
                                       staging));
      bytes.insert(bytes.end(), part.begin(), part.end());
      return absl::OkStatus();
    });
  }

  absl::Status write(size_t group, int32_t page,
                     absl::Span<const uint8_t> bytes) override {
    return forEachLayer(group, [&](Buffer &pool) {
      const absl::Span<const uint8_t> part = bytes.first(layerBytes());
      bytes.remove_prefix(layerBytes());
      return engine.shared->device().write(pool, page * layerBytes(), part);
    });
  }

private:
  uint64_t layerBytes() const { return engine.shared->plan().kv->pageBytes; }

  absl::Status forEachLayer(size_t group,
                            absl::FunctionRef<absl::Status(Buffer &)> use) {
    const auto &groups = engine.shared->plan().kv->layerGroups;
    for (size_t layer = 0; layer < groups.size(); ++layer)
      if (groups[layer] == group)
        LLAMAC_RETURN_IF_ERROR(use(engine.memory->pool(layer)));
    return absl::OkStatus();
  }

  Engine &engine;
  std::vector<uint8_t> staging;
};

Engine::~Engine() = default;

absl::StatusOr<std::unique_ptr<Engine>>
Engine::create(std::shared_ptr<const Model> model,
               const EngineOptions &options) {
  std::unique_ptr<Engine> engine(new Engine(std::move(model)));
  engine->batchInvariant = options.batchInvariant;
  engine->observer = options.observer;
  LLAMAC_RETURN_IF_ERROR(engine->allocate(options));
  if (!options.prefixFile.empty())
    LLAMAC_RETURN_IF_ERROR(engine->openPrefixFile(options.prefixFile));
  return engine;
}

absl::Status Engine::allocate(const EngineOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(memory, PlanMemory::create(shared->loaded()));
  // Last, as they may take what is left.
  LLAMAC_RETURN_IF_ERROR(allocatePools(options));
  if (options.keepsPrefixes)
    prefixCache = std::make_unique<PrefixCache>(*cache);
  return memory->prepare();
}

/// The pages that `share` of the free memory holds; 0 for no limit. Usage error
/// for a share of memory that is the host's, memory error where too few fit.
absl::StatusOr<int64_t> Engine::pagesThatFit(double share) const {
  const schema::PlanT &plan = shared->plan();
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceMemory> memory,
                          shared->loaded().memory());
  if (!memory) {
    if (share == 0)
      return 0;
    return usageError(absl::StrCat(
        "KV memory: expected a device with memory of its own, got ",
        shared->loaded().describe(), "; give a number of KV pages instead"));
  }
  if (share == 0)
    share = defaultKvMemory;
  const auto bytes =
      static_cast<uint64_t>(share * static_cast<double>(memory->free));
  const int64_t pages = kvPagesWithin(plan, bytes);
  if (const int64_t least = leastKvPages(plan); pages < least)
    return memoryError(absl::StrCat(
        "KV cache: expected ", formatBytes(kvPoolsBytes(plan, least)), " for ",
        least, " pages of ", plan.kv->pageTokens, " tokens, got ", share,
        " of ", formatBytes(memory->free), " that are free of ",
        formatBytes(memory->total), "; free some, or compile with a smaller ",
        "--weights"));
  return pages;
}

/// Memory error where so many pages, for which nothing is reserved, do not fit.
absl::Status Engine::checkPagesFit(int64_t pages) const {
  const schema::PlanT &plan = shared->plan();
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceMemory> memory,
                          shared->loaded().memory());
  const uint64_t needed = kvPoolsBytes(plan, pages);
  if (!memory || !shared->sharesPages() || needed <= memory->free)
    return absl::OkStatus();
  return memoryError(
      absl::StrCat("KV cache: expected ", formatBytes(needed), " for ", pages,
                   " pages, got ", formatBytes(memory->free), " free of ",
                   formatBytes(memory->total), "; ",
                   kvPagesWithin(plan, memory->free), " pages would fit"));
}

absl::Status Engine::allocatePools(const EngineOptions &options) {
  if (options.kvPages != 0 && options.kvMemory != 0)
    return usageError("KV memory: expected it without a number of KV pages, "
                      "got both");
  if (!(options.kvMemory >= 0 && options.kvMemory <= 1))
    return usageError(absl::StrCat(
        "KV memory: expected a share from 0 to 1, got ", options.kvMemory));
  if (options.kvPages != 0)
    LLAMAC_RETURN_IF_ERROR(checkPagesFit(options.kvPages));
  if (options.kvPages != 0 || (options.kvMemory == 0 && !shared->sharesPages()))
    return allocatePools(options.kvPages);
  int64_t most = INT64_MAX;
  while (true) {
    LLAMAC_ASSIGN_OR_RETURN(int64_t pages, pagesThatFit(options.kvMemory));
    pages = std::min(pages, most);
    const absl::Status status = allocatePools(pages);
    if (exitCode(status) != ExitCode::Memory ||
        pages <= leastKvPages(shared->plan()))
      return status;
    // Another process has taken some of it since.
    most = pages - pages / 4;
  }
}

/// At most `pages` pages in a group; 0: as many as all sequences can use.
absl::Status Engine::allocatePools(int64_t pages) {
  LLAMAC_RETURN_IF_ERROR(memory->allocatePools(pages));
  cache = std::make_unique<KvCache>(*shared->plan().kv, pages);
  return absl::OkStatus();
}

absl::Status Engine::openPrefixFile(const std::string &path) {
  if (shared->plan().ranks > 1)
    return usageError(absl::StrCat(
        "prefix file: expected a plan for one rank, whose cache is in one "
        "place, got one for ",
        shared->plan().ranks));
  if (!prefixCache)
    return usageError(absl::StrCat(
        "prefix file: expected it with the prefix cache, which is off, got ",
        path));
  pageMemory = std::make_unique<Pages>(*this);
  std::string identity = shared->identity();
  // Then any program may have computed a row.
  if (!batchInvariant && !shared->plan().rowsAreAlike)
    identity += ", not batch-invariant";
  return prefixCache->open(path, identity, *pageMemory);
}

absl::Status Engine::savePrefixes() {
  return prefixCache ? prefixCache->save(memory->poolBytes())
                     : absl::OkStatus();
}

absl::StatusOr<Sequence> Engine::newSequence() {
  LLAMAC_ASSIGN_OR_RETURN(const int32_t slot, cache->open());
  return Sequence(cache.get(), slot);
}

absl::Status Engine::checkTokens(absl::Span<const int32_t> tokens) const {
  const int64_t vocab = shared->config().vocabSize;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocab)
      return withField(
          usageError(absl::StrCat("token ", i, ": expected an id from 0 to ",
                                  vocab - 1, ", got ", tokens[i])),
          "prompt");
  return absl::OkStatus();
}

absl::Status Engine::checkBatch(absl::Span<const SequenceTokens> batch) const {
  absl::flat_hash_set<const Sequence *> seen;
  for (const SequenceTokens &item : batch) {
    if (item.tokens.empty())
      return usageError("tokens: expected at least one, got none");
    const int64_t length =
        item.sequence->length() + static_cast<int64_t>(item.tokens.size());
    if (length > shared->context())
      return usageError(
          absl::StrCat("context: the prompt makes ", length,
                       " tokens, the plan was compiled for ", shared->context(),
                       "; shorten it or compile with a larger --ctx-size"));
    LLAMAC_RETURN_IF_ERROR(checkTokens(item.tokens));
    if (!seen.insert(item.sequence).second)
      return internalError("a sequence is in the batch twice");
  }
  return absl::OkStatus();
}

/// Checks `batch` and sees to it that there are pages for all of it.
absl::Status Engine::admit(absl::Span<const SequenceTokens> batch) {
  LLAMAC_RETURN_IF_ERROR(checkBatch(batch));
  std::vector<Growth> growths;
  growths.reserve(batch.size());
  for (const SequenceTokens &item : batch)
    growths.push_back(
        {item.sequence->slot,
         item.sequence->length() + static_cast<int64_t>(item.tokens.size())});
  return cache->checkRoom(growths);
}

/// Gives `sequence` the pages that `tokens` tokens in all need.
absl::Status Engine::reserve(const Sequence &sequence, int64_t tokens) {
  LLAMAC_ASSIGN_OR_RETURN(const bool changed,
                          cache->reserve({sequence.slot, tokens}));
  return changed ? writePageTable(sequence) : absl::OkStatus();
}

int64_t Engine::mostTokens() const {
  return std::min(shared->context(), cache->mostTokens());
}

/// The growths by slot, by which the cache knows a sequence.
std::vector<Growth>
Engine::slotsOf(absl::Span<const SequenceGrowth> growths) const {
  std::vector<Growth> slots;
  slots.reserve(growths.size());
  for (const SequenceGrowth &growth : growths)
    slots.push_back({growth.sequence->slot, growth.tokens});
  return slots;
}

bool Engine::hasRoom(absl::Span<const SequenceGrowth> growths) const {
  return cache->hasRoom(slotsOf(growths));
}

bool Engine::mayHaveRoom(absl::Span<const SequenceGrowth> growths,
                         absl::Span<const int32_t> prompt,
                         int64_t tokens) const {
  std::vector<int64_t> held(cache->groupCount(), 0);
  if (prefixCache)
    held = prefixCache->heldPages(prompt);
  std::vector<int64_t> more;
  more.reserve(held.size());
  for (size_t group = 0; group < held.size(); ++group)
    more.push_back(cache->pagesFor(group, tokens) - held[group]);
  return cache->hasRoom(slotsOf(growths), more);
}

absl::Status Engine::writePageTable(const Sequence &sequence) {
  const uint64_t table =
      memory->inputs().layout().offset(schema::InputRole::PageTable);
  return cache->writeRows(sequence.slot, [&](uint64_t offset, auto bytes) {
    return memory->writeInputs(table + offset, bytes);
  });
}

absl::StatusOr<int64_t> Engine::reuse(Sequence &sequence,
                                      absl::Span<const int32_t> tokens) {
  if (!prefixCache)
    return 0;
  if (sequence.tokens != 0)
    return internalError("only an empty sequence can begin as another did");
  LLAMAC_RETURN_IF_ERROR(prefixCache->load(tokens));
  const int64_t found = prefixCache->attach(sequence.slot, tokens);
  if (found != 0)
    LLAMAC_RETURN_IF_ERROR(writePageTable(sequence));
  sequence.tokens = sequence.written = found;
  return found;
}

void Engine::keep(const Sequence &sequence, absl::Span<const int32_t> tokens) {
  if (prefixCache)
    prefixCache->keep(
        sequence.slot,
        tokens.first(std::min<size_t>(tokens.size(), sequence.tokens)),
        sequence.written);
}

int64_t Engine::truncate(Sequence &sequence, int64_t tokens) {
  const int64_t behind = tokens % cache->tokensOfPage();
  if (behind != 0 && cache->isShared(sequence.slot, tokens))
    tokens -= behind;
  if (!cache->holds(sequence.slot, tokens, sequence.written))
    tokens = 0;
  if (tokens == 0)
    sequence.written = 0;
  sequence.tokens = tokens;
  cache->trim(sequence.slot, tokens);
  return tokens;
}

// Where all prompts keep to one program, it is the smallest for them: it takes
// long ones in several steps at about what one step of a larger program takes,
// and short ones at a part of it (docs/gpu-model.md).
size_t Engine::promptProgram() const {
  const auto &all = shared->plan().programs;
  if (mixesKinds())
    return all.size() - 1;
  const auto smallest = std::ranges::find_if(
      all, [](const auto &program) { return isForPrompts(*program); });
  return smallest == all.end() ? all.size() - 1 : smallest - all.begin();
}

size_t Engine::programFor(const StepShape &shape, RowKind kind) const {
  const schema::PlanT &plan = shared->plan();
  int64_t rows = shape.rows, outputs = shape.outputRows;
  if (!mixesKinds()) {
    if (kind == RowKind::Prompt)
      return promptProgram();
    rows = outputs = std::max(rows, plan.kv->maxSequences);
  }
  return llamac::programFor(plan, rows, outputs, kind == RowKind::Prompt);
}

int64_t Engine::mostDecodeRows() const {
  const schema::PlanT &plan = shared->plan();
  int64_t most = 0;
  for (const auto &program : plan.programs) {
    most = std::max<int64_t>(
        most, std::min(program->maxRows, program->maxOutputRows));
    if (!mixesKinds() && most >= plan.kv->maxSequences)
      break;
  }
  return most;
}

absl::Status Engine::step(absl::Span<const SequenceTokens> batch,
                          LogitsCallback callback) {
  LLAMAC_RETURN_IF_ERROR(admit(batch));
  return runBatch(
      batch, {}, [] {},
      [&](absl::Span<const Row> rows, size_t program) {
        return giveLogits(rows, program, callback);
      });
}

absl::StatusOr<std::vector<absl::StatusOr<int32_t>>>
Engine::sample(absl::Span<const SampledTokens> batch) {
  const auto isOnDevice = [&](const SampledTokens &item) {
    return item.sampler && shared->samples() && item.sampler->samplesOnDevice();
  };
  std::vector<SequenceTokens> items;
  items.reserve(batch.size());
  for (const SampledTokens &item : batch)
    items.push_back({item.sequence,
                     item.tokens,
                     !item.sampler        ? OutputRows::None
                     : item.isSpeculative ? OutputRows::All
                                          : OutputRows::Last,
                     item.kind,
                     {},
                     item.features});
  // A batch that is refused or fails takes no random number.
  LLAMAC_RETURN_IF_ERROR(admit(items));
  std::vector<SamplingParams> params;
  if (std::ranges::any_of(batch, isOnDevice))
    for (const SampledTokens &item : batch) {
      if (!item.sampler)
        continue;
      ParamStream stream = item.sampler->params();
      for (size_t i = item.isSpeculative ? 0 : item.tokens.size() - 1;
           i < item.tokens.size(); ++i)
        params.push_back(isOnDevice(item) ? stream.next() : SamplingParams());
    }
  const auto prepareSamplers = [&] {
    for (const SampledTokens &item : batch)
      if (item.sampler)
        item.sampler->prepare();
  };
  std::vector<Choice> choices(batch.size());
  LLAMAC_RETURN_IF_ERROR(runBatch(
      items, params, prepareSamplers,
      [&](absl::Span<const Row> rows, size_t program) -> absl::Status {
        if (!params.empty())
          LLAMAC_RETURN_IF_ERROR(
              takeTokens(rows, program, batch, absl::MakeSpan(choices)));
        return sampleOnHost(rows, program, batch, absl::MakeSpan(choices));
      }));
  std::vector<absl::StatusOr<int32_t>> tokens;
  tokens.reserve(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    const SampledTokens &item = batch[i];
    Choice &choice = choices[i];
    if (isOnDevice(item))
      for (int64_t drawn = 0; drawn <= choice.accepted; ++drawn)
        item.sampler->nextParams();
    if (item.isSpeculative) {
      const int64_t rejected = std::ssize(item.tokens) - 1 - choice.accepted;
      const int64_t length = item.sequence->length() - rejected;
      if (rejected > 0 && truncate(*item.sequence, length) != length)
        return internalError("a rejected draft was written to a shared page");
    }
    tokens.push_back(std::move(choice.token));
  }
  return tokens;
}

/// `batch` is admitted; `params` are those of its items, or empty.
absl::Status Engine::runBatch(absl::Span<const SequenceTokens> batch,
                              absl::Span<const SamplingParams> params,
                              absl::FunctionRef<void()> meanwhile,
                              ChunkCallback callback) {
  // An observer sees every launch.
  const bool samples = shared->samples() && (observer || !params.empty());

  // The last program holds the most rows.
  const auto &programsOfPlan = shared->plan().programs;
  const int64_t most = programsOfPlan.back()->maxRows;
  const int64_t mostOfPrompts = programsOfPlan[promptProgram()]->maxRows;
  std::vector<Row> rows;
  const auto of = [](auto *numbers, int64_t row, int64_t width) {
    return numbers ? numbers + row * width : nullptr;
  };
  const ModelConfig &config = shared->config();
  const int64_t headFeatures = config.head ? config.head->featureDim() : 0;
  size_t outputsBefore = 0; // Output rows of all items so far.
  int64_t outputs = 0;
  RowKind kind = RowKind::Decode; // Prompt where some of `rows` are.
  const auto runRows = [&]() -> absl::Status {
    if (!rows.empty())
      LLAMAC_RETURN_IF_ERROR(
          runChunk(rows, outputs, kind, samples, meanwhile, callback));
    rows.clear();
    outputs = 0;
    kind = RowKind::Decode;
    return absl::OkStatus();
  };
  for (size_t item = 0; item < batch.size(); ++item) {
    const SequenceTokens &next = batch[item];
    const auto count = static_cast<int64_t>(next.tokens.size());
    const auto first = static_cast<int32_t>(next.sequence->length());
    if (next.kind != kind && !mixesKinds())
      LLAMAC_RETURN_IF_ERROR(runRows());
    for (int64_t i = 0; i < count; ++i) {
      const bool isOutput =
          next.outputs == OutputRows::All ||
          (next.outputs == OutputRows::Last && i == count - 1);
      if (static_cast<int64_t>(rows.size()) ==
          (next.kind == RowKind::Prompt ? mostOfPrompts : most))
        LLAMAC_RETURN_IF_ERROR(runRows());
      // A single row is what decode has, unless bits shall be those of prompts.
      if (next.kind == RowKind::Prompt && (count > 1 || !mixesKinds()))
        kind = RowKind::Prompt;
      rows.push_back({next.sequence,
                      next.tokens[i],
                      first + static_cast<int32_t>(i),
                      isOutput,
                      isOutput && !params.empty() ? params[outputsBefore]
                                                  : SamplingParams(),
                      item,
                      i,
                      {of(next.head.features, i, headFeatures),
                       of(next.head.state, i, config.dim)},
                      of(next.features, i, shared->featureDim())});
      outputs += isOutput;
      outputsBefore += isOutput;
    }
  }
  return runRows();
}

absl::Status Engine::runChunk(absl::Span<const Row> rows, int64_t outputs,
                              RowKind kind, bool samples,
                              absl::FunctionRef<void()> meanwhile,
                              ChunkCallback callback) {
  const size_t program = programFor({std::ssize(rows), outputs, samples}, kind);
  for (size_t i = 0; i < rows.size(); ++i)
    if (i + 1 == rows.size() || rows[i + 1].sequence != rows[i].sequence)
      LLAMAC_RETURN_IF_ERROR(reserve(*rows[i].sequence, rows[i].position + 1));
  fillRows(rows);
  fillHeadRows(rows);
  for (const Row &row : rows)
    row.sequence->written =
        std::max<int64_t>(row.sequence->written, row.position + 1);
  // All rows at first, with as many of the outputs as the program has; then the
  // rest of those.
  const int64_t most = shared->plan().programs[program]->maxOutputRows;
  for (size_t first = 0; first < rows.size();) {
    int64_t part = 0;
    size_t end = first;
    for (; end < rows.size() && part + rows[end].isOutput <= most; ++end)
      part += rows[end].isOutput;
    fillOutputs(rows.subspan(0, end), first, part, samples);
    LLAMAC_RETURN_IF_ERROR(memory->sendInputs());
    const StepShape shape{first == 0 ? std::ssize(rows) : 0, part, samples};
    const double start = steadySeconds();
    LLAMAC_RETURN_IF_ERROR(
        observer  ? runObserved(program, shape, kind)
        : profile ? runTimed(rows, program, shape)
                  : memory->program(program).run(shape, meanwhile));
    secondsInPrograms += steadySeconds() - start;
    for (const Row &row : rows)
      row.sequence->tokens = row.position + 1;
    if (first == 0)
      LLAMAC_RETURN_IF_ERROR(takeFeatures(rows, program));
    LLAMAC_RETURN_IF_ERROR(callback(rows.subspan(first, end - first), program));
    first = end;
  }
  return absl::OkStatus();
}

absl::Status Engine::runTimed(absl::Span<const Row> rows, size_t program,
                              const StepShape &shape) {
  TimedStep step{.program = program, .shape = shape, .start = steadySeconds()};
  for (size_t i = 0; shape.rows > 0 && i < rows.size(); ++i) {
    step.keys += rows[i].position + 1;
    if (i + 1 == rows.size() || rows[i + 1].sequence != rows[i].sequence)
      step.context += rows[i].position + 1;
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                          memory->program(program).runTimed(shape));
  step.seconds = seconds;
  profile->add(step);
  return absl::OkStatus();
}

absl::Status Engine::runObserved(size_t program, const StepShape &shape,
                                 RowKind kind) {
  const size_t launches = shared->plan().programs[program]->launches.size();
  for (size_t launch = 0; launch < launches; ++launch) {
    LaunchSite site{program, launch, shape};
    if (!mixesKinds())
      site.kind = kind;
    LLAMAC_RETURN_IF_ERROR(observer->before(site, *memory));
    LLAMAC_RETURN_IF_ERROR(memory->program(program).runLaunch(launch, shape));
    LLAMAC_RETURN_IF_ERROR(observer->after(site, *memory));
  }
  return absl::OkStatus();
}

void Engine::fillRows(absl::Span<const Row> rows) {
  using schema::InputRole;
  StepInputs &inputs = memory->inputs();
  const auto tokens = inputs.rows<int32_t>(InputRole::Tokens, rows.size());
  const auto positions =
      inputs.rows<int32_t>(InputRole::Positions, rows.size());
  const auto sequences =
      inputs.rows<int32_t>(InputRole::Sequences, rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    tokens[i] = rows[i].token;
    positions[i] = rows[i].position;
    sequences[i] = rows[i].sequence->slot;
  }
}

/// Gives a draft head's rows what they read beside their tokens.
void Engine::fillHeadRows(absl::Span<const Row> rows) {
  using schema::InputRole;
  const ModelConfig &config = shared->config();
  if (!config.head)
    return;
  const auto fill = [&](InputRole role, int64_t width,
                        const float *HeadRows::*numbers) {
    float *to = memory->inputs()
                    .rows<float>(role, rows.size() * static_cast<size_t>(width))
                    .data();
    for (const Row &row : rows) {
      if (const float *from = row.head.*numbers)
        std::copy_n(from, width, to);
      else
        std::fill_n(to, width, 0.0F);
      to += width;
    }
  };
  fill(InputRole::Features, config.head->featureDim(), &HeadRows::features);
  fill(InputRole::HeadState, config.dim, &HeadRows::state);
}

/// Gives the rows that want them their features.
absl::Status Engine::takeFeatures(absl::Span<const Row> rows, size_t program) {
  const auto wants = [](const Row &row) { return row.features != nullptr; };
  const auto first = std::ranges::find_if(rows, wants);
  if (first == rows.end())
    return absl::OkStatus();
  const absl::Span<const Row> wanting =
      rows.subspan(static_cast<size_t>(first - rows.begin()));
  const auto dim = static_cast<size_t>(shared->config().dim);
  const uint64_t rowBytes = dim * sizeof(float);
  const auto skipped = static_cast<uint64_t>(first - rows.begin());
  const auto &places = shared->plan().programs[program]->features;
  for (size_t layer = 0; layer < places.size(); ++layer) {
    LLAMAC_ASSIGN_OR_RETURN(
        const absl::Span<const uint8_t> bytes,
        memory->readArena(places[layer] + skipped * rowBytes,
                          wanting.size() * rowBytes, resultStaging));
    const auto *numbers = reinterpret_cast<const float *>(bytes.data());
    for (size_t i = 0; i < wanting.size(); ++i)
      if (wants(wanting[i]))
        std::copy_n(numbers + i * dim, dim, wanting[i].features + layer * dim);
  }
  return absl::OkStatus();
}

/// Makes those of `rows` from `first` on that are outputs, `count` of them, the
/// step's.
void Engine::fillOutputs(absl::Span<const Row> rows, size_t first,
                         int64_t count, bool samples) {
  using schema::InputRole;
  StepInputs &inputs = memory->inputs();
  const auto outputs = inputs.rows<int32_t>(InputRole::OutputRows, count);
  // The one row of a step is sampled even where it is no output row.
  const auto params = inputs.rows<SamplingParams>(
      InputRole::SamplingParams, samples ? std::max<size_t>(count, 1) : 0);
  if (samples && count == 0)
    params[0] = SamplingParams();
  for (size_t i = first, output = 0; i < rows.size(); ++i) {
    if (!rows[i].isOutput)
      continue;
    outputs[output] = static_cast<int32_t>(i);
    if (samples)
      params[output] = rows[i].params;
    ++output;
  }
}

/// Gives the items whose tokens the device has sampled theirs.
absl::Status Engine::takeTokens(absl::Span<const Row> rows, size_t program,
                                absl::Span<const SampledTokens> batch,
                                absl::Span<Choice> choices) {
  const schema::ProgramT &plan = *shared->plan().programs[program];
  const auto outputs = std::ranges::count(rows, true, &Row::isOutput);
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> bytes,
      memory->readArena(static_cast<uint64_t>(plan.tokensOffset),
                        outputs * sizeof(int32_t), resultStaging));
  const uint8_t *next = bytes.data();
  for (const Row &row : rows) {
    if (!row.isOutput)
      continue;
    int32_t token = 0;
    std::memcpy(&token, next, sizeof(token));
    next += sizeof(token);
    const SampledTokens &item = batch[row.item];
    Choice &choice = choices[row.item];
    if (!item.sampler->samplesOnDevice() || choice.isMade)
      continue;
    if (token < 0)
      choice.take(notFiniteError(row.position), item, row);
    else
      choice.take(token, item, row);
  }
  return absl::OkStatus();
}

/// Samples the tokens of the other items from their logits.
absl::Status Engine::sampleOnHost(absl::Span<const Row> rows, size_t program,
                                  absl::Span<const SampledTokens> batch,
                                  absl::Span<Choice> choices) {
  struct HostRow {
    const Row *row;
    uint64_t output; ///< Its number among the output rows.
  };
  std::vector<HostRow> hostRows;
  std::vector<size_t> starts; // Where the rows of each item begin.
  uint64_t outputs = 0;
  for (const Row &row : rows) {
    if (!row.isOutput)
      continue;
    if (!shared->samples() || !batch[row.item].sampler->samplesOnDevice()) {
      if (hostRows.empty() || hostRows.back().row->item != row.item)
        starts.push_back(hostRows.size());
      hostRows.push_back({&row, outputs});
    }
    ++outputs;
  }
  if (hostRows.empty())
    return absl::OkStatus();
  const auto vocab = static_cast<uint64_t>(shared->config().vocabSize);
  const uint64_t first = hostRows.front().output;
  const uint64_t count = hostRows.back().output + 1 - first;
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> bytes,
      memory->readArena(shared->plan().programs[program]->logitsOffset +
                            first * vocab * sizeof(float),
                        count * vocab * sizeof(float), resultStaging));
  const auto *logits = reinterpret_cast<const float *>(bytes.data());
  starts.push_back(hostRows.size());
  return shared->device().forEach(starts.size() - 1, [&](size_t part) {
    for (size_t i = starts[part]; i < starts[part + 1]; ++i) {
      const auto &[row, output] = hostRows[i];
      const SampledTokens &item = batch[row->item];
      Choice &choice = choices[row->item];
      if (choice.isMade)
        break;
      const absl::Span<const float> values(logits + (output - first) * vocab,
                                           vocab);
      if (absl::Status status = checkLogits(values, row->position); status.ok())
        choice.take(item.sampler->sample(values), item, *row);
      else
        choice.take(std::move(status), item, *row);
    }
  });
}

absl::Status Engine::giveLogits(absl::Span<const Row> rows, size_t program,
                                LogitsCallback callback) {
  const ModelConfig &config = shared->config();
  const auto count = static_cast<uint64_t>(config.logitsSize());
  const uint64_t rowBytes = count * sizeof(float);
  const uint64_t stateBytes =
      config.head ? static_cast<uint64_t>(config.dim) * sizeof(float) : 0;
  const schema::ProgramT &plan = *shared->plan().programs[program];
  uint64_t offset = plan.logitsOffset;
  uint64_t stateOffset = config.head ? plan.features.front() : 0;
  for (const Row &row : rows) {
    if (!row.isOutput)
      continue;
    LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                            memory->readArena(offset, rowBytes, resultStaging));
    offset += rowBytes;
    const absl::Span<const float> logits(
        reinterpret_cast<const float *>(bytes.data()), count);
    LLAMAC_RETURN_IF_ERROR(checkLogits(logits, row.position));
    absl::Span<const uint8_t> state;
    if (config.head) {
      LLAMAC_ASSIGN_OR_RETURN(
          state, memory->readArena(stateOffset, stateBytes, stateStaging));
      stateOffset += stateBytes;
    }
    LLAMAC_RETURN_IF_ERROR(
        callback({row.item,
                  row.index,
                  logits,
                  {reinterpret_cast<const float *>(state.data()),
                   state.size() / sizeof(float)}}));
  }
  return absl::OkStatus();
}

} // namespace llamac
