//===- TerminalTest.cpp - Text that is safe to show -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Terminal.h"

#include <gtest/gtest.h>

namespace llamac {
namespace {

TEST(Printable, EscapesWhatCommandsATerminal) {
  const std::pair<std::string, std::string> cases[] = {
      {"plain text", "plain text"},
      {"caf\u00e9 \u65e5\u672c \U0001f642",
       "caf\u00e9 \u65e5\u672c \U0001f642"},
      {"\x1b[2Jgone", "\\x1b[2Jgone"},
      {"a\rb\nc\td\x7f", "a\\x0db\\x0ac\\x09d\\x7f"},
      {std::string("a\0b", 3), "a\\x00b"},
      {"\u009b2J", "\\xc2\\x9b2J"}, // CSI as one character.
      {"\x9b"
       "2J",
       "\\x9b2J"},                // And as one byte.
      {"\xe2\x82", "\\xe2\\x82"}, // Cut off.
      {"\xff\xc0\x80", "\\xff\\xc0\\x80"}};
  for (const auto &[text, shown] : cases)
    EXPECT_EQ(printable(text), shown);
}

TEST(Printable, LinesStayLines) {
  std::FILE *file = std::tmpfile();
  printText(file, "one\x1b\ntwo\n");
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  EXPECT_EQ(text, "one\\x1b\ntwo\n");
}

} // namespace
} // namespace llamac
