//===- Collectives.cpp - What the GPUs of ranks exchange ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Collectives.h"

#include "runtime/base/Status.h"
#include "runtime/device/Device.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace llamac {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

GatherLayout::GatherLayout(const schema::PlanT &plan)
    : ranks(static_cast<uint64_t>(plan.ranks)) {
  for (const auto &program : plan.programs)
    for (const auto &launch : program->launches) {
      const schema::Operand *peers = peersOf(*launch);
      if (!peers)
        continue;
      const int64_t rows = maxRowsOf(*launch, *program);
      int64_t &most = byRowBytes[peers->index()].rows;
      most = std::max(most, rows);
      // A step has one collective at a time.
      parts =
          std::max(parts, ranks * peers->index() * static_cast<uint64_t>(rows));
    }
  parts = reservedBytes(parts);
  end = parts;
  for (auto &[rowBytes, tables] : byRowBytes) {
    tables.offset = end;
    end += static_cast<uint64_t>(tables.rows) * tableBytes();
  }
}

uint64_t GatherLayout::tableAt(uint64_t rowBytes, int64_t rows) const {
  return byRowBytes.at(rowBytes).offset +
         static_cast<uint64_t>(rows - 1) * tableBytes();
}

std::vector<cuda::Address> GatherLayout::tables(cuda::Address start) const {
  std::vector<cuda::Address> all;
  for (const auto &[rowBytes, tables] : byRowBytes)
    for (int64_t rows = 1; rows <= tables.rows; ++rows)
      for (uint64_t rank = 0; rank < ranks; ++rank)
        all.push_back(start + rank * rowBytes * static_cast<uint64_t>(rows));
  return all;
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

absl::StatusOr<cuda::NcclId> Collectives::newPlace(const std::string &library) {
  LLAMAC_ASSIGN_OR_RETURN(const auto nccl, cuda::Nccl::open(library));
  cuda::NcclId place;
  LLAMAC_RETURN_IF_ERROR(
      nccl->check(nccl->ncclGetUniqueId(&place), "ncclGetUniqueId"));
  return place;
}

absl::StatusOr<std::shared_ptr<Collectives>>
Collectives::connect(const cuda::NcclId &place, const Members &members,
                     absl::FunctionRef<absl::Status(int)> enter,
                     const std::string &library) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const cuda::Nccl> nccl,
                          cuda::Nccl::open(library));
  std::shared_ptr<Collectives> made(new Collectives(nccl, members));
  // Each call waits for the other ranks, but for in a group.
  LLAMAC_RETURN_IF_ERROR(nccl->check(nccl->ncclGroupStart(), "ncclGroupStart"));
  absl::Status status;
  for (int i = 0; status.ok() && i < members.count; ++i) {
    const int rank = members.first + i;
    status = enter(rank);
    if (status.ok())
      status =
          nccl->check(nccl->ncclCommInitRank(&made->member(rank).communicator,
                                             members.ranks, place, rank),
                      "ncclCommInitRank");
  }
  absl::Status ended = nccl->check(nccl->ncclGroupEnd(), "ncclGroupEnd");
  status.Update(std::move(ended));
  if (status.ok())
    return made;
  made->fail(status);
  return status;
}

Collectives::~Collectives() {
  for (std::thread &thread : aborted)
    thread.join();
  if (failure.ok())
    for (const Rank &rank : ranks)
      if (rank.communicator)
        nccl->ncclCommDestroy(rank.communicator);
}

absl::Status Collectives::gather(int rank, cuda::Address from, cuda::Address to,
                                 uint64_t bytes, cuda::Stream stream) {
  Rank &own = member(rank);
  const std::lock_guard<std::timed_mutex> lock(own.calling);
  LLAMAC_RETURN_IF_ERROR(firstError());
  // The driver's addresses are numbers.
  // NOLINTBEGIN(performance-no-int-to-ptr)
  return nccl->check(nccl->ncclAllGather(reinterpret_cast<const void *>(from),
                                         reinterpret_cast<void *>(to), bytes,
                                         cuda::ncclUint8, own.communicator,
                                         stream),
                     "ncclAllGather");
  // NOLINTEND(performance-no-int-to-ptr)
}

absl::Status Collectives::ended(int rank, absl::Status own) {
  own.Update(asynchronousError(rank));
  if (!own.ok())
    fail(ranks.size() == 1 ? own
                           : withContext(own, absl::StrCat("rank ", rank)));
  return firstError();
}

absl::Status Collectives::firstError() const {
  const std::lock_guard<std::mutex> lock(mutex);
  return failure;
}

/// An error of collectives of `rank` that have begun.
absl::Status Collectives::asynchronousError(int rank) {
  Rank &own = member(rank);
  const std::lock_guard<std::timed_mutex> lock(own.calling);
  LLAMAC_RETURN_IF_ERROR(firstError());
  cuda::NcclResult found = 0;
  LLAMAC_RETURN_IF_ERROR(
      nccl->check(nccl->ncclCommGetAsyncError(own.communicator, &found),
                  "ncclCommGetAsyncError"));
  return nccl->check(found, "ncclAllGather");
}

/// Aborts all communicators. Each in a thread of its own: the call ends the
/// collectives at once, and then waits for graphs that hold more of them.
void Collectives::fail(absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!failure.ok())
    return;
  failure = std::move(status);
  for (Rank &rank : ranks)
    if (rank.communicator)
      aborted.emplace_back([this, &rank] {
        // A call that is about to return still uses the communicator; none
        // begins now. One that waits for a rank that failed is ended by this.
        if (rank.calling.try_lock_for(std::chrono::seconds(1)))
          rank.calling.unlock();
        nccl->ncclCommAbort(rank.communicator);
      });
}

} // namespace llamac
