//===- ByteTokens.cpp - How vocabularies spell bytes ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteTokens.h"

#include "text/tokenizer/CharClasses.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace llamac {

std::optional<std::string> pieceBytes(absl::string_view piece, TokenType type) {
  if (type != TokenType::Byte)
    return absl::StrReplaceAll(piece, {{"\xE2\x96\x81", " "}});
  uint32_t byte = 0;
  if (piece.size() != 6 || !absl::SimpleHexAtoi(piece.substr(3, 2), &byte) ||
      piece != absl::StrFormat("<0x%02X>", byte))
    return std::nullopt;
  return std::string(1, static_cast<char>(byte));
}

std::string pieceText(absl::string_view bytes, TokenType type) {
  return type == TokenType::Byte
             ? absl::StrFormat("<0x%02X>", static_cast<uint8_t>(bytes[0]))
             : absl::StrReplaceAll(bytes, {{" ", "\xE2\x96\x81"}});
}

ByteLevelSpelling::ByteLevelSpelling() {
  uint32_t next = firstOther;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) ||
                           (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    charOf[byte] = printable ? byte : next++;
    byteOf[charOf[byte]] = static_cast<uint8_t>(byte);
  }
}

std::string ByteLevelSpelling::spell(absl::string_view bytes) const {
  std::string out;
  for (char byte : bytes)
    appendUtf8(out, charOf[static_cast<uint8_t>(byte)]);
  return out;
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
