//===- ReferenceTarget.cpp - Commands on the reference --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ReferenceTarget.h"

#include "compiler/driver/PlanCache.h"
#include "compiler/reference/ReferenceModel.h"
#include "engine/sampling/Sampler.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"
#include "runtime/formats/Dequantize.h"
#include "text/request/Request.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <numeric>

namespace llamac {

reference::WeightReader checkpointReader(const Checkpoint &checkpoint) {
  return [&weights = checkpoint.weights](const reference::Weight &weight,
                                         int64_t firstRow, int64_t numRows,
                                         float *out) -> absl::Status {
    const WeightSource *source = weights.find(weight.name);
    if (!source)
      return internalError(
          absl::StrCat("the model has no weight ", weight.name));
    const int64_t first = weight.firstRow + firstRow;
    const ColumnRange columns{weight.firstCol, weight.cols};
    if (source->type == weight.type)
      return weights.readRowsAsF32(*source, first, numRows, out, columns);
    const int64_t elements = numRows * weight.cols;
    std::vector<uint8_t> stored(dataTypeBytes(weight.type, elements));
    LLAMAC_RETURN_IF_ERROR(weights.readRowsAs(*source, weight.type, first,
                                              numRows, stored.data(), columns));
    dequantizeRow(weight.type, stored.data(), elements, out);
    return absl::OkStatus();
  };
}

namespace {

/// A checkpoint as the reference runs it.
class ReferenceTarget {
public:
  /// Usage error for a plan and for an unknown format.
  static absl::StatusOr<std::unique_ptr<ReferenceTarget>>
  open(const std::string &model, const CompileOptions &options);

  /// The logits that follow the last of `tokens`, or each of them, after
  /// the first `seen` tokens of the only sequence. Accuracy error when they are
  /// not finite.
  absl::StatusOr<std::vector<float>> step(absl::Span<const int32_t> tokens,
                                          int64_t seen, OutputRows logitsOf);

  const Checkpoint checkpoint;

private:
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  mlir::OwningOpRef<mlir::ModuleOp> graph;

public:
  std::unique_ptr<reference::ReferenceModel> model; ///< Interprets the graph.

private:
  explicit ReferenceTarget(Checkpoint checkpoint)
      : checkpoint(std::move(checkpoint)) {}
};

} // namespace

absl::StatusOr<std::unique_ptr<ReferenceTarget>>
ReferenceTarget::open(const std::string &model, const CompileOptions &options) {
  if (namesPlan(model))
    return usageError(absl::StrCat(
        model, ": --target reference needs the model, not its plan"));
  LLAMAC_ASSIGN_OR_RETURN(Checkpoint checkpoint, openCheckpoint(model));
  LLAMAC_RETURN_IF_ERROR(checkWeightFormat(options.weightFormat));
  LLAMAC_RETURN_IF_ERROR(checkReproducibleRanks(options));
  std::unique_ptr<ReferenceTarget> target(
      new ReferenceTarget(std::move(checkpoint)));
  LLAMAC_ASSIGN_OR_RETURN(target->graph,
                          importGraph(*target->context, target->checkpoint));
  for (const PipelineStep &step :
       graphSteps(options.weightFormat, options.ranks))
    LLAMAC_RETURN_IF_ERROR(applyStep(step, *target->graph, target->checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(
      target->model, reference::ReferenceModel::create(
                         *target->graph, checkpointReader(target->checkpoint)));
  return target;
}

absl::StatusOr<std::vector<float>>
ReferenceTarget::step(absl::Span<const int32_t> tokens, int64_t seen,
                      OutputRows logitsOf) {
  const auto count = static_cast<int32_t>(tokens.size());
  std::vector<int32_t> positions(count);
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(seen));
  std::vector<int32_t> rows(logitsOf == OutputRows::All ? count : 1, count - 1);
  if (logitsOf == OutputRows::All)
    std::iota(rows.begin(), rows.end(), 0);
  LLAMAC_ASSIGN_OR_RETURN(
      std::vector<float> logits,
      model->step(tokens, positions, std::vector<int32_t>(count, 0), rows));
  const auto all = absl::MakeConstSpan(logits);
  const int64_t vocab = model->vocabSize();
  for (size_t i = 0; i < rows.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(
        checkLogits(all.subspan(i * vocab, vocab), seen + rows[i]));
  return logits;
}

absl::Status referenceLogits(const std::string &model,
                             const CompileOptions &compile,
                             const LogitsOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                          parseTokenIds(options.tokens));
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<ReferenceTarget> target,
                          ReferenceTarget::open(model, compile));
  const int64_t count = static_cast<int64_t>(tokens.size());
  LLAMAC_ASSIGN_OR_RETURN(
      NpyWriter npy,
      NpyWriter::create(options.output, count, target->model->vocabSize()));
  // Scores are [heads, rows, keys] here: pieces keep them small.
  const int64_t chunk = options.chunk > 0 ? options.chunk : 128;
  for (int64_t first = 0; first < count; first += chunk) {
    LLAMAC_ASSIGN_OR_RETURN(
        const std::vector<float> logits,
        target->step(absl::MakeConstSpan(tokens).subspan(first, chunk), first,
                     OutputRows::All));
    LLAMAC_RETURN_IF_ERROR(npy.writeRow(logits));
  }
  return npy.finish();
}

/// Answers `request`, as a scheduler does one that is alone: the reference has
/// no pages to schedule and no device to sample on.
static absl::Status
answerRequest(ReferenceTarget &target, const Request &request,
              const Tokenizer *words, const std::vector<int32_t> &modelStops,
              int64_t context, absl::FunctionRef<bool()> isInterrupted,
              absl::FunctionRef<absl::Status(const AnswerPart &)> callback) {
  const double start = steadySeconds();
  const int64_t vocab = target.model->vocabSize();
  const auto promptTokens = static_cast<int64_t>(request.prompt.size());
  if (promptTokens > context)
    return usageError(absl::StrCat(
        "context: the prompt makes ", promptTokens, " tokens, it holds ",
        context, "; shorten the prompt or give a larger --ctx-size"));
  LLAMAC_RETURN_IF_ERROR(
      checkGenerateOptions(request.options, request.wantsText, words));
  const std::vector<int32_t> stopIds = stopIdsOf(request.options, modelStops);
  LLAMAC_ASSIGN_OR_RETURN(
      Sampler sampler,
      Sampler::create(request.options.sampling, stopIds, vocab));
  sampler.see(request.prompt);
  // The token behind a full context is not run.
  Answer answer(request.options, stopIds, context - promptTokens + 1,
                request.wantsText, words);
  AnswerEnd end{.seed = sampler.seed(), .promptTokens = promptTokens};
  std::vector<int32_t> next = request.prompt;
  for (int64_t seen = 0; !answer.ended() && !isInterrupted();) {
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<float> logits,
                            target.step(next, seen, OutputRows::Last));
    seen += static_cast<int64_t>(next.size());
    LLAMAC_ASSIGN_OR_RETURN(const int32_t token, sampler.sample(logits));
    if (end.firstTokenSeconds == 0)
      end.firstTokenSeconds = steadySeconds() - start;
    next = {token};
    AnswerPart part;
    part.text = answer.add(token);
    if (answer.ended() != StopReason::StopId) {
      part.tokens = next;
      part.logprobs = sampler.takeLogprobs();
    }
    LLAMAC_RETURN_IF_ERROR(callback(part));
  }
  end.reason = answer.ended().value_or(StopReason::Cancelled);
  end.answerTokens = static_cast<int64_t>(answer.ids().size());
  end.seconds = steadySeconds() - start;
  return callback({.end = end});
}

absl::Status referenceRun(const std::string &model,
                          const CompileOptions &compile,
                          const RunOptions &options, std::FILE *out,
                          std::FILE *log) {
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<ReferenceTarget> target,
                          ReferenceTarget::open(model, compile));
  CompileOptions resolved = compile;
  resolved.target = "cpu"; // Whose context the reference takes.
  LLAMAC_ASSIGN_OR_RETURN(resolved,
                          resolveOptions(resolved, target->checkpoint.config));
  warnOfLongContext(resolved.context, target->checkpoint.config.maxContext);

  LLAMAC_ASSIGN_OR_RETURN(const std::string blob,
                          tokenizerBlob(target->checkpoint));
  std::unique_ptr<Tokenizer> words;
  if (!blob.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(words, loadTokenizer(blob));
  }
  auto encode = [&](absl::string_view text,
                    bool special) -> absl::StatusOr<std::vector<int32_t>> {
    if (!words)
      return usageError(absl::StrCat(
          model, ": there is no tokenizer; give the prompt as ids"));
    return words->encode(text, {.special = special,
                                .addBos = words->vocabulary().flags().addBos});
  };
  const std::optional<schema::SamplingT> sampling =
      advisedSampling(target->checkpoint.generation);
  const std::vector<int32_t> stops =
      endsOfText(target->checkpoint, words ? &words->vocabulary() : nullptr);
  std::optional<GrammarCompiler> grammars;
  if (words)
    grammars.emplace(*words, target->model->vocabSize(), stops);
  auto answer =
      [&](const Request &request, absl::FunctionRef<bool()> isInterrupted,
          absl::FunctionRef<absl::Status(const AnswerPart &)> callback) {
        return answerRequest(*target, request, words.get(), stops,
                             resolved.context, isInterrupted, callback);
      };
  return runPrompt({model, words.get(), encode, answer, resolved.context,
                    sampling ? &*sampling : nullptr,
                    grammars ? &*grammars : nullptr},
                   options, out, log);
}

} // namespace llamac
