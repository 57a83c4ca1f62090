//===- ParallelFor.cpp - A loop shared by threads -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/threads/ParallelFor.h"

#include <atomic>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace llamac {

void parallelFor(int threads, size_t count,
                 absl::FunctionRef<void(size_t)> work) {
  std::atomic<size_t> next{0};
  auto run = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::thread> team;
  for (size_t member = 1; member < count && std::cmp_less(member, threads);
       ++member) {
    try {
      team.emplace_back(run);
    } catch (const std::system_error &) {
      break; // The system's limit: those that there are do it all.
    }
  }
  run();
  for (std::thread &member : team)
    member.join();
}

} // namespace llamac
