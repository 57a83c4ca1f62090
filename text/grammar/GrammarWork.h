//===- GrammarWork.h - What a grammar may still take ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A short schema may stand for a grammar that takes hours and all memory to
// compile. Whatever works on one counts here what it does, inside of its loops,
// and stops at the first error.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_GRAMMAR_GRAMMARWORK_H
#define LLAMAC_TEXT_GRAMMAR_GRAMMARWORK_H

#include "absl/status/status.h"

#include <atomic>
#include <cstdint>

namespace llamac {

/// The work of one thread.
class GrammarWork {
public:
  /// `seconds` are those of a processor, of which `used` are over, and `bytes`
  /// those that are held at once. `isUnwanted`, unless null, may be set by any
  /// thread: nobody waits for it.
  GrammarWork(double seconds, int64_t bytes,
              const std::atomic<bool> *isUnwanted = nullptr, double used = 0);

  /// Counts `steps` of a microsecond at most. Usage error where the time is
  /// over, which it looks at now and then, and where it is unwanted.
  absl::Status spend(int64_t steps = 1) {
    uncounted += steps;
    return uncounted < interval ? absl::OkStatus() : look();
  }

  /// Counts memory that is taken from now on. Usage error where it is too much.
  absl::Status take(int64_t bytes) {
    held += bytes;
    peak = held > peak ? held : peak;
    return held <= mostBytes ? absl::OkStatus() : tooLarge();
  }
  void giveBack(int64_t bytes) { held -= bytes; }

  double usedSeconds() const;
  int64_t heldBytes() const { return held; }
  int64_t peakBytes() const { return peak; }

private:
  static constexpr int64_t interval = 4096;
  absl::Status look();
  absl::Status tooLarge() const;

  double seconds, start; ///< Seconds on the thread's clock.
  int64_t mostBytes, held = 0, peak = 0, uncounted = 0;
  const std::atomic<bool> *isUnwanted;
};

/// Returns to the system what the process has freed, where that are at least
/// some of `bytes`: the allocator keeps it otherwise.
void giveMemoryBack(int64_t bytes);

} // namespace llamac

#endif // LLAMAC_TEXT_GRAMMAR_GRAMMARWORK_H
