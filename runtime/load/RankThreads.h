//===- RankThreads.h - Ranks that one process runs --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_RANKTHREADS_H
#define LLAMAC_RUNTIME_LOAD_RANKTHREADS_H

#include "runtime/device/Device.h"
#include "runtime/threads/ThreadPool.h"

#include "absl/functional/function_ref.h"

#include <memory>
#include <mutex>
#include <vector>

namespace llamac {

/// A thread for each rank of this process, for ranks that wait for each other.
class RankThreads final : public RankExchange {
public:
  /// Memory error where the system gives too few threads.
  static absl::StatusOr<std::shared_ptr<RankThreads>> create(size_t ranks);

  /// Calls `work` with each rank, at the same time; callers wait for each
  /// other. The first error by rank.
  absl::Status run(absl::FunctionRef<absl::Status(size_t)> work);

  /// Ranks see each other's memory.
  void exchange(uint64_t, uint64_t) override { together.arriveAndWait(); }

private:
  explicit RankThreads(size_t ranks)
      : ranks(ranks), together(static_cast<int>(ranks)),
        threads(static_cast<int>(ranks)) {}

  const size_t ranks;
  std::mutex running;
  Barrier together;
  ThreadPool threads; ///< Each waits for a rank's device.
};

/// `program` on all ranks, of which `ofRanks` are at least two: at the same
/// time by `threads`, or for null launch by launch, each on all ranks before
/// the next.
std::unique_ptr<PreparedProgram>
groupPrograms(const schema::ProgramT &program,
              std::vector<std::unique_ptr<PreparedProgram>> ofRanks,
              std::shared_ptr<RankThreads> threads);

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_RANKTHREADS_H
