//===- ProcessExchange.cpp - Exchanges between processes ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/ranks/ProcessExchange.h"

#include "runtime/base/Status.h"
#include "runtime/device/HostMemory.h"
#include "runtime/threads/ThreadPool.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace llamac {

// Areas begin on pages, so that each is memory of the rank that writes it
// first.
static constexpr uint64_t pageBytes = 4096;

static uint64_t wholePages(uint64_t size) {
  return (size + pageBytes - 1) / pageBytes * pageBytes;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

namespace {

/// An event count for each rank, of how often it has arrived; then the areas.
class SharedExchange final : public ProcessExchange {
public:
  SharedExchange(const RankWorld &world, uint64_t size, int file, uint8_t *map)
      : world(world), stride(wholePages(size)), file(file), map(map),
        arrivals(reinterpret_cast<EventCount *>(map)) {}
  ~SharedExchange() override {
    munmap(map, bytesOf(world.size(), stride));
    close(file);
  }

  static uint64_t firstArea(int ranks) {
    return wholePages(static_cast<uint64_t>(ranks) * sizeof(EventCount));
  }
  static uint64_t bytesOf(int ranks, uint64_t size) {
    return firstArea(ranks) + static_cast<uint64_t>(ranks) * wholePages(size);
  }

  uint8_t *area(int rank) const override {
    return map + firstArea(world.size()) + static_cast<uint64_t>(rank) * stride;
  }
  void exchange(uint64_t, uint64_t) override { meet(); }
  void finish() override { meet(); }

private:
  void meet();

  const RankWorld &world;
  const uint64_t stride;
  const int file;
  uint8_t *const map;
  EventCount *const arrivals; ///< Numbered by rank.
  uint32_t met = 0;
};

} // namespace

/// A rank that goes on may arrive once more before this one has looked.
void SharedExchange::meet() {
  ++met;
  arrivals[world.rank()].advance();
  for (int rank = 0; rank < world.size(); ++rank) {
    EventCount &other = arrivals[rank];
    for (uint32_t now = other.load(); static_cast<int32_t>(now - met) < 0;
         now = other.load())
      if (!other.waitWhile(now, world.patience()))
        world.endWithout(rank);
  }
}

absl::StatusOr<std::unique_ptr<ProcessExchange>>
shareAreas(const RankWorld &world, uint64_t size, SharedFile &shared) {
  auto failed = [](absl::string_view what) {
    return systemError(errno, absl::StrCat("memory that ranks share: ", what),
                       memoryError);
  };
  const bool makes = world.rank() == 0;
  const uint64_t bytes = SharedExchange::bytesOf(world.size(), size);
  const int file = makes ? memfd_create("llamac-ranks", MFD_CLOEXEC)
                         : open(absl::StrCat("/proc/", shared.process, "/fd/",
                                             shared.descriptor)
                                    .c_str(),
                                O_RDWR | O_CLOEXEC);
  if (file < 0)
    return failed("cannot be opened");
  auto closeFile = absl::MakeCleanup([&] { close(file); });
  if (makes && ftruncate(file, static_cast<off_t>(bytes)) != 0)
    return failed(absl::StrCat(bytes, " bytes cannot be had"));
  void *map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map == MAP_FAILED)
    return failed("cannot be mapped");
  std::move(closeFile).Cancel();
  auto exchange = std::make_unique<SharedExchange>(world, size, file,
                                                   static_cast<uint8_t *>(map));
  if (makes) {
    for (int rank = 0; rank < world.size(); ++rank)
      new (static_cast<uint8_t *>(map) +
           static_cast<uint64_t>(rank) * sizeof(EventCount))
          EventCount(/*isShared=*/true);
    shared = {getpid(), file};
  }
  return exchange;
}

//===----------------------------------------------------------------------===//
// MPI
//===----------------------------------------------------------------------===//

namespace {

class CopiedExchange final : public ProcessExchange {
public:
  CopiedExchange(const RankWorld &world, uint64_t stride,
                 std::unique_ptr<Buffer> areas)
      : world(world), stride(stride), areas(std::move(areas)), in(world.size()),
        out(world.size()) {}

  uint8_t *area(int rank) const override {
    return static_cast<uint8_t *>(areas->address()) +
           static_cast<uint64_t>(rank) * stride;
  }
  void exchange(uint64_t offset, uint64_t size) override;

private:
  const RankWorld &world;
  const uint64_t stride;
  const std::unique_ptr<Buffer> areas;
  std::vector<mpi::Request> in, out; ///< Messages of an exchange, by rank.
};

} // namespace

/// Every rank sends its bytes to every other: they are few, and so there is one
/// way of the network in each exchange.
void CopiedExchange::exchange(uint64_t offset, uint64_t size) {
  constexpr int tag = 2; // Messages have another.
  const mpi::Library &mpi = world.mpi();
  const auto count = static_cast<int>(size);
  for (int rank = 0; rank < world.size(); ++rank) {
    if (rank == world.rank())
      continue;
    mpi.MPI_Irecv(area(rank) + offset, count, mpi.byte, rank, tag, mpi.world,
                  &in[rank]);
    mpi.MPI_Isend(area(world.rank()) + offset, count, mpi.byte, rank, tag,
                  mpi.world, &out[rank]);
  }
  for (auto *requests : {&in, &out})
    for (int rank = 0; rank < world.size(); ++rank)
      if (rank != world.rank())
        world.await((*requests)[rank], rank);
}

absl::StatusOr<std::unique_ptr<ProcessExchange>>
copyAreas(const RankWorld &world, uint64_t size) {
  if (size > INT_MAX)
    return memoryError(absl::StrCat("exchange area: expected at most ", INT_MAX,
                                    " bytes for MPI, got ", size,
                                    "; compile with a smaller --chunk"));
  const uint64_t stride = wholePages(size);
  LLAMAC_ASSIGN_OR_RETURN(
      auto areas,
      allocateHostMemory(static_cast<uint64_t>(world.size()) * stride));
  return std::make_unique<CopiedExchange>(world, stride, std::move(areas));
}

} // namespace llamac
