//===- GraphBuilder.h - The graph of a Llama model --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All frontends give a ModelConfig; this is the one place that turns it into a
// graph.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_GRAPHBUILDER_H
#define LLAMAC_FRONTENDS_GRAPHBUILDER_H

#include "runtime/base/DataType.h"
#include "runtime/base/ModelConfig.h"

#include "absl/strings/string_view.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>

namespace llamac {

/// The element type of the weight with a canonical name (see
/// runtime/io/WeightMap.h).
using WeightTypeFn = std::function<DataType(absl::string_view)>;

/// Builds the module whose function @step is one step of the model, unfused,
/// op for op as in the mathematics:
///
///   @step(tokens, positions, sequences, logits_rows: tensor<?xi32>, the KV
///         cache of each layer)
///     -> (logits tensor<?xVxf32> of `logits_rows`, features tensor<?xdxf32>
///         of all rows, the KV cache of each layer)
///
/// The features are the inputs of the layers `featureLayers`, in that order,
/// with the number of layers for what the last one makes. The step of a draft
/// head (DraftHead) has arguments `features` and `head_state` behind
/// `logits_rows`, of which the rows of one are 0, and one feature: what its
/// layer makes of `logits_rows`, for the head_state of the next token.
///
/// Every weight is one llama.weight before its first use; a tied model uses the
/// embedding table for its head too. Locations name the layer and the
/// step ("layers.3.attention.softmax"), or the checkpoint tensor where the op
/// takes a weight ("layers.3.attention.wq"). `config` is valid
/// (validateModelConfig), and rows of weights in a block format are whole
/// blocks. The result has not been verified.
mlir::OwningOpRef<mlir::ModuleOp>
buildStepGraph(mlir::MLIRContext &context, const ModelConfig &config,
               const WeightTypeFn &weightType,
               llvm::ArrayRef<int64_t> featureLayers = {});

} // namespace llamac

#endif // LLAMAC_FRONTENDS_GRAPHBUILDER_H
