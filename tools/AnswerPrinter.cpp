//===- AnswerPrinter.cpp - Answers on a terminal or in a file -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/AnswerPrinter.h"

#include "runtime/base/Terminal.h"
#include "tools/AnswerOptions.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace llamac {

void useUtf8Locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

AnswerPrinter::AnswerPrinter(std::FILE *out)
    : out(out), isTerminal(isatty(fileno(out)) != 0) {
  const char *terminal = std::getenv("TERM");
  wraps = terminal && absl::string_view(terminal) != "dumb";
  if (isTerminal)
    useUtf8Locale();
}

absl::Status AnswerPrinter::write(absl::string_view text) {
  if (!isTerminal)
    return writeOutput(out, text);
  winsize size{};
  width = wraps && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  shown.clear();
  while (!text.empty()) {
    const size_t plain = std::min(text.find_first_of("\n\t"), text.size());
    const std::string characters = printable(text.substr(0, plain));
    for (size_t i = 0; i < characters.size();) {
      std::mbstate_t state{};
      wchar_t character = 0;
      size_t bytes = std::mbrtowc(&character, &characters[i],
                                  characters.size() - i, &state);
      if (bytes > characters.size() - i) // It is no character.
        bytes = 1;
      const int columns = wcwidth(character);
      put(absl::string_view(characters).substr(i, bytes),
          columns < 0 ? 1 : columns);
      i += bytes;
    }
    if (plain < text.size())
      put(text.substr(plain, 1), text[plain] == '\t' ? 8 - column % 8 : 0);
    text.remove_prefix(std::min(plain + 1, text.size()));
  }
  return writeOutput(out, shown);
}

void AnswerPrinter::put(absl::string_view character, size_t columns) {
  const auto endWord = [&] {
    word.clear();
    wordColumns = 0;
  };
  const bool fits = width == 0 || column + columns <= width;
  if (character == "\n" || character == "\t" || character == " ") {
    endWord();
    absl::StrAppend(&shown, fits ? character : "\n");
    column = fits && character != "\n" ? column + columns : 0;
    return;
  }
  if (!fits && word.empty()) {
    shown += '\n';
    column = 0;
  } else if (!fits && wordColumns == column) {
    endWord(); // Too long for any line: the terminal breaks it.
    column = 0;
  } else if (!fits) {
    absl::StrAppend(&shown, "\x1b[", column - wordColumns + 1, "G\x1b[K\n",
                    word);
    column = wordColumns;
  }
  absl::StrAppend(&shown, character);
  column += columns;
  // Between wide characters, as of Chinese, a line may end.
  if (columns > 1) {
    endWord();
  } else {
    absl::StrAppend(&word, character);
    wordColumns += columns;
  }
}

} // namespace llamac
