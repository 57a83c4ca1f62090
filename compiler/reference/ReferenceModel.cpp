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

/// Whether `type` is that of @step: four index tensors and a KV state in,
/// logits and the state out; perhaps also sampling params in and tokens out.
static bool isStep(FunctionType type) {
  auto isIndices = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 1 &&
           tensor.getElementType().isInteger(32);
  };
  auto isLogits = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 2 && !tensor.isDynamicDim(1) &&
           tensor.getElementType().isF32();
  };
  const unsigned extra = type.getNumResults() == 3 ? 1 : 0;
  return type.getNumInputs() == 5 + extra && type.getNumResults() >= 2 &&
         llvm::all_of(type.getInputs().take_front(4), isIndices) &&
         isa<llama::KVType>(type.getInput(4)) && isLogits(type.getResult(0)) &&
         type.getResult(1) == type.getInput(4);
}

absl::StatusOr<std::unique_ptr<ReferenceModel>>
ReferenceModel::create(ModuleOp module, WeightReader reader,
                       const ReferenceOptions &options) {
  auto step = module.lookupSymbol<func::FuncOp>(options.function);
  if (!step || !isStep(step.getFunctionType()))
    return internalError(absl::StrCat(
        "the reference expects a function @", options.function,
        "(tokens, positions, sequences, logits rows, KV state) -> (logits, "
        "KV state)"));
  LLAMAC_ASSIGN_OR_RETURN(Interpreter interpreter, Interpreter::create(step));
  auto logits = cast<RankedTensorType>(step.getFunctionType().getResult(0));
  auto state = cast<llama::KVType>(step.getFunctionType().getInput(4));
  // The constructor is private, hence no make_unique.
  return std::unique_ptr<ReferenceModel>(new ReferenceModel(
      std::move(interpreter), std::move(reader), options, logits.getDimSize(1),
      KvState(state.getLayers(), state.getHeads(), state.getSize())));
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
  return kv.checkAppend(0, positions, sequences);
}

absl::StatusOr<std::vector<float>> ReferenceModel::step(
    absl::Span<const int32_t> tokens, absl::Span<const int32_t> positions,
    absl::Span<const int32_t> sequences, absl::Span<const int32_t> logitsRows) {
  LLAMAC_RETURN_IF_ERROR(checkStep(tokens, positions, sequences, logitsRows));
  std::vector<ValuePtr> arguments;
  for (absl::Span<const int32_t> indices :
       {tokens, positions, sequences, logitsRows})
    arguments.push_back(
        std::make_shared<Value>(Indices(indices.begin(), indices.end())));
  // The state moves through the step, so that appends change it in place.
  arguments.push_back(std::make_shared<Value>(std::move(kv)));
  // The tokens are not read: zero sampling params stand for argmax.
  if (interpreter.numArguments() > arguments.size())
    arguments.push_back(
        std::make_shared<Value>(Indices(tokens.size() * samplingParamWords)));
  reset();

  LLAMAC_ASSIGN_OR_RETURN(
      std::vector<ValuePtr> results,
      interpreter.run(std::move(arguments), weights, parallel, hook));
  kv = std::get<KvState>(std::move(*results[1]));
  return std::get<Tensor>(std::move(*results[0])).data;
}

} // namespace llamac::reference
