//===- Nccl.cpp - A libnccl of the fake driver's GPUs ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A gather ends once the streams of all ranks have come to theirs of the same
// number, and never where one does not come, unless its communicator is
// aborted. As in NCCL, a communicator that graphs hold is not freed before they
// are. With LLAMAC_FAKE_NCCL_VERSION it is of that version.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Nccl.h"

#include "tests/runtime/cuda/fake_driver/Faults.h"
#include "tests/runtime/cuda/fake_driver/Gpu.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

using namespace llamac;
using namespace llamac::cuda;
using namespace llamac::fake;

namespace {

inline constexpr NcclResult internalFailure = 3, invalidArgument = 4,
                            invalidUsage = 5;

/// What a rank brings to a gather.
struct Arrival {
  const void *from;
  void *to;
  size_t bytes;
};

/// One collective of all ranks.
struct Gather {
  std::vector<std::optional<Arrival>> ofRanks;
  size_t arrived = 0;
};

/// The communicators of all ranks share it.
struct Clique {
  explicit Clique(int ranks) : ranks(ranks) {}

  /// The gather of number `number`, with what `rank` brings. Copies to all
  /// ranks when it is the last.
  std::shared_ptr<Gather> arrive(size_t number, int rank, const Arrival &own);

  const size_t ranks;
  std::map<size_t, std::shared_ptr<Gather>> gathers; ///< That wait for a rank.
};

/// What streams and graphs hold of a communicator.
struct Member {
  std::shared_ptr<Clique> clique;
  int rank;
  size_t begun = 0; ///< Gathers that its stream has come to.
  bool isAborted = false;
};

} // namespace

namespace llamac::cuda {
struct CommunicatorTag {
  std::shared_ptr<Member> member;
};
} // namespace llamac::cuda

std::shared_ptr<Gather> Clique::arrive(size_t number, int rank,
                                       const Arrival &own) {
  std::shared_ptr<Gather> &place = gathers[number];
  if (!place)
    place = std::make_shared<Gather>(
        Gather{std::vector<std::optional<Arrival>>(ranks)});
  const std::shared_ptr<Gather> gather = place;
  gather->ofRanks[rank] = own;
  if (++gather->arrived < ranks)
    return gather;
  gathers.erase(number);
  for (const auto &to : gather->ofRanks)
    for (size_t from = 0; from < ranks; ++from) {
      const Arrival &part = *gather->ofRanks[from];
      if (part.bytes != to->bytes) {
        std::fprintf(stderr, "fake NCCL: ranks bring %zu and %zu bytes\n",
                     part.bytes, to->bytes);
        gpu().sticky = launchFailed;
        return gather;
      }
      std::memcpy(static_cast<uint8_t *>(to->to) + from * part.bytes, part.from,
                  part.bytes);
    }
  gpu().changed.notify_all();
  return gather;
}

/// Cliques by their id, until all ranks have joined.
static std::map<int, std::shared_ptr<Clique>> &cliques() {
  static std::map<int, std::shared_ptr<Clique>> instance;
  return instance;
}

#define FAKE_CALL(function)                                                    \
  if (isInjected(#function))                                                   \
    return internalFailure;

/// Ends what runs, of which no host need wait, and frees `communicator` once no
/// graph holds it.
static NcclResult release(Communicator communicator) {
  std::unique_lock<std::mutex> lock(gpu().mutex);
  if (!communicator || gpu().communicators == 0)
    return invalidArgument;
  communicator->member->isAborted = true;
  gpu().changed.notify_all();
  while (communicator->member.use_count() > 1) {
    for (Stream stream : gpu().streams)
      if (!stream->captured)
        gpu().advance(stream);
    gpu().changed.wait_for(lock, std::chrono::milliseconds(1));
  }
  delete communicator;
  --gpu().communicators;
  return 0;
}

extern "C" {

NcclResult ncclGetVersion(int *version) {
  FAKE_CALL(ncclGetVersion)
  const char *named = std::getenv("LLAMAC_FAKE_NCCL_VERSION");
  *version = named ? std::atoi(named) : 23203;
  return 0;
}

const char *ncclGetErrorString(NcclResult) {
  return "as the fake NCCL was told";
}

NcclResult ncclGetUniqueId(NcclId *id) {
  FAKE_CALL(ncclGetUniqueId)
  static int made = 0;
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->bytes, &++made, sizeof made);
  return 0;
}

/// Calls wait for nothing here, in a group or not.
NcclResult ncclGroupStart() {
  FAKE_CALL(ncclGroupStart)
  return 0;
}

NcclResult ncclGroupEnd() {
  FAKE_CALL(ncclGroupEnd)
  return 0;
}

NcclResult ncclCommInitRank(Communicator *communicator, int ranks, NcclId id,
                            int rank) {
  FAKE_CALL(ncclCommInitRank)
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  int number = 0;
  std::memcpy(&number, id.bytes, sizeof number);
  std::shared_ptr<Clique> &clique = cliques()[number];
  if (!clique)
    clique = std::make_shared<Clique>(ranks);
  if (number == 0 || rank < 0 || rank >= ranks)
    return invalidArgument;
  *communicator = new CommunicatorTag{
      std::make_shared<Member>(Member{.clique = clique, .rank = rank})};
  ++gpu().communicators;
  if (rank == ranks - 1)
    cliques().erase(number);
  return 0;
}

NcclResult ncclAllGather(const void *from, void *to, size_t count, int type,
                         Communicator communicator, Stream stream) {
  FAKE_CALL(ncclAllGather)
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  if (!communicator || type != ncclUint8)
    return invalidArgument;
  // A node is copied for each time that its graph runs.
  auto isReady = [member = communicator->member, own = Arrival{from, to, count},
                  gather = std::shared_ptr<Gather>()]() mutable {
    if (member->isAborted)
      return true;
    if (!gather)
      gather = member->clique->arrive(member->begun++, member->rank, own);
    return gather->arrived == member->clique->ranks;
  };
  return gpu().enqueue(stream, {.work = {}, .isReady = std::move(isReady)}) ==
                 success
             ? 0
             : invalidUsage;
}

NcclResult ncclCommGetAsyncError(Communicator communicator,
                                 NcclResult *result) {
  FAKE_CALL(ncclCommGetAsyncError)
  *result = isInjected("ncclAllGather.later") ? internalFailure : 0;
  return communicator ? 0 : invalidArgument;
}

NcclResult ncclCommAbort(Communicator communicator) {
  return release(communicator);
}

NcclResult ncclCommDestroy(Communicator communicator) {
  return release(communicator);
}

} // extern "C"
