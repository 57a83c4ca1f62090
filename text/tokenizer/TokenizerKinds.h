//===- TokenizerKinds.h - The kinds of tokenizers ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function for each TokenizerKind, for loadTokenizer. The bytes `blob`
// views outlive the tokenizer.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_TOKENIZERKINDS_H
#define LLAMAC_TEXT_TOKENIZER_TOKENIZERKINDS_H

#include "text/tokenizer/Tokenizer.h"

namespace llamac {

absl::StatusOr<std::unique_ptr<Tokenizer>>
makeBytePairTokenizer(const TokenizerBlob &blob);

/// The tokenizer of ScoredPieces and of RankedPieces.
absl::StatusOr<std::unique_ptr<Tokenizer>>
makePiecesTokenizer(const TokenizerBlob &blob);

/// Error: the library does not accept the model.
absl::StatusOr<std::unique_ptr<Tokenizer>>
makeSentencePieceTokenizer(const TokenizerBlob &blob);

} // namespace llamac

#endif // LLAMAC_TEXT_TOKENIZER_TOKENIZERKINDS_H
