//===- RankFollower.cpp - The other ranks of several processes ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/RankFollower.h"

#include "runtime/base/BuildId.h"
#include "runtime/base/FatalEvents.h"
#include "runtime/base/Status.h"
#include "runtime/load/MemoryNeeds.h"
#include "runtime/load/ModelOptions.h"
#include "runtime/ranks/Messages.h"
#include "runtime/ranks/ProcessExchange.h"
#include "runtime/weights/WeightLoader.h"

#include "absl/strings/str_cat.h"

#include <csignal>
#include <iterator>
#include <map>

namespace llamac {

std::string buildOfRanks() {
  return buildIdAt(reinterpret_cast<const void *>(&followRanks));
}

namespace {

/// A plan that rank 0 has opened. What is declared last is freed first.
struct OpenPlan {
  std::shared_ptr<const PlanReader> reader;
  std::shared_ptr<Device> device;
  std::unique_ptr<LoadedCode> code;
  std::unique_ptr<Buffer> rank;                 ///< Its number.
  std::vector<std::unique_ptr<Buffer>> weights; ///< Until they have a number.
};

struct OpenProgram {
  PeerTables peers;
  std::unique_ptr<PreparedProgram> program;
};

class Follower {
public:
  explicit Follower(RankWorld &world) : world(world) {}

  /// Does what `message` says; false for the last.
  bool follow(const ranks::MessageT &message);

private:
  // Answered.
  absl::Status open(const ranks::OpenT &call);
  absl::Status loadWeights(const ranks::LoadWeightsT &call);
  absl::Status allocate(const ranks::AllocateT &call);
  absl::Status allocateExchange(const ranks::AllocateExchangeT &call);
  absl::Status prepare(const ranks::PrepareT &call);
  // Not answered.
  absl::Status join(const ranks::JoinT &call);
  absl::Status nameWeights(const ranks::NameWeightsT &call);
  absl::Status write(const ranks::WriteT &call);
  absl::Status run(const ranks::RunT &call);

  void answer(const absl::Status &status, ranks::AnswerT answer = {});
  void answerOpen(const ranks::OpenT &call);
  void end();
  std::pair<Buffer *, uint64_t> find(uint64_t number) const;
  void *addressOf(uint64_t number) const;
  std::vector<void *> addressesOf(const std::vector<uint64_t> &numbers) const;

  RankWorld &world;
  std::map<uint32_t, OpenPlan> plans;
  /// By where they start in rank 0.
  std::map<uint64_t, std::unique_ptr<Buffer>> buffers;
  std::map<uint64_t, std::unique_ptr<ProcessExchange>> exchanges;
  std::map<uint64_t, OpenProgram> programs;
};

} // namespace

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

absl::Status Follower::open(const ranks::OpenT &call) {
  world.setTimeLimit(call.timeLimit);
  OpenPlan &plan = plans[call.plan];
  const int threads = call.threads != 0 ? call.threads : world.cores();
  LLAMAC_ASSIGN_OR_RETURN(
      plan.reader, PlanReader::open(call.path, {.verify = call.verify,
                                                .rank = world.rank(),
                                                .threads = threads,
                                                .sequences = call.sequences,
                                                .fillsGpu = call.fillsGpu}));
  ModelOptions options;
  options.isa = call.isa;
  options.gpuIndex = call.gpuIndex;
  options.ranks = &world;
  LLAMAC_ASSIGN_OR_RETURN(plan.device,
                          createDevice(plan.reader->plan(), threads, options));
  LLAMAC_RETURN_IF_ERROR(
      checkMemory(*plan.reader, *plan.device, call.sharesPages));
  LLAMAC_ASSIGN_OR_RETURN(plan.code, plan.device->loadCode(plan.reader));
  return reserveMemory(*plan.reader, *plan.device, call.sharesPages);
}

absl::Status Follower::join(const ranks::JoinT &call) {
  return plans.at(call.plan).device->joinRanks(call.place, world.rank(),
                                               world.size());
}

absl::Status Follower::loadWeights(const ranks::LoadWeightsT &call) {
  OpenPlan &plan = plans.at(call.plan);
  WeightOptions options{.firstRank = world.rank()};
  if (call.isRandom)
    options.randomSeed = call.seed;
  LLAMAC_ASSIGN_OR_RETURN(
      plan.weights, llamac::loadWeights(*plan.reader, *plan.device, options));
  return absl::OkStatus();
}

absl::Status Follower::nameWeights(const ranks::NameWeightsT &call) {
  OpenPlan &plan = plans.at(call.plan);
  for (size_t i = 0; i < plan.weights.size(); ++i)
    buffers[call.addresses[i]] = std::move(plan.weights[i]);
  plan.weights.clear();
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

absl::Status Follower::allocate(const ranks::AllocateT &call) {
  Device &device = *plans.at(call.plan).device;
  auto make = [&] {
    switch (call.kind) {
    case ranks::MemoryKind::Dense:
      return device.allocateDense(call.size);
    case ranks::MemoryKind::Unset:
      return device.allocateUnset(call.size);
    case ranks::MemoryKind::Plain:
      break;
    }
    return device.allocate(call.size);
  };
  LLAMAC_ASSIGN_OR_RETURN(buffers[call.at], make());
  return absl::OkStatus();
}

absl::Status Follower::allocateExchange(const ranks::AllocateExchangeT &call) {
  SharedFile file{call.process, call.descriptor};
  LLAMAC_ASSIGN_OR_RETURN(exchanges[call.at],
                          call.descriptor < 0
                              ? copyAreas(world, call.size)
                              : shareAreas(world, call.size, file));
  return absl::OkStatus();
}

/// The buffer with the byte that rank 0 has at `number`, and how far in it that
/// is.
std::pair<Buffer *, uint64_t> Follower::find(uint64_t number) const {
  const auto &[start, buffer] = *std::prev(buffers.upper_bound(number));
  return {buffer.get(), number - start};
}

void *Follower::addressOf(uint64_t number) const {
  if (number == 0)
    return nullptr;
  const auto [buffer, offset] = find(number);
  return static_cast<uint8_t *>(buffer->address()) + offset;
}

std::vector<void *>
Follower::addressesOf(const std::vector<uint64_t> &numbers) const {
  std::vector<void *> addresses;
  addresses.reserve(numbers.size());
  for (const uint64_t number : numbers)
    addresses.push_back(addressOf(number));
  return addresses;
}

absl::Status Follower::write(const ranks::WriteT &call) {
  const auto [buffer, offset] = find(call.at);
  return plans.at(call.plan).device->write(*buffer, offset, call.bytes);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

absl::Status Follower::prepare(const ranks::PrepareT &call) {
  OpenPlan &plan = plans.at(call.plan);
  const auto exchange = exchanges.find(call.exchange);
  const bool isBuffer = exchange == exchanges.end();
  ProgramBindings bindings{.arena = addressOf(call.arena),
                           .weights = addressesOf(call.weights),
                           .kv = addressesOf(call.kv),
                           .inputs = addressesOf(call.inputs),
                           .pageTableBytes = call.pageTableBytes,
                           .constants = addressesOf(call.constants),
                           .counters = addressOf(call.counters),
                           .exchange =
                               isBuffer ? addressOf(call.exchange)
                                        : exchange->second->area(world.rank()),
                           .peers = {}};
  if (!plan.rank) {
    LLAMAC_ASSIGN_OR_RETURN(plan.rank,
                            allocateRank(world.rank(), *plan.device));
  }
  bindings.inputs[static_cast<size_t>(schema::InputRole::Rank)] =
      plan.rank->address();
  PeerTables peers;
  if (!isBuffer)
    peers = PeerTables(*plan.reader->plan().programs[call.program],
                       *exchange->second, world, bindings);
  LLAMAC_ASSIGN_OR_RETURN(auto program,
                          plan.code->prepare(call.program, bindings));
  programs.emplace(call.as, OpenProgram{std::move(peers), std::move(program)});
  return absl::OkStatus();
}

absl::Status Follower::run(const ranks::RunT &call) {
  PreparedProgram &program = *programs.at(call.program).program;
  const StepShape shape{call.rows, call.outputRows, call.samples};
  return call.launch < 0
             ? program.run(shape)
             : program.runLaunch(static_cast<size_t>(call.launch), shape);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Follower::answer(const absl::Status &status, ranks::AnswerT answer) {
  answer.code = status.raw_code();
  answer.message = std::string(status.message());
  world.answer(packMessage(answer));
}

void Follower::answerOpen(const ranks::OpenT &call) {
  const absl::Status status = open(call);
  ranks::AnswerT answer;
  answer.build = buildOfRanks();
  if (const auto &reader = plans[call.plan].reader)
    answer.planHash = hashText(reader->hash());
  this->answer(status, std::move(answer));
}

/// In the order in which rank 0 frees what it has.
void Follower::end() {
  programs.clear();
  exchanges.clear();
  buffers.clear();
  plans.clear();
  const uint8_t done = 0;
  world.answer({&done, 1});
}

bool Follower::follow(const ranks::MessageT &message) {
  auto answered = [&](const auto &call, auto work) {
    answer((this->*work)(call));
  };
  auto done = [&](const absl::Status &status) {
    if (!status.ok())
      world.end(exitCode(status),
                absl::StrCat("rank ", world.rank(), ": ", status.message()));
  };
  const ranks::CallUnion &call = message.call;
  switch (call.type) {
  case ranks::Call::Open:
    answerOpen(*call.AsOpen());
    return true;
  case ranks::Call::Join:
    done(join(*call.AsJoin()));
    return true;
  case ranks::Call::LoadWeights:
    answered(*call.AsLoadWeights(), &Follower::loadWeights);
    return true;
  case ranks::Call::NameWeights:
    done(nameWeights(*call.AsNameWeights()));
    return true;
  case ranks::Call::Allocate:
    answered(*call.AsAllocate(), &Follower::allocate);
    return true;
  case ranks::Call::AllocateExchange:
    answered(*call.AsAllocateExchange(), &Follower::allocateExchange);
    return true;
  case ranks::Call::Free:
    buffers.erase(call.AsFree()->at);
    exchanges.erase(call.AsFree()->at);
    return true;
  case ranks::Call::Write:
    done(write(*call.AsWrite()));
    return true;
  case ranks::Call::Prepare:
    answered(*call.AsPrepare(), &Follower::prepare);
    return true;
  case ranks::Call::Release:
    programs.erase(call.AsRelease()->program);
    return true;
  case ranks::Call::Run:
    done(run(*call.AsRun()));
    return true;
  case ranks::Call::End:
    end();
    return false;
  case ranks::Call::NONE:
    break;
  }
  world.endBecauseOf(0);
}

void followRanks(RankWorld &world) {
  // Rank 0 decides when to end; mpirun sends SIGKILL too.
  for (const int signal : {SIGHUP, SIGINT, SIGTERM})
    std::signal(signal, SIG_IGN);
  Follower follower(world);
  while (
      follower.follow(unpackMessage<ranks::MessageT>(world, world.next(), 0)))
    ;
}

} // namespace llamac
