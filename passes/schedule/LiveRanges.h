//===- LiveRanges.h - When the buffers of a program are live ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches between two barriers, a barrier interval, may run in any order. A
// buffer is live from the first to the last interval that touches it.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_PASSES_SCHEDULE_LIVERANGES_H
#define LLAMAC_PASSES_SCHEDULE_LIVERANGES_H

#include "ir/plan/Plan.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace llamac {

struct LiveRange {
  plan::BufferOp op;
  plan::LaunchOp maker;        ///< The first launch that touches it.
  int64_t bytes = 0;           ///< Rounded up to whole cache lines.
  int64_t first = 0, last = 0; ///< Barrier intervals.

  bool overlaps(const LiveRange &other) const {
    return first <= other.last && other.first <= last;
  }
};

/// The buffers of `program` that a launch touches, in the order of first use.
/// Intervals count from 0; the logits, which are read after the program, are
/// live until the one after the last, and so is what the launches of logits
/// rows read of the others: a step with more logits rows than the program has
/// runs them several times.
std::vector<LiveRange> liveRanges(plan::ProgramOp program);

/// Bytes that every arena for these buffers needs: the most that are live in
/// one interval.
int64_t mostLive(llvm::ArrayRef<LiveRange> ranges);

} // namespace llamac

#endif // LLAMAC_PASSES_SCHEDULE_LIVERANGES_H
