//===- PlanDevice.cpp - Plans of programs on a device ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/PlanDevice.h"

#include "runtime/base/Status.h"
#include "runtime/load/PlanMemory.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace llamac::conformance {

namespace {

class PlanPrograms final : public LoadedPrograms {
public:
  explicit PlanPrograms(const PlanRunner &runner) : runner(runner) {}

  absl::Status load(const Model &model, const std::vector<ProgramUse> &uses);
  absl::Status reset() override;
  absl::StatusOr<std::vector<float>> run(const Program &program,
                                         const Step &step) override;

private:
  absl::Status writeIndices(schema::InputRole role,
                            const std::vector<int32_t> &values);
  absl::Status writeInput(schema::InputRole role,
                          absl::Span<const uint8_t> bytes);
  absl::Status writeArena(uint64_t offset, absl::Span<const uint8_t> bytes);
  absl::StatusOr<std::vector<float>> readArena(uint64_t offset, size_t count);
  absl::StatusOr<std::vector<float>> readTokens(const schema::ProgramT &planned,
                                                size_t count);

  /// The program of the plan for a step.
  absl::StatusOr<size_t> find(const Program &program, const Step &step) const;

  /// The memory of a rank.
  struct Memory {
    std::unique_ptr<Buffer> arena, pool, counters, exchange;
    std::vector<std::unique_ptr<Buffer>>
        inputs; ///< Indexed by schema::InputRole.
  };

  /// Writes the buffers of all ranks that `of` gives of their memory.
  template <typename Of>
  absl::Status write(Of of, uint64_t offset, absl::Span<const uint8_t> bytes);

  PlanRunner runner;
  const MadePlan *made = nullptr;
  std::optional<LoadedPlan> loaded;
  std::vector<Memory> memories; ///< Indexed by rank.
  bool oneByOne = false;        ///< How the last step ran.
};

} // namespace

template <typename T>
static absl::Span<const uint8_t> bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const uint8_t *>(values.data()),
          values.size() * sizeof(T)};
}

absl::Status PlanPrograms::load(const Model &model,
                                const std::vector<ProgramUse> &uses) {
  LLAMAC_ASSIGN_OR_RETURN(made, runner.library->get(model, uses));
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const PlanReader> reader,
                          PlanReader::open(made->path));
  LLAMAC_ASSIGN_OR_RETURN(auto device, runner.device());
  // Ranks that wait for each other need threads of their own; else one device
  // has the memory of all, which take turns.
  std::vector<std::shared_ptr<Device>> devices = {device};
  while (static_cast<int64_t>(devices.size()) < model.ranks) {
    devices.push_back(device);
    if (device->rankLink() != RankLink::Lockstep) {
      LLAMAC_ASSIGN_OR_RETURN(devices.back(), runner.device());
    }
  }
  LLAMAC_ASSIGN_OR_RETURN(loaded,
                          LoadedPlan::create(reader, std::move(devices)));
  LLAMAC_RETURN_IF_ERROR(loaded->loadCode(reader));
  LLAMAC_RETURN_IF_ERROR(loaded->loadWeights(/*randomSeed=*/{}));
  for (size_t rank = 0; rank < loaded->ranks().size(); ++rank) {
    LLAMAC_ASSIGN_OR_RETURN(
        memories.emplace_back().counters,
        allocateCounters(loaded->manifest(), loaded->device(rank)));
  }
  return absl::OkStatus();
}

template <typename Of>
absl::Status PlanPrograms::write(Of of, uint64_t offset,
                                 absl::Span<const uint8_t> bytes) {
  for (size_t rank = 0; rank < memories.size(); ++rank)
    LLAMAC_RETURN_IF_ERROR(
        loaded->device(rank).write(*of(memories[rank]), offset, bytes));
  return absl::OkStatus();
}

/// Memory that no step has written is a NaN in every format.
static std::vector<uint8_t> noNumbers(uint64_t bytes) {
  return std::vector<uint8_t>(bytes, 0xff);
}

absl::Status PlanPrograms::reset() {
  oneByOne = false;
  const schema::PlanT &plan = loaded->manifest();
  const int64_t ring = plan.kv->groups.front().pages();
  const int64_t pages = ring * maxSequences;
  const uint64_t poolBytes = kvPoolBytes(*plan.kv, /*layer=*/0);
  int64_t maxRows = 0;
  for (const auto &program : plan.programs)
    maxRows = std::max(maxRows, program->maxRows);
  for (size_t rank = 0; rank < memories.size(); ++rank) {
    Device &device = loaded->device(rank);
    Memory &memory = memories[rank];
    memory.pool.reset(); // There may be no room for two.
    LLAMAC_ASSIGN_OR_RETURN(memory.pool, device.allocate(poolBytes));
    if (plan.exchangeBytes != 0) {
      LLAMAC_ASSIGN_OR_RETURN(memory.exchange,
                              device.allocate(plan.exchangeBytes));
    }
    memory.inputs.clear();
    for (const schema::InputRole role : schema::EnumValuesInputRole()) {
      uint64_t bytes = static_cast<uint64_t>(maxRows) * sizeof(int32_t);
      if (role == schema::InputRole::PageTable)
        bytes = pageTableBytes(*plan.kv);
      if (role == schema::InputRole::SamplingParams)
        bytes = static_cast<uint64_t>(maxRows) * sizeof(SamplingParams);
      LLAMAC_ASSIGN_OR_RETURN(memory.inputs.emplace_back(),
                              device.allocate(bytes));
    }
  }
  if (plan.exchangeBytes != 0 && !runner.seesUndefined)
    LLAMAC_RETURN_IF_ERROR(
        write([](const Memory &memory) { return memory.exchange.get(); }, 0,
              noNumbers(plan.exchangeBytes)));
  // Every sequence has all its pages, which lie in disorder. No step comes to
  // those of very long contexts.
  constexpr int64_t usedTokens = 1024;
  std::vector<int32_t> table;
  for (int64_t sequence = 0; sequence < maxSequences; ++sequence)
    for (int64_t page = 0; page < plan.kv->pagesPerSequence; ++page) {
      const int64_t i = sequence * ring + page % ring;
      table.push_back(static_cast<int32_t>(pages - 1 - i % maxSequences * ring -
                                           i / maxSequences));
      if (!runner.seesUndefined && page * plan.kv->pageTokens < usedTokens)
        LLAMAC_RETURN_IF_ERROR(
            write([](const Memory &memory) { return memory.pool.get(); },
                  static_cast<uint64_t>(table.back()) * plan.kv->pageBytes,
                  noNumbers(plan.kv->pageBytes)));
    }
  return writeIndices(schema::InputRole::PageTable, table);
}

absl::Status PlanPrograms::writeIndices(schema::InputRole role,
                                        const std::vector<int32_t> &values) {
  return writeInput(role, bytesOf(values));
}

absl::Status PlanPrograms::writeInput(schema::InputRole role,
                                      absl::Span<const uint8_t> bytes) {
  return write(
      [role](const Memory &memory) {
        return memory.inputs[static_cast<size_t>(role)].get();
      },
      0, bytes);
}

absl::Status PlanPrograms::writeArena(uint64_t offset,
                                      absl::Span<const uint8_t> bytes) {
  return write([](const Memory &memory) { return memory.arena.get(); }, offset,
               bytes);
}

absl::StatusOr<std::vector<float>> PlanPrograms::readArena(uint64_t offset,
                                                           size_t count) {
  std::vector<uint8_t> staging;
  LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                          loaded->device().read(*memories.front().arena, offset,
                                                count * sizeof(float),
                                                staging));
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

absl::StatusOr<std::vector<float>>
PlanPrograms::readTokens(const schema::ProgramT &planned, size_t count) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<float> words,
                          readArena(planned.tokensOffset, count));
  std::vector<float> tokens;
  tokens.reserve(count);
  for (const float word : words)
    tokens.push_back(static_cast<float>(std::bit_cast<int32_t>(word)));
  return tokens;
}

absl::StatusOr<size_t> PlanPrograms::find(const Program &program,
                                          const Step &step) const {
  const auto &programs = loaded->manifest().programs;
  for (size_t i = 0; i < programs.size(); ++i)
    if (made->programs.at(programs[i]->name) == program.name &&
        step.rows() <= programs[i]->maxRows &&
        static_cast<int64_t>(step.wanted.size()) <= programs[i]->maxOutputRows)
      return i;
  return internalError(absl::StrCat("the plan has no program for ", step.rows(),
                                    " rows of ", program.name));
}

absl::StatusOr<std::vector<float>> PlanPrograms::run(const Program &program,
                                                     const Step &step) {
  LLAMAC_ASSIGN_OR_RETURN(const size_t number, find(program, step));
  const schema::ProgramT &planned = *loaded->manifest().programs[number];
  for (size_t rank = 0; rank < memories.size(); ++rank) {
    LLAMAC_ASSIGN_OR_RETURN(
        memories[rank].arena,
        loaded->device(rank).allocate(planned.arenaBytes, MemoryUse::Dense));
  }
  if (!runner.seesUndefined)
    LLAMAC_RETURN_IF_ERROR(writeArena(0, noNumbers(planned.arenaBytes)));
  for (const ProgramInput &input : program.inputs)
    LLAMAC_RETURN_IF_ERROR(
        writeArena(made->inputs.at(planned.name).at(input.name),
                   bytesOf(step.inputs.at(input.name))));
  for (auto [role, values] :
       {std::pair(schema::InputRole::Tokens, &step.tokens),
        std::pair(schema::InputRole::Positions, &step.positions),
        std::pair(schema::InputRole::Sequences, &step.sequences),
        std::pair(schema::InputRole::OutputRows, &step.wanted)})
    LLAMAC_RETURN_IF_ERROR(writeIndices(role, *values));
  LLAMAC_RETURN_IF_ERROR(
      writeInput(schema::InputRole::SamplingParams, bytesOf(step.draws)));

  std::vector<void *> areas;
  for (const Memory &memory : memories)
    areas.push_back(memory.exchange ? memory.exchange->address() : nullptr);
  std::vector<PeerTables> peers;
  std::vector<ProgramBindings> bindings;
  for (size_t rank = 0; rank < memories.size(); ++rank) {
    const Memory &memory = memories[rank];
    ProgramBindings &own = bindings.emplace_back();
    own.arena = memory.arena->address();
    own.kv = {memory.pool->address()};
    for (const auto &input : memory.inputs)
      own.inputs.push_back(input->address());
    own.counters = memory.counters->address();
    own.exchange = areas[rank];
    LLAMAC_ASSIGN_OR_RETURN(
        peers.emplace_back(),
        PeerTables::create(loaded->manifest(), loaded->device(rank), areas));
    own.peers = peers.back().addresses();
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedProgram> prepared,
                          loaded->prepare(number, std::move(bindings)));
  const auto wanted = static_cast<int64_t>(step.wanted.size());
  // One by one, launches do what all of them do at once: every second step.
  // A device that sees what is undefined takes all of the arena for that at the
  // start of a program, the inputs too.
  oneByOne = runner.seesUndefined || !oneByOne;
  if (oneByOne)
    for (size_t launch = 0; launch < planned.launches.size(); ++launch)
      LLAMAC_RETURN_IF_ERROR(
          prepared->runLaunch(launch, {step.rows(), wanted}));
  else
    LLAMAC_RETURN_IF_ERROR(prepared->run({step.rows(), wanted}));

  const int64_t rows = program.wanted ? wanted : step.rows();
  const int64_t maxRows =
      program.wanted ? planned.maxOutputRows : planned.maxRows;
  const auto width = static_cast<size_t>(program.outWidth);
  if (program.samples)
    return readTokens(planned, wanted);
  LLAMAC_ASSIGN_OR_RETURN(std::vector<float> out,
                          readArena(planned.logitsOffset, rows * width));
  // Behind the result of one launch there is nothing else's memory.
  if (!runner.seesUndefined && planned.launches.size() == 1) {
    LLAMAC_ASSIGN_OR_RETURN(
        const std::vector<float> behind,
        readArena(planned.logitsOffset + rows * width * sizeof(float),
                  (maxRows - rows) * width));
    const std::vector<uint8_t> none = noNumbers(behind.size() * sizeof(float));
    if (std::memcmp(behind.data(), none.data(), none.size()) != 0)
      return internalError(
          absl::StrCat("rows past the step's ", rows, " were written"));
  }
  return out;
}

absl::StatusOr<std::unique_ptr<LoadedPrograms>>
loadOnPlan(const PlanRunner &runner, const Model &model,
           const std::vector<ProgramUse> &programs) {
  auto loaded = std::make_unique<PlanPrograms>(runner);
  LLAMAC_RETURN_IF_ERROR(loaded->load(model, programs));
  return loaded;
}

} // namespace llamac::conformance
