//===- Model.cpp - A plan, loaded and ready to run ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/step/Model.h"

#include "runtime/base/Clock.h"
#include "runtime/base/DamagedFiles.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/DiskCache.h"
#include "runtime/load/RankLeader.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/tuned/TunedPlan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace llamac {

void loadForSharing(int64_t parallel, int64_t hostParallel,
                    ModelOptions &loading) {
  loading.sequences = parallel != 0 ? parallel : hostParallel;
  loading.fillsGpu = parallel == 0;
  loading.sharesPages = true;
}

static absl::StatusOr<std::unique_ptr<Tokenizer>>
loadPlanTokenizer(const PlanReader &reader) {
  const auto &tokenizer = reader.plan().tokenizer;
  if (!tokenizer)
    return nullptr;
  const absl::Span<const uint8_t> bytes = reader.bytes(tokenizer->section);
  return loadTokenizer(absl::string_view(
      reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

/// Whether both plans have the same tokenizer, or none.
static bool haveOneTokenizer(const PlanReader &one, const PlanReader &other) {
  const auto &first = one.plan().tokenizer, &second = other.plan().tokenizer;
  if (!first || !second)
    return !first && !second;
  return one.bytes(first->section) == other.bytes(second->section);
}

/// Usage error unless this model gives the head at `path` what it reads.
absl::Status Model::checkHead(absl::string_view path) const {
  const ModelConfig &of = draftModel->config();
  const DraftHead &head = *of.head;
  const auto refused = [&](auto... parts) {
    return usageError(absl::StrCat("--draft ", path, ": ", parts...));
  };
  if (of.vocabSize != config().vocabSize || head.targetDim != config().dim)
    return refused("expected a head of ", this->name(), ", of width ",
                   config().dim, " and ", config().vocabSize,
                   " tokens, got one of a model of width ", head.targetDim,
                   " and ", of.vocabSize, " tokens");
  if (plan().featureLayers != head.layers)
    return refused("expected ", this->name(), " to give the inputs of layers ",
                   absl::StrJoin(head.layers, ","), ", got ",
                   plan().featureLayers.empty()
                       ? "none"
                       : absl::StrJoin(plan().featureLayers, ","),
                   "; compile the model with --feature-layers ",
                   absl::StrJoin(head.layers, ","));
  return absl::OkStatus();
}

/// Loads the draft model that `options` name, and checks that it fits.
absl::Status Model::loadDraft(const ModelOptions &options) {
  const auto refused = [&](auto... parts) {
    return usageError(absl::StrCat("--draft ", options.draft, ": ", parts...));
  };
  if (options.ranks)
    return refused("expected one process, got several; leave out mpirun");
  ModelOptions loading = options;
  loading.draft.clear();
  loading.name.clear();
  loading.isDraft = true;
  loading.sequences = plan().kv->maxSequences;
  loading.fillsGpu = false;
  LLAMAC_ASSIGN_OR_RETURN(draftModel, load(options.draft, loading));
  const Model &draft = *draftModel;
  const bool isHead = draft.config().head.has_value();
  if (isHead)
    LLAMAC_RETURN_IF_ERROR(checkHead(options.draft));
  else if (draft.config().vocabSize != config().vocabSize ||
           !haveOneTokenizer(*draft.planReader(), *planReader()))
    return refused("expected the tokenizer of ", name(),
                   ", whose vocabulary has ", config().vocabSize,
                   " tokens, got another one of ", draft.config().vocabSize);
  if (draft.context() < context())
    return refused("expected a context of at least ", context(), " tokens, as ",
                   name(), " has, got ", draft.context(),
                   "; compile it with -c ", context());
  if (!isHead && draft.planReader()->fileBytes() >= planReader()->fileBytes())
    printWarning(absl::StrCat("--draft ", options.draft,
                              ": expected a smaller model than ", name(),
                              ", got one as large, whose drafts cost as much "
                              "as they save"));
  return absl::OkStatus();
}

/// The plan with its tuned configs; null when there are none.
static absl::StatusOr<std::shared_ptr<const PlanReader>>
planAsTuned(const LoadedPlan &plan, const VariantCompiler *compiler) {
  const absl::StatusOr<std::string> path = tuningStorePath();
  if (!path.ok())
    return nullptr;
  return tunedPlan(plan.reader(), plan.device(), plan.identity(),
                   TuningStore(*path), compiler);
}

/// Makes the tuned plan the model's and loads its kernels; an error is a
/// warning.
void Model::loadTuned(const VariantCompiler *compiler) {
  auto tuned = planAsTuned(onDevices, compiler);
  absl::Status status = tuned.status();
  if (tuned.ok() && *tuned)
    status = onDevices.loadCode(*std::move(tuned));
  if (!status.ok())
    printWarning(
        absl::StrCat(status.message(), "; the default configs are used"));
}

/// Leaves out the programs that the device cannot run, each with a warning: the
/// one behind runs their steps. Device error where there is none.
absl::Status Model::leaveOutUnfit() {
  const std::vector<UnfitProgram> unfit = code().unfitPrograms();
  if (unfit.empty())
    return absl::OkStatus();
  const auto &programs = plan().programs;
  std::vector<size_t> numbers;
  numbers.reserve(unfit.size());
  for (const UnfitProgram &program : unfit)
    numbers.push_back(program.number);
  // Programs are in ascending order of the rows that they hold.
  if (numbers.back() + 1 == programs.size())
    return deviceError(absl::StrCat(
        name(), ": program ", programs.back()->name, ": ", unfit.back().reason,
        ", and the plan has no other program for its rows; ",
        noResidentStepAdvice));
  for (const UnfitProgram &program : unfit) {
    size_t next = program.number + 1;
    while (std::ranges::binary_search(numbers, next))
      ++next;
    printWarning(absl::StrCat(
        name(), ": program ", programs[program.number]->name, ": ",
        program.reason, "; program ", programs[next]->name, " runs its steps"));
  }
  LLAMAC_ASSIGN_OR_RETURN(auto rest, planReader()->withoutPrograms(numbers));
  if (compiled == planReader()) {
    compiled = rest;
  } else {
    LLAMAC_ASSIGN_OR_RETURN(compiled, compiled->withoutPrograms(numbers));
  }
  return onDevices.loadCode(std::move(rest));
}

absl::StatusOr<std::shared_ptr<const Model>>
Model::load(absl::string_view path, const ModelOptions &options) {
  // The seconds since the last call.
  auto lap = [last = steadySeconds()]() mutable {
    const double before = std::exchange(last, steadySeconds());
    return last - before;
  };
  RankWorld *const ranks = options.ranks;
  const auto team = ranks ? RankTeam::load(*ranks, path, options) : nullptr;
  LLAMAC_ASSIGN_OR_RETURN(const auto reader, openPlan(path, options));
  if (team)
    LLAMAC_RETURN_IF_ERROR(team->check(*reader));
  else if (reader->plan().ranks > 1 && RankWorld::launchedRank() >= 0)
    return usageError(absl::StrCat(
        path, ": a plan for ", reader->plan().ranks,
        " ranks: expected llamac-run as what mpirun starts, got another "
        "program; start it without mpirun to run all ranks in one process"));
  const ModelConfig config = fromPlan(*reader->plan().config);
  if (config.head && !options.isDraft)
    return usageError(absl::StrCat(
        path,
        ": expected the plan of a model, got that of a draft head, which "
        "only drafts for its model: run that one with --draft ",
        path));
  warnOfLongContext(reader->plan().context, config.maxContext);
  if (const int most = static_cast<int>(std::thread::hardware_concurrency());
      !options.isDraft && most > 0 && options.threads > most)
    printWarning(absl::StrCat(options.threads,
                              " threads wait for one another where there are ",
                              most, " processors; as many are faster"));
  const double planSeconds = lap();
  LLAMAC_ASSIGN_OR_RETURN(LoadedPlan started,
                          LoadedPlan::start(reader, options));
  if (team) {
    LLAMAC_RETURN_IF_ERROR(
        team->join(*reader, started.device(), options.randomWeights));
    started.setTeam(team);
  }
  std::shared_ptr<Model> model(new Model(std::move(started)));
  model->compiled = reader;
  model->modelName = options.name.empty() ? reader->path() : options.name;
  model->randomWeights = options.randomWeights;
  model->modelConfig = config;
  LoadTimes &times = model->times;
  times.plan = planSeconds;
  times.device = lap();
  Progress progress(options.quiet);
  progress.stage("loading the kernels");
  LoadedPlan &onDevices = model->onDevices;
  // Processes run the default configs, so that all run the same.
  if (options.tuned && !team)
    model->loadTuned(options.compiler);
  if (!onDevices.hasCode())
    LLAMAC_RETURN_IF_ERROR(onDevices.loadCode(reader));
  if (model->plan().ranks == 1)
    LLAMAC_RETURN_IF_ERROR(model->leaveOutUnfit());
  times.kernels = lap();
  LLAMAC_RETURN_IF_ERROR(onDevices.reserve());
  times.memory = lap();
  LLAMAC_RETURN_IF_ERROR(
      onDevices.loadWeights(options.randomWeights, &progress));
  if (team)
    LLAMAC_RETURN_IF_ERROR(team->finishLoading());
  times.weights = lap();
  LLAMAC_ASSIGN_OR_RETURN(model->text, loadPlanTokenizer(*model->planReader()));
  if (model->text)
    model->grammarCompiler = std::make_shared<GrammarCompiler>(
        *model->text, model->modelConfig.vocabSize, model->stopIds());
  times.tokenizer = lap();
  if (!options.draft.empty())
    LLAMAC_RETURN_IF_ERROR(model->loadDraft(options));
  return model;
}

absl::StatusOr<std::shared_ptr<const Model>>
Model::withPlan(std::shared_ptr<const PlanReader> plan) const {
  std::shared_ptr<Model> model(new Model(*this));
  if (plan == planReader())
    return model;
  if (onDevices.world())
    return usageError("configs: expected one process to try others in, got "
                      "several that run those of the plan; leave out mpirun");
  LLAMAC_RETURN_IF_ERROR(model->onDevices.loadCode(std::move(plan)));
  return model;
}

std::string Model::identity() const {
  std::string text = absl::StrCat("plan ", hashText(compiled->hash()), " on ",
                                  onDevices.arithmetic(), ", ", code().isa());
  if (planReader() != compiled) {
    std::string symbols;
    for (const auto &kernel : plan().kernels)
      absl::StrAppend(&symbols, kernel->symbol, "\n");
    absl::StrAppend(&text, ", tuned configs ", keyOf({symbols}));
  }
  if (randomWeights)
    absl::StrAppend(&text, ", random weights ", *randomWeights);
  return text;
}

absl::Status Model::checkFiles() const {
  const auto check = [](const std::string &path) {
    return isDamaged(path)
               ? badPlanError(absl::StrCat(
                     path, ": cannot be read: it was truncated while it was in "
                           "use, or its disk fails"))
               : absl::OkStatus();
  };
  LLAMAC_RETURN_IF_ERROR(check(planReader()->path()));
  for (const auto &source : plan().sourceFiles)
    LLAMAC_RETURN_IF_ERROR(check(source->path));
  return absl::OkStatus();
}

SamplingOptions advisedSampling(const schema::SamplingT *advised) {
  if (!advised)
    return {};
  return {.temperature = advised->temperature,
          .topK = advised->topK,
          .topP = advised->topP};
}

std::string Model::source() const {
  if (plan().sourceSection < 0)
    return {};
  const absl::Span<const uint8_t> bytes =
      planReader()->bytes(plan().sourceSection);
  return {bytes.begin(), bytes.end()};
}

absl::Span<const int32_t> Model::stopIds() const {
  if (!plan().tokenizer)
    return {};
  return plan().tokenizer->stopIds;
}

absl::StatusOr<std::vector<int32_t>>
Model::encode(absl::string_view prompt, EncodeOptions options) const {
  if (!text)
    return usageError(absl::StrCat(
        name(), ": the plan has no tokenizer; give the prompt as ids"));
  LLAMAC_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                          text->encode(prompt, {.special = options.special}));
  return options.addBos ? withBos(std::move(ids)) : ids;
}

std::vector<int32_t> Model::withBos(std::vector<int32_t> ids) const {
  if (plan().tokenizer && plan().tokenizer->addBos)
    ids.insert(ids.begin(), plan().tokenizer->bos);
  return ids;
}

} // namespace llamac
