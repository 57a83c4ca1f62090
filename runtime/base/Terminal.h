//===- Terminal.h - Text that is safe to show -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_TERMINAL_H
#define LLAMAC_RUNTIME_BASE_TERMINAL_H

#include "absl/strings/string_view.h"

#include <cstdio>
#include <string>

namespace llamac {

/// `text` with every control character, and every byte that is not UTF-8, as
/// "\x1b": a name out of a file must not move the cursor or retitle the window.
std::string printable(absl::string_view text);

/// `text` in quotes for a message: at most 80 bytes, all but printable ASCII
/// escaped.
std::string quoteForMessage(absl::string_view text);

/// Prints lines, each of them printable().
void printText(std::FILE *out, absl::string_view lines);

/// Prints "warning: text" to stderr, as one line.
void printWarning(absl::string_view text);

/// First in main: closed standard streams become ones that cannot be written,
/// so that no file opened later gets their number and their output.
void claimStandardStreams();

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_TERMINAL_H
