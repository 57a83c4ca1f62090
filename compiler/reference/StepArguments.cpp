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

#include <memory>
#include <utility>

using namespace mlir;

namespace llamac::reference {

using llama::StepRole;

absl::StatusOr<std::vector<StepRole>> stepRoles(func::FuncOp step) {
  std::vector<StepRole> roles;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    const auto role = llama::roleOf(step, i);
    if (!role)
      return internalError(absl::StrCat("@", step.getName().str(),
                                        ": argument ", i,
                                        ": expected a llama.role, got none"));
    roles.push_back(*role);
  }
  if (!llvm::is_contained(roles, StepRole::KV))
    return internalError(absl::StrCat("@", step.getName().str(),
                                      ": expected the cache as an argument"));
  return roles;
}

llama::KVType cacheOf(func::FuncOp step) {
  return cast<llama::KVType>(
      *llvm::find_if(step.getArgumentTypes(), llvm::IsaPred<llama::KVType>));
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
    break;
  }
  llvm_unreachable("not indices");
}

std::vector<ValuePtr> stepArguments(const std::vector<StepRole> &roles,
                                    const StepInputs &inputs, ValuePtr cache) {
  std::vector<ValuePtr> arguments;
  for (const StepRole role : roles) {
    if (role == StepRole::KV) {
      arguments.push_back(std::move(cache));
      continue;
    }
    Indices values(inputs.tokens.size() * samplingParamWords);
    if (role != StepRole::SamplingParams) {
      const absl::Span<const int32_t> indices = indicesOf(role, inputs);
      values.assign(indices.begin(), indices.end());
    }
    arguments.push_back(std::make_shared<Value>(std::move(values)));
  }
  return arguments;
}

} // namespace llamac::reference
