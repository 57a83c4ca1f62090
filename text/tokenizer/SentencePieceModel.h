//===- SentencePieceModel.h - The SentencePiece library ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A wall around the library: its header declares an absl::string_view of its
// own, which cannot be seen beside Abseil's. So neither this header nor its
// source includes anything of Abseil.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_SENTENCEPIECEMODEL_H
#define LLAMAC_TEXT_TOKENIZER_SENTENCEPIECEMODEL_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llamac {

class SentencePieceModel {
public:
  enum class PieceType { Normal, Control, Byte, Unknown, Unused };

  SentencePieceModel();
  SentencePieceModel(const SentencePieceModel &) = delete;
  SentencePieceModel &operator=(const SentencePieceModel &) = delete;
  ~SentencePieceModel();

  /// Loads the bytes of a tokenizer.model. The text of the error, or nothing.
  std::string load(std::string_view bytes);

  /// The rest needs a loaded model.
  uint32_t size() const;
  const std::string &piece(uint32_t id) const; ///< A space is U+2581.
  PieceType type(uint32_t id) const;
  float score(uint32_t id) const;
  int bosId() const; ///< -1 where there is none.
  int eosId() const;
  int unknownId() const;

  /// The ids of `text`. The text of the error, or nothing.
  std::string encode(std::string_view text, std::vector<int> &ids) const;
  /// Whether a space is put before every text.
  bool addsSpacePrefix() const;

private:
  struct Library;
  std::unique_ptr<Library> library;
};

} // namespace llamac

#endif // LLAMAC_TEXT_TOKENIZER_SENTENCEPIECEMODEL_H
