//===- StepArguments.cpp - The arguments of a step ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/StepArguments.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"

#include <iterator>
#include <memory>
#include <utility>

using namespace mlir;

namespace llamac::reference {

using llama::StepRole;

absl::Status checkRoles(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments())
    if (!llama::roleOf(argument))
      return internalError(absl::StrCat("@", step.getName().str(),
                                        ": argument ", argument.getArgNumber(),
                                        ": expected a llama.role, got none"));
  if (llvm::none_of(step.getArgumentTypes(), llvm::IsaPred<llama::KVType>))
    return internalError(absl::StrCat("@", step.getName().str(),
                                      ": expected a cache as an argument"));
  return absl::OkStatus();
}

std::vector<ValuePtr> emptyCaches(func::FuncOp step) {
  std::vector<ValuePtr> caches;
  for (Type type : step.getArgumentTypes())
    if (auto kv = dyn_cast<llama::KVType>(type))
      caches.push_back(
          std::make_shared<Value>(KvState(kv.getHeads(), kv.getSize())));
  return caches;
}

std::vector<ValuePtr> cachesOf(absl::Span<const ValuePtr> results) {
  std::vector<ValuePtr> caches;
  llvm::copy_if(results, std::back_inserter(caches), [](const ValuePtr &value) {
    return std::holds_alternative<KvState>(*value);
  });
  return caches;
}

static absl::Span<const int32_t> indicesOf(StepRole role,
                                           const StepInputs &inputs) {
  switch (role) {
  case StepRole::Tokens:
    return inputs.tokens;
  case StepRole::Positions:
    return inputs.positions;
  case StepRole::Sequences:
    return inputs.sequences;
  case StepRole::LogitsRows:
    return inputs.logitsRows;
  case StepRole::KV:
  case StepRole::SamplingParams:
  case StepRole::Rank:
  case StepRole::Features:
  case StepRole::HeadState:
    break;
  }
  llvm_unreachable("not indices");
}

std::vector<ValuePtr> stepArguments(func::FuncOp step, const StepInputs &inputs,
                                    std::vector<ValuePtr> caches,
                                    int64_t rank) {
  std::vector<ValuePtr> arguments;
  for (BlockArgument argument : step.getArguments()) {
    const llama::StepRoleAttr role = llama::roleOf(argument);
    if (const auto layer = role.getLayer()) {
      arguments.push_back(std::move(caches[*layer]));
      continue;
    }
    if (auto matrix = dyn_cast<RankedTensorType>(argument.getType());
        matrix.getElementType().isF32()) {
      arguments.push_back(std::make_shared<Value>(
          Tensor({std::ssize(inputs.tokens), matrix.getDimSize(1)})));
      continue;
    }
    Indices values(inputs.tokens.size() * samplingParamWords);
    if (role.getValue() == StepRole::Rank) {
      values = {static_cast<int32_t>(rank)};
    } else if (role.getValue() != StepRole::SamplingParams) {
      const absl::Span<const int32_t> indices =
          indicesOf(role.getValue(), inputs);
      values.assign(indices.begin(), indices.end());
    }
    arguments.push_back(std::make_shared<Value>(std::move(values)));
  }
  return arguments;
}

} // namespace llamac::reference
