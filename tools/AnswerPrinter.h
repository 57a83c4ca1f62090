//===- AnswerPrinter.h - Answers on a terminal or in a file -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_ANSWERPRINTER_H
#define LLAMAC_TOOLS_ANSWERPRINTER_H

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <cstdio>
#include <string>

namespace llamac {

/// Has characters be of UTF-8, whatever the environment says.
void useUtf8Locale();

/// Prints answers as they come: their bytes to a file or pipe; to a terminal
/// their words, without control characters and wrapped at its width.
class AnswerPrinter {
public:
  explicit AnswerPrinter(std::FILE *out);

  /// Prints the next part of an answer, which begins on a line of its own.
  /// Memory error where it cannot.
  absl::Status write(absl::string_view text);

private:
  void put(absl::string_view character, size_t columns);

  std::FILE *out;
  bool isTerminal;
  bool wraps;        ///< Whether the terminal can move its cursor.
  size_t width = 0;  ///< The terminal's; 0: unknown.
  std::string shown; ///< Text that is to be printed.
  size_t column = 0; ///< The cursor's.
  /// The last word, as far as it has come: where it does not fit in the line,
  /// it is moved to the next one.
  std::string word;
  size_t wordColumns = 0;
};

} // namespace llamac

#endif // LLAMAC_TOOLS_ANSWERPRINTER_H
