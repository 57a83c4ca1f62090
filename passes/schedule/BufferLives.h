//===- BufferLives.h - When the buffers of a program are alive --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches between two barriers may run in any order: they are a phase, and a
// buffer is alive from the first to the last phase that touches it.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_PASSES_SCHEDULE_BUFFERLIVES_H
#define LLAMAC_PASSES_SCHEDULE_BUFFERLIVES_H

#include "ir/plan/Plan.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace llamac {

struct BufferLife {
  plan::BufferOp op;
  plan::LaunchOp maker; ///< The first launch that touches it.
  int64_t bytes = 0;    ///< Rounded up to whole cache lines.
  int64_t firstPhase = 0, lastPhase = 0;

  bool meets(const BufferLife &other) const {
    return firstPhase <= other.lastPhase && other.firstPhase <= lastPhase;
  }
};

/// The buffers of `program` that a launch touches, in the order of first use.
/// Phases count from 0; that of the logits, which are read after the program,
/// lasts until the one after the last.
std::vector<BufferLife> bufferLives(plan::ProgramOp program);

/// Bytes that no arena for these buffers can do without: the most that are
/// alive in one phase.
int64_t mostAlive(llvm::ArrayRef<BufferLife> buffers);

} // namespace llamac

#endif // LLAMAC_PASSES_SCHEDULE_BUFFERLIVES_H
