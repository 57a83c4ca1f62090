//===- Forks.cpp - What a forked child may use ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Forks.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <atomic>
#include <pthread.h>

namespace llamac {

static std::atomic<uint64_t> forks = 0;

uint64_t ForkGeneration::current() {
  // Before the first object is made, no fork matters.
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(registered);
  return forks;
}

absl::Status ForkGeneration::check(absl::string_view what) const {
  return isHere() ? absl::OkStatus()
                  : deviceError(absl::StrCat(
                        what, ": expected the process that made it, got a "
                              "child that it forked, which has none of its "
                              "threads; load the model in the child"));
}

} // namespace llamac
