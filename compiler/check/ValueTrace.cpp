//===- ValueTrace.cpp - The values on both sides of a pass ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/check/ValueTrace.h"

#include "compiler/trial/LaunchReference.h"
#include "ir/llama/OpNames.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;

namespace llamac {

/// The numbers of a result of an op; none for tokens and weights.
static std::optional<std::vector<float>>
tracedNumbers(const reference::Value &value) {
  if (std::holds_alternative<reference::Tensor>(value) ||
      std::holds_alternative<reference::KvState>(value))
    return numbersOf(value);
  return std::nullopt;
}

ValueTrace::Callback ValueTrace::recorder() {
  return [this](int64_t step, Operation &op,
                ArrayRef<reference::ValuePtr> results) {
    const SmallVector<StringRef> names = namesOf(op.getLoc());
    for (const reference::ValuePtr &result : results) {
      auto numbers = tracedNumbers(*result);
      if (names.empty() || !numbers)
        continue;
      for (StringRef name : names)
        byName[{step, name.str()}].push_back(recorded.size());
      const bool isState = std::holds_alternative<reference::KvState>(*result);
      recorded.push_back({names.back().str(), isState, *std::move(numbers)});
    }
  };
}

ValueTrace::Callback ValueTrace::comparer() {
  return [this](int64_t step, Operation &op,
                ArrayRef<reference::ValuePtr> results) {
    if (mismatch)
      return;
    compare(step, op, results);
    for (auto [result, value] : llvm::zip(op.getResults(), results))
      current[result] = value;
  };
}

void ValueTrace::compare(int64_t step, Operation &op,
                         ArrayRef<reference::ValuePtr> results) {
  std::vector<size_t> known;
  for (StringRef name : namesOf(op.getLoc()))
    if (auto it = byName.find({step, name.str()}); it != byName.end())
      known.insert(known.end(), it->second.begin(), it->second.end());
  llvm::sort(known);

  for (const reference::ValuePtr &result : results) {
    const auto numbers = tracedNumbers(*result);
    if (!numbers)
      continue;
    // The last that it may stand for, or any where there are several results;
    // the nearest where several ops of before have that name.
    const bool isState = std::holds_alternative<reference::KvState>(*result);
    const Recorded *best = nullptr;
    Difference difference;
    for (size_t number : llvm::reverse(known)) {
      const Recorded &candidate = recorded[number];
      if (candidate.isState != isState ||
          candidate.values.size() != numbers->size() ||
          (best && results.size() == 1 && candidate.name != best->name))
        continue;
      const Difference here = compareValues(*numbers, candidate.values);
      if (!best || here.nmse < difference.nmse) {
        best = &candidate;
        difference = here;
      }
    }
    if (!best || difference.nmse <= tolerance)
      continue;
    mismatch = ValueMismatch{op.getName().getStringRef().str(),
                             best->name,
                             layerOf(best->name),
                             difference,
                             {}};
    for (OpOperand &operand : op.getOpOperands())
      if (auto it = current.find(operand.get()); it != current.end())
        mismatch->inputs.emplace_back(operand.getOperandNumber(), it->second);
    return;
  }
}

} // namespace llamac
