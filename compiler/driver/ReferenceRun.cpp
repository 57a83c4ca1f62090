//===- ReferenceRun.cpp - llamac run on the reference ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ReferenceRun.h"

#include "compiler/driver/PlanCache.h"
#include "compiler/driver/ReferenceLogits.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

namespace llamac {

namespace {

class ReferenceDecoder final : public Decoder {
public:
  ReferenceDecoder(reference::ReferenceModel &model,
                   const Checkpoint &checkpoint, const Tokenizer *words,
                   int64_t context)
      : model(model), checkpoint(checkpoint), words(words), maxTokens(context) {
  }

  const Tokenizer *tokenizer() const override { return words; }
  bool isStopId(int32_t id) const override {
    return llvm::is_contained(checkpoint.tokenizer.stopIds, id);
  }
  int64_t context() const override { return maxTokens; }
  int64_t length() const override { return tokensSeen; }

  absl::StatusOr<int32_t> next(absl::Span<const int32_t> tokens,
                               Sampler &sampler) override;

private:
  reference::ReferenceModel &model;
  const Checkpoint &checkpoint;
  const Tokenizer *words;
  int64_t maxTokens;
  int64_t tokensSeen = 0;
};

} // namespace

absl::StatusOr<int32_t> ReferenceDecoder::next(absl::Span<const int32_t> tokens,
                                               Sampler &sampler) {
  const auto count = static_cast<int64_t>(tokens.size());
  if (tokensSeen + count > maxTokens)
    return usageError(absl::StrCat(
        "context: the prompt makes ", tokensSeen + count, " tokens, it holds ",
        maxTokens, "; shorten the prompt or give a larger --ctx-size"));
  LLAMAC_ASSIGN_OR_RETURN(
      const std::vector<float> logits,
      referenceStep(model, tokens, tokensSeen, OutputRows::Last));
  tokensSeen += count;
  return sampler.sample(logits);
}

absl::Status referenceRun(const std::string &model,
                          const CompileOptions &compile,
                          const RunOptions &options, std::FILE *out,
                          std::FILE *log) {
  LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, openForReference(model));
  const std::unique_ptr<mlir::MLIRContext> context = createContext();
  LLAMAC_ASSIGN_OR_RETURN(
      const mlir::OwningOpRef<mlir::ModuleOp> graph,
      referenceGraph(*context, checkpoint, compile.weightFormat));
  LLAMAC_ASSIGN_OR_RETURN(
      const std::unique_ptr<reference::ReferenceModel> reference,
      reference::ReferenceModel::create(*graph, checkpointReader(checkpoint)));
  CompileOptions settled = compile;
  settled.target = "cpu"; // Whose context the reference takes.
  LLAMAC_ASSIGN_OR_RETURN(settled, settleOptions(settled, checkpoint.config));

  LLAMAC_ASSIGN_OR_RETURN(const std::string blob, tokenizerBlob(checkpoint));
  std::unique_ptr<Tokenizer> words;
  if (!blob.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(words, loadTokenizer(blob));
  }
  auto encode = [&](absl::string_view text,
                    bool special) -> absl::StatusOr<std::vector<int32_t>> {
    if (!words)
      return usageError(absl::StrCat(
          model, ": there is no tokenizer; give the prompt as ids"));
    return words->encode(text, {.special = special});
  };
  const std::optional<schema::SamplingT> sampling =
      advisedSampling(checkpoint.generation);
  ReferenceDecoder decoder(*reference, checkpoint, words.get(),
                           settled.context);
  return runDecoder({decoder, model, encode, sampling ? &*sampling : nullptr},
                    options, out, log);
}

} // namespace llamac
