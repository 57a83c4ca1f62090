//===- ExchangeBench.cpp - Sums over ranks against MPI's own --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mpirun -n 2 llamac_exchange_bench
//
// How long it takes until every rank has the sum of float32 vectors of all: by
// areas in shared memory, by areas that MPI copies, and by MPI_Allreduce. The
// three take turns; the median of all rounds is printed, in microseconds.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Clock.h"
#include "runtime/ranks/ProcessExchange.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

using namespace llamac;

static constexpr int rounds = 41, sumsPerRound = 200;

/// Does what a step of a plan does: own values go to the area, then the sum of
/// all areas in the order of the ranks; areas have two halves, which take
/// turns.
static void sumOfAreas(ProcessExchange &exchange, const RankWorld &world,
                       bool half, const std::vector<float> &in,
                       std::vector<float> &out) {
  const size_t bytes = in.size() * sizeof(float);
  const size_t offset = half ? bytes : 0;
  std::memcpy(exchange.area(world.rank()) + offset, in.data(), bytes);
  exchange.exchange(offset, bytes);
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto *area =
        reinterpret_cast<const float *>(exchange.area(rank) + offset);
    if (rank == 0)
      std::memcpy(out.data(), area, bytes);
    else
      for (size_t i = 0; i < out.size(); ++i)
        out[i] += area[i];
  }
}

static absl::StatusOr<std::unique_ptr<ProcessExchange>>
sharedAreas(RankWorld &world, size_t bytes) {
  SharedFile file;
  if (world.rank() != 0) {
    std::memcpy(&file, world.next().data(), sizeof file);
    return shareAreas(world, bytes, file);
  }
  auto exchange = shareAreas(world, bytes, file);
  world.post({reinterpret_cast<const uint8_t *>(&file), sizeof file});
  world.flush();
  return exchange;
}

static absl::Status measure(RankWorld &world, size_t kib) {
  std::vector<float> in(kib * 256, static_cast<float>(world.rank() + 1));
  std::vector<float> out(in.size());
  auto shared = sharedAreas(world, 2 * kib * 1024);
  if (!shared.ok())
    return shared.status();
  auto copied = copyAreas(world, 2 * kib * 1024);
  if (!copied.ok())
    return copied.status();
  const mpi::Library &mpi = world.mpi();
  const std::function<void(bool)> ways[] = {
      [&](bool half) { sumOfAreas(**shared, world, half, in, out); },
      [&](bool half) { sumOfAreas(**copied, world, half, in, out); },
      [&](bool) {
        mpi.MPI_Allreduce(in.data(), out.data(), static_cast<int>(in.size()),
                          mpi.f32, mpi.sum, mpi.world);
      }};
  std::vector<double> seconds[std::size(ways)];
  for (int round = 0; round < rounds; ++round)
    for (size_t way = 0; way < std::size(ways); ++way) {
      (*shared)->finish();
      const double start = steadySeconds();
      for (int i = 0; i < sumsPerRound; ++i)
        ways[way](i % 2 != 0);
      seconds[way].push_back((steadySeconds() - start) / sumsPerRound);
      const auto expected =
          static_cast<float>(world.size() * (world.size() + 1) / 2);
      if (std::ranges::any_of(out, [&](float sum) { return sum != expected; }))
        return absl::InternalError("a sum is wrong");
    }
  if (world.rank() != 0)
    return absl::OkStatus();
  std::printf("%4zu KiB", kib);
  for (auto &all : seconds) {
    std::ranges::nth_element(all, all.begin() + rounds / 2);
    std::printf("  %8.1f", all[rounds / 2] * 1e6);
  }
  std::printf("\n");
  std::fflush(stdout);
  return absl::OkStatus();
}

int main() {
  const auto world = RankWorld::ofLaunch();
  if (!world.ok() || !*world) {
    std::fprintf(stderr,
                 "llamac_exchange_bench: error: start it with mpirun\n");
    return 2;
  }
  if ((*world)->rank() == 0)
    std::printf("us          shared    copied  MPI's own\n");
  for (const size_t kib : {8, 16, 32, 128})
    if (const absl::Status status = measure(**world, kib); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
  return 0;
}
