//===- ReferenceModel.cpp - The oracle: a model in fp32 -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/ReferenceModel.h"

#include "ir/llama/Llama.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace llamac::reference {

/// Whether `type` gives logits and caches, and perhaps features and tokens.
static bool givesLogits(FunctionType type) {
  if (type.getNumResults() < 2 ||
      llvm::none_of(type.getResults(), llvm::IsaPred<llama::KVType>))
    return false;
  auto logits = dyn_cast<RankedTensorType>(type.getResult(0));
  return logits && logits.getRank() == 2 && !logits.isDynamicDim(1) &&
         logits.getElementType().isF32();
}

absl::StatusOr<std::unique_ptr<ReferenceModel>>
ReferenceModel::create(ModuleOp module, WeightReader reader,
                       const ReferenceOptions &options) {
  auto step = module.lookupSymbol<func::FuncOp>(options.function);
  if (!step || !givesLogits(step.getFunctionType()))
    return internalError(absl::StrCat("the reference expects a function @",
                                      options.function,
                                      " that gives logits and caches"));
  LLAMAC_RETURN_IF_ERROR(checkRoles(step));
  LLAMAC_ASSIGN_OR_RETURN(Interpreter interpreter, Interpreter::create(step));
  auto logits = cast<RankedTensorType>(step.getFunctionType().getResult(0));
  // The constructor is private, hence no make_unique.
  return std::unique_ptr<ReferenceModel>(
      new ReferenceModel(step, std::move(interpreter), std::move(reader),
                         options, logits.getDimSize(1)));
}

void ReferenceModel::drop(int32_t sequence) {
  for (const std::vector<ValuePtr> &ofRank : caches)
    for (const ValuePtr &cache : ofRank)
      std::get<KvState>(*cache).drop(sequence);
}

absl::Status
ReferenceModel::checkStep(absl::Span<const int32_t> tokens,
                          absl::Span<const int32_t> positions,
                          absl::Span<const int32_t> sequences,
                          absl::Span<const int32_t> logitsRows) const {
  const size_t rows = tokens.size();
  if (rows == 0)
    return usageError("expected at least one token in a step, got none");
  if (positions.size() != rows || sequences.size() != rows)
    return usageError(absl::StrCat(
        "expected a position and a sequence for each of ", rows,
        " tokens, got ", positions.size(), " and ", sequences.size()));
  for (size_t n = 0; n < rows; ++n)
    if (tokens[n] < 0 || tokens[n] >= vocab)
      return usageError(absl::StrCat("row ", n, ": expected a token in [0, ",
                                     vocab, "), got ", tokens[n]));
  for (size_t i = 0; i < logitsRows.size(); ++i)
    if (logitsRows[i] < 0 || static_cast<size_t>(logitsRows[i]) >= rows)
      return usageError(absl::StrCat("logits row ", i,
                                     ": expected a row in [0, ", rows,
                                     "), got ", logitsRows[i]));
  return std::get<KvState>(*caches.front().front())
      .checkAppend(positions, sequences);
}

absl::StatusOr<std::vector<float>> ReferenceModel::step(
    absl::Span<const int32_t> tokens, absl::Span<const int32_t> positions,
    absl::Span<const int32_t> sequences, absl::Span<const int32_t> logitsRows) {
  LLAMAC_RETURN_IF_ERROR(checkStep(tokens, positions, sequences, logitsRows));
  // The caches move through the step, so that appends change them in place.
  std::vector<std::vector<ValuePtr>> arguments;
  for (auto [rank, ofRank] : llvm::enumerate(caches))
    arguments.push_back(
        stepArguments(function, {tokens, positions, sequences, logitsRows},
                      std::move(ofRank), static_cast<int64_t>(rank)));
  reset();

  LLAMAC_ASSIGN_OR_RETURN(
      std::vector<std::vector<ValuePtr>> results,
      interpreter.runRanks(std::move(arguments), weights, parallel, hook));
  for (auto [ofRank, result] : llvm::zip(caches, results))
    ofRank = cachesOf(result);
  // All ranks have the same logits.
  return std::get<Tensor>(std::move(*results[0][0])).data;
}

} // namespace llamac::reference
