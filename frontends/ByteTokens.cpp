//===- ByteTokens.cpp - How vocabularies spell bytes ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteTokens.h"

#include "runtime/engine/tokenizer/CharClasses.h"

namespace llamac {

static std::optional<uint8_t> hexDigit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return std::nullopt;
}

std::optional<uint8_t> parseByteToken(absl::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>')
    return std::nullopt;
  const std::optional<uint8_t> high = hexDigit(text[3]);
  const std::optional<uint8_t> low = hexDigit(text[4]);
  if (!high || !low)
    return std::nullopt;
  return static_cast<uint8_t>(*high << 4 | *low);
}

ByteLevelSpelling::ByteLevelSpelling() {
  uint32_t next = firstOther;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) ||
                           (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    byteOf[printable ? byte : next++] = static_cast<uint8_t>(byte);
  }
}

std::optional<std::string>
ByteLevelSpelling::bytes(absl::string_view spelling) const {
  std::string out;
  for (size_t at = 0; at < spelling.size();) {
    const DecodedChar decoded = decodeChar(spelling, at);
    if (decoded.codepoint >= byteOf.size())
      return std::nullopt;
    const std::optional<uint8_t> byte = byteOf[decoded.codepoint];
    if (!byte)
      return std::nullopt;
    out.push_back(static_cast<char>(*byte));
    at += decoded.length;
  }
  return out;
}

} // namespace llamac
