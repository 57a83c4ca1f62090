//===- ServingBench.h - Measures requests that come and go ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_SERVINGBENCH_H
#define LLAMAC_TOOLS_SERVINGBENCH_H

#include "tools/BenchCommand.h"

namespace llamac {

/// Whether `options` ask for requests that come and go, not for a fixed batch.
bool isServing(const BenchOptions &options);

/// Usage error where a prompt, and the `steps` of one token that follow it to
/// give an answer, are more tokens than `context`.
absl::Status checkFits(int64_t promptTokens, int64_t answerTokens,
                       int64_t steps, int64_t context);

/// Usage error for options of requests that do not go together, or a trace or
/// numbers that `model` cannot run.
absl::Status checkServing(const BenchOptions &options, const Model &model);

/// Runs requests of random tokens through a scheduler, greedily and past stop
/// tokens, for every batch size in turn: as many run at once, and others wait.
///
/// Requests come by a trace, or `requests` of them at `rate` a second with
/// exponential gaps (Poisson arrivals) by a fixed seed. Prints output tokens a
/// second; the median and 99th percentile of the time to first token (TTFT),
/// from the arrival on, and of the time between two tokens of an answer, which
/// those of one step share evenly; the share of the steps' time that is not
/// spent in kernels; and the drafts, with the tokens that a step brings an
/// answer.
///
/// With a long prompt: as many streams as the batch decode, and the time
/// between their tokens is compared with that while such a prompt comes in.
absl::Status servingBench(const std::shared_ptr<const Model> &model,
                          const BenchOptions &options, std::FILE *out);

} // namespace llamac

#endif // LLAMAC_TOOLS_SERVINGBENCH_H
