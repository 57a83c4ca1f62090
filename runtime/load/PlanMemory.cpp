//===- PlanMemory.cpp - The memory that steps of a plan run in ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/PlanMemory.h"

#include "runtime/base/Status.h"
#include "runtime/load/MemoryNeeds.h"
#include "runtime/load/RankLeader.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/ranks/RankWorld.h"

#include "absl/strings/str_cat.h"

#include <utility>

namespace llamac {

//===----------------------------------------------------------------------===//
// Exchange areas
//===----------------------------------------------------------------------===//

absl::StatusOr<PeerTables> PeerTables::create(const schema::PlanT &plan,
                                              Device &device,
                                              absl::Span<void *const> areas) {
  PeerTables made;
  if (device.rankLink() == RankLink::Gathers)
    return made;
  for (const auto &program : plan.programs)
    for (const auto &launch : program->launches) {
      const schema::Operand *peers = peersOf(*launch);
      if (!peers || made.tables.contains(peers->offset()))
        continue;
      std::vector<uint8_t *> table;
      table.reserve(areas.size());
      for (void *area : areas)
        table.push_back(static_cast<uint8_t *>(area) + peers->offset());
      const uint64_t bytes = table.size() * sizeof(uint8_t *);
      LLAMAC_ASSIGN_OR_RETURN(auto buffer, device.allocate(bytes));
      LLAMAC_RETURN_IF_ERROR(device.write(
          *buffer, 0,
          {reinterpret_cast<const uint8_t *>(table.data()), bytes}));
      made.tables[peers->offset()] = std::move(buffer);
    }
  return made;
}

std::map<uint64_t, void *> PeerTables::addresses() const {
  std::map<uint64_t, void *> all;
  for (const auto &[offset, table] : tables)
    all[offset] = table->address();
  return all;
}

absl::Status PlanMemory::allocateExchange() {
  const uint64_t bytes = plan.manifest().exchangeBytes;
  std::vector<void *> starts; // Numbered by rank.
  const RankWorld *world = plan.world();
  if (world && plan.device().rankLink() != RankLink::Gathers) {
    const bool copies = plan.copiesExchanges() || !world->isOneMachine();
    LLAMAC_ASSIGN_OR_RETURN(processes, copies
                                           ? copyAreas(*world, bytes)
                                           : shareAreas(*world, bytes, areas));
    for (int rank = 0; rank < world->size(); ++rank)
      starts.push_back(processes->area(rank));
  } else {
    for (size_t i = 0; i < ofRanks.size(); ++i) {
      LLAMAC_ASSIGN_OR_RETURN(ofRanks[i].exchange,
                              plan.device(i).allocate(bytes));
      starts.push_back(ofRanks[i].exchange->address());
    }
  }
  for (size_t i = 0; i < ofRanks.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(
        ofRanks[i].peers,
        PeerTables::create(plan.manifest(), plan.device(i), starts));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Memory and programs
//===----------------------------------------------------------------------===//

PlanMemory::PlanMemory(const LoadedPlan &plan)
    : plan(plan), stepInputs(plan.manifest()), ofRanks(plan.ranks().size()) {}

PlanMemory::~PlanMemory() = default;

absl::StatusOr<std::unique_ptr<PlanMemory>>
PlanMemory::create(const LoadedPlan &plan, SharedFile areas) {
  std::unique_ptr<PlanMemory> memory(new PlanMemory(plan));
  memory->areas = areas;
  LLAMAC_RETURN_IF_ERROR(memory->allocate());
  return memory;
}

absl::Status PlanMemory::allocate() {
  const schema::PlanT &manifest = plan.manifest();
  for (size_t i = 0; i < ofRanks.size(); ++i) {
    Rank &rank = ofRanks[i];
    Device &device = plan.device(i);
    LLAMAC_ASSIGN_OR_RETURN(
        rank.arena, device.allocate(arenaBytes(manifest), MemoryUse::Dense));
    LLAMAC_ASSIGN_OR_RETURN(rank.counters, allocateCounters(manifest, device));
    LLAMAC_ASSIGN_OR_RETURN(rank.inputs,
                            device.allocate(stepInputs.layout().totalBytes()));
  }
  if (manifest.exchangeBytes != 0)
    LLAMAC_RETURN_IF_ERROR(allocateExchange());
  if (plan.team())
    followers = std::make_unique<FollowerMemory>(plan.team());
  return absl::OkStatus();
}

absl::Status PlanMemory::allocatePools(int64_t pages) {
  const schema::PlanT &manifest = plan.manifest();
  for (Rank &rank : ofRanks)
    rank.pools.clear();
  const auto layers = static_cast<int64_t>(manifest.kv->layerGroups.size());
  for (size_t i = 0; i < ofRanks.size(); ++i) {
    Device &device = plan.device(i);
    if (plan.sharesPages())
      LLAMAC_RETURN_IF_ERROR(withContext(
          device.reserve(kvPoolsBytes(manifest, pages)), "KV cache"));
    for (int64_t layer = 0; layer < layers; ++layer) {
      auto pool = device.allocate(kvPoolBytes(*manifest.kv, layer, pages));
      if (!pool.ok())
        return withContext(pool.status(), absl::StrCat("KV cache of layer ",
                                                       layer, " of ", layers));
      ofRanks[i].pools.push_back(*std::move(pool));
    }
  }
  return followers ? followers->allocate(pages, areas) : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PreparedProgram>>
PlanMemory::prepare(const LoadedPlan &plan, size_t program) const {
  std::vector<ProgramBindings> bindings;
  for (const Rank &rank : ofRanks) {
    ProgramBindings &own = bindings.emplace_back();
    own.arena = rank.arena->address();
    for (const auto &pool : rank.pools)
      own.kv.push_back(pool->address());
    own.inputs = stepInputs.layout().addresses(rank.inputs->address());
    own.counters = rank.counters->address();
    if (rank.exchange)
      own.exchange = rank.exchange->address();
    own.peers = rank.peers.addresses();
    if (processes) {
      own.exchange = processes->area(plan.world()->rank());
      own.ranks = processes.get();
    }
  }
  LLAMAC_ASSIGN_OR_RETURN(auto prepared,
                          plan.prepare(program, std::move(bindings)));
  return followers ? followers->lead(*plan.manifest().programs[program],
                                     program, std::move(prepared))
                   : std::move(prepared);
}

absl::Status PlanMemory::prepare() {
  for (size_t i = 0; i < plan.manifest().programs.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(programs.emplace_back(), prepare(plan, i));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

uint64_t PlanMemory::poolBytes() const {
  uint64_t bytes = 0;
  for (const auto &pool : ofRanks.front().pools)
    bytes += pool->size();
  return bytes;
}

absl::Status PlanMemory::sendInputs() {
  return stepInputs.send(
      [&](uint64_t offset, auto bytes) { return writeInputs(offset, bytes); });
}

absl::Status PlanMemory::writeInputs(uint64_t offset,
                                     absl::Span<const uint8_t> bytes) {
  for (size_t i = 0; i < ofRanks.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(
        plan.device(i).write(*ofRanks[i].inputs, offset, bytes));
  if (followers)
    followers->write(offset, bytes);
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const uint8_t>>
PlanMemory::readArena(uint64_t offset, uint64_t size,
                      std::vector<uint8_t> &staging) const {
  return plan.device().read(*ofRanks.front().arena, offset, size, staging);
}

/// Byte `offset` of an operand, and `size` from there.
absl::StatusOr<PlanMemory::Place>
PlanMemory::find(const Rank &rank, const schema::Operand &operand,
                 uint64_t offset, uint64_t size) const {
  switch (operand.kind()) {
  case schema::OperandKind::Arena:
    return Place{rank.arena.get(), operand.offset() + offset};
  case schema::OperandKind::Kv:
    return Place{rank.pools[operand.index()].get(), offset};
  case schema::OperandKind::Input: {
    const auto role = static_cast<schema::InputRole>(operand.index());
    const InputLayout &layout = stepInputs.layout();
    const uint64_t first =
        operand.offset() * pageTableBytes(*plan.manifest().kv) + offset;
    // Others lie behind it in the same buffer.
    LLAMAC_RETURN_IF_ERROR(checkInside(layout.bytes(role), first, size));
    return Place{rank.inputs.get(), layout.offset(role) + first};
  }
  case schema::OperandKind::Weight:
  case schema::OperandKind::Constant:
  case schema::OperandKind::Counters:
  case schema::OperandKind::Exchange:
  case schema::OperandKind::Peers:
    break;
  }
  return internalError(absl::StrCat(
      "operand: expected one of the arena, the cache or the inputs, got a ",
      schema::EnumNameOperandKind(operand.kind())));
}

absl::StatusOr<absl::Span<const uint8_t>>
PlanMemory::read(const schema::Operand &operand, uint64_t offset, uint64_t size,
                 std::vector<uint8_t> &staging) {
  LLAMAC_ASSIGN_OR_RETURN(const Place place,
                          find(ofRanks.front(), operand, offset, size));
  return plan.device().read(*place.buffer, place.start, size, staging);
}

absl::Status PlanMemory::write(const schema::Operand &operand, uint64_t offset,
                               absl::Span<const uint8_t> bytes) {
  if (operand.kind() == schema::OperandKind::Input) {
    LLAMAC_ASSIGN_OR_RETURN(const Place place, find(ofRanks.front(), operand,
                                                    offset, bytes.size()));
    return writeInputs(place.start, bytes);
  }
  if (followers)
    return internalError(
        "memory of ranks that are processes: expected inputs to be written");
  for (size_t i = 0; i < ofRanks.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(const Place place,
                            find(ofRanks[i], operand, offset, bytes.size()));
    LLAMAC_RETURN_IF_ERROR(
        plan.device(i).write(*place.buffer, place.start, bytes));
  }
  return absl::OkStatus();
}

} // namespace llamac
