//===- Collectives.cpp - Warp collectives and barriers --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/HostileRounding.h"
#include "simulator/Machine.h"

#include "runtime/formats/FloatBits.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace llamac::sim {

const char *warpOpName(WarpOp op) {
  static constexpr const char *names[] = {
      "syncWarp", "a shuffle", "a ballot", "a reduction",
      "ldmatrix", "mma",       "wgmmaWait"};
  return names[static_cast<size_t>(op)];
}

//===----------------------------------------------------------------------===//
// Warps: the last lane computes for all
//===----------------------------------------------------------------------===//

uint32_t Group::runCollective(WarpArguments &&arguments) {
  Thread &self = *running;
  Block &block = *self.block;
  const uint32_t bit = 1u << self.lane();
  if (!(arguments.mask & bit))
    fail(absl::StrFormat("divergent warp collective: lane %u comes to "
                         "%s of lanes 0x%08x",
                         self.lane(), warpOpName(arguments.op),
                         arguments.mask));
  self.arguments = &arguments;
  // A block's last warp may have fewer lanes.
  const size_t inWarp = std::min<size_t>(
      32, block.threads.size() - static_cast<size_t>(self.warp()) * 32);
  const uint32_t mask =
      arguments.mask & (inWarp == 32 ? ~0u : (1u << inWarp) - 1);
  uint32_t &waiting = block.inWarp[self.warp()];
  bool complete = (waiting & mask) == (mask & ~bit);
  for (uint32_t lane = 0; complete && lane < inWarp; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const WarpArguments &other =
        *block.threads[self.warp() * 32 + lane].arguments;
    complete = other.op == arguments.op && other.mask == arguments.mask &&
               other.variant == arguments.variant;
  }
  if (!complete) {
    waiting |= bit;
    stopRunning(State::InWarp);
    return arguments.value;
  }
  computeWarp(self, mask);
  for (uint32_t lane = 0; lane < inWarp; ++lane)
    if (mask >> lane & 1)
      makeReady(block.threads[self.warp() * 32 + lane]);
  waiting &= ~mask;
  progressed();
  if (isRandom())
    stopRunning(State::Ready);
  return arguments.value;
}

/// The lane whose value a shuffle gives lane `lane`.
static uint32_t shuffleSource(int kind, uint32_t lane, uint32_t by) {
  switch (kind) {
  case SimShuffle::Lane:
    return by % 32;
  case SimShuffle::Xor:
    return lane ^ (by % 32);
  case SimShuffle::Down:
    return lane + by < 32 ? lane + by : lane;
  default:
    return lane >= by ? lane - by : lane;
  }
}

static uint32_t reduced(int kind, uint32_t a, uint32_t b) {
  switch (kind) {
  case SimReduce::Add:
    return a + b;
  case SimReduce::MinSigned:
    return static_cast<uint32_t>(
        std::min(static_cast<int32_t>(a), static_cast<int32_t>(b)));
  case SimReduce::MaxSigned:
    return static_cast<uint32_t>(
        std::max(static_cast<int32_t>(a), static_cast<int32_t>(b)));
  case SimReduce::MinUnsigned:
    return std::min(a, b);
  case SimReduce::MaxUnsigned:
    return std::max(a, b);
  default:
    return a | b;
  }
}

/// d += a b with the fragments of mma.m16n8k(8 * perWord), `perWord` elements
/// in a word: each lane holds 4 words of a, 2 of b and 4 elements of d, where
/// codegen/cuda/kernels/ptx.cuh says.
template <int perWord, class Element, class Sum, class Read>
static void multiplyFragments(Thread *const *lanes, const Read &read) {
  constexpr int depth = 8 * perWord;
  decltype(read(Element())) a[16][depth], b[depth][8];
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    const WarpArguments &own = *lanes[lane]->arguments;
    auto at = [&](int i) { return perWord * t + i % perWord; };
    for (int i = 0; i < 4 * perWord; ++i)
      a[g + i / perWord % 2 * 8][at(i) + i / (2 * perWord) * (depth / 2)] =
          read(static_cast<const Element *>(own.a)[i]);
    for (int i = 0; i < 2 * perWord; ++i)
      b[at(i) + i / perWord * (depth / 2)][g] =
          read(static_cast<const Element *>(own.b)[i]);
  }
  const auto site = static_cast<int>(lanes[0]->arguments->value);
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    auto *d = static_cast<Sum *>(lanes[lane]->arguments->d);
    for (int i = 0; i < 4; ++i) {
      const auto &row = a[g + i / 2 * 8];
      const int column = 2 * t + i % 2;
      const Sum before = d[i];
      for (int k = 0; k < depth; ++k)
        d[i] += row[k] * b[k][column];
      if constexpr (std::is_same_v<Sum, float>)
        if (site != 0)
          d[i] = hostileSum<depth>(
              d[i], before, row, [&](int k) { return b[k][column]; }, site);
    }
  }
}

static void multiplyFragments(int kind, Thread *const *lanes) {
  switch (kind) {
  case SimMma::Int8:
    return multiplyFragments<4, int8_t, int32_t>(
        lanes, [](int8_t value) { return int32_t{value}; });
  case SimMma::Bf16:
    return multiplyFragments<2, uint16_t, float>(lanes, bf16ToF32);
  default:
    return multiplyFragments<2, uint16_t, float>(lanes, f16ToF32);
  }
}

/// `variant` is the count of matrices, plus 8 when they are transposed.
void Group::loadMatrix(Thread *const *lanes, int variant) {
  const int count = variant & 7;
  uint16_t matrix[4][8][8];
  for (int i = 0; i < count; ++i)
    for (int row = 0; row < 8; ++row) {
      Thread &lane = *lanes[8 * i + row];
      const void *address = lane.arguments->a;
      if (reinterpret_cast<uintptr_t>(address) % 16)
        failIn(lane, "misaligned: a row of ldmatrix starts at a "
                     "multiple of 16 bytes");
      if (!isSharedOf(*lane.block, address))
        failIn(lane, "out of bounds: a row of ldmatrix is not in "
                     "shared memory");
      check(lane, address, 16, Access::Read);
      std::memcpy(matrix[i][row], address, 16);
    }
  for (size_t l = 0; l < 32; ++l) {
    auto *fragment = static_cast<uint32_t *>(lanes[l]->arguments->d);
    for (int i = 0; i < count; ++i) {
      const size_t g = l / 4, t = l % 4;
      const bool transpose = variant & 8;
      const uint32_t low =
          transpose ? matrix[i][2 * t][g] : matrix[i][g][2 * t];
      const uint32_t high =
          transpose ? matrix[i][2 * t + 1][g] : matrix[i][g][2 * t + 1];
      fragment[i] = low | high << 16;
    }
  }
}

void Group::computeWarp(Thread &last, uint32_t mask) {
  Thread *const first = &last.block->threads[last.index - last.lane()];
  Thread *lanes[32];
  uint32_t values[32] = {};
  uint32_t total = 0, votes = 0;
  bool empty = true;
  const WarpArguments &what = *last.arguments;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    lanes[lane] = first + lane;
    if (!(mask >> lane & 1))
      continue;
    const uint32_t value = lanes[lane]->arguments->value;
    values[lane] = value;
    total = empty ? value : reduced(what.variant, total, value);
    votes |= static_cast<uint32_t>(value != 0) << lane;
    empty = false;
  }
  const bool matrices = what.op == WarpOp::LoadMatrix ||
                        what.op == WarpOp::Mma || what.op == WarpOp::WgmmaWait;
  if (matrices && mask != ~0u)
    fail(absl::StrCat(warpOpName(what.op), " needs a whole warp"));
  switch (what.op) {
  case WarpOp::LoadMatrix:
    return loadMatrix(lanes, what.variant);
  case WarpOp::Mma:
    return multiplyFragments(what.variant, lanes);
  case WarpOp::WgmmaWait:
    return completeProducts(lanes, static_cast<uint32_t>(what.variant));
  case WarpOp::Sync:
    if (checked()) {
      BarrierClocks clocks;
      for (uint32_t lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1)
          clocks.add(lanes[lane]->knowledge, lanes[lane]->index,
                     lanes[lane]->clock++);
      const KnowledgeRef common = clocks.end();
      for (uint32_t lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1)
          lanes[lane]->knowledge = common;
    }
    return;
  case WarpOp::Shuffle:
  case WarpOp::Ballot:
  case WarpOp::Reduce:
    break;
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    WarpArguments &own = *lanes[lane]->arguments;
    if (what.op == WarpOp::Ballot) {
      own.value = votes;
    } else if (what.op == WarpOp::Reduce) {
      own.value = total;
    } else {
      const uint32_t source = shuffleSource(what.variant, lane, own.by);
      if (!(mask >> source & 1))
        failIn(*lanes[lane], absl::StrCat("a shuffle reads lane ", source,
                                          ", which does not take part"));
      own.value = values[source];
    }
  }
}

//===----------------------------------------------------------------------===//
// Barriers of a block
//===----------------------------------------------------------------------===//

void Group::arriveAtBarrier(uint32_t id, uint32_t threads, bool wait) {
  Thread &self = *running;
  Block &block = *self.block;
  if (id >= block.barriers.size())
    fail(absl::StrCat("barrier ", id, ": a block has 16"));
  if (threads % 32)
    fail(absl::StrCat("barrier ", id, " of ", threads,
                      " threads: expected whole warps"));
  if (threads == 0)
    threads = static_cast<uint32_t>(block.threads.size());
  Barrier &barrier = block.barriers[id];
  if (barrier.expected && barrier.expected != threads)
    fail(absl::StrCat("divergent barrier: barrier ", id, " of ", threads,
                      " threads here, of ", barrier.expected, " at ",
                      launch.module.place(barrier.sites.front())));
  if (self.arrivedAt >> id & 1) {
    const auto before = std::ranges::find(barrier.arrived, &self);
    fail(absl::StrCat(
        "double arrival: it is at barrier ", id, " already, since ",
        launch.module.place(barrier.sites[before - barrier.arrived.begin()])));
  }
  self.arrivedAt |= 1u << id;
  barrier.expected = threads;
  barrier.arrived.push_back(&self);
  barrier.sites.push_back(self.site);
  barrier.waits.push_back(wait);
  if (checked())
    barrier.clocks.add(self.knowledge, self.index, self.clock++);
  if (barrier.arrived.size() == threads) {
    endBarrier(block, id);
    if (isRandom())
      stopRunning(State::Ready);
  } else if (wait) {
    self.barrier = id;
    stopRunning(State::AtBarrier);
  }
}

void Group::endBarrier(Block &block, uint32_t id) {
  Barrier &barrier = block.barriers[id];
  KnowledgeRef common;
  if (checked()) {
    checkAligned(barrier);
    common = barrier.clocks.end();
  }
  for (size_t i = 0; i < barrier.arrived.size(); ++i) {
    barrier.arrived[i]->arrivedAt &= ~(1u << id);
    if (!barrier.waits[i])
      continue;
    if (common)
      barrier.arrived[i]->knowledge = common;
    makeReady(*barrier.arrived[i]);
  }
  barrier.expected = 0;
  barrier.arrived.clear();
  barrier.sites.clear();
  barrier.waits.clear();
  progressed();
}

/// The lanes of a warp come to a barrier together, so at one place. The
/// compiler may have copied the call; the source tells.
void Group::checkAligned(const Barrier &barrier) {
  std::vector<size_t> firstOfWarp(running->block->inWarp.size(), SIZE_MAX);
  for (size_t i = 0; i < barrier.arrived.size(); ++i) {
    const Thread &thread = *barrier.arrived[i];
    size_t &first = firstOfWarp[thread.warp()];
    if (first == SIZE_MAX)
      first = i;
    if (barrier.sites[first] == barrier.sites[i])
      continue;
    const std::string here = launch.module.place(barrier.sites[i]);
    const std::string there = launch.module.place(barrier.sites[first]);
    if (here != there)
      failAt(thread, barrier.sites[i],
             absl::StrCat("divergent barrier: thread ",
                          barrier.arrived[first]->index,
                          " of its warp is in the barrier at ", there));
  }
}

} // namespace llamac::sim
