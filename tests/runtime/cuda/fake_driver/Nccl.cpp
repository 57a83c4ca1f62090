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
// aborted. What a rank brings is a file in LLAMAC_FAKE_NCCL_FOLDER, so that
// ranks may be processes. As in NCCL, a communicator that graphs hold is not
// freed before they are. With LLAMAC_FAKE_NCCL_VERSION it is of that version.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Nccl.h"

#include "tests/runtime/cuda/fake_driver/Faults.h"
#include "tests/runtime/cuda/fake_driver/Gpu.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

using namespace llamac;
using namespace llamac::cuda;
using namespace llamac::fake;

namespace files = std::filesystem;

namespace {

inline constexpr NcclResult internalFailure = 3, invalidArgument = 4,
                            invalidUsage = 5;

/// The part of a communicator that streams and graphs hold.
struct Member {
  files::path folder; ///< The folder of all ranks.
  int rank, ranks;
  size_t begun = 0; ///< Gathers that its stream has come to.
  bool isAborted = false;

  /// The file that rank `from` brings to a gather; when it leaves, to none.
  files::path part(const std::string &gather, int from) const {
    return folder / (gather + "." + std::to_string(from));
  }
  bool areAllAt(const std::string &gather) const;
  void bring(const std::string &gather, const void *from, size_t bytes) const;
  void take(const std::string &gather, void *to, size_t bytes) const;
  void leave() const;
};

} // namespace

namespace llamac::cuda {
struct CommunicatorTag {
  std::shared_ptr<Member> member;
};
} // namespace llamac::cuda

bool Member::areAllAt(const std::string &gather) const {
  for (int from = 0; from < ranks; ++from)
    if (!files::exists(part(gather, from)))
      return false;
  return true;
}

void Member::bring(const std::string &gather, const void *from,
                   size_t bytes) const {
  files::create_directories(folder);
  const files::path whole = part(gather, rank);
  const files::path begun = whole.string() + ".begun";
  std::ofstream(begun, std::ios::binary)
      .write(static_cast<const char *>(from),
             static_cast<std::streamsize>(bytes));
  files::rename(begun, whole);
}

void Member::take(const std::string &gather, void *to, size_t bytes) const {
  for (int from = 0; from < ranks; ++from) {
    if (files::file_size(part(gather, from)) != bytes) {
      std::fprintf(stderr, "fake NCCL: rank %d does not bring %zu bytes\n",
                   from, bytes);
      gpu().sticky = launchFailed;
      return;
    }
    std::ifstream(part(gather, from), std::ios::binary)
        .read(static_cast<char *>(to) + from * bytes,
              static_cast<std::streamsize>(bytes));
  }
}

/// The last rank to leave removes all files.
void Member::leave() const {
  bring("left", nullptr, 0);
  std::error_code another;
  if (areAllAt("left"))
    files::remove_all(folder, another);
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
  communicator->member->leave();
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
  const char *named = std::getenv("LLAMAC_FAKE_NCCL_FOLDER");
  const files::path folder =
      (named ? files::path(named) : files::temp_directory_path()) /
      ("fake-nccl-" + std::to_string(getpid()) + "-" + std::to_string(++made));
  if (folder.string().size() >= sizeof id->bytes)
    return invalidUsage;
  std::memset(id, 0, sizeof *id);
  std::strcpy(id->bytes, folder.c_str());
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
  if (id.bytes[0] == 0 || rank < 0 || rank >= ranks)
    return invalidArgument;
  *communicator = new CommunicatorTag{std::make_shared<Member>(
      Member{.folder = id.bytes, .rank = rank, .ranks = ranks})};
  ++gpu().communicators;
  return 0;
}

NcclResult ncclAllGather(const void *from, void *to, size_t count, int type,
                         Communicator communicator, Stream stream) {
  FAKE_CALL(ncclAllGather)
  const std::lock_guard<std::mutex> lock(gpu().mutex);
  if (!communicator || type != ncclUint8)
    return invalidArgument;
  // A node is copied for each time that its graph runs.
  auto isReady = [=, member = communicator->member,
                  gather = std::string()]() mutable {
    if (member->isAborted)
      return true;
    if (gather.empty()) {
      const size_t number = member->begun++;
      gather = std::to_string(number);
      member->bring(gather, from, count);
      gpu().changed.notify_all();
      // All ranks have come to the last one, and so have done that before.
      if (number >= 2)
        files::remove(member->part(std::to_string(number - 2), member->rank));
    }
    if (!member->areAllAt(gather))
      return false;
    member->take(gather, to, count);
    return true;
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
