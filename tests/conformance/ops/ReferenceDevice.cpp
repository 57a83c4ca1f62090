//===- ReferenceDevice.cpp - The interpreter as a device ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/OpDevice.h"

#include "compiler/driver/Compiler.h"
#include "compiler/reference/Interpreter.h"
#include "runtime/base/Status.h"
#include "runtime/formats/Dequantize.h"
#include "tests/conformance/ops/Errors.h"

#include "absl/strings/str_cat.h"
#include "mlir/Parser/Parser.h"

#include <cstring>

using namespace mlir;

namespace llamac::conformance {

namespace {

class ReferencePrograms final : public LoadedPrograms {
public:
  static absl::StatusOr<std::unique_ptr<LoadedPrograms>>
  create(const Model &model, const std::vector<ProgramUse> &uses);

  absl::Status reset() override {
    states.clear();
    for (int64_t rank = 0; rank < model.ranks; ++rank)
      states.push_back(std::make_shared<reference::Value>(
          reference::KvState(model.kvHeads, model.headSize)));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<float>> run(const Program &program,
                                         const Step &step) override;

private:
  explicit ReferencePrograms(const Model &model)
      : model(model), context(createContext()),
        weights([this](const auto &...args) { return readRows(args...); },
                /*limitBytes=*/0) {}

  std::vector<reference::ValuePtr>
  argumentsOf(const Program &program, const Step &step, int64_t rank) const;
  absl::Status readRows(const reference::Weight &weight, int64_t firstRow,
                        int64_t numRows, float *out) const {
    const StoredWeight &stored = *stores.at(weight.name);
    const uint64_t rowBytes = dataTypeBytes(stored.type, stored.cols);
    dequantizeRow(stored.type,
                  stored.bytes.data() + (weight.firstRow + firstRow) * rowBytes,
                  numRows * stored.cols, out);
    return absl::OkStatus();
  }

  Model model;
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  std::map<std::string, const StoredWeight *> stores; ///< Weights by their full
                                                      ///< names.
  std::map<std::string, reference::Interpreter> interpreters;
  reference::WeightStore weights;
  reference::Parallel parallel{1};
  std::vector<reference::ValuePtr> states; ///< States by rank.
};

} // namespace

absl::StatusOr<std::unique_ptr<LoadedPrograms>>
ReferencePrograms::create(const Model &model,
                          const std::vector<ProgramUse> &uses) {
  std::unique_ptr<ReferencePrograms> result(new ReferencePrograms(model));
  std::string text;
  for (const ProgramUse &use : uses)
    text += functionText(*use.program, use.program->name, 1, 1,
                         InputsAs::Arguments);
  const Errors errors(result->context.get());
  result->module =
      parseSourceString<ModuleOp>(text, ParserConfig(result->context.get()));
  if (!result->module)
    return errors.status("the programs do not parse");
  for (const ProgramUse &use : uses) {
    for (const StoredWeight &weight : use.program->weights)
      result->stores[use.program->weightName(weight)] = &weight;
    auto function =
        result->module->lookupSymbol<func::FuncOp>(use.program->name);
    LLAMAC_ASSIGN_OR_RETURN(reference::Interpreter interpreter,
                            reference::Interpreter::create(function));
    result->interpreters.emplace(use.program->name, std::move(interpreter));
  }
  LLAMAC_RETURN_IF_ERROR(result->reset());
  return result;
}

absl::StatusOr<std::vector<float>>
ReferencePrograms::run(const Program &program, const Step &step) {
  std::vector<std::vector<reference::ValuePtr>> arguments;
  for (int64_t rank = 0; rank < model.ranks; ++rank)
    arguments.push_back(argumentsOf(program, step, rank));
  LLAMAC_ASSIGN_OR_RETURN(
      const std::vector<std::vector<reference::ValuePtr>> ofRanks,
      interpreters.at(program.name)
          .runRanks(std::move(arguments), weights, parallel));
  for (size_t rank = 0; rank < states.size(); ++rank)
    states[rank] = ofRanks[rank][1];
  const std::vector<reference::ValuePtr> &results = ofRanks.front();
  if (program.samples) {
    const auto &tokens = std::get<reference::Indices>(*results[2]);
    return std::vector<float>(tokens.begin(), tokens.end());
  }
  return std::get<reference::Tensor>(*results[0]).data;
}

std::vector<reference::ValuePtr>
ReferencePrograms::argumentsOf(const Program &program, const Step &step,
                               int64_t rank) const {
  std::vector<reference::ValuePtr> arguments;
  for (const std::vector<int32_t> *indices :
       {&step.tokens, &step.positions, &step.sequences, &step.wanted})
    arguments.push_back(std::make_shared<reference::Value>(*indices));
  arguments.push_back(states[rank]);
  if (model.ranks > 1)
    arguments.push_back(std::make_shared<reference::Value>(
        reference::Indices{static_cast<int32_t>(rank)}));
  if (program.samples) {
    reference::Indices words(step.draws.size() * reference::samplingParamWords);
    std::memcpy(words.data(), step.draws.data(),
                words.size() * sizeof(int32_t));
    arguments.push_back(std::make_shared<reference::Value>(std::move(words)));
  }
  for (const ProgramInput &input : program.inputs) {
    reference::Tensor tensor({step.rows(), input.width});
    tensor.data = step.inputs.at(input.name);
    arguments.push_back(std::make_shared<reference::Value>(std::move(tensor)));
  }
  return arguments;
}

absl::StatusOr<std::unique_ptr<LoadedPrograms>>
loadOnReference(const Model &model, const std::vector<ProgramUse> &programs) {
  return ReferencePrograms::create(model, programs);
}

} // namespace llamac::conformance
