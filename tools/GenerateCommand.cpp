//===- GenerateCommand.cpp - Answers a file of requests -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory holds a window of the input: as many requests are read ahead as keep
// the scheduler busy. All others leave hashes: 16 bytes an id, and 32 an answer
// that the output had before.
//
// Each line of the output has a mark: the hash of all that decides the answer.
// So an answer to another request is not taken for one to this.
//
//===----------------------------------------------------------------------===//

#include "tools/GenerateCommand.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Interrupts.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonText.h"
#include "runtime/io/LineFiles.h"
#include "text/request/RequestJson.h"
#include "tools/AnswerOptions.h"
#include "tools/ChatOptions.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llamac {

using nlohmann::json;
using nlohmann::ordered_json;

/// Bytes of a request's line, and of an answer's.
static constexpr uint64_t mostRequestBytes = uint64_t{16} << 20;
static constexpr uint64_t mostAnswerBytes = uint64_t{1} << 30;

/// How every line of the output begins.
static constexpr absl::string_view lineStart = "{\"id\":";

namespace {

/// 128 bits that stand for a text.
using Hash = std::pair<uint64_t, uint64_t>;

Hash hashOf(absl::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

/// A request, with what its answers have so far.
struct Entry {
  json id;
  int64_t line;
  uint64_t bytes; ///< Bytes of the line.
  /// Hash of all that decides the answers, or of the wrong line.
  std::string mark;
  Request request;
  std::vector<AnswerPart> answers; ///< The parts that have come.
  int left = 0;                    ///< Answers that have not ended.
};

struct Summary {
  int64_t answers = 0, errors = 0;
  int64_t skipped = 0; ///< Requests that were answered before.
  int64_t promptTokens = 0, cachedTokens = 0, answerTokens = 0;
};

/// Wrong lines that are shown on stderr.
constexpr int64_t mostWarnings = 5;

/// A run of the command.
class Generation {
public:
  Generation(const Model &model, const GenerateCommandOptions &options,
             std::FILE *out, std::FILE *log)
      : model(model), options(options), out(out), log(log),
        chat(chatFormatOf(model.name(), model.tokenizer(), {})),
        progress(options.quiet) {}

  absl::Status run(const std::shared_ptr<const Model> &shared);

private:
  absl::Status openFiles();
  absl::Status recall(absl::string_view line, int64_t number);
  absl::Status checkRecalled(const Entry &entry) const;
  std::string markOf(const JsonObject &object, const Request &request) const;
  absl::Status readAhead();
  absl::Status begin(absl::string_view line);
  absl::Status readRequest(absl::string_view line, Entry &entry) const;
  absl::Status submit(const std::shared_ptr<Entry> &entry);
  void take(Entry &entry, int number, const AnswerPart &part);
  absl::Status writeAnswer(const Entry &entry, int number,
                           const AnswerEnd &end);
  absl::Status writeError(const Entry &entry, absl::string_view message);
  absl::Status write(const ordered_json &line);
  void showProgress();
  void summarize(double seconds, bool isInterrupted);

  const Model &model;
  const GenerateCommandOptions &options;
  std::FILE *out, *log;
  const absl::StatusOr<std::unique_ptr<const ChatFormat>> chat;
  Progress progress;
  std::unique_ptr<LineReader> input;
  std::unique_ptr<LineAppender> output; ///< Null: `out`.
  std::unique_ptr<Scheduler> scheduler;
  std::string arithmetic; ///< The model and its numerics, a part of marks.
  absl::flat_hash_set<Hash> seen; ///< Ids of requests that are right.
  /// In the output before: the marks of answers, and lines that were wrong; see
  /// the keys.
  absl::flat_hash_map<Hash, Hash> answered;
  absl::flat_hash_set<Hash> knownWrong;
  bool atEnd = false;
  int64_t open = 0; ///< Answers that have not ended.
  Summary summary;
  /// Bytes of the input: of lines that are done with, and of those that the
  /// output had answers to before.
  uint64_t doneBytes = 0, skippedBytes = 0;
  double start = 0;
  absl::Status failure; ///< The error that ends the run.
};

} // namespace

/// Names answer `index` to request `id`.
static Hash answerKey(const json &id, int64_t index) {
  return hashOf(absl::StrCat(jsonText(id), " ", index));
}

/// Names a line that is wrong.
static Hash wrongKey(int64_t line, absl::string_view mark) {
  return hashOf(absl::StrCat(line, " ", mark));
}

static std::string markOf(absl::string_view text) {
  const auto [high, low] = hashOf(text);
  return absl::StrFormat("%016x%016x", high, low);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

void loadFor(const GenerateCommandOptions &options, ModelOptions &loading) {
  loadForSharing(options.parallel, options.hostParallel, loading);
}

absl::Status checkGenerate(const GenerateCommandOptions &options) {
  if (options.json && options.output == "-")
    return usageError("--json: stdout has the answers; give -o a file");
  if (options.overwrite && options.output == "-")
    return usageError("--overwrite: stdout cannot be begun anew; give -o a "
                      "file");
  if (options.prompts == "-")
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(
      LineReader::open(options.prompts, mostRequestBytes).status());
  return checkNotInput("-o", options.output, options.prompts,
                       "that of --prompts");
}

absl::Status Generation::openFiles() {
  LLAMAC_ASSIGN_OR_RETURN(input,
                          LineReader::open(options.prompts, mostRequestBytes));
  if (options.output == "-")
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(output, LineAppender::open(options.output));
  LLAMAC_RETURN_IF_ERROR(output->recover(
      [&](absl::string_view line, int64_t number) {
        return recall(line, number);
      },
      [](absl::string_view torn) {
        return absl::StartsWith(torn, lineStart.substr(0, torn.size()));
      }));
  if (!options.overwrite)
    return absl::OkStatus();
  answered.clear();
  knownWrong.clear();
  return output->clear();
}

/// Takes a line that the output has already.
absl::Status Generation::recall(absl::string_view line, int64_t number) {
  const auto document =
      parseJson(options.output, line, {.maxBytes = mostAnswerBytes});
  const json *root = document.ok() ? &document->root() : nullptr;
  if (!root || !root->is_object() || !root->contains("id"))
    return usageError(absl::StrCat(
        options.output, ":", number,
        ": expected an answer of llamac generate, got another text; name a new "
        "file"));
  const auto wholeNumber = [&](const char *name) -> int64_t {
    const auto found = root->find(name);
    return found != root->end() && found->is_number_integer()
               ? found->get<int64_t>()
               : 0;
  };
  const auto found = root->find("request");
  const std::string mark = found != root->end() && found->is_string()
                               ? found->get<std::string>()
                               : std::string();
  if (root->contains("error"))
    knownWrong.insert(wrongKey(wholeNumber("line"), mark));
  else
    answered[answerKey((*root)["id"], wholeNumber("index"))] = hashOf(mark);
  return absl::OkStatus();
}

/// Whether the answers that the output had before are those to this request.
absl::Status Generation::checkRecalled(const Entry &entry) const {
  for (int i = 0; i < entry.request.answers; ++i)
    if (const auto found = answered.find(answerKey(entry.id, i));
        found != answered.end() && found->second != hashOf(entry.mark))
      return usageError(absl::StrCat(
          options.output, ": expected answers to the requests of ",
          options.prompts,
          ", got one to another prompt, by other options or "
          "of another model than line ",
          entry.line, " (id ", jsonText(entry.id),
          ") has now; give --overwrite to begin the file anew, or -o another"));
  return absl::OkStatus();
}

absl::Status Generation::write(const ordered_json &line) {
  const std::string text = jsonText(line);
  if (output)
    return output->append(text);
  return writeOutput(out, text + "\n");
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

/// Reads requests until there are enough answers to give.
absl::Status Generation::readAhead() {
  const int64_t enough = 4 * model.plan().kv->maxSequences;
  while (!atEnd && open < enough) {
    const uint64_t before = input->bytes();
    LLAMAC_ASSIGN_OR_RETURN(const LineReader::Outcome outcome,
                            input->next(/*waits=*/scheduler->isIdle()));
    if (outcome == LineReader::Outcome::Pending)
      break;
    atEnd = outcome == LineReader::Outcome::End;
    if (atEnd)
      break;
    const std::optional<absl::string_view> line = input->line();
    if (line && absl::StripAsciiWhitespace(*line).empty()) {
      doneBytes += input->bytes() - before;
      continue;
    }
    auto entry = std::make_shared<Entry>();
    entry->line = entry->id = input->number();
    entry->bytes = input->bytes() - before;
    absl::Status status =
        line ? readRequest(*line, *entry)
             : usageError(absl::StrCat("line: expected at most ",
                                       mostRequestBytes, " bytes, got more"));
    if (entry->mark.empty())
      entry->mark = llamac::markOf(line.value_or(""));
    if (status.ok() && !seen.insert(hashOf(entry->id.dump())).second)
      status = usageError("id: expected one of its own, got that of another "
                          "line before");
    if (status.ok()) {
      LLAMAC_RETURN_IF_ERROR(checkRecalled(*entry));
      status = submit(entry);
    }
    if (!status.ok())
      LLAMAC_RETURN_IF_ERROR(writeError(*entry, status.message()));
  }
  return absl::OkStatus();
}

/// Fills `entry` from a line.
absl::Status Generation::readRequest(absl::string_view line,
                                     Entry &entry) const {
  const std::string where = absl::StrCat("line ", entry.line);
  LLAMAC_ASSIGN_OR_RETURN(
      const JsonDocument document,
      parseJson(where, line, {.maxBytes = mostRequestBytes, .isLine = true}));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::root(document));
  if (object.has("id")) {
    const json &id = object.raw()["id"];
    if (!id.is_string() && !id.is_number())
      return object.wrongType("id", "a string or a number", id);
    entry.id = id;
  }
  Request &request = entry.request;
  request.options.maxTokens = options.maxTokens;
  request.options.sampling = advisedSampling(model.plan().sampling.get());
  request.wantsText = !options.printIds;
  std::vector<absl::string_view> others = promptFields();
  others.push_back("id");
  LLAMAC_RETURN_IF_ERROR(readRequestFields(object, line, others, request));
  LLAMAC_RETURN_IF_ERROR(readPrompt(
      object, line,
      [&](absl::string_view text) {
        return model.encode(text, request.encoding);
      },
      chat, request));
  if (!object.has("max_tokens"))
    fitAnswer(request, scheduler->mostTokens());
  LLAMAC_RETURN_IF_ERROR(withContext(scheduler->prepare(request), where));
  entry.mark = markOf(object, request);
  return absl::OkStatus();
}

/// The mark of answers to `request`, which `object` asks for.
std::string Generation::markOf(const JsonObject &object,
                               const Request &request) const {
  json asked = object.raw();
  // An answer is the same by any name and whenever it comes.
  asked.erase("id");
  asked.erase("priority");
  const SamplingOptions &sampling = request.options.sampling;
  const json all = {arithmetic,        asked,
                    request.prompt,    request.options.maxTokens,
                    request.wantsText, sampling.temperature,
                    sampling.topK,     sampling.topP};
  return llamac::markOf(jsonText(all));
}

/// Submits what has no answer yet of a request that was checked.
absl::Status Generation::submit(const std::shared_ptr<Entry> &entry) {
  const Request &request = entry->request;
  std::vector<int> missing;
  for (int i = 0; i < request.answers; ++i)
    if (!answered.contains(answerKey(entry->id, i)))
      missing.push_back(i);
  if (missing.empty()) {
    ++summary.skipped;
    doneBytes += entry->bytes;
    skippedBytes += entry->bytes;
    return absl::OkStatus();
  }
  entry->answers.resize(static_cast<size_t>(request.answers));
  // No part of an answer comes before the next step.
  const auto ask = [&](const Request &asked, int first) -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(
        scheduler
            ->submit(asked,
                     [this, entry, first](const AnswerPart &part) {
                       take(*entry, first + part.answer, part);
                     })
            .status());
    open += asked.answers;
    entry->left += asked.answers;
    return absl::OkStatus();
  };
  if (std::ssize(missing) == request.answers)
    return ask(request, 0);
  // Each of the others as the whole request would have it.
  for (const int number : missing) {
    Request one = request;
    one.answers = 1;
    if (one.options.sampling.seed)
      *one.options.sampling.seed += static_cast<uint64_t>(number);
    LLAMAC_RETURN_IF_ERROR(ask(one, number));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

void Generation::take(Entry &entry, int number, const AnswerPart &part) {
  AnswerPart &answer = entry.answers[static_cast<size_t>(number)];
  append(answer, part);
  if (!part.end)
    return;
  --open;
  if (--entry.left == 0)
    doneBytes += entry.bytes;
  const absl::Status &status = part.end->status;
  const ExitCode code = exitCode(status);
  if (status.ok())
    failure.Update(writeAnswer(entry, number, *part.end));
  else if (code == ExitCode::Usage || code == ExitCode::Accuracy)
    failure.Update(writeError(entry, status.message()));
  else
    failure.Update(status);
  answer = {};
}

absl::Status Generation::writeAnswer(const Entry &entry, int number,
                                     const AnswerEnd &end) {
  const AnswerPart &answer = entry.answers[static_cast<size_t>(number)];
  const SamplingOptions &sampling = entry.request.options.sampling;
  ++summary.answers;
  summary.promptTokens += end.promptTokens;
  summary.cachedTokens += end.cachedTokens;
  summary.answerTokens += end.answerTokens;
  ordered_json line = {{"id", entry.id}};
  if (entry.request.answers > 1)
    line["index"] = number;
  if (entry.request.wantsText)
    line["text"] = answer.text;
  line.update({{"tokens", answer.tokens},
               {"finish_reason", std::string(finishReason(end.reason))},
               {"prompt_tokens", end.promptTokens},
               {"cached_tokens", end.cachedTokens}});
  if (sampling.temperature > 0)
    line["seed"] = end.seed;
  if (sampling.logprobs >= 0)
    line["logprobs"] = logprobsJson(
        answer.logprobs, entry.request.wantsText ? model.tokenizer() : nullptr);
  line["request"] = entry.mark;
  return write(line);
}

absl::Status Generation::writeError(const Entry &entry,
                                    absl::string_view message) {
  if (++summary.errors <= mostWarnings && !options.quiet) {
    progress.finish();
    const std::string where = absl::StrCat("line ", entry.line);
    printWarning(absl::StrCat(
        options.prompts, ": ",
        absl::StartsWith(message, where) ? "" : where + ": ", message));
  } else if (summary.errors == mostWarnings + 1 && !options.quiet) {
    progress.finish();
    printWarning(absl::StrCat(options.prompts,
                              ": further wrong lines are not shown; their "
                              "answers say why"));
  }
  if (entry.left == 0)
    doneBytes += entry.bytes;
  if (knownWrong.contains(wrongKey(entry.line, entry.mark)))
    return absl::OkStatus();
  return write({{"id", entry.id},
                {"line", entry.line},
                {"error", std::string(message)},
                {"request", entry.mark}});
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

void Generation::showProgress() {
  const uint64_t all = input->size() - std::min(input->size(), skippedBytes);
  progress.update("generate",
                  all == 0 ? 0
                           : static_cast<double>(doneBytes - skippedBytes) /
                                 static_cast<double>(all),
                  [&] {
                    return absl::StrFormat(
                        "%d answers, %.1f tok/s", summary.answers,
                        static_cast<double>(scheduler->counts().answerTokens) /
                            (steadySeconds() - start));
                  });
}

void Generation::summarize(double seconds, bool isInterrupted) {
  progress.finish();
  if (options.quiet && !options.json)
    return;
  const SchedulerCounts counts = scheduler->counts();
  const int64_t preemptions = counts.preemptions;
  const int64_t loaded = counts.loadedTokens;
  const double rate =
      seconds > 0 ? static_cast<double>(summary.answerTokens) / seconds : 0;
  if (options.json)
    absl::FPrintF(out, "%s\n",
                  ordered_json({{"answers", summary.answers},
                                {"errors", summary.errors},
                                {"skipped", summary.skipped},
                                {"prompt_tokens", summary.promptTokens},
                                {"cached_tokens", summary.cachedTokens},
                                {"loaded_tokens", loaded},
                                {"generated_tokens", summary.answerTokens},
                                {"seconds", seconds},
                                {"tok_s", rate},
                                {"preemptions", preemptions},
                                {"draft_tokens", counts.draftTokens},
                                {"accepted_tokens", counts.acceptedTokens()},
                                {"accepted_by_place", counts.accepted},
                                {"sequences", model.plan().kv->maxSequences},
                                {"pages", counts.pages},
                                {"steps", counts.steps},
                                {"step_seconds", counts.stepSeconds},
                                {"program_seconds", counts.programSeconds}})
                      .dump());
  else
    absl::FPrintF(log,
                  "%d answers, %d errors, %d requests answered before; prompts "
                  "%d tokens, %d of them cached%s; answers %d tokens in "
                  "%.2f s%s; %d preemptions%s\n",
                  summary.answers, summary.errors, summary.skipped,
                  summary.promptTokens, summary.cachedTokens,
                  options.scheduler.prefixFile.empty()
                      ? ""
                      : absl::StrCat(", ", loaded, " brought from the file"),
                  summary.answerTokens, seconds,
                  rate > 0 ? absl::StrFormat(", %.1f tok/s", rate) : "",
                  preemptions,
                  draftsText(counts.draftTokens, counts.acceptedTokens()));
  if (isInterrupted)
    absl::FPrintF(log, "interrupted after %d answers; %s\n", summary.answers,
                  output ? "the same command goes on from there"
                         : "to be able to go on, give -o a file");
  std::fflush(out);
}

absl::Status Generation::run(const std::shared_ptr<const Model> &shared) {
  LLAMAC_RETURN_IF_ERROR(openFiles());
  SchedulerOptions scheduling = options.scheduler;
  // Nobody waits for the next token: fewer steps are faster in all.
  if (scheduling.promptRows == 0)
    scheduling.promptRows = model.plan().programs.back()->maxRows;
  LLAMAC_ASSIGN_OR_RETURN(scheduler, Scheduler::create(shared, scheduling));
  arithmetic = model.identity();
  if (!model.plan().rowsAreAlike)
    absl::StrAppend(
        &arithmetic, ", ",
        scheduling.batchInvariant
            ? absl::StrCat("load of ", model.plan().kv->maxSequences)
            : "any program");
  start = steadySeconds();
  Interrupts interrupts;
  while (interrupts.signal() == 0) {
    LLAMAC_RETURN_IF_ERROR(readAhead());
    if (scheduler->isIdle() && atEnd)
      break;
    if (!scheduler->isIdle())
      scheduler->step([&] { return interrupts.signal() != 0; });
    LLAMAC_RETURN_IF_ERROR(failure);
    showProgress();
  }
  if (output)
    LLAMAC_RETURN_IF_ERROR(output->sync());
  const double seconds = steadySeconds() - start;
  const absl::Status saved = scheduler->savePrefixes();
  summarize(seconds, interrupts.signal() != 0);
  if (saved.ok() && interrupts.signal() != 0)
    interrupts.endProcess();
  if (saved.ok() && options.strict && summary.errors > 0)
    return usageError(absl::StrCat(
        options.prompts, ": expected requests that can be answered, got ",
        summary.errors, " that cannot; their answers say why"));
  return saved;
}

absl::Status generateCommand(const std::shared_ptr<const Model> &model,
                             const GenerateCommandOptions &options,
                             std::FILE *out, std::FILE *log) {
  LLAMAC_RETURN_IF_ERROR(checkGenerate(options));
  if (!options.printIds)
    LLAMAC_RETURN_IF_ERROR(checkHasText(model->name(), model->tokenizer()));
  return Generation(*model, options, out, log).run(model);
}

} // namespace llamac
