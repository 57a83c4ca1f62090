//===- GrammarWork.cpp - What a grammar may still take --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/grammar/GrammarWork.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <malloc.h>
#include <time.h>

namespace llamac {

/// Seconds of a processor that this thread has used.
static double threadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

GrammarWork::GrammarWork(double seconds, int64_t bytes,
                         const std::atomic<bool> *isUnwanted, double used)
    : seconds(seconds), start(threadSeconds() - used), mostBytes(bytes),
      isUnwanted(isUnwanted) {}

double GrammarWork::usedSeconds() const { return threadSeconds() - start; }

absl::Status GrammarWork::look() {
  uncounted = 0;
  if (isUnwanted && *isUnwanted)
    return usageError("nobody waits for it any more");
  if (usedSeconds() < seconds)
    return absl::OkStatus();
  // The next question is answered so, too.
  uncounted = interval;
  return usageError(absl::StrCat("it takes more than ", seconds,
                                 " s of a processor; make it simpler or less "
                                 "ambiguous"));
}

absl::Status GrammarWork::tooLarge() const {
  return usageError(absl::StrCat("it takes more than ", mostBytes >> 20,
                                 " MB of memory; make it simpler"));
}

void giveMemoryBack(int64_t bytes) {
  // Asking takes milliseconds.
  constexpr int64_t least = int64_t{32} << 20;
  if (bytes >= least)
    malloc_trim(0);
}

} // namespace llamac
