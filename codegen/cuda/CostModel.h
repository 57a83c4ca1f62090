//===- CostModel.h - Seconds of a launch by its tiles -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Orders the variants of a kernel, of which there may be hundreds: the model
// need not be right about seconds, but put the best among the first few. A
// launch takes as long as the slowest of what it does: reading memory, reading
// from L2 what is read again, and computing. By Little's law, bytes in flight
// below bandwidth times latency leave bandwidth unused; a last wave that is not
// full leaves multiprocessors idle.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_COSTMODEL_H
#define LLAMAC_CODEGEN_CUDA_COSTMODEL_H

#include "ir/kernel/Target.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace llamac {

/// The quantities of a kernel's tiles that the model asks for.
struct TileModel {
  int64_t weightRows = 0; ///< Rows that share a reading of the weights; 0: all.
  int64_t rowBytes = 0;   ///< Bytes of an input row that every block reads.
  int64_t bytesInFlight = 0; ///< Bytes of weights that a block has in flight.
  int64_t occupancy = 0;     ///< Blocks that a multiprocessor has at a time.
  /// Where the launch partitions its work among its blocks: the pieces of it,
  /// or, where it partitions keys, those of a row if it did not.
  int64_t tiles = 0;
  int64_t itemKeys = 0;   ///< The fewest keys that are worth a piece; 0: all.
  int64_t splits = 0;     ///< The most pieces that keys are cut into.
  int64_t localBytes = 0; ///< From shared memory, for each 1024 operations.
  bool usesMatrixUnits = false;
};

/// Seconds of a launch of `blocks` blocks that costs `cost` in `step`, on a GPU
/// of the architecture `gpu`.
double predictedSeconds(const TileModel &tiles, int64_t blocks,
                        const kernel::Cost &cost, const kernel::CostStep &step,
                        llvm::StringRef gpu);

/// Seconds of a step in one launch of `phases` phases, each of which waits for
/// what all blocks have made in the one before.
double residentSeconds(const kernel::Cost &cost, int64_t phases,
                       llvm::StringRef gpu);

/// Seconds between two launches of which the second waits for the first, beside
/// what predictedSeconds() has. The step of SmolLM2, 153 launches, takes 0.26
/// ms more on an H200 than these should; those of larger models lose more.
constexpr double launchGapSeconds = 1.7e-6;

/// The peaks of the data sheet of a GPU of the architecture `gpu`, for a kernel
/// on tensor cores or without; nothing for an unknown one.
std::optional<kernel::Peaks> peaksOf(llvm::StringRef gpu, bool usesMatrixUnits);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_COSTMODEL_H
