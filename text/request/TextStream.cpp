//===- TextStream.cpp - Text of an answer as it comes ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/TextStream.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace llamac {

TextStream::TextStream(std::vector<std::string> stopStrings)
    : stops(std::move(stopStrings)) {
  std::erase_if(stops, [](const std::string &stop) { return stop.empty(); });
}

//===----------------------------------------------------------------------===//
// UTF-8
//===----------------------------------------------------------------------===//

namespace {

/// The first character of a text: whole, cut off by its end, or no UTF-8.
struct Character {
  enum Kind { Whole, Cut, Broken } kind;
  size_t size; ///< Bytes, of a cut or broken one those before its fault.
};

} // namespace

/// The character that `text`, which is not empty, begins with: by table 3-7 of
/// the Unicode standard, which leaves out overlong forms, surrogates and what
/// is above U+10FFFF.
static Character firstCharacter(absl::string_view text) {
  const auto first = static_cast<uint8_t>(text.front());
  const size_t size = first < 0x80                    ? 1
                      : first >= 0xc2 && first < 0xe0 ? 2
                      : first >= 0xe0 && first < 0xf0 ? 3
                      : first >= 0xf0 && first < 0xf5 ? 4
                                                      : 0;
  if (size == 0)
    return {Character::Broken, 1};
  uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size())
      return {Character::Cut, i};
    const auto next = static_cast<uint8_t>(text[i]);
    if (next < low || next > high)
      return {Character::Broken, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Character::Whole, size};
}

size_t unfinishedCharacter(absl::string_view text) {
  const size_t most = std::min<size_t>(3, text.size());
  for (size_t count = 1; count <= most; ++count) {
    const Character last = firstCharacter(text.substr(text.size() - count));
    if (last.kind == Character::Cut)
      return count;
  }
  return 0;
}

std::string toUtf8(absl::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Character next = firstCharacter(bytes);
    if (next.kind == Character::Whole)
      text.append(bytes.data(), next.size);
    else
      text += "\xef\xbf\xbd";
    bytes.remove_prefix(next.size);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// The stream
//===----------------------------------------------------------------------===//

// Bytes at the end of what is pending that are not certain yet.
size_t TextStream::heldBack() const {
  const absl::string_view text = pending;
  size_t held = unfinishedCharacter(text);
  for (const std::string &stop : stops)
    for (size_t size = std::min(stop.size() - 1, text.size()); size > held;
         --size)
      if (text.substr(text.size() - size) ==
          absl::string_view(stop).substr(0, size))
        held = size;
  return held;
}

std::string TextStream::add(absl::string_view bytes) {
  if (hasStopped)
    return "";
  pending.append(bytes.data(), bytes.size());
  size_t end = std::string::npos;
  for (const std::string &stop : stops)
    end = std::min(end, pending.find(stop));
  hasStopped = end != std::string::npos;
  if (!hasStopped)
    end = pending.size() - heldBack();
  return give(end);
}

/// The first `size` bytes of what is pending.
std::string TextStream::give(size_t size) {
  std::string text = toUtf8(absl::string_view(pending).substr(0, size));
  pending.erase(0, size);
  given += size;
  return text;
}

std::string TextStream::finish() {
  return hasStopped ? "" : give(pending.size() - unfinishedCharacter(pending));
}

} // namespace llamac
