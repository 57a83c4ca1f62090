//===- TextStream.cpp - Text of an answer as it comes ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/TextStream.h"

#include <algorithm>
#include <utility>

namespace llamac {

TextStream::TextStream(std::vector<std::string> stopStrings)
    : stops(std::move(stopStrings)) {
  std::erase_if(stops, [](const std::string &stop) { return stop.empty(); });
}

size_t unfinishedCharacter(absl::string_view text) {
  const size_t most = std::min<size_t>(3, text.size());
  for (size_t count = 1; count <= most; ++count) {
    const auto byte = static_cast<unsigned char>(text[text.size() - count]);
    if ((byte & 0xc0) == 0x80)
      continue; // One of the bytes after the first.
    const size_t length = byte >= 0xf0   ? 4
                          : byte >= 0xe0 ? 3
                          : byte >= 0xc0 ? 2
                                         : 1;
    return length > count ? count : 0;
  }
  return 0;
}

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
  std::string certain = pending.substr(0, end);
  pending.erase(0, end);
  return certain;
}

std::string TextStream::finish() {
  return hasStopped ? "" : std::exchange(pending, "");
}

} // namespace llamac
