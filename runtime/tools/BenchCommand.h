//===- BenchCommand.h - Measures prefill and decode -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TOOLS_BENCHCOMMAND_H
#define LLAMAC_RUNTIME_TOOLS_BENCHCOMMAND_H

#include "runtime/engine/Engine.h"

#include <cstdio>

namespace llamac {

struct BenchOptions {
  int64_t promptTokens = 512; ///< Tokens of the prompt.
  int64_t genTokens = 64;     ///< Steps of one token after it.
  bool json = false;
};

/// Runs a prompt of made-up tokens and then single steps at that depth, after
/// a short warm-up: of made-up tokens and without sampling, or, where the plan
/// chooses tokens, of the likeliest, in flight as in use. One JSON object, or a
/// table for people, goes to `out`: tokens per second of both, seconds to load
/// and to the first token, threads, instruction set and the process's peak
/// memory. Usage error when the tokens exceed the context.
absl::Status benchCommand(const std::shared_ptr<const Model> &model,
                          const BenchOptions &options, std::FILE *out);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TOOLS_BENCHCOMMAND_H
