//===- TextStream.h - Text of an answer as it comes -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_TEXTSTREAM_H
#define LLAMAC_TEXT_REQUEST_TEXTSTREAM_H

#include "absl/strings/string_view.h"

#include <cstddef>
#include <string>
#include <vector>

namespace llamac {

/// Bytes at the end of `text` that begin a UTF-8 character without ending it.
size_t unfinishedCharacter(absl::string_view text);

/// `bytes` as UTF-8: U+FFFD stands for each sequence that is none, as Python's
/// and browsers' decoders have it (Unicode, 3.9: maximal subparts).
std::string toUtf8(absl::string_view bytes);

/// Takes the bytes of an answer piece by piece and gives them on as UTF-8, as
/// soon as it is certain that they belong to it: not inside a character, and
/// not in what may become a stop string.
class TextStream {
public:
  /// Empty stop strings are passed over.
  explicit TextStream(std::vector<std::string> stopStrings);

  /// Adds bytes and gives the text that is certain. Once stopped() there is
  /// no more.
  std::string add(absl::string_view bytes);

  /// Gives what was held back: the answer ends here. A character that this
  /// cuts is left out.
  std::string finish();

  /// The bytes that the text so far was made of.
  size_t bytesGiven() const { return given; }

  /// Whether a stop string has come; the text before it has been given.
  bool stopped() const { return hasStopped; }

private:
  size_t heldBack() const;
  std::string give(size_t size);

  std::vector<std::string> stops;
  std::string pending;
  size_t given = 0;
  bool hasStopped = false;
};

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_TEXTSTREAM_H
