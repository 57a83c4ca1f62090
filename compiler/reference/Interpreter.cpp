//===- Interpreter.cpp - Executes a graph op by op ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Interpreter.h"

#include "runtime/base/Status.h"
#include "runtime/formats/FloatBits.h"

#include "absl/strings/str_cat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <type_traits>
#include <utility>

using namespace mlir;

namespace llamac::reference {

/// How the reference computes an `Op`; null for what stands in the regions of
/// launches.
template <typename Op> static constexpr OpFn functionOf() {
  using kernel::NoOp;
  constexpr bool isElementwise = false
#define LLAMAC_SCALAR(Scalar, GraphOp, ...) || std::is_same_v<Op, GraphOp>
#include "ir/kernel/Scalars.def"
      ;
  if constexpr (isElementwise)
    return elementwise;
  else if constexpr (Op::template hasTrait<
                         kernel::ScalarOpInterface::Trait>() ||
                     Op::template hasTrait<OpTrait::IsTerminator>())
    return nullptr;
  else
    return compute<Op>;
}

template <typename... Ops> static void addOps(llvm::StringMap<OpFn> &table) {
  (table.try_emplace(Ops::getOperationName(), functionOf<Ops>()), ...);
}

static llvm::StringMap<OpFn> opTable() {
  llvm::StringMap<OpFn> table;
  addOps<arith::ConstantOp>(table);
  addOps<
#define GET_OP_LIST
#include "ir/llama/LlamaOps.cpp.inc"
      >(table);
  addOps<
#define GET_OP_LIST
#include "ir/kernel/KernelOps.cpp.inc"
      >(table);
  return table;
}

/// The op's name and where it comes from: `llama.linear at
/// "layers.0.attention.wq"`.
static std::string describe(Operation &op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op.getName() << " at ";
  if (auto name = dyn_cast<NameLoc>(op.getLoc()))
    os << name.getName();
  else
    os << op.getLoc();
  return text;
}

/// Checks that `value` is what `type` says, as far as it is static.
static absl::Status checkType(const Value &value, Type type) {
  const auto *tensor = std::get_if<Tensor>(&value);
  if (!tensor)
    return absl::OkStatus();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  bool fits = shape.size() == tensor->shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = ShapedType::isDynamic(shape[i]) || shape[i] == tensor->shape[i];
  if (fits)
    return absl::OkStatus();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "expected a result of type " << type << ", got the shape ";
  llvm::interleave(tensor->shape, os, "x");
  return internalError(text);
}

/// Rounds what an op gives in bf16.
static void roundTo(Type type, Value &value) {
  auto *tensor = std::get_if<Tensor>(&value);
  if (tensor && cast<RankedTensorType>(type).getElementType().isBF16())
    for (float &number : tensor->data)
      number = bf16ToF32(f32ToBf16(number));
}

absl::StatusOr<Interpreter> Interpreter::create(Region &region) {
  if (!region.hasOneBlock())
    return unsupportedError("the reference executes functions of one block");
  const llvm::StringMap<OpFn> table = opTable();
  Interpreter interpreter;
  Block &block = region.front();
  interpreter.body = &block;
  for (Operation &op : block.without_terminator()) {
    auto entry = table.find(op.getName().getStringRef());
    if (entry == table.end() || !entry->second)
      return unsupportedError(
          absl::StrCat(describe(op), ": the reference does not know this op"));
    interpreter.steps.push_back({&op, entry->second, {}});
  }

  // Backwards, the first op that mentions a value is its last use; a result
  // that nothing mentions dies at once.
  llvm::DenseSet<mlir::Value> live;
  live.insert(block.getTerminator()->operand_begin(),
              block.getTerminator()->operand_end());
  for (Step &step : llvm::reverse(interpreter.steps)) {
    for (mlir::Value value : step.op->getResults())
      if (live.insert(value).second)
        step.dead.push_back(value);
    for (mlir::Value value : step.op->getOperands())
      if (live.insert(value).second)
        step.dead.push_back(value);
  }
  return interpreter;
}

/// Computes `step` on one rank and checks what it gives.
absl::StatusOr<SmallVector<ValuePtr>> Interpreter::compute(const Step &step,
                                                           OpCall &call) const {
  absl::Status status = step.compute(call);
  if (status.ok() && call.results.size() != step.op->getNumResults())
    status = internalError(absl::StrCat("expected ", step.op->getNumResults(),
                                        " results, got ", call.results.size()));
  if (status.ok())
    for (auto [value, result] :
         llvm::zip_equal(call.results, step.op->getResults()))
      status.Update(checkType(value, result.getType()));
  if (!status.ok())
    return withContext(status, describe(*step.op));
  SmallVector<ValuePtr> results;
  for (auto [value, result] : llvm::zip(call.results, step.op->getResults())) {
    roundTo(result.getType(), value);
    results.push_back(std::make_shared<Value>(std::move(value)));
  }
  return results;
}

absl::StatusOr<std::vector<std::vector<ValuePtr>>>
Interpreter::runRanks(std::vector<std::vector<ValuePtr>> arguments,
                      WeightStore &weights, Parallel &parallel,
                      const OpHook &hook) const {
  Block &block = *body;
  const size_t ranks = arguments.size();
  std::vector<Environment> environments(ranks);
  for (auto [own, environment] : llvm::zip(arguments, environments)) {
    if (own.size() != block.getNumArguments())
      return internalError(absl::StrCat("expected ", block.getNumArguments(),
                                        " arguments, got ", own.size()));
    for (auto [parameter, argument] :
         llvm::zip_equal(block.getArguments(), own)) {
      LLAMAC_RETURN_IF_ERROR(checkType(*argument, parameter.getType()));
      environment[parameter] = std::move(argument);
    }
  }

  for (const Step &step : steps) {
    std::vector<SmallVector<ValuePtr>> operands(ranks);
    for (auto [own, environment] : llvm::zip(operands, environments)) {
      for (mlir::Value value : step.op->getOperands())
        own.push_back(environment.lookup(value));
      for (mlir::Value value : step.dead)
        environment.erase(value);
    }
    for (size_t rank = 0; rank < ranks; ++rank) {
      OpCall call{*step.op,
                  operands[rank],
                  weights,
                  parallel,
                  static_cast<int64_t>(rank),
                  operands};
      LLAMAC_ASSIGN_OR_RETURN(SmallVector<ValuePtr> results,
                              compute(step, call));
      if (hook && rank == 0)
        hook(*step.op, results);
      for (auto [value, result] : llvm::zip(results, step.op->getResults()))
        environments[rank][result] = std::move(value);
    }
    for (Environment &environment : environments)
      for (mlir::Value value : step.dead)
        environment.erase(value);
  }

  std::vector<std::vector<ValuePtr>> results(ranks);
  for (auto [own, environment] : llvm::zip(results, environments))
    for (mlir::Value value : block.getTerminator()->getOperands())
      own.push_back(environment.lookup(value));
  return results;
}

absl::StatusOr<std::vector<ValuePtr>>
Interpreter::run(std::vector<ValuePtr> arguments, WeightStore &weights,
                 Parallel &parallel, const OpHook &hook) const {
  std::vector<std::vector<ValuePtr>> ofRanks;
  ofRanks.push_back(std::move(arguments));
  LLAMAC_ASSIGN_OR_RETURN(
      std::vector<std::vector<ValuePtr>> results,
      runRanks(std::move(ofRanks), weights, parallel, hook));
  return std::move(results.front());
}

} // namespace llamac::reference
