//===- ReferenceLogits.cpp - Logits by the reference interpreter *- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "compiler/driver/ReferenceLogits.h"

#include "compiler/driver/Compiler.h"
#include "compiler/driver/PlanCache.h"
#include "runtime/base/Status.h"
#include "runtime/io/Dequantize.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/tools/RunCommand.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <numeric>

namespace llamac {

absl::StatusOr<std::vector<float>>
referenceStep(reference::ReferenceModel &model,
              absl::Span<const int32_t> tokens, int64_t seen,
              OutputRows outputs) {
  const auto count = static_cast<int32_t>(tokens.size());
  std::vector<int32_t> positions(count);
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(seen));
  std::vector<int32_t> rows(outputs == OutputRows::All ? count : 1, count - 1);
  if (outputs == OutputRows::All)
    std::iota(rows.begin(), rows.end(), 0);
  LLAMAC_ASSIGN_OR_RETURN(
      std::vector<float> logits,
      model.step(tokens, positions, std::vector<int32_t>(count, 0), rows));
  const auto all = absl::MakeConstSpan(logits);
  for (size_t i = 0; i < rows.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(checkLogits(
        all.subspan(i * model.vocabSize(), model.vocabSize()), seen + rows[i]));
  return logits;
}

reference::WeightReader checkpointReader(const Checkpoint &checkpoint) {
  return [&weights = checkpoint.weights](const reference::Weight &weight,
                                         int64_t firstRow, int64_t numRows,
                                         float *out) -> absl::Status {
    const WeightSource *source = weights.find(weight.name);
    if (!source)
      return internalError(
          absl::StrCat("the model has no weight ", weight.name));
    if (source->type == weight.type)
      return weights.readRowsAsF32(*source, firstRow, numRows, out);
    const int64_t elements = numRows * weight.cols;
    std::vector<uint8_t> stored(dataTypeBytes(weight.type, elements));
    LLAMAC_RETURN_IF_ERROR(weights.readRowsAs(*source, weight.type, firstRow,
                                              numRows, stored.data()));
    dequantizeRow(weight.type, stored.data(), elements, out);
    return absl::OkStatus();
  };
}

absl::StatusOr<Checkpoint> openForReference(const std::string &model) {
  if (namesPlan(model))
    return usageError(absl::StrCat(
        model, ": --target reference needs the model, not its plan"));
  return openCheckpoint(model);
}

absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>>
referenceGraph(mlir::MLIRContext &context, const Checkpoint &checkpoint,
               const std::string &weightFormat) {
  LLAMAC_RETURN_IF_ERROR(checkWeightFormat(weightFormat));
  LLAMAC_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> graph,
                          importGraph(context, checkpoint));
  mlir::PassManager pm(&context);
  addSteps(pm, graphSteps(weightFormat));
  if (failed(pm.run(*graph)))
    return internalError("the weights' formats cannot be assigned");
  return graph;
}

absl::Status referenceLogits(const std::string &model,
                             const std::string &weightFormat,
                             const LogitsOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                          parseTokenIds(options.tokens));
  LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, openForReference(model));
  const std::unique_ptr<mlir::MLIRContext> context = createContext();
  LLAMAC_ASSIGN_OR_RETURN(const mlir::OwningOpRef<mlir::ModuleOp> graph,
                          referenceGraph(*context, checkpoint, weightFormat));
  LLAMAC_ASSIGN_OR_RETURN(
      std::unique_ptr<reference::ReferenceModel> reference,
      reference::ReferenceModel::create(*graph, checkpointReader(checkpoint)));

  const int64_t count = static_cast<int64_t>(tokens.size());
  LLAMAC_ASSIGN_OR_RETURN(
      NpyWriter npy,
      NpyWriter::create(options.output, count, reference->vocabSize()));
  // Scores are [heads, rows, keys] here: pieces keep them small.
  const int64_t chunk = options.chunk > 0 ? options.chunk : 128;
  for (int64_t first = 0; first < count; first += chunk) {
    LLAMAC_ASSIGN_OR_RETURN(
        const std::vector<float> logits,
        referenceStep(*reference,
                      absl::MakeConstSpan(tokens).subspan(first, chunk), first,
                      OutputRows::All));
    LLAMAC_RETURN_IF_ERROR(npy.writeRow(logits));
  }
  return npy.finish();
}

} // namespace llamac
