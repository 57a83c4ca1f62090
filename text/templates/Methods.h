//===- Methods.h - What methods share ------------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_METHODS_H
#define LLAMAC_TEXT_TEMPLATES_METHODS_H

#include "text/templates/Interpreter.h"

namespace llamac::chat::method {

/// From `least` to `most` arguments without names; those left out are Missing.
absl::StatusOr<std::vector<Value>> positional(const CallArguments &args,
                                              size_t least, size_t most);

/// The error for an argument that is not what was `expected`.
absl::Status wrongArgument(absl::string_view expected, const Value &got);

/// An argument that is an integer, or `otherwise` when it was left out.
absl::StatusOr<int64_t> integer(const Value &value, int64_t otherwise);

/// The methods of texts.
absl::Span<const Function> textMethods();

} // namespace llamac::chat::method

#endif // LLAMAC_TEXT_TEMPLATES_METHODS_H
