//===- Parallel.cpp - Loops over all cores --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Parallel.h"

#include "absl/synchronization/mutex.h"
#include "llvm/Support/Threading.h"

#include <algorithm>
#include <atomic>

namespace llamac::reference {

/// Waking the pool costs some ten microseconds: loops of less work than this
/// run on the calling thread.
static constexpr double minWork = 2e5;

Parallel::Parallel(unsigned threads)
    : pool(llvm::hardware_concurrency(threads)) {}

void Parallel::forEach(int64_t count, double work,
                       const std::function<void(int64_t)> &body) {
  int64_t workers = std::min<int64_t>(pool.getMaxConcurrency(), count);
  if (workers <= 1 || work < minWork) {
    for (int64_t i = 0; i < count; ++i)
      body(i);
    return;
  }
  std::atomic<int64_t> next = 0;
  auto worker = [&] {
    for (int64_t i = next++; i < count; i = next++)
      body(i);
  };
  // The calling thread is one of the workers.
  for (int64_t i = 1; i < workers; ++i)
    pool.async(worker);
  worker();
  pool.wait();
}

absl::Status
Parallel::tryForEach(int64_t count, double work,
                     const std::function<absl::Status(int64_t)> &body) {
  absl::Mutex mutex;
  absl::Status result;
  std::atomic<bool> failed = false;
  forEach(count, work, [&](int64_t i) {
    if (failed)
      return;
    absl::Status status = body(i);
    if (status.ok())
      return;
    failed = true;
    absl::MutexLock lock(&mutex);
    result.Update(status);
  });
  return result;
}

} // namespace llamac::reference
