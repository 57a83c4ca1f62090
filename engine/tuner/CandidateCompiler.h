//===- CandidateCompiler.h - Compiles what may be tried ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads of the host compile candidates in the order that they are asked for,
// while the caller measures others, or waits for them.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_TUNER_CANDIDATECOMPILER_H
#define LLAMAC_ENGINE_TUNER_CANDIDATECOMPILER_H

#include "engine/tuner/Tuner.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace llamac {

/// A candidate of kernel number `kernel` of the plan, for program `program`.
struct CompileJob {
  size_t program;
  size_t kernel;
  Candidate *candidate;
};

class CandidateCompiler {
public:
  /// With at most `threads` threads. All that it is given outlives it.
  CandidateCompiler(const Model &model, const VariantCompiler *compiler,
                    int threads)
      : model(model), compiler(compiler), threads(threads) {}
  CandidateCompiler(const CandidateCompiler &) = delete;
  CandidateCompiler &operator=(const CandidateCompiler &) = delete;
  ~CandidateCompiler();

  /// The candidates are the compiler's until finish() of their programs.
  void add(absl::Span<const CompileJob> more);

  /// Returns once the candidates of `program` are compiled, or rejected for
  /// what their compiler said; those that have not begun when `isOver` are
  /// rejected for that.
  void finish(size_t program, absl::FunctionRef<bool()> isOver);

private:
  void work();
  absl::Status compile(const CompileJob &job, KernelConfig &config) const;

  const Model &model;
  const VariantCompiler *compiler;
  int threads;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<CompileJob> jobs;      ///< That have not begun.
  std::map<size_t, size_t> running; ///< By program.
  bool isClosed = false;
  std::vector<std::thread> team;
};

/// Why a candidate was rejected that nobody looked at.
inline constexpr const char *outOfTime = "not tried: no time was left";

} // namespace llamac

#endif // LLAMAC_ENGINE_TUNER_CANDIDATECOMPILER_H
