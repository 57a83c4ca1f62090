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

#include <cstdint>
#include <cstdio>

namespace llamac {

struct BenchOptions {
  std::vector<int64_t> promptTokens = {512}; ///< Of each sequence.
  int64_t genTokens = 64;                    ///< Steps of one token after it.
  std::vector<int64_t> batch = {1};          ///< Sequences that run together.
  int64_t warmUps = 0;                       ///< Runs that are not counted.
  int64_t repeat = 1;                        ///< Runs whose median is given.
  bool kernels = false; ///< Times each kernel in place of the whole.
  /// Compares with the plan as compiled, without what was tuned.
  bool compareUntuned = false;
  bool json = false;
};

/// For every length of the prompt and every batch: runs prompts of made-up
/// tokens and then steps of one token of each sequence at that depth, after a
/// short warm-up. Steps choose their tokens, greedily, where the plan does, and
/// sample nothing elsewhere. A JSON object on a line of its own, or a table for
/// people, goes to `out`: tokens per second of both, the time of a step,
/// seconds to load and to the first token, threads, instruction set and the
/// process's peak memory. With `kernels`, the launches of prefill and of decode
/// are timed one by one instead: for each kernel the time, bytes and operations
/// a second, and their shares of what the device was measured to do at most, in
/// the same process. With `compareUntuned`, the plan with what was tuned and as
/// compiled run in turn, prompt by prompt and step by step, so that what slows
/// the machine for a while weighs on both: the median over turns of how many
/// times as fast the tuned one is, and the least difference from 1 that is more
/// than noise (1 %, or three standard errors). Usage error when the tokens
/// exceed the context, or the batch the plan's sequences.
absl::Status benchCommand(const std::shared_ptr<const Model> &model,
                          const BenchOptions &options, std::FILE *out);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TOOLS_BENCHCOMMAND_H
