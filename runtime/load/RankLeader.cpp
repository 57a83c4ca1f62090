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
#include "runtime/ranks/ProcessExchange.h"

#include "absl/strings/str_cat.h"

#include <atomic>
#include <map>

namespace llamac {

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Adds `call` for all other ranks to what is sent next.
template <typename Call> static void post(RankWorld &world, Call call) {
  ranks::MessageT message;
  message.call.Set(std::move(call));
  world.post(packMessage(message));
}

/// The same, sent at once, and to be answered.
template <typename Call> static void ask(RankWorld &world, Call call) {
  const std::lock_guard<std::mutex> lock(world.turn());
  post(world, std::move(call));
  world.flush();
  world.expectAnswers();
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

/// Has all other ranks do `call`.
template <typename Call>
static absl::Status callRanks(RankWorld &world, Call call) {
  ask(world, std::move(call));
  return takeAnswers(world).status();
}

/// The same for a call without an answer, sent with the next that is sent.
template <typename Call> static void tellRanks(RankWorld &world, Call call) {
  const std::lock_guard<std::mutex> lock(world.turn());
  post(world, std::move(call));
}

/// The number by which the others know memory of this process.
static uint64_t numberOf(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

static std::vector<uint64_t> numbersOf(const std::vector<void *> &addresses) {
  std::vector<uint64_t> numbers;
  numbers.reserve(addresses.size());
  for (const void *address : addresses)
    numbers.push_back(numberOf(address));
  return numbers;
}

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

namespace {

using Buffers = std::vector<std::unique_ptr<Buffer>>;

/// Memory of this rank, by whose address the others know theirs.
class LeaderBuffer final : public Buffer {
public:
  LeaderBuffer(RankWorld &world, std::unique_ptr<Buffer> own)
      : Buffer(own->address(), own->size()), world(world), own(std::move(own)) {
  }
  ~LeaderBuffer() override {
    tellRanks(world, ranks::FreeT{.at = numberOf(address())});
  }

  Buffer &ofThisRank() const { return *own; }

private:
  RankWorld &world;
  std::unique_ptr<Buffer> own;
};

class LeaderDevice final : public Device {
public:
  LeaderDevice(RankWorld &world, uint32_t plan, const PlanReader &opened,
               std::shared_ptr<Device> own, bool copiesExchanges)
      : world(world), plan(plan), opened(&opened), own(std::move(own)),
        copiesExchanges(copiesExchanges) {}

  std::string describe() const override { return ofAll(own->describe()); }
  std::string identity(const schema::PlanT &plan) const override {
    return ofAll(own->identity(plan));
  }
  std::string arithmetic(const schema::PlanT &plan) const override {
    return ofAll(own->arithmetic(plan));
  }
  int threads() const override { return own->threads(); }
  absl::Status forEach(size_t count,
                       absl::FunctionRef<void(size_t)> work) override {
    return own->forEach(count, work);
  }
  absl::StatusOr<std::unique_ptr<Buffer>> allocate(uint64_t size) override {
    return onEach(ranks::MemoryKind::Plain, own->allocate(size));
  }
  absl::StatusOr<std::unique_ptr<Buffer>>
  allocateDense(uint64_t size) override {
    return onEach(ranks::MemoryKind::Dense, own->allocateDense(size));
  }
  absl::StatusOr<std::unique_ptr<Buffer>>
  allocateUnset(uint64_t size) override {
    return onEach(ranks::MemoryKind::Unset, own->allocateUnset(size));
  }
  absl::StatusOr<std::unique_ptr<Buffer>>
  allocateExchange(uint64_t size) override;
  absl::StatusOr<std::optional<DeviceMemory>> memory() override {
    return own->memory();
  }
  absl::Status reserve(uint64_t size) override { return own->reserve(size); }
  absl::Status check() override { return own->check(); }
  bool sharesInPlace() const override { return own->sharesInPlace(); }
  absl::StatusOr<std::unique_ptr<Buffer>>
  share(absl::Span<const uint8_t> bytes) override;
  absl::Status write(Buffer &buffer, uint64_t offset,
                     absl::Span<const uint8_t> bytes) override;
  absl::StatusOr<std::unique_ptr<Upload>>
  newUpload(uint64_t /*pieceBytes*/) override {
    return internalError("uploads are to the device of a rank");
  }
  absl::StatusOr<absl::Span<const uint8_t>>
  read(const Buffer &buffer, uint64_t offset, uint64_t size,
       std::vector<uint8_t> &staging) override;
  absl::StatusOr<std::unique_ptr<LoadedCode>>
  loadCode(std::shared_ptr<const PlanReader> plan) override;

  std::vector<Device *> ranks() override { return {own.get()}; }
  absl::StatusOr<Buffers> joinWeights(std::vector<Buffers> ofRanks) override;

  /// A program of code of this rank, prepared on all.
  absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(LoadedCode &code, const PlanReader &reader, size_t program,
          const ProgramBindings &bindings);

private:
  std::string ofAll(const std::string &one) const {
    return absl::StrCat(world.size(), " processes of ", one);
  }
  absl::StatusOr<std::unique_ptr<Buffer>>
  onEach(ranks::MemoryKind kind, absl::StatusOr<std::unique_ptr<Buffer>> made);

  RankWorld &world;
  const uint32_t plan;            ///< Its number.
  const PlanReader *const opened; ///< By the others too; to compare with.
  std::shared_ptr<Device> own;
  const bool copiesExchanges; ///< By MPI, even where memory can be shared.
  std::mutex exchanging;
  std::map<const void *, ProcessExchange *> exchanges; ///< By area of rank 0.
  std::unique_ptr<Buffer> rank; ///< Its number, once a program is prepared.
  std::atomic<uint64_t> programs = 0; ///< Prepared so far.

  friend class ExchangeBuffer;
};

/// The area of rank 0; those of the others are freed with it.
class ExchangeBuffer final : public Buffer {
public:
  ExchangeBuffer(LeaderDevice &device,
                 std::unique_ptr<ProcessExchange> exchange, uint64_t size)
      : Buffer(exchange->area(0), size), device(device),
        exchange(std::move(exchange)) {
    const std::lock_guard<std::mutex> lock(device.exchanging);
    device.exchanges[address()] = this->exchange.get();
  }
  ~ExchangeBuffer() override {
    const std::lock_guard<std::mutex> lock(device.exchanging);
    device.exchanges.erase(address());
    tellRanks(device.world, ranks::FreeT{.at = numberOf(address())});
  }

private:
  LeaderDevice &device;
  std::unique_ptr<ProcessExchange> exchange;
};

class LeaderProgram final : public PreparedProgram {
public:
  LeaderProgram(RankWorld &world, uint64_t number,
                const schema::ProgramT &program, PeerTables peers,
                std::unique_ptr<PreparedProgram> own)
      : PreparedProgram(program), world(world), number(number),
        peers(std::move(peers)), own(std::move(own)) {}
  ~LeaderProgram() override {
    tellRanks(world, ranks::ReleaseT{.program = number});
  }

  absl::Status run(const StepShape &shape,
                   absl::FunctionRef<void()> meanwhile) override {
    return onAll(shape, -1, [&] { return own->run(shape, meanwhile); });
  }
  absl::Status runLaunch(size_t launch, const StepShape &shape) override {
    LLAMAC_RETURN_IF_ERROR(checkLaunch(program, launch));
    return onAll(shape, static_cast<int32_t>(launch),
                 [&] { return own->runLaunch(launch, shape); });
  }

private:
  absl::Status onAll(const StepShape &shape, int32_t launch,
                     absl::FunctionRef<absl::Status()> runOwn);

  RankWorld &world;
  const uint64_t number;
  PeerTables peers;
  std::unique_ptr<PreparedProgram> own;
};

class LeaderCode final : public LoadedCode {
public:
  LeaderCode(LeaderDevice &device, std::shared_ptr<const PlanReader> plan,
             std::unique_ptr<LoadedCode> own)
      : device(device), plan(std::move(plan)), own(std::move(own)) {}

  std::string isa() const override { return own->isa(); }
  absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(size_t program, const ProgramBindings &bindings) override {
    return device.prepare(*own, *plan, program, bindings);
  }

private:
  LeaderDevice &device;
  std::shared_ptr<const PlanReader> plan;
  std::unique_ptr<LoadedCode> own;
};

} // namespace

/// What `made` has for this rank, on all.
absl::StatusOr<std::unique_ptr<Buffer>>
LeaderDevice::onEach(ranks::MemoryKind kind,
                     absl::StatusOr<std::unique_ptr<Buffer>> made) {
  if (!made.ok())
    return made.status();
  auto buffer = std::make_unique<LeaderBuffer>(world, *std::move(made));
  LLAMAC_RETURN_IF_ERROR(
      callRanks(world, ranks::AllocateT{.plan = plan,
                                        .at = numberOf(buffer->address()),
                                        .size = buffer->size(),
                                        .kind = kind}));
  return buffer;
}

absl::StatusOr<std::unique_ptr<Buffer>>
LeaderDevice::allocateExchange(uint64_t size) {
  if (own->gathersPeers())
    return allocate(size);
  const bool copies = copiesExchanges || !world.isOneMachine();
  SharedFile file;
  LLAMAC_ASSIGN_OR_RETURN(auto exchange, copies
                                             ? copyAreas(world, size)
                                             : shareAreas(world, size, file));
  auto buffer =
      std::make_unique<ExchangeBuffer>(*this, std::move(exchange), size);
  LLAMAC_RETURN_IF_ERROR(callRanks(
      world, ranks::AllocateExchangeT{.plan = plan,
                                      .at = numberOf(buffer->address()),
                                      .size = size,
                                      .process = file.process,
                                      .descriptor = file.descriptor}));
  return buffer;
}

absl::StatusOr<std::unique_ptr<Buffer>>
LeaderDevice::share(absl::Span<const uint8_t> bytes) {
  LLAMAC_ASSIGN_OR_RETURN(auto buffer,
                          onEach(ranks::MemoryKind::Unset, own->share(bytes)));
  tellRanks(world, ranks::WriteT{.plan = plan,
                                 .at = numberOf(buffer->address()),
                                 .bytes = {bytes.begin(), bytes.end()}});
  return buffer;
}

absl::Status LeaderDevice::write(Buffer &buffer, uint64_t offset,
                                 absl::Span<const uint8_t> bytes) {
  LLAMAC_RETURN_IF_ERROR(own->write(
      static_cast<LeaderBuffer &>(buffer).ofThisRank(), offset, bytes));
  tellRanks(world, ranks::WriteT{.plan = plan,
                                 .at = numberOf(buffer.address()) + offset,
                                 .bytes = {bytes.begin(), bytes.end()}});
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const uint8_t>>
LeaderDevice::read(const Buffer &buffer, uint64_t offset, uint64_t size,
                   std::vector<uint8_t> &staging) {
  return own->read(static_cast<const LeaderBuffer &>(buffer).ofThisRank(),
                   offset, size, staging);
}

absl::StatusOr<Buffers>
LeaderDevice::joinWeights(std::vector<Buffers> ofRanks) {
  LLAMAC_RETURN_IF_ERROR(takeAnswers(world).status());
  Buffers weights;
  ranks::NameWeightsT names;
  names.plan = plan;
  for (auto &weight : ofRanks.front()) {
    weights.push_back(std::make_unique<LeaderBuffer>(world, std::move(weight)));
    names.addresses.push_back(numberOf(weights.back()->address()));
  }
  tellRanks(world, std::move(names));
  return weights;
}

absl::StatusOr<std::unique_ptr<LoadedCode>>
LeaderDevice::loadCode(std::shared_ptr<const PlanReader> plan) {
  if (plan.get() != opened)
    return usageError("configs: expected one process to try others in, got "
                      "several that run those of the plan; leave out mpirun");
  LLAMAC_ASSIGN_OR_RETURN(auto code, own->loadCode(plan));
  return std::make_unique<LeaderCode>(*this, std::move(plan), std::move(code));
}

absl::StatusOr<std::unique_ptr<PreparedProgram>>
LeaderDevice::prepare(LoadedCode &code, const PlanReader &reader,
                      size_t program, const ProgramBindings &bindings) {
  const schema::ProgramT &schema = *reader.plan().programs[program];
  ProgramBindings ofRank = bindings;
  PeerTables peers;
  {
    const std::lock_guard<std::mutex> lock(exchanging);
    if (const auto found = exchanges.find(bindings.exchange);
        found != exchanges.end())
      peers = PeerTables(schema, *found->second, world, ofRank);
    if (!rank) {
      LLAMAC_ASSIGN_OR_RETURN(rank, allocateRank(world.rank(), *own));
    }
  }
  ofRank.inputs[static_cast<size_t>(schema::InputRole::Rank)] = rank->address();
  LLAMAC_ASSIGN_OR_RETURN(auto prepared, code.prepare(program, ofRank));
  const uint64_t number = programs++ << 32 | plan;
  auto all = std::make_unique<LeaderProgram>(
      world, number, schema, std::move(peers), std::move(prepared));
  LLAMAC_RETURN_IF_ERROR(callRanks(
      world, ranks::PrepareT{.plan = plan,
                             .program = static_cast<uint32_t>(program),
                             .as = number,
                             .arena = numberOf(bindings.arena),
                             .weights = numbersOf(bindings.weights),
                             .kv = numbersOf(bindings.kv),
                             .inputs = numbersOf(bindings.inputs),
                             .pageTableBytes = bindings.pageTableBytes,
                             .constants = numbersOf(bindings.constants),
                             .counters = numberOf(bindings.counters),
                             .exchange = numberOf(bindings.exchange)}));
  return all;
}

/// The others begin as the message comes, and this one when it is sent: they
/// meet at the collectives.
absl::Status LeaderProgram::onAll(const StepShape &shape, int32_t launch,
                                  absl::FunctionRef<absl::Status()> runOwn) {
  LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
  const std::lock_guard<std::mutex> lock(world.turn());
  post(world, ranks::RunT{.program = number,
                          .rows = shape.rows,
                          .outputRows = shape.outputRows,
                          .samples = shape.samples,
                          .launch = launch});
  world.flush();
  return runOwn();
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

uint32_t announcePlan(RankWorld &world, absl::string_view path,
                      const ModelOptions &options) {
  static std::atomic<uint32_t> plans = 0;
  const uint32_t number = plans++;
  world.setTimeLimit(options.rankTimeout);
  ask(world, ranks::OpenT{.plan = number,
                          .path = std::string(path),
                          .verify = options.verify,
                          .sequences = options.sequences,
                          .fillsGpu = options.fillsGpu,
                          .sharesPages = options.sharesPages,
                          .threads = options.threads,
                          .isa = options.isa,
                          .gpuIndex = options.gpuIndex,
                          .timeLimit = options.rankTimeout});
  return number;
}

absl::Status checkRanks(const RankWorld &world, const PlanReader &plan) {
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

absl::StatusOr<std::shared_ptr<Device>>
leadRanks(RankWorld &world, uint32_t number, const PlanReader &plan,
          std::shared_ptr<Device> own, const ModelOptions &options) {
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
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<uint8_t> place,
                          own->newMeetingPlace());
  if (!place.empty()) {
    {
      const std::lock_guard<std::mutex> lock(world.turn());
      post(world, ranks::JoinT{.plan = number, .place = place});
      world.flush();
    }
    LLAMAC_RETURN_IF_ERROR(own->joinRanks(place, world.rank(), world.size()));
  }
  ask(world, ranks::LoadWeightsT{.plan = number,
                                 .isRandom = options.randomWeights.has_value(),
                                 .seed = options.randomWeights.value_or(0)});
  return std::make_shared<LeaderDevice>(world, number, plan, std::move(own),
                                        options.rankCopies);
}

void endRanks(RankWorld &world) { ask(world, ranks::EndT{}); }

} // namespace llamac
