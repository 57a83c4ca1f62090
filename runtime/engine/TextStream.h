//===- TextStream.h - Text of an answer as it comes -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_TEXTSTREAM_H
#define LLAMAC_RUNTIME_ENGINE_TEXTSTREAM_H

#include "absl/strings/string_view.h"

#include <cstddef>
#include <string>
#include <vector>

namespace llamac {

/// Bytes at the end of `text` that begin a UTF-8 character without ending it.
size_t unfinishedCharacter(absl::string_view text);

/// Takes the bytes of an answer piece by piece and gives them on as soon as it
/// is certain that they belong to it: not inside a UTF-8 character, and not in
/// what may become a stop string.
class TextStream {
public:
  /// Empty stop strings are passed over.
  explicit TextStream(std::vector<std::string> stopStrings);

  /// Adds bytes and gives the text that is certain. Once stopped() there is
  /// no more.
  std::string add(absl::string_view bytes);

  /// Gives what was held back: the answer ends here.
  std::string finish();

  /// Whether a stop string has come; the text before it has been given.
  bool stopped() const { return hasStopped; }

private:
  size_t heldBack() const;

  std::vector<std::string> stops;
  std::string pending;
  bool hasStopped = false;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_TEXTSTREAM_H
