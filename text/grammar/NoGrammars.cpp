//===- NoGrammars.cpp - Grammars where there is no XGrammar ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "text/grammar/Grammar.h"

namespace llamac {

static absl::Status notBuilt() {
  return unsupportedError("grammars: llamac was built without XGrammar; run "
                          "scripts/setup.sh build, then scripts/build.sh");
}

absl::Status parseGrammar(const GrammarSource &source, GrammarWork &work) {
  return notBuilt();
}

absl::StatusOr<std::unique_ptr<GrammarCompiler::Backend>>
newGrammarBackend(const Tokenizer &tokenizer, int64_t vocabSize,
                  absl::Span<const int32_t> stopIds,
                  const GrammarLimits &limits) {
  return notBuilt();
}

} // namespace llamac
