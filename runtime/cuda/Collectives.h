//===- Collectives.h - What the GPUs of ranks exchange ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch that reads what all ranks have written finds it in memory of its own
// GPU: ncclAllGather brings it there before, on the stream, and so within CUDA
// graphs. What is brought are the bytes of the rows of the step, one rank's
// behind the other's. Where they begin depends on the number of rows, so that
// there is a table of their addresses for each.
//
// A rank that fails would leave the others in a collective that never ends.
// The communicators are then aborted, and all ranks end with the error of the
// first that failed.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_COLLECTIVES_H
#define LLAMAC_RUNTIME_CUDA_COLLECTIVES_H

#include "runtime/cuda/Nccl.h"
#include "runtime/plan/plan_generated.h"

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace llamac {

/// The memory into which a rank gathers: the parts of all ranks, then tables
/// of where these begin.
class GatherLayout {
public:
  /// `plan` is for several ranks.
  explicit GatherLayout(const schema::PlanT &plan);

  uint64_t bytes() const { return end; }

  /// Where the tables begin. The parts lie before.
  uint64_t partsBytes() const { return parts; }

  /// All tables of memory at `start`, to be written at partsBytes().
  std::vector<cuda::Address> tables(cuda::Address start) const;

  /// Where the table is for `rows` rows to which each rank brings `rowBytes`
  /// bytes.
  uint64_t tableAt(uint64_t rowBytes, int64_t rows) const;

private:
  struct Tables {
    uint64_t offset = 0;
    int64_t rows = 0; ///< At most; there is a table for each number.
  };

  uint64_t tableBytes() const { return ranks * sizeof(cuda::Address); }

  uint64_t ranks;
  uint64_t parts = 0, end = 0;
  std::map<uint64_t, Tables> byRowBytes;
};

/// The communicators of the ranks that a process has; all of them, each in a
/// thread, or one.
class Collectives {
public:
  /// The ranks that this process has: `count` from `first` on, of `ranks`.
  struct Members {
    int first = 0, count = 1, ranks = 1;
  };

  /// Where the ranks of a plan meet. Errors: those of Nccl::open, device.
  static absl::StatusOr<cuda::NcclId> newPlace(const std::string &library = "");

  /// Returns once all ranks have come to `place`; `enter` makes the GPU of a
  /// member that of the calling thread. Errors: those of newPlace().
  static absl::StatusOr<std::shared_ptr<Collectives>>
  connect(const cuda::NcclId &place, const Members &members,
          absl::FunctionRef<absl::Status(int)> enter,
          const std::string &library = "");
  Collectives(const Collectives &) = delete;
  Collectives &operator=(const Collectives &) = delete;
  /// All graphs that hold collectives are gone.
  ~Collectives();

  /// On `stream`: brings `bytes` bytes of each rank, `rank`'s from `from`, to
  /// `to`, one behind the other. All ranks do so with the same number. Device
  /// error, without doing so, once a rank has failed.
  absl::Status gather(int rank, cuda::Address from, cuda::Address to,
                      uint64_t bytes, cuda::Stream stream);

  /// The result of a run that `rank` ended with `own`: the error of the first
  /// rank of this process that failed in any, so that nothing that a rank
  /// gathered from one that failed counts. Ends the collectives of all members
  /// where that is new.
  absl::Status ended(int rank, absl::Status own);

private:
  struct Rank {
    cuda::Communicator communicator = nullptr;
    std::timed_mutex calling; ///< Held in a call that uses it.
  };

  Collectives(std::shared_ptr<const cuda::Nccl> nccl, const Members &members)
      : nccl(std::move(nccl)), first(members.first),
        ranks(static_cast<size_t>(members.count)) {}

  Rank &member(int rank) { return ranks[rank - first]; }

  absl::Status firstError() const;
  absl::Status asynchronousError(int rank);
  void fail(absl::Status status);

  std::shared_ptr<const cuda::Nccl> nccl;
  int first;
  std::vector<Rank> ranks; ///< The ranks of this process.
  mutable std::mutex mutex;
  absl::Status failure;             ///< Error of the first rank that failed.
  std::vector<std::thread> aborted; ///< Once there is a failure.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_COLLECTIVES_H
