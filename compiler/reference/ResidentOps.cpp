//===- ResidentOps.cpp - Steps of phases, and their layers ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Interpreter.h"
#include "runtime/base/Status.h"

using namespace mlir;

namespace llamac::reference {

/// Runs the body of `op` on `arguments` and returns its results.
static absl::StatusOr<std::vector<ValuePtr>>
runBody(OpCall &call, Region &body, std::vector<ValuePtr> arguments) {
  LLAMAC_ASSIGN_OR_RETURN(const Interpreter interpreter,
                          Interpreter::create(body));
  return interpreter.run(std::move(arguments), call.weights, call.parallel);
}

static std::vector<ValuePtr> allOf(ArrayRef<ValuePtr> values) {
  return {values.begin(), values.end()};
}

template <> absl::Status compute<kernel::ResidentOp>(OpCall &call) {
  auto op = cast<kernel::ResidentOp>(call.op);
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<ValuePtr> results,
                          runBody(call, op.getBody(), allOf(call.operands)));
  for (const ValuePtr &result : results)
    call.results.push_back(*result);
  return absl::OkStatus();
}

template <> absl::Status compute<kernel::LayersOp>(OpCall &call) {
  auto op = cast<kernel::LayersOp>(call.op);
  const size_t shared = op.getShared().size(), carried = op.getCarried().size();
  const auto ofLayer = static_cast<size_t>(op.getEachOfLayer());
  const ArrayRef<ValuePtr> operands(call.operands);
  std::vector<ValuePtr> passed = allOf(operands.slice(shared, carried)), made;
  for (size_t layer = 0; layer < op.getCount(); ++layer) {
    std::vector<ValuePtr> arguments = allOf(operands.take_front(shared));
    llvm::append_range(arguments, passed);
    llvm::append_range(
        arguments, operands.slice(shared + carried + layer * ofLayer, ofLayer));
    LLAMAC_ASSIGN_OR_RETURN(std::vector<ValuePtr> results,
                            runBody(call, op.getBody(), std::move(arguments)));
    passed = allOf(ArrayRef(results).take_front(carried));
    llvm::append_range(made, ArrayRef(results).drop_front(carried));
  }
  for (const ValuePtr &result : passed)
    call.results.push_back(*result);
  for (const ValuePtr &result : made)
    call.results.push_back(*result);
  return absl::OkStatus();
}

} // namespace llamac::reference
