//===- ByteTokens.h - How vocabularies spell bytes --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_BYTETOKENS_H
#define LLAMAC_FRONTENDS_BYTETOKENS_H

#include "text/tokenizer/TokenizerBlob.h"

#include "absl/strings/string_view.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace llamac {

/// The bytes of SentencePiece's `piece`, which has U+2581 for a space; those of
/// a byte token are exactly "<0x", two upper-case hexadecimal digits and ">".
std::optional<std::string> pieceBytes(absl::string_view piece, TokenType type);

/// The piece that pieceBytes() takes for `bytes`.
std::string pieceText(absl::string_view bytes, TokenType type);

/// GPT-2's spelling of bytes as printable characters: '!' to '~', U+00A1 to
/// U+00AC and U+00AE to U+00FF stand for the byte of their number; the other
/// bytes, in order, are U+0100 and up.
class ByteLevelSpelling {
public:
  ByteLevelSpelling();

  /// The bytes `spelling` stands for; nothing when some character of it
  /// stands for no byte.
  std::optional<std::string> bytes(absl::string_view spelling) const;

  std::string spell(absl::string_view bytes) const;

private:
  static constexpr uint32_t firstOther = 0x100;
  static constexpr uint32_t numOthers = 68;

  std::array<std::optional<uint8_t>, firstOther + numOthers> byteOf;
  std::array<uint32_t, 256> charOf; ///< Code points.
};

} // namespace llamac

#endif // LLAMAC_FRONTENDS_BYTETOKENS_H
