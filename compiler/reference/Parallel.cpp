//===- Parallel.cpp - Loops over all cores --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Parallel.h"

#include "absl/synchronization/mutex.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace llamac::reference {

/// Waking the pool costs some ten microseconds: loops of less work than this
/// run on the calling thread.
static constexpr double minWork = 2e5;

Parallel::Parallel(unsigned threads)
    : pool(static_cast<int>(
          threads ? threads
                  : std::max(1U, std::thread::hardware_concurrency()))) {}

void Parallel::forEach(int64_t count, double work,
                       const std::function<void(int64_t)> &body) {
  if (pool.size() == 1 || count <= 1 || work < minWork) {
    for (int64_t i = 0; i < count; ++i)
      body(i);
    return;
  }
  std::atomic<int64_t> next = 0;
  pool.run([&](int) {
    for (int64_t i = next++; i < count; i = next++)
      body(i);
  });
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
