//===- BenchCommand.h - Measures prefill and decode -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_BENCHCOMMAND_H
#define LLAMAC_TOOLS_BENCHCOMMAND_H

#include "engine/scheduler/Scheduler.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

struct BenchOptions {
  std::vector<int64_t> promptTokens = {512}; ///< Tokens of a sequence's prompt.
  int64_t genTokens = 64;                    ///< Steps of one token after it.
  std::vector<int64_t> batch = {1};          ///< Sequences that run together.
  int64_t warmUps = 0;                       ///< Runs that are not counted.
  int64_t repeat = 1;                        ///< Runs whose median is given.
  bool kernels = false; ///< Times each kernel in place of the whole.
  /// Compares with the plan as compiled, without what was tuned.
  bool compareUntuned = false;
  bool json = false;

  // Requests that come and go, in place of a fixed batch (ServingBench.h).
  int64_t requests = 0;     ///< 0: none.
  double rate = 0;          ///< Requests a second; 0: all come at once.
  std::string trace = {};   ///< A file of requests; empty: none.
  int64_t sharedPrefix = 0; ///< Tokens that all prompts begin with.
  int64_t longPrompt = 0;   ///< Tokens of a prompt beside streams; 0: none.
  int speculative = -2;     ///< Request::speculative of each request.
  SchedulerOptions scheduler = {};
};

/// Has a model loaded for the largest batch, whose sequences share pages where
/// requests come and go.
void loadFor(const BenchOptions &options, ModelOptions &loading);

/// For every prompt length and batch size: prefills fixed tokens, then decodes
/// one token of each sequence a step, after a short warm-up. Steps sample
/// greedily where the plan samples, else not at all. Prints a line of JSON or a
/// table: tokens per second of both, step time, load time, time to first token
/// (TTFT), threads, instruction set and peak memory.
///
/// With `kernels`, launches are timed one by one: time, bytes and operations a
/// second of each kernel, and their shares of the device's measured limits.
/// With `compareUntuned`, the tuned and the compiled plan run in turn, prompt
/// by prompt and step by step: the median speedup over turns and its noise (1
/// %, or three standard errors). Usage error when the tokens exceed the
/// context, or the batch the sequences that the model was loaded for.
///
/// Requests that come and go are servingBench()'s. Drafts are theirs alone: of
/// fixed tokens none would be right.
absl::Status benchCommand(const std::shared_ptr<const Model> &model,
                          const BenchOptions &options, std::FILE *out);

} // namespace llamac

#endif // LLAMAC_TOOLS_BENCHCOMMAND_H
