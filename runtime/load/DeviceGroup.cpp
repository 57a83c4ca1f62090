//===- DeviceGroup.cpp - The devices of all ranks as one ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer of the group stands for one on each device, and its address is that
// of rank 0's: what is bound to a program is found again by it.
//
//===----------------------------------------------------------------------===//

#include "runtime/load/DeviceGroup.h"

#include "runtime/base/Status.h"
#include "runtime/threads/ThreadPool.h"

#include "absl/strings/str_cat.h"

#include <cassert>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

namespace llamac {

namespace {

using Buffers = std::vector<std::unique_ptr<Buffer>>;

/// The buffers of the group by the addresses of rank 0's.
class AddressTable {
public:
  void add(const Buffers &ofRanks);
  void remove(const Buffer &first);

  /// The address on `rank` that `address` is on rank 0; null for null.
  void *onRank(size_t rank, void *address) const;

private:
  mutable std::mutex mutex;
  /// By where a buffer of rank 0 starts, where those of all ranks do.
  std::map<const uint8_t *, std::vector<void *>> starts;
};

/// Of ranks that are threads of one process and see each other's memory.
class ThreadExchange final : public RankExchange {
public:
  explicit ThreadExchange(size_t ranks) : together(static_cast<int>(ranks)) {}

  void exchange(uint64_t, uint64_t) override { together.arriveAndWait(); }

private:
  Barrier together;
};

class GroupBuffer final : public Buffer {
public:
  GroupBuffer(Buffers buffers, std::shared_ptr<AddressTable> addresses)
      : Buffer(buffers.front()->address(), buffers.front()->size()),
        ofRanks(std::move(buffers)), addresses(std::move(addresses)) {
    this->addresses->add(ofRanks);
  }
  ~GroupBuffer() override { addresses->remove(*ofRanks.front()); }

  Buffer &onRank(size_t rank) const { return *ofRanks[rank]; }

private:
  Buffers ofRanks;
  std::shared_ptr<AddressTable> addresses;
};

class DeviceGroup final : public Device {
public:
  explicit DeviceGroup(std::vector<std::shared_ptr<Device>> devices)
      : devices(std::move(devices)), together(this->devices.size()),
        threadsOfRanks(static_cast<int>(this->devices.size())) {}

  std::string describe() const override;
  std::string identity(const schema::PlanT &plan) const override;
  std::string arithmetic(const schema::PlanT &plan) const override;
  int threads() const override;
  absl::Status check() override;
  absl::Status forEach(size_t count,
                       absl::FunctionRef<void(size_t)> work) override {
    return devices.front()->forEach(count, work);
  }
  absl::StatusOr<std::optional<DeviceMemory>> memory() override;
  absl::Status reserve(uint64_t size) override;
  absl::StatusOr<std::unique_ptr<Buffer>> allocate(uint64_t size) override;
  absl::StatusOr<std::unique_ptr<Buffer>> allocateDense(uint64_t size) override;
  absl::StatusOr<std::unique_ptr<Buffer>> allocateUnset(uint64_t size) override;
  bool sharesInPlace() const override {
    return devices.front()->sharesInPlace();
  }
  absl::StatusOr<std::unique_ptr<Buffer>>
  share(absl::Span<const uint8_t> bytes) override;
  absl::Status write(Buffer &buffer, uint64_t offset,
                     absl::Span<const uint8_t> bytes) override;
  absl::StatusOr<std::unique_ptr<Upload>>
  newUpload(uint64_t /*pieceBytes*/) override {
    return internalError("uploads are to the devices of a group, as what they "
                         "bring differs");
  }
  absl::StatusOr<absl::Span<const uint8_t>>
  read(const Buffer &buffer, uint64_t offset, uint64_t size,
       std::vector<uint8_t> &staging) override;
  absl::StatusOr<std::unique_ptr<LoadedCode>>
  loadCode(std::shared_ptr<const PlanReader> plan) override;

  std::vector<Device *> ranks() override;
  bool waitsForRanks() const override {
    return devices.front()->waitsForRanks();
  }
  bool gathersPeers() const override { return devices.front()->gathersPeers(); }
  absl::StatusOr<Buffers> joinWeights(std::vector<Buffers> ofRanks) override;

  /// Memory error where ranks that wait for each other have no thread each.
  absl::Status checkThreads() const;

  /// Tells each device its number, once: before programs are prepared.
  absl::Status number();

  /// `bindings` as they are on `rank`.
  ProgramBindings onRank(size_t rank, const ProgramBindings &bindings);

  /// For `rank` to read: where byte `offset` of the exchange area of each rank
  /// is.
  absl::StatusOr<std::unique_ptr<Buffer>> peerTable(size_t rank, void *exchange,
                                                    uint64_t offset) const;

  /// Calls `work` with each rank, at the same time.
  absl::Status runRanks(absl::FunctionRef<absl::Status(size_t)> work);

  size_t size() const { return devices.size(); }

private:
  template <typename Make>
  absl::StatusOr<std::unique_ptr<Buffer>> onEach(Make make);
  template <typename Do> absl::Status forEachRank(Do work);

  std::vector<std::shared_ptr<Device>> devices; ///< By rank.
  Buffers numbers;                              ///< i32 [1] of each rank.
  std::shared_ptr<AddressTable> addresses = std::make_shared<AddressTable>();
  std::mutex running;
  ThreadExchange together;
  ThreadPool threadsOfRanks; ///< One that waits for each rank's device.
};

class GroupProgram final : public PreparedProgram {
public:
  GroupProgram(DeviceGroup &group, const schema::ProgramT &program,
               Buffers peerTables,
               std::vector<std::unique_ptr<PreparedProgram>> programs)
      : PreparedProgram(program), group(group),
        peerTables(std::move(peerTables)), ofRanks(std::move(programs)) {}

  absl::Status run(const StepShape &shape,
                   absl::FunctionRef<void()> meanwhile) override;
  absl::Status runLaunch(size_t launch, const StepShape &shape) override;

private:
  DeviceGroup &group;
  Buffers peerTables; ///< That the programs read.
  std::vector<std::unique_ptr<PreparedProgram>> ofRanks;
};

class GroupCode final : public LoadedCode {
public:
  GroupCode(DeviceGroup &group, std::shared_ptr<const PlanReader> plan,
            std::vector<std::unique_ptr<LoadedCode>> code)
      : group(group), plan(std::move(plan)), ofRanks(std::move(code)) {}

  std::string isa() const override { return ofRanks.front()->isa(); }
  absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(size_t program, const ProgramBindings &bindings) override;

private:
  DeviceGroup &group;
  std::shared_ptr<const PlanReader> plan;
  std::vector<std::unique_ptr<LoadedCode>> ofRanks;
};

} // namespace

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

static const uint8_t *startOf(const Buffer &buffer) {
  return static_cast<const uint8_t *>(buffer.address());
}

void AddressTable::add(const Buffers &ofRanks) {
  std::vector<void *> all;
  all.reserve(ofRanks.size());
  for (const auto &buffer : ofRanks)
    all.push_back(buffer->address());
  const std::lock_guard<std::mutex> lock(mutex);
  starts[startOf(*ofRanks.front())] = std::move(all);
}

void AddressTable::remove(const Buffer &first) {
  const std::lock_guard<std::mutex> lock(mutex);
  starts.erase(startOf(first));
}

void *AddressTable::onRank(size_t rank, void *address) const {
  if (!address)
    return nullptr;
  const auto *byte = static_cast<const uint8_t *>(address);
  const std::lock_guard<std::mutex> lock(mutex);
  // The last buffer that starts no later: the engine binds no other addresses.
  const auto next = starts.upper_bound(byte);
  assert(next != starts.begin());
  const auto &[start, all] = *std::prev(next);
  return static_cast<uint8_t *>(all[rank]) + (byte - start);
}

ProgramBindings DeviceGroup::onRank(size_t rank,
                                    const ProgramBindings &bindings) {
  ProgramBindings own = bindings;
  auto move = [&](void *&address) {
    address = addresses->onRank(rank, address);
  };
  for (void **address : {&own.arena, &own.counters, &own.exchange})
    move(*address);
  for (auto *list : {&own.weights, &own.kv, &own.inputs, &own.constants})
    for (void *&address : *list)
      move(address);
  own.inputs[static_cast<size_t>(schema::InputRole::Rank)] =
      numbers[rank]->address();
  own.ranks = &together;
  return own;
}

absl::StatusOr<std::unique_ptr<Buffer>>
DeviceGroup::peerTable(size_t rank, void *exchange, uint64_t offset) const {
  std::vector<uint8_t *> table;
  table.reserve(size());
  for (size_t peer = 0; peer < size(); ++peer)
    table.push_back(static_cast<uint8_t *>(addresses->onRank(peer, exchange)) +
                    offset);
  Device &device = *devices[rank];
  const uint64_t bytes = table.size() * sizeof(uint8_t *);
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                          device.allocate(bytes));
  LLAMAC_RETURN_IF_ERROR(device.write(
      *buffer, 0, {reinterpret_cast<const uint8_t *>(table.data()), bytes}));
  return buffer;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Buffer &onRank(const Buffer &buffer, size_t rank) {
  return static_cast<const GroupBuffer &>(buffer).onRank(rank);
}

/// A buffer of those that `make` gives for each device.
template <typename Make>
absl::StatusOr<std::unique_ptr<Buffer>> DeviceGroup::onEach(Make make) {
  Buffers buffers;
  for (const auto &device : devices) {
    LLAMAC_ASSIGN_OR_RETURN(buffers.emplace_back(), make(*device));
  }
  return std::make_unique<GroupBuffer>(std::move(buffers), addresses);
}

absl::StatusOr<Buffers> DeviceGroup::joinWeights(std::vector<Buffers> ofRanks) {
  Buffers weights;
  for (size_t i = 0; i < ofRanks.front().size(); ++i) {
    Buffers parts;
    for (Buffers &own : ofRanks)
      parts.push_back(std::move(own[i]));
    weights.push_back(
        std::make_unique<GroupBuffer>(std::move(parts), addresses));
  }
  return weights;
}

/// Calls `work` with each device and its rank; stops at the first error.
template <typename Do> absl::Status DeviceGroup::forEachRank(Do work) {
  for (size_t rank = 0; rank < devices.size(); ++rank)
    LLAMAC_RETURN_IF_ERROR(work(*devices[rank], rank));
  return absl::OkStatus();
}

absl::Status DeviceGroup::number() {
  const std::lock_guard<std::mutex> lock(running);
  if (!numbers.empty())
    return absl::OkStatus();
  Buffers made;
  LLAMAC_RETURN_IF_ERROR(
      forEachRank([&](Device &device, size_t rank) -> absl::Status {
        LLAMAC_ASSIGN_OR_RETURN(made.emplace_back(),
                                allocateRank(static_cast<int>(rank), device));
        return absl::OkStatus();
      }));
  numbers = std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<DeviceMemory>> DeviceGroup::memory() {
  std::optional<DeviceMemory> least;
  for (const auto &device : devices) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceMemory> memory,
                            device->memory());
    if (!memory)
      return memory;
    if (!least || memory->free < least->free)
      least = memory;
  }
  return least;
}

absl::Status DeviceGroup::reserve(uint64_t size) {
  return forEachRank(
      [&](Device &device, size_t) { return device.reserve(size); });
}

absl::StatusOr<std::unique_ptr<Buffer>> DeviceGroup::allocate(uint64_t size) {
  return onEach([&](Device &device) { return device.allocate(size); });
}

absl::StatusOr<std::unique_ptr<Buffer>>
DeviceGroup::allocateDense(uint64_t size) {
  return onEach([&](Device &device) { return device.allocateDense(size); });
}

absl::StatusOr<std::unique_ptr<Buffer>>
DeviceGroup::allocateUnset(uint64_t size) {
  return onEach([&](Device &device) { return device.allocateUnset(size); });
}

absl::StatusOr<std::unique_ptr<Buffer>>
DeviceGroup::share(absl::Span<const uint8_t> bytes) {
  return onEach([&](Device &device) { return device.share(bytes); });
}

absl::Status DeviceGroup::write(Buffer &buffer, uint64_t offset,
                                absl::Span<const uint8_t> bytes) {
  return forEachRank([&](Device &device, size_t rank) {
    return device.write(llamac::onRank(buffer, rank), offset, bytes);
  });
}

absl::StatusOr<absl::Span<const uint8_t>>
DeviceGroup::read(const Buffer &buffer, uint64_t offset, uint64_t size,
                  std::vector<uint8_t> &staging) {
  return devices.front()->read(llamac::onRank(buffer, 0), offset, size,
                               staging);
}

//===----------------------------------------------------------------------===//
// The devices
//===----------------------------------------------------------------------===//

std::string DeviceGroup::describe() const {
  return absl::StrCat(size(), " ranks of ", devices.front()->describe());
}

std::string DeviceGroup::identity(const schema::PlanT &plan) const {
  return absl::StrCat(size(), " ranks of ", devices.front()->identity(plan));
}

std::string DeviceGroup::arithmetic(const schema::PlanT &plan) const {
  return absl::StrCat(size(), " ranks of ", devices.front()->arithmetic(plan));
}

int DeviceGroup::threads() const {
  return std::accumulate(
      devices.begin(), devices.end(), 0,
      [](int sum, const auto &device) { return sum + device->threads(); });
}

absl::Status DeviceGroup::checkThreads() const {
  if (!waitsForRanks() || threadsOfRanks.size() == static_cast<int>(size()))
    return absl::OkStatus();
  return memoryError(absl::StrCat(
      "ranks: expected ", size(), " threads that wait for them, got ",
      threadsOfRanks.size(), "; raise the limit of processes"));
}

absl::Status DeviceGroup::check() {
  return forEachRank([](Device &device, size_t) { return device.check(); });
}

std::vector<Device *> DeviceGroup::ranks() {
  std::vector<Device *> all;
  all.reserve(devices.size());
  for (const auto &device : devices)
    all.push_back(device.get());
  return all;
}

absl::StatusOr<std::unique_ptr<LoadedCode>>
DeviceGroup::loadCode(std::shared_ptr<const PlanReader> plan) {
  std::vector<std::unique_ptr<LoadedCode>> code;
  for (const auto &device : devices) {
    LLAMAC_ASSIGN_OR_RETURN(code.emplace_back(), device->loadCode(plan));
  }
  return std::make_unique<GroupCode>(*this, std::move(plan), std::move(code));
}

absl::Status
DeviceGroup::runRanks(absl::FunctionRef<absl::Status(size_t)> work) {
  if (threadsOfRanks.isForked())
    return forkedError(describe(), "loaded the model", "load the model");
  std::vector<absl::Status> statuses(size());
  const std::lock_guard<std::mutex> lock(running);
  threadsOfRanks.run([&](int rank) { statuses[rank] = work(rank); });
  for (absl::Status &status : statuses)
    LLAMAC_RETURN_IF_ERROR(std::move(status));
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

absl::StatusOr<std::unique_ptr<PreparedProgram>>
GroupCode::prepare(size_t program, const ProgramBindings &bindings) {
  LLAMAC_RETURN_IF_ERROR(group.number());
  const schema::ProgramT &schema = *plan->plan().programs[program];
  std::vector<std::unique_ptr<PreparedProgram>> programs;
  Buffers tables;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    ProgramBindings own = group.onRank(rank, bindings);
    for (const auto &launch : schema.launches) {
      const schema::Operand *peers = peersOf(*launch);
      if (!peers || group.gathersPeers() || own.peers.contains(peers->offset()))
        continue;
      LLAMAC_ASSIGN_OR_RETURN(
          tables.emplace_back(),
          group.peerTable(rank, bindings.exchange, peers->offset()));
      own.peers[peers->offset()] = tables.back()->address();
    }
    LLAMAC_ASSIGN_OR_RETURN(programs.emplace_back(),
                            ofRanks[rank]->prepare(program, own));
  }
  return std::make_unique<GroupProgram>(group, schema, std::move(tables),
                                        std::move(programs));
}

absl::Status GroupProgram::run(const StepShape &shape,
                               absl::FunctionRef<void()> meanwhile) {
  if (group.waitsForRanks())
    return group.runRanks([&](size_t rank) {
      return rank == 0 ? ofRanks[rank]->run(shape, meanwhile)
                       : ofRanks[rank]->run(shape);
    });
  LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
  for (size_t launch = 0; launch < program.launches.size(); ++launch)
    if (rowsOf(*program.launches[launch], shape) != 0)
      LLAMAC_RETURN_IF_ERROR(runLaunch(launch, shape));
  return absl::OkStatus();
}

absl::Status GroupProgram::runLaunch(size_t launch, const StepShape &shape) {
  if (group.waitsForRanks())
    return group.runRanks(
        [&](size_t rank) { return ofRanks[rank]->runLaunch(launch, shape); });
  for (const auto &own : ofRanks)
    LLAMAC_RETURN_IF_ERROR(own->runLaunch(launch, shape));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Device>>
groupDevices(std::vector<std::shared_ptr<Device>> devices) {
  auto group = std::make_shared<DeviceGroup>(std::move(devices));
  LLAMAC_RETURN_IF_ERROR(group->checkThreads());
  return group;
}

} // namespace llamac
