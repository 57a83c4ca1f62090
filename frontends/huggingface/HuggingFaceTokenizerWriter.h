//===- HuggingFaceTokenizerWriter.h - tokenizer.json ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#ifndef LLAMAC_FRONTENDS_HUGGINGFACE_HUGGINGFACETOKENIZERWRITER_H
#define LLAMAC_FRONTENDS_HUGGINGFACE_HUGGINGFACETOKENIZERWRITER_H

#include "runtime/base/Status.h"

#include <string>

namespace llamac {

class GgufReader;

/// Writes the byte-level vocabulary in the metadata of `reader` as
/// tokenizer.json and tokenizer_config.json into `directory`; they read back
/// as the same tokenizer. Errors: what buildGgufBlob finds wrong with it;
/// unsupported for a vocabulary of another kind than "gpt2".
absl::Status writeHuggingFaceTokenizer(const GgufReader &reader,
                                       const std::string &directory);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_HUGGINGFACE_HUGGINGFACETOKENIZERWRITER_H
