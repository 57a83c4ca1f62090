//===- SentencePieceTraining.h - Trains small models ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Free of Abseil, whose string_view the library's headers do not go with.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_FRONTENDS_TOKENIZER_SENTENCEPIECETRAINING_H
#define LLAMAC_TESTS_FRONTENDS_TOKENIZER_SENTENCEPIECETRAINING_H

#include <string>
#include <vector>

namespace llamac::test {

/// The bytes of a model as Llama 2's: byte-pair encoding with byte fall-back,
/// no normalisation, a space before the text.
std::string trainSentencePiece(const std::vector<std::string> &sentences,
                               int vocabSize);

/// The library's own account of a model.
struct SentencePiecePieces {
  std::vector<std::string> texts;
  std::vector<float> scores;
};
SentencePiecePieces sentencePiecePieces(const std::string &model);

std::vector<int> sentencePieceEncode(const std::string &model,
                                     const std::string &text);
std::string sentencePieceDecode(const std::string &model,
                                const std::vector<int> &ids);

} // namespace llamac::test

#endif // LLAMAC_TESTS_FRONTENDS_TOKENIZER_SENTENCEPIECETRAINING_H
