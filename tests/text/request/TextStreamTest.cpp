//===- TextStreamTest.cpp - Text of an answer as it comes -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/TextStream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace llamac {
namespace {

TEST(TextStreamTest, TextWithoutStopsComesAtOnce) {
  TextStream stream({});
  EXPECT_EQ(stream.add("hel"), "hel");
  EXPECT_EQ(stream.add("lo"), "lo");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStreamTest, CharactersComeWhole) {
  TextStream stream({});
  EXPECT_EQ(stream.add("a\xe2"), "a");
  EXPECT_EQ(stream.add("\x82"), "");
  EXPECT_EQ(stream.add("\xac"), "\xe2\x82\xac");
  EXPECT_EQ(stream.add("\xf0\x9f\x99"), "");
  EXPECT_EQ(stream.add("\x82\xc3"), "\xf0\x9f\x99\x82");
  EXPECT_EQ(stream.bytesGiven(), 8u);
}

TEST(TextStreamTest, ACharacterThatTheEndCutsIsLeftOut) {
  for (const char *cut : {"\xc3", "\xe2\x82", "\xf0\x9f", "\xf0\x9f\x99"}) {
    TextStream stream({"stop"});
    EXPECT_EQ(stream.add(std::string("a sto") + cut), "a sto");
    EXPECT_EQ(stream.finish(), "");
    EXPECT_EQ(stream.bytesGiven(), 5u);
  }
  TextStream stream({"\xe2\x82\xac!"});
  EXPECT_EQ(stream.add("a\xe2\x82\xac"), "a");
  EXPECT_EQ(stream.finish(), "\xe2\x82\xac");
}

// Python's bytes.decode(errors="replace") replaces them in the same way.
TEST(TextStreamTest, BytesThatAreNoUtf8AreReplaced) {
  const std::string sign = "\xef\xbf\xbd";
  TextStream stream({"stop"});
  EXPECT_EQ(stream.add("\x80\x80"), sign + sign);
  EXPECT_EQ(stream.add("\xff"), sign);
  EXPECT_EQ(stream.add("\xf0\x9f"), "");
  EXPECT_EQ(stream.add("a"), sign + "a");
  EXPECT_EQ(stream.add("\xed\xa0\x80\xe0\x9f\xf4\x90\xc0"),
            sign + sign + sign + sign + sign + sign + sign + sign);
  EXPECT_EQ(stream.bytesGiven(), 14u);
  EXPECT_EQ(stream.add("\xf0\x9f"), "");
  EXPECT_EQ(stream.add("stop"), sign);
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStreamTest, StopsInsideAPiece) {
  TextStream stream({"END"});
  EXPECT_EQ(stream.add("abENDcd"), "ab");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.add("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStreamTest, WhatMayBecomeAStopIsHeldBack) {
  TextStream stream({"\n\nUser:"});
  EXPECT_EQ(stream.add("yes.\n"), "yes.");
  EXPECT_EQ(stream.add("\nUs"), "");
  EXPECT_EQ(stream.add("ing"), "\n\nUsing");
  EXPECT_EQ(stream.add("\n\nUser"), "");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.add(":"), "");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStreamTest, HeldBackTextComesAtTheEnd) {
  TextStream stream({"stop"});
  EXPECT_EQ(stream.add("a sto"), "a ");
  EXPECT_EQ(stream.finish(), "sto");
}

TEST(TextStreamTest, TheEarliestOfSeveralStopsEndsIt) {
  TextStream stream({"cde", "b", ""});
  EXPECT_EQ(stream.add("abcde"), "a");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStreamTest, AStopThatRepeatsItselfIsNotMissed) {
  TextStream stream({"aab"});
  EXPECT_EQ(stream.add("a"), "");
  EXPECT_EQ(stream.add("a"), "");
  EXPECT_EQ(stream.add("a"), "a");
  EXPECT_EQ(stream.add("b"), "");
  EXPECT_TRUE(stream.stopped());
}

// Whatever the pieces, the text is the one up to the first stop.
TEST(TextStreamTest, PiecesMakeNoDifference) {
  std::mt19937 random(11);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    while (text.size() < 30)
      text += (random() % 8 == 0)
                  ? std::string("\xe2\x82\xac")
                  : std::string(1, static_cast<char>('a' + random() % 3));
    const std::vector<std::string> stops = {"abca", "cc\xe2\x82\xac", "bab"};
    size_t end = std::string::npos;
    for (const std::string &stop : stops)
      end = std::min(end, text.find(stop));
    TextStream stream(stops);
    std::string out;
    for (size_t at = 0; at < text.size() && !stream.stopped();) {
      const size_t size = 1 + random() % 5;
      out += stream.add(text.substr(at, size));
      at += size;
    }
    out += stream.finish();
    EXPECT_EQ(stream.stopped(), end != std::string::npos);
    EXPECT_EQ(out, text.substr(0, end));
  }
}

} // namespace
} // namespace llamac
