//===- Parallel.h - Loops over all cores ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_PARALLEL_H
#define LLAMAC_COMPILER_REFERENCE_PARALLEL_H

#include "runtime/threads/ThreadPool.h"

#include "absl/status/status.h"

#include <cstdint>
#include <functional>

namespace llamac::reference {

/// A pool of threads that share the iterations of a loop; of one caller at a
/// time.
class Parallel {
public:
  /// 0 threads: one for each core.
  explicit Parallel(unsigned threads);

  /// Calls body(i) for every i in [0, count), in any order; iterations must not
  /// write the same memory. Runs on the calling thread when `work`, the
  /// floating-point operations of the whole loop, is too little to wake others
  /// for.
  void forEach(int64_t count, double work,
               const std::function<void(int64_t)> &body);

  /// forEach() for a body that can fail: returns the error that came first in
  /// time.
  absl::Status tryForEach(int64_t count, double work,
                          const std::function<absl::Status(int64_t)> &body);

private:
  ThreadPool pool;
};

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_PARALLEL_H
