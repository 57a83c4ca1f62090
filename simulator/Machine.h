//===- Machine.h - Threads, warps and blocks of a launch --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Launch is shared by all blocks of a launch. A Group is the blocks that are
// resident together on one host thread, with the scheduler of their threads:
// one block, the blocks of a cluster, or all of a cooperative launch.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_MACHINE_H
#define LLAMAC_SIMULATOR_MACHINE_H

#include "simulator/Clocks.h"
#include "simulator/Fiber.h"
#include "simulator/Shadow.h"
#include "simulator/SimCalls.h"
#include "simulator/SimTensorMap.h"
#include "simulator/Simulator.h"
#include "simulator/Words.h"

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace llamac::sim {

/// The table that a loaded module calls.
const SimCalls &calls();

struct Block;
class Group;

enum class State : uint8_t {
  Ready,
  Yielded, ///< Polls; runs again when no other thread can.
  InWarp,  ///< Waits for lanes of its warp.
  AtBarrier,
  AtCluster,  ///< Waits for threads of all blocks of its cluster.
  AtLaunches, ///< Waits for previous launches.
  Exited,
};

/// A collective of a warp.
enum class WarpOp : uint8_t {
  Sync,
  Shuffle,
  Ballot,
  Reduce,
  LoadMatrix,
  Mma,
  WgmmaWait
};
const char *warpOpName(WarpOp op);

struct WarpArguments {
  WarpOp op = WarpOp::Sync;
  int variant = 0; ///< Kind of shuffle or reduction, shape of a matrix, groups
                   ///< that may be pending.
  uint32_t mask = 0;
  uint32_t value = 0; ///< In: the lane's; out: its result.
  uint32_t by = 0;    ///< The distance or lane of a shuffle.
  void *d = nullptr;  ///< Operands of a matrix product.
  const void *a = nullptr;
  const void *b = nullptr;
};

/// A copy to shared memory under way.
struct AsyncCopy {
  std::byte *to = nullptr;
  const std::byte *from = nullptr;
  uint32_t size = 0;
  uint32_t valid = 0; ///< Bytes that are read; the others become zero.
  const void *site = nullptr;
  /// The source at the issue, which a copy in a prologue brings.
  std::vector<std::byte> taken = {};
};

/// A product of a warpgroup that a thread has issued and not waited for.
struct Product {
  SimWgmma what;
  std::array<uint32_t, 4> a = {}; ///< Its registers as they were at the issue.
  const void *site = nullptr;
  size_t aNumber = 0, dNumber = 0; ///< Numbers of the registers.
};

/// Registers that products use, by their place on the thread's stack.
struct ProductRegisters {
  std::byte *at = nullptr;
  uint32_t size = 0;
  uint32_t underWay = 0; ///< Products that use them.
  bool areSums = false;
  const void *site = nullptr; ///< The last product's place.
  /// Their contents at the last fence, or when the last product was done.
  std::vector<uint32_t> ordered;
  /// Sums while products are under way: what they come to so far.
  std::vector<float> sums;
};

/// The products that a thread has issued.
struct Products {
  std::deque<Product> underWay;   ///< In the order of issue.
  std::deque<uint64_t> groupEnds; ///< Counted from the first of the thread.
  uint64_t done = 0;
  bool fenced = false; ///< Ever.
  std::vector<ProductRegisters> registers;

  /// The sums of the oldest product.
  ProductRegisters &oldestSums() { return registers[underWay.front().dNumber]; }

  void clear() {
    underWay.clear();
    groupEnds.clear();
    done = 0;
    fenced = false;
    registers.clear();
  }
};

struct Thread {
  Fiber fiber;
  std::byte *stack = nullptr;
  Block *block = nullptr;
  uint32_t index = 0;
  SimSize position;
  State state = State::Ready;
  const void *site = nullptr; ///< Its last call or access, which errors name.
  WarpArguments *arguments = nullptr; ///< InWarp: what it waits with.
  uint32_t barrier = 0;               ///< AtBarrier: where.
  uint32_t arrivedAt = 0; ///< A bit for each barrier that waits for others.
  const void *polled = nullptr; ///< Yielded: what it looks at.
  uint32_t looks = 0;     ///< Looks that may find their words before it yields.
  uint32_t found = 0;     ///< Looks in a row that have found theirs.
  bool hasWaited = false; ///< For previous launches.

  /// Copies in the order of issue; a group ends behind each of `groupEnds`,
  /// counted from the first copy of the thread.
  std::deque<AsyncCopy> copies;
  std::deque<uint64_t> groupEnds;
  uint64_t copiesDone = 0;
  Products products;
  bool hasArrivedAtCluster = false;
  uint32_t clusterPhase = 0; ///< The phase of its last arrival.

  uint32_t clock = 1;
  std::vector<uint32_t> proxyFences; ///< Clocks of its fenceProxyAsync.
  KnowledgeRef knowledge;
  std::shared_ptr<const GridClocks> fenced;   ///< Released by its last fence.
  std::shared_ptr<const GridClocks> received; ///< A fence will acquire it.

  uint32_t warp() const { return index / 32; }
  uint32_t lane() const { return index % 32; }
};

struct Barrier {
  uint32_t expected = 0; ///< Threads; 0: none has arrived.
  std::vector<Thread *> arrived;
  std::vector<const void *> sites; ///< The place of each arrival.
  std::vector<bool> waits;
  BarrierClocks clocks;
};

/// A barrier in shared memory, by its address.
struct MemoryBarrier {
  uint32_t arrivals = 0;
  uint32_t pending = 0;
  int64_t bytes = 0; ///< Expected and not yet copied.
  uint32_t phase = 0;
  KnowledgeRef gathered; ///< Knowledge from this phase's arrivals.
  KnowledgeRef released; ///< Knowledge from the phases before.
};

/// The box of a matrix that a copy brings.
struct TensorBox {
  SimTensorMap map;
  int64_t column = 0;
  int64_t row = 0;
};

/// A copy to the shared memory of one block, whose barrier it counts at.
struct BulkCopy {
  AsyncCopy copy;
  Thread *thread = nullptr; ///< The thread that issued it, maybe of another
                            ///< block.
  unsigned long *barrier = nullptr;
  KnowledgeRef knowledge;       ///< Knowledge that the block receives with it.
  std::optional<TensorBox> box; ///< None: bytes as they lie.
};

/// Operands and sums of one product of a warp.
struct ProductTile {
  static constexpr uint32_t rows = 16;
  static constexpr uint32_t depth = 16;
  static constexpr uint32_t mostColumns = 256;

  float a[rows][depth];
  float b[depth][mostColumns];
  float sums[rows][mostColumns];
};

/// Identifies a product: all warps of a warpgroup issue the same ones.
using ProductKey = std::array<uint64_t, 3>;

/// A variable of shared memory, or all of the dynamic part.
struct SharedVariable {
  const void *key = nullptr;
  std::string name;
  uint32_t offset = 0;
  uint32_t size = 0;
};

enum class ByteState : uint8_t { Undefined, Defined, UnderWay };

struct Block {
  uint32_t index = 0;
  SimSize position;
  std::vector<Thread> threads;
  size_t firstWarp = 0;         ///< The number of the first in the group.
  std::vector<uint32_t> held;   ///< Lanes that would be runnable if the block
                                ///< did not stall.
  std::vector<uint32_t> inWarp; ///< Lanes that wait for their warp.
  uint32_t live = 0;
  std::array<Barrier, 16> barriers;
  std::map<unsigned long *, MemoryBarrier> memoryBarriers;
  std::deque<BulkCopy> bulkCopies;
  std::vector<std::vector<ProductKey>> products; ///< Products by warpgroup.
  /// Checked clusters: the last access of each thread of another block, and
  /// what the threads that have ended know together.
  std::vector<Epoch> reached;
  KnowledgeRef atEnd;
  std::byte *shared = nullptr;
  size_t sharedBytes = 0; ///< With the gaps between variables.
  Shadow sharedShadow;
  std::vector<ByteState> sharedState;
};

/// The barrier of all threads of a cluster.
struct ClusterBarrier {
  uint32_t arrived = 0;
  uint32_t phase = 0;
  std::vector<Thread *> waiting;
  std::vector<BarrierClocks> clocks;  ///< Clocks by rank.
  std::vector<KnowledgeRef> released; ///< Knowledge by rank, of the phase
                                      ///< before.
};

/// The state that all blocks of a launch share.
struct Launch {
  const SimModule &module;
  const SimLaunch &launch;
  const SimOptions &options;
  SimMemory &memory;
  StackPool &stacks;
  const void *kernel;

  std::atomic<uint64_t> nextBlock{0};
  std::vector<uint32_t> blockOrder = {};

  std::mutex errorMutex = {};
  std::string error = {}; ///< The first one.
  std::atomic<bool> failed{false};

  // Checked launches, which have one host thread.
  Shadow globalShadow = {};
  Words words = {};
  std::map<const void *, std::shared_ptr<const GridClocks>> atomics = {};
};

/// The last writer of each byte of global memory, of the launches since the
/// last one that was not dependent. Checked launches only.
class ChainWrites {
public:
  struct Writer {
    std::string kernel; ///< Empty: never written.
    const void *site = nullptr;
  };

  void clear() { pages.clear(); }
  void add(Launch &launch);
  Writer find(uintptr_t address) const;

private:
  struct Page {
    std::array<uint32_t, Shadow::pageBytes> launches{}; ///< Numbers, from 1.
    std::array<const void *, Shadow::pageBytes> sites{};
  };

  std::unordered_map<uintptr_t, Page> pages;
  std::vector<std::string> kernels;
};

class Group {
public:
  Group(Launch &launch, uint64_t seed);
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;
  ~Group();

  /// Runs these blocks to their end. False when something failed, here or in
  /// another group.
  bool run(const uint32_t *blockIndices, size_t count);

  /// run() in two halves: the prologue, up to gridDependencyWait, and the rest.
  /// Other groups run on this host thread in between.
  void begin(const uint32_t *blockIndices, size_t count);
  void resume();
  /// Error when the prologue has read what previous launches wrote.
  void checkEarlyReads(const ChainWrites &written);

  /// The group and thread that run on this host thread; for the calls.
  static Group &current();
  Thread &thread() { return *running; }
  Launch &launch;

  bool checked() const { return launch.options.checked; }
  /// Whether the seed decides which thread runs next.
  bool isRandom() const {
    return launch.options.schedule == SimSchedule::Random ||
           launch.options.schedule == SimSchedule::Stalled;
  }

  /// Ends the launch with one line: a place, by default that of the thread's
  /// call, the thread, by default the running one, and `what`.
  [[noreturn]] void fail(const std::string &what) { failIn(*running, what); }
  [[noreturn]] void failIn(const Thread &thread, const std::string &what) {
    failAt(thread, thread.site, what);
  }
  [[noreturn]] void failAt(const Thread &thread, const void *site,
                           const std::string &what);

  /// Gives the result of the running lane.
  uint32_t runCollective(WarpArguments &&arguments);
  void arriveAtBarrier(uint32_t id, uint32_t threads, bool wait);
  /// Lets other threads run first; the running one polls `polled`, or nothing.
  void yield(const void *polled);
  /// Waits for previous launches.
  void waitForLaunches();
  /// After a store that a polling thread may wait for.
  void progressed() { idleRounds = heldRounds = 0; }

  // Shared memory.
  uint32_t sharedAddress(const void *shared);
  void *sharedStatic(const void *key, const char *name, uint32_t size,
                     uint32_t alignment);
  std::byte *sharedDynamic() const;

  // Asynchronous copies.
  void cpAsync(AsyncCopy copy);
  void cpAsyncCommit();
  void cpAsyncWait(uint32_t pending);
  void bulkCopy(AsyncCopy copy, unsigned long *barrier);
  void fenceProxyAsync();
  void initBarrier(unsigned long *barrier, uint32_t arrivals);
  void arriveAt(unsigned long *barrier, uint32_t bytes);
  bool tryWait(unsigned long *barrier, uint32_t parity);
  void arriveAtRank(unsigned long *barrier, uint32_t rank);
  /// A box to this block, or to those of the cluster in the mask `ranks`.
  void tensorLoad(std::byte *shared, const TensorBox &box,
                  unsigned long *barrier, uint32_t ranks);

  // Clusters.
  uint32_t clusterRank() const;
  void arriveAtCluster();
  void waitForCluster();

  // Products of warpgroups.
  void fenceProducts();
  void issueProduct(const SimWgmma &what);
  void commitProducts();

  // Checks, for checked launches; nothing in others.
  enum class Access : uint8_t {
    Read,
    Copy, ///< A read that copies the state of each byte.
    Write,
    Atomic,
    AtomicStore,
    WordLoad, ///< Relaxed.
    WordStore
  };
  static bool isRead(Access access);
  void check(Thread &thread, const void *address, uint64_t size, Access access);
  void checkReadOnly(const void *address, uint64_t size);
  /// Checks a prefetch of global memory, whatever its contents.
  void checkPrefetch(const void *address, uint64_t size);
  /// The running thread's atomic on a word that must be in shared memory.
  void checkSharedAtomic(const void *word);
  void checkAlignment(const void *address, uint32_t alignment,
                      const char *what);
  /// Ordering through global words.
  void fence();
  void acquire(const void *word, bool needsFence);
  void release(const void *word, bool needsFence, bool keepEarlier);

  /// Relaxed accesses to 1, 2 or 4 words of global memory. Others run after a
  /// load that finds a word empty, and after at most so many that do not.
  static constexpr uint32_t mostLooks = 32;
  void loadRelaxed(uint32_t *words, const uint32_t *global, uint32_t count);
  void storeRelaxed(uint32_t *global, const uint32_t *words, uint32_t count);

private:
  friend void runFiber();

  void prepare(Block &block, uint32_t index);
  void prepareAll(const uint32_t *blockIndices, size_t count);
  /// Whether a thread waits for previous launches.
  bool hasEarlyThreads() const;
  /// When no thread can run: lets those that poll look again, or the block run
  /// that stands still. False when they have done so often enough in vain.
  bool startIdleRound();
  /// Makes those of that block ready, or those of the others; whether there are
  /// any.
  bool wake(bool ofStalled);
  void discard(Block &block);
  void schedule();
  /// Runs the scheduler with this group as the host thread's.
  void scheduleHere();
  /// Whether `thread` is in its prologue: previous launches may still run.
  bool isEarly(const Thread &thread) const {
    return launch.launch.dependent && !thread.hasWaited;
  }
  Thread *pick();
  Thread *pickAtRandom();
  /// The number of a warp that can run: the next one from number `first` on, or
  /// else the first of all.
  std::optional<size_t> runnableFrom(size_t first) const;
  void makeReady(Thread &thread);
  void makeRunnable(const Block &block, size_t warp, uint32_t lanes);
  void stopRunning(State state);
  void exitThread();
  void computeWarp(Thread &last, uint32_t mask);
  void loadMatrix(Thread *const *lanes, int variant);
  void endBarrier(Block &block, uint32_t id);
  void checkAligned(const Barrier &barrier);
  void begin(AsyncCopy &copy);
  void complete(Thread &thread, const AsyncCopy &copy);
  bool runBulkCopy();
  void land(Block &block, const BulkCopy &copy);
  void landBox(Block &block, const BulkCopy &copy);
  /// Fails when an ordinary write to these bytes of shared memory has no
  /// fenceProxyAsync behind it that `thread` knows of: bulk copies and products
  /// then need not come after it.
  void checkProxy(const Thread &thread, Block &block, const std::byte *at,
                  uint64_t size);
  /// Notes that the bytes are a bulk copy's.
  void markCopied(Block &block, const std::byte *at, uint64_t size);
  MemoryBarrier &memoryBarrier(Block &block, unsigned long *barrier);
  void endPhaseIfDone(MemoryBarrier &barrier);
  void arrive(Block &block, unsigned long *barrier, uint32_t bytes);

  /// Block `rank` of the running thread's cluster, which must not have ended.
  Block &peer(uint32_t rank);
  ClusterBarrier &clusterBarrier(const Block &block);
  uint32_t liveInCluster(const Block &block) const;
  void endClusterPhaseIfDone(const Block &block);
  /// Keeps that the running thread has reached into `block` from another.
  void noteReached(Block &block);
  /// Fails when a block of which the last thread ends may still be reached.
  void checkEnd(Block &block);
  /// The knowledge that threads of `block` receive of the running thread, whose
  /// clock goes on.
  KnowledgeRef knowledgeFor(const Block &block);

  void completeProducts(Thread *const *lanes, uint32_t pending);
  bool isUndefined(const Block &block, uint32_t offset) const;
  void multiply(Thread *const *lanes);
  void checkSameProduct(Thread *const *lanes);
  /// Fails when an access to the stack meets registers of a product.
  void checkRegisters(const Thread &thread, const void *address, uint64_t size,
                      Access access);
  /// Keeps the error and stops the group after the running fiber.
  void report(const Thread &thread, const void *site, const std::string &what);
  void failStuck();
  std::string waitingAt(const Thread &thread) const;
  /// Where all threads are, `first` being named already.
  std::string othersWaiting(const Thread &first) const;

  // Where addresses are, for checks and messages.
  bool isSharedOf(const Block &block, const void *address) const;
  const SharedVariable *sharedVariable(uint32_t offset, uint64_t size) const;
  std::string describeShared(const Block &block, const void *address) const;
  std::string describe(const Block &block, const void *address) const;
  std::string threadName(uint32_t block, uint32_t thread) const;

  void checkShared(Thread &thread, Block &block, const void *address,
                   uint64_t size, Access access);
  void checkGlobal(Thread &thread, const void *address, uint64_t size,
                   Access access);
  /// Whether these bytes are operands that the kernel takes as a table.
  bool isInTable(const void *address, uint64_t size) const;
  /// The clocks of a block as `thread` knows them; null: it knows none.
  const ClockVector *clocksOf(const Thread &thread, uint32_t block) const;
  /// Whether `thread` is ordered behind the access `epoch`.
  bool knows(const Thread &thread, const Epoch &epoch) const;
  void checkRaces(const Thread &thread, Shadow &shadow, const void *address,
                  uint64_t size, Access access);
  void checkRace(const Thread &thread, Cell &cell, Access access,
                 const void *address);
  [[noreturn]] void failRace(const Thread &thread, const Epoch &other,
                             const char *otherDid, Access access,
                             const void *address);
  /// Fails where a plain access has nothing that orders it behind relaxed ones.
  void checkWordRaces(const Thread &thread, const void *address, uint64_t size,
                      Access access);
  /// The other way round.
  void checkPlainRaces(const void *address, uint64_t size, Access access);
  void checkWordLoad(const uint32_t *global, const uint32_t *words,
                     uint32_t count);
  void checkWordStore(const uint32_t *global, uint32_t word);
  void checkClear(WordQuad &quad, size_t number, const uint32_t *global);
  [[noreturn]] void failWord(const char *kind, const char *did,
                             const uint32_t *global, const Epoch &other,
                             const char *otherDid);
  [[noreturn]] void failUnderWay(const Thread &thread, const Block &block,
                                 const std::byte *byte, Access access);

  Fiber scheduler;
  std::unique_ptr<ProductTile> tile = std::make_unique<ProductTile>();
  Thread *running = nullptr;
  std::vector<std::unique_ptr<Block>> blocks;
  // Warps have numbers, of which there may be thousands.
  std::vector<Thread *> firstThreads;
  std::vector<uint32_t> runnable;      ///< Lanes.
  std::vector<uint64_t> runnableWarps; ///< A bit for each that has such lanes.
  std::vector<Thread *> yielded;
  uint32_t live = 0;
  uint32_t idleRounds = 0;
  Block *stalled = nullptr; ///< The one that stands still; null: none.
  bool stalledRuns = false; ///< For once.
  uint32_t heldRounds = 0;  ///< In which the others have looked in vain.
  bool stop = false;
  bool launchesAreDone = true; ///< Previous ones.
  std::mt19937_64 random;
  std::map<uint32_t, ClusterBarrier> clusterBarriers; ///< Barriers by cluster.
  std::vector<SharedVariable> variables;
  uint32_t staticBytes = 0;

  struct FoundBuffer {
    uintptr_t start = 0;
    SimMemory::Buffer *buffer = nullptr; ///< Null: none.

    /// Whether all of these bytes are in it.
    bool holds(const void *address, uint64_t size) const;
  };
  /// The buffer that `address` is in.
  FoundBuffer findBuffer(const void *address);
  /// Buffers that were found last, by the address's page.
  std::array<FoundBuffer, 64> lastBuffers;
};

} // namespace llamac::sim

#endif // LLAMAC_SIMULATOR_MACHINE_H
