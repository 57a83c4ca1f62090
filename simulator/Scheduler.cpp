//===- Scheduler.cpp - Which thread runs, and what stops them all ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/Machine.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace llamac::sim {

/// The group of this host thread.
static Group *&currentGroup() {
  static thread_local Group *group = nullptr;
  return group;
}

Group &Group::current() { return *currentGroup(); }

//===----------------------------------------------------------------------===//
// Kernels take any number of pointers, or a table of them, then a row count
//===----------------------------------------------------------------------===//

template <size_t> using Pointer = void *;

template <size_t... index>
static void callWith(const void *kernel, void *const *args, int32_t rows,
                     std::index_sequence<index...>) {
  using Function = void (*)(Pointer<index>..., int32_t);
  reinterpret_cast<Function>(const_cast<void *>(kernel))(args[index]..., rows);
}

template <size_t count>
static void callKernel(const void *kernel, const std::vector<void *> &args,
                       int32_t rows) {
  if (args.size() == count)
    return callWith(kernel, args.data(), rows,
                    std::make_index_sequence<count>());
  if constexpr (count > 0)
    callKernel<count - 1>(kernel, args, rows);
}

/// The first function of every fiber.
void runFiber() {
  Group &group = Group::current();
  const SimLaunch &launch = group.launch.launch;
  // The fiber of a kernel that fails frees nothing.
  void *const table = const_cast<void **>(launch.args.data());
  if (launch.table)
    callWith(group.launch.kernel, &table, launch.rows,
             std::index_sequence<0>());
  else
    callKernel<32>(group.launch.kernel, launch.args, launch.rows);
  group.exitThread();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Unused bytes on each side of shared variables.
static constexpr uint32_t gap = 1024;
/// CUDA limits static shared variables to this size.
static constexpr uint32_t staticLimit = 48 * 1024;

static uint32_t roundUp(uint32_t value, uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

static SimSize positionOf(uint32_t index, const SimSize &size) {
  return {index % size.x, index / size.x % size.y, index / size.x / size.y};
}

Group::Group(Launch &launch, uint64_t seed) : launch(launch), random(seed) {
  variables.push_back(
      {nullptr, "dynamic shared memory", gap, launch.launch.sharedBytes});
}

Group::~Group() {
  for (const std::unique_ptr<Block> &block : blocks)
    discard(*block);
}

void Group::discard(Block &block) {
  for (Thread &thread : block.threads)
    if (thread.stack)
      launch.stacks.giveBack(thread.stack);
  std::free(block.shared);
  block.threads.clear();
  block.shared = nullptr;
}

void Group::prepare(Block &block, uint32_t index) {
  const uint32_t count = static_cast<uint32_t>(launch.launch.block.count());
  const size_t sharedBytes =
      2 * gap + roundUp(launch.launch.sharedBytes, gap) + 2 * staticLimit;
  block.index = index;
  block.sharedBytes = sharedBytes;
  block.position = positionOf(index, launch.launch.grid);
  if (block.threads.empty()) {
    block.threads = std::vector<Thread>(count);
    block.shared =
        static_cast<std::byte *>(std::aligned_alloc(gap, sharedBytes));
  }
  const uint32_t warps = (count + 31) / 32;
  for (uint32_t warp = 0; warp < warps; ++warp)
    firstThreads[block.firstWarp + warp] = &block.threads[warp * 32];
  block.held.assign(warps, 0);
  block.inWarp.assign(warps, 0);
  block.barriers = {};
  block.memoryBarriers.clear();
  block.bulkCopies.clear();
  block.products.assign(count / 128, {});
  block.reached.clear();
  block.atEnd = nullptr;
  block.sharedShadow.clear();
  // All bits set are NaN in every float format.
  std::memset(block.shared, 0xff, sharedBytes);
  KnowledgeRef nothing;
  if (checked()) {
    block.sharedState.assign(sharedBytes, ByteState::Undefined);
    auto knowledge = std::make_shared<Knowledge>();
    knowledge->own.resize(count);
    nothing = std::move(knowledge);
  }
  for (uint32_t i = 0; i < count; ++i) {
    Thread &thread = block.threads[i];
    if (!thread.stack)
      thread.stack = launch.stacks.take();
    thread.block = &block;
    thread.index = i;
    thread.position = positionOf(i, launch.launch.block);
    if (!thread.stack) {
      report(thread, nullptr, "no memory for the stacks of its threads");
      return;
    }
    // Frames of the same depth would else share one set of a cache.
    const size_t stagger = i % 32 * 128;
    thread.fiber.start(thread.stack, StackPool::stackBytes - stagger, runFiber);
    thread.site = nullptr;
    thread.arrivedAt = 0;
    thread.looks = mostLooks;
    thread.found = 0;
    thread.hasWaited = false;
    thread.copies.clear();
    thread.groupEnds.clear();
    thread.copiesDone = 0;
    thread.products.clear();
    thread.hasArrivedAtCluster = false;
    thread.clusterPhase = 0;
    thread.clock = 1;
    thread.proxyFences.clear();
    thread.knowledge = nothing;
    thread.fenced = thread.received = nullptr;
    makeReady(thread);
  }
  block.live = count;
  live += count;
}

bool Group::run(const uint32_t *blockIndices, size_t count) {
  launchesAreDone = true;
  prepareAll(blockIndices, count);
  scheduleHere();
  return !launch.failed;
}

void Group::prepareAll(const uint32_t *blockIndices, size_t count) {
  live = 0;
  progressed();
  stop = false;
  yielded.clear();
  clusterBarriers.clear();
  random.seed(launch.options.seed * 0x9e3779b97f4a7c15u + blockIndices[0]);
  stalled = nullptr;
  stalledRuns = false;
  const size_t warps = (launch.launch.block.count() + 31) / 32;
  firstThreads.resize(count * warps);
  runnable.assign(count * warps, 0);
  runnableWarps.assign((count * warps + 63) / 64, 0);
  // Only blocks that wait for each other have to run together.
  size_t standing = count;
  if (launch.options.schedule == SimSchedule::Stalled && count > 1 &&
      (launch.launch.cooperative || launch.launch.cluster > 1))
    standing = random() % count;
  for (size_t i = 0; i < count && !stop; ++i) {
    if (blocks.size() == i)
      blocks.push_back(std::make_unique<Block>());
    if (i == standing)
      stalled = blocks[i].get();
    blocks[i]->firstWarp = i * warps;
    prepare(*blocks[i], blockIndices[i]);
  }
}

void Group::scheduleHere() {
  Group *const outer = std::exchange(currentGroup(), this);
  schedule();
  currentGroup() = outer;
}

//===----------------------------------------------------------------------===//
// Scheduling
//===----------------------------------------------------------------------===//

void Group::schedule() {
  while (live > 0 && !stop && !launch.failed) {
    Thread *next = pick();
    if (next) {
      running = next;
      scheduler.switchTo(next->fiber);
      continue;
    }
    if (!launchesAreDone && hasEarlyThreads())
      return;
    if (runBulkCopy())
      continue;
    if (!startIdleRound()) {
      failStuck();
      return;
    }
  }
}

bool Group::startIdleRound() {
  // The others look so often between two turns of the block that stands still.
  constexpr uint32_t standstill = 20;
  // Polling threads look again this often before they count as stuck; more
  // often where a block has so few turns.
  constexpr uint32_t patience = 2000;
  if (++idleRounds > (stalled ? 4 * patience : patience))
    return false;
  ++heldRounds;
  const bool othersPoll =
      std::any_of(yielded.begin(), yielded.end(), [this](const Thread *thread) {
        return thread->block != stalled;
      });
  stalledRuns = stalled && (!othersPoll || heldRounds >= standstill);
  if (stalledRuns) {
    heldRounds = 0;
    if (wake(/*ofStalled=*/true))
      return true;
    stalledRuns = false;
  }
  return wake(/*ofStalled=*/false);
}

bool Group::wake(bool ofStalled) {
  bool isAwake = false;
  std::erase_if(yielded, [&](Thread *thread) {
    if ((thread->block == stalled) != ofStalled)
      return false;
    makeReady(*thread);
    return isAwake = true;
  });
  if (ofStalled)
    for (size_t warp = 0; warp < stalled->held.size(); ++warp)
      if (const uint32_t lanes = std::exchange(stalled->held[warp], 0)) {
        makeRunnable(*stalled, warp, lanes);
        isAwake = true;
      }
  return isAwake;
}

Thread *Group::pick() {
  switch (launch.options.schedule) {
  case SimSchedule::Forward:
    for (size_t i = 0; i < runnableWarps.size(); ++i)
      if (const uint64_t bits = runnableWarps[i]) {
        const size_t warp = 64 * i + std::countr_zero(bits);
        return firstThreads[warp] + std::countr_zero(runnable[warp]);
      }
    return nullptr;
  case SimSchedule::Reverse:
    for (size_t i = runnableWarps.size(); i-- > 0;)
      if (const uint64_t bits = runnableWarps[i]) {
        const size_t warp = 64 * i + 63 - std::countl_zero(bits);
        return firstThreads[warp] + 31 - std::countl_zero(runnable[warp]);
      }
    return nullptr;
  case SimSchedule::Random:
  case SimSchedule::Stalled:
    return pickAtRandom();
  }
  return nullptr;
}

Thread *Group::pickAtRandom() {
  const uint64_t draw = random();
  const std::optional<size_t> warp = runnableFrom(draw % runnable.size());
  if (!warp)
    return nullptr;
  uint32_t lanes = runnable[*warp];
  for (uint32_t skip = static_cast<uint32_t>(draw >> 32) %
                       static_cast<uint32_t>(std::popcount(lanes));
       skip > 0; --skip)
    lanes &= lanes - 1;
  return firstThreads[*warp] + std::countr_zero(lanes);
}

std::optional<size_t> Group::runnableFrom(size_t first) const {
  const size_t words = runnableWarps.size();
  const uint64_t before = (uint64_t{1} << first % 64) - 1;
  // The word of the first is the first to look at, and the last.
  size_t word = first / 64;
  for (size_t i = 0; i <= words; ++i) {
    const uint64_t mask = i == 0 ? ~before : i == words ? before : ~uint64_t{0};
    if (const uint64_t bits = runnableWarps[word] & mask)
      return 64 * word + std::countr_zero(bits);
    if (++word == words)
      word = 0;
  }
  return std::nullopt;
}

void Group::makeRunnable(const Block &block, size_t warp, uint32_t lanes) {
  const size_t number = block.firstWarp + warp;
  runnable[number] |= lanes;
  runnableWarps[number / 64] |= uint64_t{1} << number % 64;
}

void Group::makeReady(Thread &thread) {
  Block &block = *thread.block;
  thread.state = State::Ready;
  const uint32_t lane = 1u << thread.lane();
  if (&block == stalled && !stalledRuns)
    block.held[thread.warp()] |= lane;
  else
    makeRunnable(block, thread.warp(), lane);
}

void Group::stopRunning(State state) {
  Thread &thread = *running;
  thread.state = state;
  if (state != State::Ready) {
    const size_t number = thread.block->firstWarp + thread.warp();
    runnable[number] &= ~(1u << thread.lane());
    if (!runnable[number])
      runnableWarps[number / 64] &= ~(uint64_t{1} << number % 64);
  }
  // Straight to the next one: the scheduler is for what no thread can do.
  Thread *next = live > 0 && !stop && !launch.failed ? pick() : nullptr;
  if (next == &thread)
    return;
  if (next)
    running = next;
  thread.fiber.switchTo(next ? next->fiber : scheduler);
}

void Group::yield(const void *polled) {
  running->polled = polled;
  yielded.push_back(running);
  stopRunning(State::Yielded);
}

void Group::exitThread() {
  if (const std::deque<Product> &products = running->products.underWay;
      !products.empty())
    failAt(*running, products.front().site,
           "a product under way: the thread ends without a wait for it");
  if (isEarly(*running))
    failAt(*running, nullptr,
           "dependent launch: a thread ends without gridDependencyWait, "
           "so the next launch need not wait for the one before");
  --running->block->live;
  --live;
  progressed();
  if (launch.launch.cluster > 1) {
    checkEnd(*running->block);
    endClusterPhaseIfDone(*running->block);
  }
  stopRunning(State::Exited);
  std::abort();
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static std::string coordinates(const SimSize &position, const SimSize &size) {
  if (size.y == 1 && size.z == 1)
    return absl::StrCat(position.x);
  return absl::StrCat("(", position.x, ",", position.y, ",", position.z, ")");
}

void Group::report(const Thread &thread, const void *site,
                   const std::string &what) {
  std::lock_guard<std::mutex> lock(launch.errorMutex);
  stop = true;
  if (launch.failed.exchange(true))
    return;
  launch.error = absl::StrCat(
      site ? absl::StrCat(launch.module.place(site), ": ") : "", what,
      " (kernel ", launch.launch.kernel, ", block ",
      coordinates(thread.block->position, launch.launch.grid), ", thread ",
      coordinates(thread.position, launch.launch.block), ")");
}

void Group::failAt(const Thread &thread, const void *site,
                   const std::string &what) {
  report(thread, site, what);
  running->fiber.switchTo(scheduler);
  std::abort();
}

std::string Group::waitingAt(const Thread &thread) const {
  std::string where;
  switch (thread.state) {
  case State::Exited:
    return "has exited";
  case State::Ready:
  case State::Yielded:
    where = "polls";
    break;
  case State::InWarp:
    where = absl::StrFormat("waits in %s of lanes 0x%08x",
                            warpOpName(thread.arguments->op),
                            thread.arguments->mask);
    break;
  case State::AtCluster:
    where = absl::StrCat(
        "waits in the barrier of its cluster with ",
        clusterBarriers.at(thread.block->index / launch.launch.cluster).arrived,
        " of ", liveInCluster(*thread.block), " threads");
    break;
  case State::AtLaunches:
    where = "waits for previous launches";
    break;
  case State::AtBarrier: {
    const Barrier &barrier = thread.block->barriers[thread.barrier];
    where = absl::StrCat("waits in barrier ", thread.barrier, " with ",
                         barrier.arrived.size(), " of ", barrier.expected,
                         " threads");
    break;
  }
  }
  absl::StrAppend(&where, " at ", launch.module.place(thread.site));
  uintptr_t start = 0;
  if (thread.state == State::Yielded && thread.polled &&
      (isSharedOf(*thread.block, thread.polled) ||
       launch.memory.find(thread.polled, start)))
    absl::StrAppend(&where, " for ", describe(*thread.block, thread.polled));
  return where;
}

std::string Group::othersWaiting(const Thread &first) const {
  // One thread stands for all in the same state at the same place.
  struct Kind {
    const Thread *thread;
    size_t count;
  };
  std::vector<Kind> kinds = {{&first, 0}};
  for (const std::unique_ptr<Block> &block : blocks)
    for (const Thread &thread : block->threads) {
      auto kind =
          std::find_if(kinds.begin(), kinds.end(), [&](const Kind &kind) {
            return kind.thread->state == thread.state &&
                   (kind.thread->site == thread.site ||
                    thread.state == State::Exited);
          });
      if (kind == kinds.end())
        kind = kinds.insert(kind, {&thread, 0});
      ++kind->count;
    }
  constexpr size_t mostNamed = 8;
  std::string text;
  size_t unnamed = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const auto [thread, count] = kinds[i];
    if (i >= mostNamed) {
      unnamed += count;
      continue;
    }
    if (i > 0)
      absl::StrAppend(&text, "; thread ",
                      coordinates(thread->position, launch.launch.block),
                      " of block ",
                      coordinates(thread->block->position, launch.launch.grid),
                      " ", waitingAt(*thread));
    if (count > 1)
      absl::StrAppend(&text, " (and ", count - 1, " more)");
  }
  if (unnamed > 0)
    absl::StrAppend(&text, "; ", unnamed, " threads elsewhere");
  return text;
}

void Group::failStuck() {
  // A polling thread explains the most: others wait for it. Then a lane that
  // waits for its warp, then one at a barrier.
  const Thread *first = nullptr;
  auto rank = [](State state) {
    return state == State::Yielded                                  ? 3
           : state == State::InWarp                                 ? 2
           : state == State::AtBarrier || state == State::AtCluster ? 1
                                                                    : 0;
  };
  for (const std::unique_ptr<Block> &block : blocks)
    for (const Thread &thread : block->threads)
      if (!first || rank(thread.state) > rank(first->state))
        first = &thread;

  // A thread that it waits for, or at least one at another place.
  const Thread *other = nullptr;
  for (const Thread &thread : first->block->threads) {
    if (thread.state == first->state && thread.site == first->site)
      continue;
    if (first->state == State::InWarp &&
        (thread.warp() != first->warp() ||
         !(first->arguments->mask >> thread.lane() & 1)))
      continue;
    other = &thread;
    break;
  }
  const char *kind =
      first->state == State::InWarp ? "divergent warp collective"
      : first->state == State::AtBarrier || first->state == State::AtCluster
          ? "divergent barrier"
          : "deadlock";
  std::string what = absl::StrCat(kind, ": it ", waitingAt(*first));
  if (first->state == State::Yielded && blocks.size() > 1)
    what += othersWaiting(*first);
  else if (other)
    absl::StrAppend(&what, ", but thread ", other->index, " ",
                    waitingAt(*other));
  else if (first->state == State::Yielded)
    absl::StrAppend(&what, " for what no resident block does");
  report(*first, first->site, what);
}

std::string Group::threadName(uint32_t block, uint32_t thread) const {
  std::string name = absl::StrCat(
      "thread ", coordinates(positionOf(thread, launch.launch.block),
                             launch.launch.block));
  if (block != running->block->index)
    absl::StrAppend(
        &name, " of block ",
        coordinates(positionOf(block, launch.launch.grid), launch.launch.grid));
  return name;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void *Group::sharedStatic(const void *key, const char *name, uint32_t size,
                          uint32_t alignment) {
  std::byte *shared = running->block->shared;
  for (const SharedVariable &variable : variables)
    if (variable.key == key)
      return shared + variable.offset;
  // Its first use in this launch gives it its place, the same in all blocks.
  const uint32_t last = variables.back().offset + variables.back().size;
  constexpr uint32_t between = 64;
  const uint32_t offset = roundUp(
      last + (variables.size() == 1 ? gap : between), std::max(alignment, 16u));
  staticBytes += size;
  if (staticBytes > staticLimit)
    fail(absl::StrCat("static shared memory needs ", staticBytes,
                      " B, a block has ", staticLimit, " B"));
  if (staticBytes + launch.launch.sharedBytes > launch.options.sharedLimit)
    fail(absl::StrCat("needs ", staticBytes + launch.launch.sharedBytes,
                      " B of shared memory, a block has ",
                      launch.options.sharedLimit, " B"));
  variables.push_back({key, name, offset, size});
  return shared + offset;
}

uint32_t Group::sharedAddress(const void *shared) {
  const Block &block = *running->block;
  if (!isSharedOf(block, shared))
    fail("out of bounds: the shared address of what is elsewhere");
  return static_cast<uint32_t>(static_cast<const std::byte *>(shared) -
                               block.shared);
}

std::byte *Group::sharedDynamic() const { return running->block->shared + gap; }

} // namespace llamac::sim
