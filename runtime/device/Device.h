//===- Device.h - What runs a plan ------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The engine runs a plan on any device through this interface:
//
//   Device           memory, and code loaded from a plan
//   LoadedCode       the plan's kernels, ready to be bound to memory
//   PreparedProgram  one program whose operands are resolved to addresses
//
// An address means something to the device's kernels only; the host reaches
// device memory by write() and read().
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_DEVICE_DEVICE_H
#define LLAMAC_RUNTIME_DEVICE_DEVICE_H

#include "runtime/plan/PlanReader.h"

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// Device memory, freed with the object.
class Buffer {
public:
  Buffer(void *address, uint64_t size) : start(address), bytes(size) {}
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  virtual ~Buffer();

  void *address() const { return start; }
  uint64_t size() const { return bytes; }

private:
  void *start;
  uint64_t bytes;
};

/// An upload to the memory of a device, piece by piece: while the host fills
/// one, those before it are copied. Destroying it drops what was not finished;
/// the buffers outlive it.
class Upload {
public:
  virtual ~Upload();

  /// Where the host is to put bytes [offset, offset + size) of `buffer`, at
  /// most a piece of the upload; valid until send(). Uninitialised.
  virtual absl::StatusOr<absl::Span<uint8_t>>
  next(Buffer &buffer, uint64_t offset, uint64_t size) = 0;

  /// Once the bytes of next() are written.
  virtual absl::Status send() = 0;

  /// Waits until all that was sent is there.
  virtual absl::Status finish() = 0;
};

/// How the ranks of a plan wait for what all have written to their exchange
/// areas. One thread of each rank calls it, all in the same order.
class RankExchange {
public:
  virtual ~RankExchange();

  /// Returns once bytes [offset, offset + size) of the areas of all ranks can
  /// be read.
  virtual void exchange(uint64_t offset, uint64_t size) = 0;

  /// At the end of a run: returns once the rank may write its area again.
  virtual void finish() {}
};

/// The memory that the operands of a plan's programs point at; it outlives
/// them.
struct ProgramBindings {
  void *arena = nullptr;         ///< The largest program's bytes.
  std::vector<void *> weights;   ///< Numbered as in the plan.
  std::vector<void *> kv;        ///< The pool of each layer.
  std::vector<void *> inputs;    ///< Numbered by schema::InputRole.
  uint64_t pageTableBytes = 0;   ///< Size of the table of one group.
  std::vector<void *> constants; ///< Numbered by section; null for others.
  void *counters = nullptr;      ///< The plan's counterBytes bytes, zero.
  void *exchange = nullptr;      ///< The rank's area; null for one rank.
  /// Tables of the addresses of one byte in the areas of all ranks, each by the
  /// byte's offset, which is that of its operand.
  std::map<uint64_t, void *> peers;
  /// Where programs wait for those of other ranks (RankLink::Waits); else null.
  RankExchange *ranks = nullptr;
};

/// The counts of one step.
struct StepShape {
  /// Tokens, at most the program's. 0 for output rows of the step before, which
  /// had more of them than the program.
  int64_t rows = 0;
  int64_t outputRows = 0; ///< Rows with logits; 0 is allowed.
  /// Whether the launches that sample tokens run, in a plan that has any.
  bool samples = true;
};

/// Bytes of a row of an input of `plan`; of those without rows, and of those
/// that it has not, 0.
uint64_t inputRowBytes(const schema::PlanT &plan, schema::InputRole role);

/// The operand by which `launch` reads from all ranks, and so begins once all
/// have done the launches before it; null for most.
const schema::Operand *peersOf(const schema::LaunchT &launch);

/// Whether `launch` only samples tokens.
bool isSampling(const schema::LaunchT &launch);

/// Moves `addresses`, of the operands of `launch` in a single step, to where
/// they are in step `step` of a run of steps of `rows` rows each, as
/// StepQueue::run() has them; `tokens` is the input. A launch of all steps has
/// the addresses of the first.
void moveToStep(const schema::PlanT &plan, const schema::ProgramT &program,
                const schema::LaunchT &launch, void *tokens, int64_t rows,
                int step, std::vector<void *> &addresses);

/// Where `operand` points.
void *addressOf(const schema::Operand &operand,
                const ProgramBindings &bindings);

/// M of a launch in a step; the launch has nothing to do when it is 0.
int64_t rowsOf(schema::RowSymbol rows, const StepShape &shape);
int64_t rowsOf(const schema::LaunchT &launch, const StepShape &shape);

/// How many blocks of `rowBlock` rows, or one of all for 0, `rows` rows make;
/// at least one row.
inline int64_t rowBlocks(int64_t rowBlock, int64_t rows) {
  return rowBlock == 0 ? 1 : (rows - 1) / rowBlock + 1;
}

/// Internal error when `program` does not hold a step of `shape`, or has no
/// launch of that number.
absl::Status checkShape(const schema::ProgramT &program,
                        const StepShape &shape);
absl::Status checkLaunch(const schema::ProgramT &program, size_t launch);

/// Internal error when bytes [offset, offset + size) are not all in a buffer,
/// of `bytes` bytes.
absl::Status checkInside(uint64_t bytes, uint64_t offset, uint64_t size);
inline absl::Status checkInside(const Buffer &buffer, uint64_t offset,
                                uint64_t size) {
  return checkInside(buffer.size(), offset, size);
}

/// One program of a plan, bound to memory.
class PreparedProgram {
public:
  explicit PreparedProgram(const schema::ProgramT &program)
      : program(program) {}
  virtual ~PreparedProgram();

  /// Runs every launch of the program that `shape` asks for and waits for the
  /// last. A device that leaves the host idle meanwhile calls `meanwhile` once
  /// all is launched; one that runs on the host's threads does not, as there is
  /// no time to spare.
  virtual absl::Status run(const StepShape &shape,
                           absl::FunctionRef<void()> meanwhile) = 0;
  absl::Status run(const StepShape &shape) {
    return run(shape, [] {});
  }

  /// Runs the step one launch after the other. Returns the seconds that each
  /// took, 0 for one that has nothing to do.
  virtual absl::StatusOr<std::vector<double>> runTimed(const StepShape &shape);

  /// Runs launch number `launch` alone and waits for it. All launches in order
  /// do what run() does.
  virtual absl::Status runLaunch(size_t launch, const StepShape &shape) = 0;

protected:
  const schema::ProgramT &program;
};

/// Runs of steps in flight: a device does them in order while the host goes on,
/// so that it never waits for the host between two. A run ends with fetch(); as
/// many runs as the queue is deep may be queued and not taken. Its destructor
/// waits for all; the programs and buffers outlive it.
class StepQueue {
public:
  virtual ~StepQueue();

  /// Copies `bytes` to `to` at `offset`; the caller may drop them.
  virtual absl::Status write(Buffer &to, uint64_t offset,
                             absl::Span<const uint8_t> bytes) = 0;

  /// Copies `size` bytes between buffers of the device.
  virtual absl::Status copy(Buffer &to, uint64_t toOffset, const Buffer &from,
                            uint64_t fromOffset, uint64_t size) = 0;

  /// Runs `program`, which is one of the device's, `steps` times for rows that
  /// all have an output. Inputs Tokens, Positions and SamplingParams hold those
  /// of one step after the other, as many rows each. What a step samples are
  /// the tokens of the next; those of the last follow them.
  virtual absl::Status run(PreparedProgram &program, const StepShape &shape,
                           int steps) = 0;

  /// Brings bytes [offset, offset + size) of `from` to the host; ends a run.
  virtual absl::Status fetch(const Buffer &from, uint64_t offset,
                             uint64_t size) = 0;

  /// Waits for the first run that was not taken and gives what it fetched,
  /// valid until the next call. Device error when anything of it failed.
  virtual absl::StatusOr<absl::Span<const uint8_t>> take() = 0;

  /// Waits for all that is queued.
  virtual absl::Status finish() = 0;
};

/// A program that a device cannot run, and why: what was expected and what it
/// has, without the next step.
struct UnfitProgram {
  size_t number = 0;
  std::string reason;
};

/// The kernels of one plan; outlives the programs prepared from it.
class LoadedCode {
public:
  virtual ~LoadedCode();

  /// The level of the instruction set the kernels were compiled for.
  virtual std::string isa() const = 0;

  /// The programs of the plan that the device cannot run, in ascending order.
  virtual std::vector<UnfitProgram> unfitPrograms() const { return {}; }

  /// Compiles variant `variant` of kernel number `kernel`, so that loading the
  /// plan with it finds it in the user's cache; nothing where no source is
  /// compiled. May be called while the device runs, by any thread.
  virtual absl::Status compileAhead(size_t /*kernel*/, size_t /*variant*/) {
    return absl::OkStatus();
  }

  /// Resolves the operands of program number `program` once and for all. Device
  /// error for one that the device cannot run.
  virtual absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(size_t program, const ProgramBindings &bindings) = 0;
};

/// Memory of a device that is not the host's, in bytes.
struct DeviceMemory {
  uint64_t free = 0;
  uint64_t total = 0;
  uint64_t taken = 0; ///< reservedBytes() of all buffers of this process.
};

/// Bytes of reserved memory for a buffer of `size` bytes.
constexpr uint64_t reservedBytes(uint64_t size) {
  constexpr uint64_t unit = 256;
  return (size + unit - 1) / unit * unit;
}

/// The measured limits of a device.
struct DeviceLimits {
  double bandwidth = 0;               ///< Bytes a second.
  absl::string_view bandwidthOf = ""; ///< "a copy": of what.
  /// Additions and multiplications a second, in f32 by fused multiply-adds and
  /// of integers of 8 bits by the instructions that kernels have for them; 0
  /// where that is not measured.
  double f32Operations = 0, int8Operations = 0;
};

/// The use that memory is allocated for.
enum class MemoryUse {
  Sparse, ///< Zeros; where it is the host's, taken as it is first written.
  Dense,  ///< Zeros that are all used: of large pages where possible.
  Filled, ///< Uninitialised, since it is all written; else as Dense.
};

/// How a program finds what other ranks have written
/// (schema::ParamRole::Peers).
enum class RankLink {
  Lockstep, ///< In their memory; each launch runs on all ranks before the next.
  Waits,    ///< In their memory; ranks run at the same time and wait there.
  Gathers,  ///< Like Waits, and the device brings it to memory of its own.
};

/// How devices become those of the ranks of a plan, where they gather what
/// ranks exchange.
class RankCommunicator {
public:
  virtual ~RankCommunicator();

  /// A new id, by which all ranks find each other.
  virtual absl::StatusOr<std::vector<uint8_t>> newId() = 0;

  /// Makes it the device of rank `rank` of `ranks`; returns once all have
  /// joined by `id`.
  virtual absl::Status join(absl::Span<const uint8_t> id, int rank,
                            int ranks) = 0;
};

/// Properties that a device states of itself.
struct DeviceDescription {
  std::string name; ///< For people: "cpu, 8 threads".
  int threads = 1;  ///< Threads of the host that it keeps busy.
  /// Names all that decides the bits of its results beside the code of a plan
  /// and the level of that; empty for its identity().
  std::string arithmetic = {};
  RankLink rankLink = RankLink::Lockstep;
};

class Device {
public:
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  virtual ~Device();

  const std::string &describe() const { return description.name; }
  int threads() const { return description.threads; }

  /// Names all that decides the speed of the kernels of `plan` on this device:
  /// the key of its tunings.
  virtual std::string identity(const schema::PlanT &plan) const {
    return describe();
  }

  /// See DeviceDescription.
  std::string arithmetic(const schema::PlanT &plan) const {
    return description.arithmetic.empty() ? identity(plan)
                                          : description.arithmetic;
  }

  RankLink rankLink() const { return description.rankLink; }

  /// Where it joins the devices of other ranks itself; else null.
  virtual RankCommunicator *communicator() { return nullptr; }

  /// Device error once the device can run nothing more, as a GPU after a kernel
  /// that faulted. Waits for what runs; for after a step that failed.
  virtual absl::Status check() { return absl::OkStatus(); }

  /// Calls work(0) to work(count - 1) on the threads that kernels run on, or on
  /// the caller's where the host runs none. Device error, and no call, after a
  /// fork that took the threads away.
  virtual absl::Status forEach(size_t count,
                               absl::FunctionRef<void(size_t)> work);

  /// None where the host's memory is used.
  virtual absl::StatusOr<std::optional<DeviceMemory>> memory();

  /// Measures the limits of kernels in at most a few seconds; none where that
  /// cannot be done.
  virtual absl::StatusOr<std::optional<DeviceLimits>> measureLimits();

  /// Allocates memory for the next buffers, reservedBytes() each. Memory error
  /// when there is not enough. Does nothing where the host's memory is used.
  virtual absl::Status reserve(uint64_t size);

  /// `size` bytes, 64-byte aligned. Memory error, with the sizes, when there is
  /// not enough.
  virtual absl::StatusOr<std::unique_ptr<Buffer>>
  allocate(uint64_t size, MemoryUse use = MemoryUse::Sparse) = 0;

  /// Host bytes as kernels read them in place, for as long as the caller keeps
  /// them; null where they are to be copied.
  virtual std::unique_ptr<Buffer> share(absl::Span<const uint8_t> bytes);

  /// Copies `bytes` to `buffer` at `offset`.
  virtual absl::Status write(Buffer &buffer, uint64_t offset,
                             absl::Span<const uint8_t> bytes) = 0;

  /// An upload in pieces of up to `pieceBytes`, of which some are held at a
  /// time. The device outlives it.
  virtual absl::StatusOr<std::unique_ptr<Upload>>
  newUpload(uint64_t pieceBytes) = 0;

  /// Bytes [offset, offset + size) of `buffer`: in place where the host sees
  /// them, else copied to `staging`. Valid until the next run or call.
  virtual absl::StatusOr<absl::Span<const uint8_t>>
  read(const Buffer &buffer, uint64_t offset, uint64_t size,
       std::vector<uint8_t> &staging) = 0;

  /// A queue `depth` runs deep, of which each writes and fetches at most
  /// `runBytes`. Null where the host runs the steps itself.
  virtual absl::StatusOr<std::unique_ptr<StepQueue>>
  newStepQueue(int depth, uint64_t runBytes);

  /// Loads the kernels of `plan`. Device error when the plan has no code that
  /// this device runs, badPlan when a kernel is missing in it.
  virtual absl::StatusOr<std::unique_ptr<LoadedCode>>
  loadCode(std::shared_ptr<const PlanReader> plan) = 0;

protected:
  explicit Device(DeviceDescription description = {})
      : description(std::move(description)) {}

  DeviceDescription description;
};

/// Host bytes that kernels read and that the caller keeps: shared where the
/// device can, else copied.
absl::StatusOr<std::unique_ptr<Buffer>>
shareOrCopy(absl::Span<const uint8_t> bytes, Device &device);

/// Bytes of the counters of `plan`, at least a word.
uint64_t counterBytes(const schema::PlanT &plan);

/// The counters of `plan`, written as zeros.
absl::StatusOr<std::unique_ptr<Buffer>>
allocateCounters(const schema::PlanT &plan, Device &device);

/// The input Rank of the programs of rank `rank`.
absl::StatusOr<std::unique_ptr<Buffer>> allocateRank(int rank, Device &device);

} // namespace llamac

#endif // LLAMAC_RUNTIME_DEVICE_DEVICE_H
