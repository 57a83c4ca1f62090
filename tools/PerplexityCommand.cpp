//===- PerplexityCommand.cpp - Perplexity of a text -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/PerplexityCommand.h"

#include "engine/sampling/LogitsMath.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "tools/AnswerOptions.h"
#include "tools/ChatOptions.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace llamac {

/// -log p(token) under softmax(logits).
static double negativeLogLikelihood(absl::Span<const float> logits,
                                    int32_t token) {
  const float largest = rangeOf(logits).largest;
  return std::log(sumOfExps(logits, largest)) + largest - logits[token];
}

/// The result where the scores of `scored` tokens have this sum, and their
/// squares that.
static PerplexityResult resultOf(int64_t scored, double sum, double squares) {
  const auto n = static_cast<double>(scored);
  const double mean = sum / n;
  PerplexityResult result{.perplexity = std::exp(mean), .scored = scored};
  if (scored > 1)
    result.error =
        result.perplexity *
        std::sqrt(std::max(squares / n - mean * mean, 0.0) / (n - 1));
  return result;
}

absl::StatusOr<PerplexityResult>
perplexity(Engine &engine, absl::Span<const int32_t> tokens, int64_t window,
           int32_t bos,
           const std::function<void(const PerplexityResult &)> &onWindow) {
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t context = engine.model().context();
  if (window < 2 || window > context)
    return usageError(absl::StrCat("--window: expected 2 to the plan's context "
                                   "of ",
                                   context, ", got ", window));
  if (count < 2)
    return usageError(
        absl::StrCat("text: expected at least 2 tokens, got ", count));

  // Tokens of the text in a window, and from one window to the next.
  const int64_t textTokens =
      bos < 0 ? window : std::max<int64_t>(window - 1, 2);
  const int64_t stride = std::max<int64_t>(textTokens / 2, 1);
  double sum = 0;
  double squares = 0;
  int64_t scored = 0;
  for (int64_t first = 0; scored + 1 < count; first += stride) {
    const auto text = tokens.subspan(first, textTokens);
    std::vector<int32_t> input(text.begin(), text.end());
    if (bos >= 0)
      input.insert(input.begin(), bos);
    // The last token's logits predict a token beyond the window, and the first
    // ones' tokens that are scored already or begin the text.
    input.pop_back();
    const auto known = static_cast<size_t>(scored - first + (bos >= 0));
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine.newSequence());
    auto score = [&](const LogitsRow &row) {
      const double value = negativeLogLikelihood(row.values, tokens[++scored]);
      sum += value;
      squares += value * value;
      return absl::OkStatus();
    };
    const auto all = absl::MakeConstSpan(input);
    if (known > 0)
      LLAMAC_RETURN_IF_ERROR(engine.step(
          {{&sequence, all.first(known), OutputRows::None}}, score));
    LLAMAC_RETURN_IF_ERROR(
        engine.step({{&sequence, all.subspan(known), OutputRows::All}}, score));
    if (onWindow)
      onWindow(resultOf(scored, sum, squares));
  }
  return resultOf(scored, sum, squares);
}

absl::Status perplexityCommand(const std::shared_ptr<const Model> &model,
                               const PerplexityOptions &options,
                               std::FILE *out) {
  if (!model->tokenizer())
    return usageError(absl::StrCat(
        model->name(), ": the plan has no tokenizer to read a text with"));
  LLAMAC_ASSIGN_OR_RETURN(const std::string text,
                          readInput(options.file, stdin));
  LLAMAC_RETURN_IF_ERROR(checkUtf8(options.file, text));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                          model->tokenizer()->encode(text));
  const schema::TokenizerT &tokenizer = *model->plan().tokenizer;
  const int32_t bos = tokenizer.addBos ? tokenizer.bos : -1;
  const int64_t window =
      options.window.value_or(std::min<int64_t>(512, model->context()));
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          Engine::create(model));
  Progress progress(options.quiet);
  const auto show = [&](const PerplexityResult &so) {
    progress.update(
        "perplexity",
        static_cast<double>(so.scored) / static_cast<double>(tokens.size()),
        [&] {
          return absl::StrFormat("%.4f over %d of %d tokens", so.perplexity,
                                 so.scored, tokens.size());
        });
  };
  LLAMAC_ASSIGN_OR_RETURN(const PerplexityResult result,
                          perplexity(*engine, tokens, window, bos, show));
  progress.finish();
  if (options.json) {
    const nlohmann::ordered_json report = {{"perplexity", result.perplexity},
                                           {"error", result.error},
                                           {"tokens", result.scored},
                                           {"window", window}};
    absl::FPrintF(out, "%s\n", report.dump());
    return absl::OkStatus();
  }
  absl::FPrintF(out,
                "perplexity %.4f +- %.4f over %d tokens in windows of %d\n",
                result.perplexity, result.error, result.scored, window);
  return absl::OkStatus();
}

} // namespace llamac
