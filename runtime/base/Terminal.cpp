//===- Terminal.cpp - Text that is safe to show ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Terminal.h"

#include "runtime/base/Status.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include <fcntl.h>
#include <unistd.h>

namespace llamac {

/// Bytes of the character that begins with `lead`; 0 when none does.
static size_t lengthAfter(uint8_t lead) {
  return lead < 0x80    ? 1
         : lead < 0xc2  ? 0
         : lead < 0xe0  ? 2
         : lead < 0xf0  ? 3
         : lead <= 0xf4 ? 4
                        : 0;
}

/// Bytes of the character that `text` begins with, when that may be shown: no
/// control character (U+0000 to U+001F, U+007F to U+009F).
static size_t shownBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const size_t length = lengthAfter(byte(0));
  if (length > text.size() || byte(0) < 0x20 || byte(0) == 0x7f ||
      (byte(0) == 0xc2 && length == 2 && byte(1) < 0xa0))
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  return length;
}

std::string printable(absl::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t length = shownBytes(text);
    if (length == 0)
      absl::StrAppendFormat(&shown, "\\x%02x", static_cast<uint8_t>(text[0]));
    shown.append(text.data(), length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return shown;
}

std::string quoteForMessage(absl::string_view text) {
  constexpr size_t limit = 80;
  if (text.size() <= limit)
    return absl::StrCat("\"", absl::CHexEscape(text), "\"");
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, limit)), "\"... (",
                      text.size(), " bytes)");
}

void printText(std::FILE *out, absl::string_view lines) {
  const std::string shown = absl::StrJoin(
      absl::StrSplit(lines, '\n'), "\n",
      [](std::string *to, absl::string_view line) { *to += printable(line); });
  std::fwrite(shown.data(), 1, shown.size(), out);
}

void printWarning(absl::string_view text) {
  absl::FPrintF(stderr, "warning: %s\n",
                printable(absl::StrReplaceAll(text, {{"\n", " "}})));
}

void claimStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // Gets the lowest number that is free.
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != stream)
      _exit(static_cast<int>(ExitCode::Memory));
}

} // namespace llamac
