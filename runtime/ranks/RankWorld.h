//===- RankWorld.h - Processes that mpirun started together -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rank 0 has the user, and tells the other ranks what to do by messages. They
// end when it ends. A rank that is lost ends all: rank 0 sees processes of its
// machine end, mpirun sees all of them, and no rank waits for another longer
// than a limit. Between two steps, which may be long, the others wait for rank
// 0 as long as it shows that it lives, where they are on its machine.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_RANKS_RANKWORLD_H
#define LLAMAC_RUNTIME_RANKS_RANKWORLD_H

#include "runtime/base/Status.h"
#include "runtime/ranks/Mpi.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace llamac {

class RankWorld {
public:
  /// The world of this process; null where mpirun has not started several. Does
  /// not return before all ranks are there. Device error where MPI fails.
  static absl::StatusOr<std::unique_ptr<RankWorld>> ofLaunch();

  /// The rank of a process that mpirun has started among others; -1 for one
  /// alone.
  static int launchedRank();

  RankWorld(const RankWorld &) = delete;
  RankWorld &operator=(const RankWorld &) = delete;

  /// Leaves MPI, unless a rank still owes an answer after a second: mpirun then
  /// ends it.
  ~RankWorld();

  int rank() const { return number; }
  int size() const { return count; }
  /// The number of this process among those on this machine.
  static int localRank();
  const mpi::Library &mpi() const { return *library; }

  /// Whether all processes run under one kernel and see each other.
  bool isOneMachine() const { return allHere; }

  /// Physical cores for the threads of this process: those it is bound to, or
  /// its share of the machine.
  int cores() const;

  /// The seconds to wait for another rank, 60 at first. A later rank waits a
  /// little longer: of several that wait the first says so, and mpirun ends the
  /// others.
  double patience() const { return limit + number; }
  void setTimeLimit(double seconds) { limit = seconds; }

  /// Waits for `request`, of a message from or to `rank`; ends the process when
  /// that takes too long.
  void await(mpi::Request &request, int rank) const;

  /// Ends the process with an error, and so all others, of which rank 0 then
  /// says no more.
  [[noreturn]] void end(ExitCode code, const std::string &message) const;

  /// Ends the process since `rank` has not come.
  [[noreturn]] void endWithout(int rank) const;

  /// Ends the process since a message of `rank` makes no sense.
  [[noreturn]] void endBecauseOf(int rank) const;

  //===--- Rank 0, under a lock of turn() -------------------------------===//

  /// One thread at a time speaks to the others, or runs a step with them.
  std::mutex &turn() { return speaking; }

  /// Adds a message for all other ranks; flush() sends what was added.
  void post(absl::Span<const uint8_t> message);
  void flush();

  /// Says that each other rank owes an answer to what was posted.
  void expectAnswers() { ++owed; }

  /// Waits for the next answer of each other rank, by rank from 1 on.
  std::vector<std::vector<uint8_t>> takeAnswers();

  //===--- The other ranks ----------------------------------------------===//

  /// Waits for the next message of rank 0.
  absl::Span<const uint8_t> next();
  void answer(absl::Span<const uint8_t> message);

private:
  explicit RankWorld(std::unique_ptr<const mpi::Library> library)
      : library(std::move(library)) {}

  absl::Status start();
  absl::Status meet();
  void send(int to, absl::Span<const uint8_t> bytes) const;
  void sendPart(int to, const void *bytes, size_t size) const;
  std::vector<uint8_t> receive(int from) const;
  bool waitForMessage(int from, double seconds) const;
  absl::Status watch(const std::vector<int> &processes);

  std::unique_ptr<const mpi::Library> library;
  bool isStarted = false;
  int number = 0, count = 1;
  bool allHere = true;
  double limit = 60;
  std::mutex speaking;
  int owed = 0; ///< Answers of each other rank.
  /// Messages, each behind its size in 8 bytes: to send, or received.
  std::vector<uint8_t> batch;
  size_t taken = 0; ///< Bytes of a batch that next() has given.
  std::thread watcher;
  int stopWatching = -1; ///< An eventfd.
  /// A file in memory of the processes on rank 0's machine: the beats of rank 0
  /// in 8 bytes, then a byte for each rank, set once it has said why it ends.
  int board = -1;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_RANKS_RANKWORLD_H
