//===- RankWorld.cpp - Processes that mpirun started together -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/ranks/RankWorld.h"

#include "runtime/base/Clock.h"
#include "runtime/base/FatalEvents.h"
#include "runtime/base/Status.h"
#include "runtime/threads/Topology.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iomanip>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace llamac {

// The tag of messages; exchanges have another.
static constexpr int messageTag = 1;

//===----------------------------------------------------------------------===//
// The board
//===----------------------------------------------------------------------===//

/// Where a board has the beats of rank 0.
static constexpr off_t beatsAt = 0;

/// Where a board says whether `rank` has said why it ends.
static off_t toldAt(size_t rank) {
  return static_cast<off_t>(sizeof(uint64_t) + rank);
}

/// Writes `value` to a board, where there is one.
static void put(int board, off_t at, const auto &value) {
  const ssize_t ignored = pwrite(board, &value, sizeof value, at);
  (void)ignored;
}

/// The value that a board has at `at`; 0 where nothing was written.
template <typename Value> static Value get(int board, off_t at) {
  Value value = 0;
  return pread(board, &value, sizeof value, at) == sizeof value ? value : 0;
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

/// A number that mpirun gives to its processes; `otherwise` without.
static int launchNumber(const char *name, int otherwise) {
  const char *text = std::getenv(name);
  int number = 0;
  return text && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

int RankWorld::launchedRank() {
  return launchNumber("OMPI_COMM_WORLD_SIZE", 1) > 1
             ? launchNumber("OMPI_COMM_WORLD_RANK", -1)
             : -1;
}

int RankWorld::localRank() {
  return launchNumber("OMPI_COMM_WORLD_LOCAL_RANK", 0);
}

absl::StatusOr<std::unique_ptr<RankWorld>> RankWorld::ofLaunch() {
  if (launchedRank() < 0)
    return nullptr;
  LLAMAC_ASSIGN_OR_RETURN(auto library, mpi::Library::open());
  std::unique_ptr<RankWorld> world(new RankWorld(std::move(library)));
  LLAMAC_RETURN_IF_ERROR(world->start());
  LLAMAC_RETURN_IF_ERROR(world->meet());
  return world;
}

absl::Status RankWorld::start() {
  int threading = 0;
  if (library->MPI_Init_thread(nullptr, nullptr, mpi::threadsInTurn,
                               &threading) != 0 ||
      library->MPI_Comm_rank(library->world, &number) != 0 ||
      library->MPI_Comm_size(library->world, &count) != 0)
    return deviceError("mpirun: expected MPI to start, got an error");
  isStarted = true;
  if (threading < mpi::threadsInTurn)
    return deviceError("mpirun: expected an MPI that several threads may call, "
                       "got one for a single thread");
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void RankWorld::send(int to, absl::Span<const uint8_t> bytes) const {
  const uint64_t size = bytes.size();
  sendPart(to, &size, sizeof size);
  for (uint64_t sent = 0; sent < size; sent += INT_MAX) {
    const auto part = bytes.subspan(sent, INT_MAX);
    sendPart(to, part.data(), part.size());
  }
}

void RankWorld::sendPart(int to, const void *bytes, size_t size) const {
  mpi::Request request = library->noRequest;
  library->MPI_Isend(bytes, static_cast<int>(size), library->byte, to,
                     messageTag, library->world, &request);
  await(request, to);
}

/// Looks without a pause while an end soon is likely: ranks meet many times in
/// a step.
void RankWorld::await(mpi::Request &request, int rank) const {
  constexpr int looksPerClock = 64;
  constexpr double busySeconds = 1e-3;
  constexpr auto nap = std::chrono::microseconds(50);
  const double start = steadySeconds();
  for (;;) {
    for (int look = 0; look < looksPerClock; ++look) {
      int done = 0;
      library->MPI_Test(&request, &done, mpi::ignored);
      if (done)
        return;
    }
    const double waited = steadySeconds() - start;
    if (waited > patience())
      endWithout(rank);
    if (waited > busySeconds)
      std::this_thread::sleep_for(nap);
  }
}

std::vector<uint8_t> RankWorld::receive(int from) const {
  uint64_t size = 0;
  library->MPI_Recv(&size, sizeof size, library->byte, from, messageTag,
                    library->world, mpi::ignored);
  std::vector<uint8_t> bytes(size);
  for (uint64_t got = 0; got < size; got += INT_MAX) {
    const auto part = absl::MakeSpan(bytes).subspan(got, INT_MAX);
    library->MPI_Recv(part.data(), static_cast<int>(part.size()), library->byte,
                      from, messageTag, library->world, mpi::ignored);
  }
  return bytes;
}

// Looks all the time at first, as the next step of a busy engine comes at once;
// then less and less often, so that an idle rank takes no time of a core.
bool RankWorld::waitForMessage(int from, double seconds) const {
  constexpr double busySeconds = 200e-6, longestNap = 1e-3;
  const double start = steadySeconds();
  for (;;) {
    int found = 0;
    library->MPI_Iprobe(from, messageTag, library->world, &found, mpi::ignored);
    if (found)
      return true;
    const double waited = steadySeconds() - start;
    if (waited > seconds)
      return false;
    if (waited > busySeconds)
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::min(waited / 8, longestNap)));
  }
}

void RankWorld::post(absl::Span<const uint8_t> message) {
  const uint64_t size = message.size();
  const auto *head = reinterpret_cast<const uint8_t *>(&size);
  batch.insert(batch.end(), head, head + sizeof size);
  batch.insert(batch.end(), message.begin(), message.end());
}

void RankWorld::flush() {
  for (int other = 1; other < count; ++other)
    send(other, batch);
  batch.clear();
}

std::vector<std::vector<uint8_t>> RankWorld::takeAnswers() {
  std::vector<std::vector<uint8_t>> answers;
  for (int other = 1; other < count; ++other) {
    if (!waitForMessage(other, patience()))
      endWithout(other);
    answers.push_back(receive(other));
  }
  --owed;
  return answers;
}

absl::Span<const uint8_t> RankWorld::next() {
  if (taken == batch.size()) {
    // Seconds are counted one by one: while this process is stopped itself,
    // none go by.
    double silent = 0;
    for (std::optional<uint64_t> last; !waitForMessage(0, 1);) {
      const auto now = get<uint64_t>(board, beatsAt);
      silent = last.value_or(now) == now ? silent + 1 : 0;
      last = now;
      if (board >= 0 && silent > patience())
        endWithout(0);
    }
    batch = receive(0);
    taken = 0;
  }
  uint64_t size = 0;
  std::memcpy(&size, batch.data() + taken, sizeof size);
  const auto message =
      absl::MakeConstSpan(batch).subspan(taken + sizeof size, size);
  taken += sizeof size + size;
  return message;
}

void RankWorld::answer(absl::Span<const uint8_t> message) { send(0, message); }

//===----------------------------------------------------------------------===//
// The other processes
//===----------------------------------------------------------------------===//

namespace {

/// Facts of a process, which ranks tell each other first.
struct Process {
  int32_t id = 0;
  char boot[40] = {};       ///< The kernel's boot id.
  uint64_t processList = 0; ///< The namespace of its number.
  int32_t board = -1;       ///< Its descriptor; of rank 0.
  bool allAreHere = true;   ///< False once rank 0 knows of one elsewhere.
};

} // namespace

static Process thisProcess() {
  Process process;
  process.id = getpid();
  std::ifstream("/proc/sys/kernel/random/boot_id") >>
      std::setw(sizeof process.boot) >> process.boot;
  struct stat list = {};
  if (stat("/proc/self/ns/pid", &list) == 0)
    process.processList = list.st_ino;
  return process;
}

/// Each rank tells rank 0 where it is, which answers where itself is, and
/// whether all are there.
absl::Status RankWorld::meet() {
  Process own = thisProcess();
  auto tell = [&](int other) {
    send(other, {reinterpret_cast<const uint8_t *>(&own), sizeof own});
  };
  auto hear = [&](int other) {
    const std::vector<uint8_t> message = receive(other);
    Process process;
    if (message.size() != sizeof process)
      endBecauseOf(other);
    std::memcpy(&process, message.data(), sizeof process);
    const bool isHere = std::strcmp(process.boot, own.boot) == 0 &&
                        process.processList == own.processList;
    if (!isHere)
      process.id = -1;
    else if (number != 0)
      board = open(
          absl::StrCat("/proc/", process.id, "/fd/", process.board).c_str(),
          O_RDWR | O_CLOEXEC);
    allHere = allHere && isHere && process.allAreHere;
    return process.id;
  };
  std::vector<int> here(static_cast<size_t>(count), -1);
  if (number == 0) {
    for (int other = 1; other < count; ++other)
      here[other] = hear(other);
    own.allAreHere = allHere;
    own.board = board = memfd_create("llamac-board", MFD_CLOEXEC);
    for (int other = 1; other < count; ++other)
      tell(other);
  } else {
    tell(0);
    here[0] = hear(0);
  }
  return watch(here);
}

/// Ends this process once one of `processes`, by rank, has ended; -1 for one
/// that is not to be watched. Rank 0 says which, unless that has said why; that
/// rank 0 has ended is for mpirun to say.
absl::Status RankWorld::watch(const std::vector<int> &processes) {
  stopWatching = eventfd(0, EFD_CLOEXEC);
  if (stopWatching < 0)
    return systemError(errno, "watching other ranks", deviceError);
  std::vector<pollfd> files;
  files.reserve(processes.size() + 1);
  for (const int process : processes)
    files.push_back(
        {process < 0 ? -1
                     : static_cast<int>(syscall(SYS_pidfd_open, process, 0)),
         POLLIN, 0});
  files.push_back({stopWatching, POLLIN, 0});
  watcher = std::thread([this, files = std::move(files)]() mutable {
    constexpr int beatMilliseconds = 500;
    uint64_t beat = 0;
    int found = 0;
    while ((found = poll(files.data(), files.size(),
                         number == 0 ? beatMilliseconds : -1)) <= 0)
      if (found == 0)
        put(board, beatsAt, ++beat);
    for (size_t rank = 0; rank + 1 < files.size() && files.back().revents == 0;
         ++rank) {
      if (files[rank].revents == 0)
        continue;
      if (number != 0 || get<uint8_t>(board, toldAt(rank)) != 0)
        endProcess(ExitCode::Device);
      end(ExitCode::Device,
          absl::StrCat("rank ", rank,
                       ": its process has ended, and so do all others; "
                       "start them again"));
    }
    for (const pollfd &file : files)
      close(file.fd);
  });
  return absl::OkStatus();
}

void RankWorld::end(ExitCode code, const std::string &message) const {
  put(board, toldAt(static_cast<size_t>(number)), uint8_t{1});
  endProcess(code, message.c_str());
}

void RankWorld::endWithout(int rank) const {
  end(ExitCode::Device,
      absl::StrCat("rank ", rank, ": expected it within ", limit,
                   " s, got nothing; if it is only slow, raise "
                   "--rank-timeout"));
}

void RankWorld::endBecauseOf(int rank) const {
  end(ExitCode::BadPlan,
      absl::StrCat("rank ", rank,
                   ": expected the same llamac-run on all ranks, got "
                   "another program; give all the same"));
}

int RankWorld::cores() const {
  return usablePhysicalCores(launchNumber("OMPI_COMM_WORLD_LOCAL_SIZE", 1));
}

RankWorld::~RankWorld() {
  if (watcher.joinable()) {
    const uint64_t one = 1;
    const ssize_t ignored = write(stopWatching, &one, sizeof one);
    (void)ignored;
    watcher.join();
  }
  close(board);
  if (!isStarted)
    return;
  const double end = steadySeconds() + 1;
  for (; owed > 0; --owed)
    for (int other = 1; other < count; ++other) {
      if (!waitForMessage(other, end - steadySeconds()))
        return;
      receive(other);
    }
  library->MPI_Finalize();
}

} // namespace llamac
