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
#include "runtime/load/LoadedPlan.h"
#include "runtime/load/PlanMemory.h"
#include "runtime/ranks/Messages.h"

#include "absl/strings/str_cat.h"

#include <csignal>
#include <map>

namespace llamac {

std::string buildOfRanks() {
  return buildIdAt(reinterpret_cast<const void *>(&followRanks));
}

namespace {

class Follower {
public:
  explicit Follower(RankWorld &world) : world(world) {}

  /// Does what `message` says; false for the last.
  bool follow(const ranks::MessageT &message);

private:
  absl::Status load(const ranks::LoadT &call, ranks::AnswerT &answer);
  absl::Status join(const ranks::JoinT &call);
  absl::Status allocate(const ranks::AllocateT &call);
  absl::Status step(const ranks::StepT &call);
  void answer(const absl::Status &status, ranks::AnswerT answer = {});
  void endOnError(const absl::Status &status);

  RankWorld &world;
  // Both have the numbers that rank 0 gave. Memories come last and so are freed
  // before their plans.
  std::map<uint32_t, std::unique_ptr<LoadedPlan>> plans;
  std::map<uint32_t, std::unique_ptr<PlanMemory>> memories;
};

} // namespace

absl::Status Follower::load(const ranks::LoadT &call, ranks::AnswerT &answer) {
  world.setTimeLimit(call.timeLimit);
  ModelOptions options;
  options.verify = call.verify;
  options.sequences = call.sequences;
  options.fillsGpu = call.fillsGpu;
  options.sharesPages = call.sharesPages;
  options.threads = call.threads;
  options.isa = call.isa;
  options.gpuIndex = call.gpuIndex;
  options.rankCopies = call.copiesExchanges;
  options.ranks = &world;
  LLAMAC_ASSIGN_OR_RETURN(const auto reader, openPlan(call.path, options));
  answer.planHash = hashText(reader->hash());
  LLAMAC_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::start(reader, options));
  LLAMAC_RETURN_IF_ERROR(plan.loadCode(reader));
  LLAMAC_RETURN_IF_ERROR(plan.reserve());
  plans[call.number] = std::make_unique<LoadedPlan>(std::move(plan));
  return absl::OkStatus();
}

absl::Status Follower::join(const ranks::JoinT &call) {
  LoadedPlan &plan = *plans.at(call.plan);
  // Rank 0 takes no answer as long as it waits for all to join.
  if (RankCommunicator *communicator = plan.device().communicator())
    endOnError(communicator->join(call.id, world.rank(), world.size()));
  return plan.loadWeights(call.isRandom ? std::optional(call.seed)
                                        : std::nullopt);
}

absl::Status Follower::allocate(const ranks::AllocateT &call) {
  memories.erase(call.number);
  LLAMAC_ASSIGN_OR_RETURN(auto memory,
                          PlanMemory::create(*plans.at(call.plan),
                                             {call.process, call.descriptor}));
  LLAMAC_RETURN_IF_ERROR(memory->allocatePools(call.pages));
  LLAMAC_RETURN_IF_ERROR(memory->prepare());
  memories[call.number] = std::move(memory);
  return absl::OkStatus();
}

absl::Status Follower::step(const ranks::StepT &call) {
  PlanMemory &memory = *memories.at(call.memory);
  absl::Span<const uint8_t> bytes = call.bytes;
  for (const ranks::Write &write : call.writes) {
    if (write.size() > bytes.size())
      world.endBecauseOf(0);
    LLAMAC_RETURN_IF_ERROR(
        memory.writeInputs(write.offset(), bytes.first(write.size())));
    bytes.remove_prefix(write.size());
  }
  PreparedProgram &program = memory.program(call.program);
  const StepShape shape{call.rows, call.outputRows, call.samples};
  return call.launch < 0
             ? program.run(shape)
             : program.runLaunch(static_cast<size_t>(call.launch), shape);
}

void Follower::answer(const absl::Status &status, ranks::AnswerT answer) {
  answer.code = status.raw_code();
  answer.message = std::string(status.message());
  world.answer(packMessage(answer));
}

void Follower::endOnError(const absl::Status &status) {
  if (!status.ok())
    world.end(exitCode(status),
              absl::StrCat("rank ", world.rank(), ": ", status.message()));
}

bool Follower::follow(const ranks::MessageT &message) {
  const ranks::CallUnion &call = message.call;
  switch (call.type) {
  case ranks::Call::Load: {
    ranks::AnswerT loaded;
    loaded.build = buildOfRanks();
    const absl::Status status = load(*call.AsLoad(), loaded);
    answer(status, std::move(loaded));
    return true;
  }
  case ranks::Call::Join:
    answer(join(*call.AsJoin()));
    return true;
  case ranks::Call::Allocate:
    answer(allocate(*call.AsAllocate()));
    return true;
  case ranks::Call::Step:
    endOnError(step(*call.AsStep()));
    return true;
  case ranks::Call::Free:
    memories.erase(call.AsFree()->number);
    plans.erase(call.AsFree()->number);
    return true;
  case ranks::Call::End:
    memories.clear();
    plans.clear();
    answer(absl::OkStatus());
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
