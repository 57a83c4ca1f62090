//===- Scopes.h - Variables of a template --------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_SCOPES_H
#define LLAMAC_TEXT_TEMPLATES_SCOPES_H

#include "text/templates/Ast.h"

namespace llamac::chat {

/// Gives every name of `program` its variable, and every scope what is loaded
/// where it is entered. Errors: syntaxError()s, for unknown filters and tests
/// that do not stand below an `if`, and for assignments to `loop`.
absl::Status resolveScopes(Program &program);

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_SCOPES_H
