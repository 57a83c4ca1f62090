//===- RankLeader.cpp - Rank 0 of several processes -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/RankLeader.h"

#include "runtime/base/Status.h"
#include "runtime/load/RankFollower.h"
#include "runtime/ranks/Messages.h"

#include "absl/strings/str_cat.h"

#include <atomic>
#include <utility>

namespace llamac {

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// A number for a plan or a memory.
static uint32_t nextNumber() {
  static std::atomic<uint32_t> numbers = 0;
  return numbers++;
}

/// Adds `call` for all other ranks to what is sent next.
template <typename Call> static void post(RankWorld &world, Call call) {
  ranks::MessageT message;
  message.call.Set(std::move(call));
  world.post(packMessage(message));
}

/// Sends `call` at once; it is to be answered.
template <typename Call> static void ask(RankWorld &world, Call call) {
  const std::lock_guard<std::mutex> lock(world.turn());
  post(world, std::move(call));
  world.flush();
  world.expectAnswers();
}

/// Sent with what is sent next: nothing of plan or memory `number` is left.
static void postFree(RankWorld &world, uint32_t number) {
  const std::lock_guard<std::mutex> lock(world.turn());
  post(world, ranks::FreeT{.number = number});
}

/// The answers of all other ranks, by rank from 1 on; the first error, with the
/// rank that has it.
static absl::StatusOr<std::vector<ranks::AnswerT>>
takeAnswers(RankWorld &world) {
  const std::lock_guard<std::mutex> lock(world.turn());
  std::vector<ranks::AnswerT> answers;
  absl::Status status;
  for (const std::vector<uint8_t> &bytes : world.takeAnswers()) {
    const int rank = static_cast<int>(answers.size()) + 1;
    const ranks::AnswerT &answer =
        answers.emplace_back(unpackMessage<ranks::AnswerT>(world, bytes, rank));
    if (status.ok() && answer.code != 0)
      status = absl::Status(static_cast<absl::StatusCode>(answer.code),
                            absl::StrCat("rank ", rank, ": ", answer.message));
  }
  if (!status.ok())
    return status;
  return answers;
}

void endRanks(RankWorld &world) { ask(world, ranks::EndT{}); }

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

std::shared_ptr<RankTeam> RankTeam::load(RankWorld &world,
                                         absl::string_view path,
                                         const ModelOptions &options) {
  std::shared_ptr<RankTeam> team(new RankTeam(world, nextNumber()));
  world.setTimeLimit(options.rankTimeout);
  ask(world, ranks::LoadT{.number = team->number,
                          .path = std::string(path),
                          .verify = options.verify,
                          .sequences = options.sequences,
                          .fillsGpu = options.fillsGpu,
                          .sharesPages = options.sharesPages,
                          .threads = options.threads,
                          .isa = options.isa,
                          .gpuIndex = options.gpuIndex,
                          .copiesExchanges = options.rankCopies,
                          .timeLimit = options.rankTimeout});
  return team;
}

RankTeam::~RankTeam() { postFree(world, number); }

absl::Status RankTeam::check(const PlanReader &plan) const {
  const schema::PlanT &manifest = plan.plan();
  if (manifest.ranks != world.size())
    return badPlanError(absl::StrCat(
        plan.path(), ": expected a plan for ", world.size(),
        " ranks, as mpirun has started, got one for ", manifest.ranks,
        manifest.ranks == 1
            ? "; compile it with --ranks"
            : absl::StrCat("; start it with mpirun -n ", manifest.ranks)));
  return absl::OkStatus();
}

absl::Status RankTeam::join(const PlanReader &plan, Device &own,
                            std::optional<uint64_t> randomWeights) {
  LLAMAC_ASSIGN_OR_RETURN(const auto answers, takeAnswers(world));
  const ranks::AnswerT expected{.planHash = hashText(plan.hash()),
                                .build = buildOfRanks()};
  for (size_t i = 0; i < answers.size(); ++i) {
    auto differs = [&](absl::string_view what, const std::string &own,
                       const std::string &other) {
      return badPlanError(absl::StrCat(
          plan.path(), ": ", what, ": expected ", own, " on all ranks, got ",
          other, " on rank ", i + 1, "; give all the same file and program"));
    };
    if (answers[i].build != expected.build)
      return differs("build of llamac-run", expected.build, answers[i].build);
    if (answers[i].planHash != expected.planHash)
      return differs("hash", expected.planHash, answers[i].planHash);
  }
  RankCommunicator *const communicator = own.communicator();
  std::vector<uint8_t> id;
  if (communicator) {
    LLAMAC_ASSIGN_OR_RETURN(id, communicator->newId());
  }
  ask(world, ranks::JoinT{.plan = number,
                          .id = id,
                          .isRandom = randomWeights.has_value(),
                          .seed = randomWeights.value_or(0)});
  return communicator ? communicator->join(id, world.rank(), world.size())
                      : absl::OkStatus();
}

absl::Status RankTeam::finishLoading() { return takeAnswers(world).status(); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

FollowerMemory::FollowerMemory(std::shared_ptr<RankTeam> team)
    : team(std::move(team)), number(nextNumber()),
      next(std::make_unique<ranks::StepT>()) {}

FollowerMemory::~FollowerMemory() { postFree(team->world, number); }

absl::Status FollowerMemory::allocate(int64_t pages, const SharedFile &areas) {
  ask(team->world, ranks::AllocateT{.plan = team->number,
                                    .number = number,
                                    .pages = pages,
                                    .process = areas.process,
                                    .descriptor = areas.descriptor});
  return takeAnswers(team->world).status();
}

void FollowerMemory::write(uint64_t offset, absl::Span<const uint8_t> bytes) {
  next->writes.emplace_back(offset, bytes.size());
  next->bytes.insert(next->bytes.end(), bytes.begin(), bytes.end());
}

/// The others begin as the message comes, and this one when it is sent: they
/// meet at the collectives.
absl::Status FollowerMemory::run(size_t program, const StepShape &shape,
                                 int32_t launch,
                                 absl::FunctionRef<absl::Status()> own) {
  ranks::StepT step = std::exchange(*next, {});
  step.memory = number;
  step.program = static_cast<uint32_t>(program);
  step.rows = shape.rows;
  step.outputRows = shape.outputRows;
  step.samples = shape.samples;
  step.launch = launch;
  const std::lock_guard<std::mutex> lock(team->world.turn());
  post(team->world, std::move(step));
  team->world.flush();
  return own();
}

namespace {

class LeaderProgram final : public PreparedProgram {
public:
  LeaderProgram(const schema::ProgramT &program, FollowerMemory &others,
                size_t number, std::unique_ptr<PreparedProgram> own)
      : PreparedProgram(program), others(others), number(number),
        own(std::move(own)) {}

  absl::Status run(const StepShape &shape,
                   absl::FunctionRef<void()> meanwhile) override {
    LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
    return others.run(number, shape, /*launch=*/-1,
                      [&] { return own->run(shape, meanwhile); });
  }
  absl::Status runLaunch(size_t launch, const StepShape &shape) override {
    LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
    LLAMAC_RETURN_IF_ERROR(checkLaunch(program, launch));
    return others.run(number, shape, static_cast<int32_t>(launch),
                      [&] { return own->runLaunch(launch, shape); });
  }

private:
  FollowerMemory &others;
  const size_t number;
  std::unique_ptr<PreparedProgram> own;
};

} // namespace

std::unique_ptr<PreparedProgram>
FollowerMemory::lead(const schema::ProgramT &program, size_t number,
                     std::unique_ptr<PreparedProgram> own) {
  return std::make_unique<LeaderProgram>(program, *this, number,
                                         std::move(own));
}

} // namespace llamac
