//===- Format.h - Python's two ways to format text ------------ -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_FORMAT_H
#define LLAMAC_TEXT_TEMPLATES_FORMAT_H

#include "text/templates/Interpreter.h"

namespace llamac::chat {

/// format % value.
absl::StatusOr<Value> formatPercent(Interpreter &interpreter,
                                    const Value &format, const Value &value);

/// format.format(arguments).
absl::StatusOr<Value> formatBraces(Interpreter &interpreter,
                                   const Value &format,
                                   const CallArguments &arguments);

/// `text` with &, <, >, ' and " as HTML has them.
std::string escapeHtml(absl::string_view text);

/// A float with `precision` digits in the form 'f', 'e' or 'g' of printf.
std::string printFloat(double value, char form, int precision,
                       bool alternate = false);

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_FORMAT_H
