//===- PerplexityCommand.h - Perplexity of a text ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_PERPLEXITYCOMMAND_H
#define LLAMAC_TOOLS_PERPLEXITYCOMMAND_H

#include "engine/step/Engine.h"

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

namespace llamac {

struct PerplexityOptions {
  std::string file; ///< A text, "-": of stdin.
  /// Tokens of a window; by default 512, or the context where that is less.
  std::optional<int64_t> window = {};
  bool json = false;
  bool quiet = false; ///< Whether progress is not shown.
};

struct PerplexityResult {
  double perplexity = 0;
  double error = 0;   ///< Standard error of the perplexity.
  int64_t scored = 0; ///< Tokens.
};

/// exp of the mean of -log p(token | those before it in its window) over
/// `tokens`. Windows overlap by half: each token but the first is scored once,
/// in the first window that holds it, so that past the first window it has at
/// least half a window before it. Where `bos` is not negative it begins every
/// window. `onWindow`, where it is given, takes the result so far after each
/// window. Usage error for fewer than two tokens or a window that is less than
/// 2 or more than the context.
absl::StatusOr<PerplexityResult> perplexity(
    Engine &engine, absl::Span<const int32_t> tokens, int64_t window,
    int32_t bos,
    const std::function<void(const PerplexityResult &)> &onWindow = nullptr);

/// Prints the perplexity of a text to `out`.
absl::Status perplexityCommand(const std::shared_ptr<const Model> &model,
                               const PerplexityOptions &options,
                               std::FILE *out);

} // namespace llamac

#endif // LLAMAC_TOOLS_PERPLEXITYCOMMAND_H
