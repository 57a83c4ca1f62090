//===- Suggestion.h - The name that a wrong one may mean --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_SUGGESTION_H
#define LLAMAC_RUNTIME_BASE_SUGGESTION_H

#include "absl/strings/string_view.h"

#include <string>
#include <vector>

namespace llamac {

/// "; did you mean X?" for the one of `names` that is meant by `given`; empty
/// where none is like it.
std::string suggestion(absl::string_view given,
                       const std::vector<std::string> &names);

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_SUGGESTION_H
