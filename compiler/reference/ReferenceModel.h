//===- ReferenceModel.h - The oracle: a model in fp32 -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the graph of a model op by op, step by step: the reference target, and
// the oracle for every pass, kernel and format.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_REFERENCEMODEL_H
#define LLAMAC_COMPILER_REFERENCE_REFERENCEMODEL_H

#include "compiler/reference/Interpreter.h"
#include "compiler/reference/StepArguments.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace llamac::reference {

struct ReferenceOptions {
  /// The function to run; after specialise-rows there are several.
  std::string function = "step";
  /// Weights are kept as fp32 until they reach this size; the rest is converted
  /// at every use.
  uint64_t weightLimitBytes = uint64_t{8} << 30;
  /// Threads; 0: one for each core.
  unsigned threads = 0;
};

/// A model and the KV caches of its layers.
class ReferenceModel {
public:
  /// Prepares a function of `module`, which must outlive the model. `reader`
  /// gives the rows of the weights and is called from several threads. Errors:
  /// no such function of the form that buildStepGraph gives, an op the
  /// reference does not know.
  static absl::StatusOr<std::unique_ptr<ReferenceModel>>
  create(mlir::ModuleOp module, WeightReader reader,
         const ReferenceOptions &options = {});

  /// Runs rows (tokens[n], positions[n], sequences[n]) and gives the logits of
  /// `logitsRows`: logitsRows.size() x vocabSize() floats. A sequence starts
  /// with its first row at position 0; a position that is already cached is
  /// replaced. Rows that cannot be are a usage error that changes nothing; any
  /// other error forgets all sequences.
  absl::StatusOr<std::vector<float>> step(absl::Span<const int32_t> tokens,
                                          absl::Span<const int32_t> positions,
                                          absl::Span<const int32_t> sequences,
                                          absl::Span<const int32_t> logitsRows);

  /// Forgets one sequence, or all.
  void drop(int32_t sequence);
  void reset() {
    for (std::vector<ValuePtr> &ofRank : caches)
      ofRank = emptyCaches(function);
  }

  int64_t vocabSize() const { return vocab; }

  /// Called after every op of every step, with its results.
  void setHook(OpHook opHook) { hook = std::move(opHook); }

private:
  ReferenceModel(mlir::func::FuncOp function, Interpreter interpreter,
                 WeightReader reader, const ReferenceOptions &options,
                 int64_t vocab)
      : function(function), interpreter(std::move(interpreter)),
        weights(std::move(reader), options.weightLimitBytes),
        parallel(options.threads), vocab(vocab),
        caches(llama::ranksOf(function)) {
    reset();
  }

  absl::Status checkStep(absl::Span<const int32_t> tokens,
                         absl::Span<const int32_t> positions,
                         absl::Span<const int32_t> sequences,
                         absl::Span<const int32_t> logitsRows) const;

  mlir::func::FuncOp function;
  Interpreter interpreter;
  WeightStore weights;
  Parallel parallel;
  OpHook hook;
  int64_t vocab;
  std::vector<std::vector<ValuePtr>> caches; ///< Caches by rank and layer.
};

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_REFERENCEMODEL_H
