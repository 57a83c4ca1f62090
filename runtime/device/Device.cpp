//===- Device.cpp - What runs a plan --------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Device.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"
#include "runtime/device/LaunchObserver.h"
#include "runtime/io/CheckedMath.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac {

void *addressOf(const schema::Operand &operand,
                const ProgramBindings &bindings) {
  auto at = [](void *base, uint64_t offset) -> void * {
    return static_cast<uint8_t *>(base) + offset;
  };
  switch (operand.kind()) {
  case schema::OperandKind::Arena:
    return at(bindings.arena, operand.offset());
  case schema::OperandKind::Weight:
    return bindings.weights[operand.index()];
  case schema::OperandKind::Kv:
    return bindings.kv[operand.index()];
  case schema::OperandKind::Input:
    return at(bindings.inputs[operand.index()],
              operand.offset() * bindings.pageTableBytes);
  case schema::OperandKind::Constant:
    return at(bindings.constants[operand.index()], operand.offset());
  case schema::OperandKind::Counters:
    return at(bindings.counters, operand.offset());
  case schema::OperandKind::Exchange:
    return at(bindings.exchange, operand.offset());
  case schema::OperandKind::Peers:
    return bindings.peers.at(operand.offset());
  }
  return nullptr; // The plan's verifier lets no other kind pass.
}

uint64_t counterBytes(const schema::PlanT &plan) {
  return std::max<uint64_t>(plan.counterBytes, sizeof(uint32_t));
}

absl::StatusOr<std::unique_ptr<Buffer>>
allocateCounters(const schema::PlanT &plan, Device &device) {
  const std::vector<uint8_t> zeros(counterBytes(plan));
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> counters,
                          device.allocate(zeros.size()));
  // The zeros of allocate() need not count as written.
  LLAMAC_RETURN_IF_ERROR(device.write(*counters, 0, zeros));
  return counters;
}

absl::StatusOr<std::unique_ptr<Buffer>> allocateRank(int rank, Device &device) {
  const int32_t number = rank;
  LLAMAC_ASSIGN_OR_RETURN(auto buffer, device.allocate(sizeof number));
  LLAMAC_RETURN_IF_ERROR(device.write(
      *buffer, 0, {reinterpret_cast<const uint8_t *>(&number), sizeof number}));
  return buffer;
}

int64_t rowsOf(schema::RowSymbol rows, const StepShape &shape) {
  return rows == schema::RowSymbol::Tokens ? shape.rows : shape.outputRows;
}

const schema::Operand *peersOf(const schema::LaunchT &launch) {
  const auto found = std::ranges::find(
      launch.operands, schema::OperandKind::Peers, &schema::Operand::kind);
  return found == launch.operands.end() ? nullptr : &*found;
}

static bool isInput(const schema::Operand &operand, schema::InputRole role) {
  return operand.kind() == schema::OperandKind::Input &&
         operand.index() == static_cast<uint32_t>(role);
}

static bool takes(const schema::LaunchT &launch, schema::InputRole role) {
  return std::ranges::any_of(launch.operands,
                             [role](const schema::Operand &operand) {
                               return isInput(operand, role);
                             });
}

bool isSampling(const schema::LaunchT &launch) {
  // A resident step takes both.
  return takes(launch, schema::InputRole::SamplingParams) &&
         !takes(launch, schema::InputRole::Tokens);
}

uint64_t inputRowBytes(const schema::PlanT &plan, schema::InputRole role) {
  using schema::InputRole;
  const schema::DraftHeadT *head = plan.config->head.get();
  switch (role) {
  case InputRole::PageTable:
  case InputRole::Rank:
    return 0;
  case InputRole::SamplingParams:
    return 16;
  case InputRole::Features:
    return head ? head->layers.size() * static_cast<uint64_t>(head->targetDim) *
                      sizeof(float)
                : 0;
  case InputRole::HeadState:
    return head ? static_cast<uint64_t>(plan.config->dim) * sizeof(float) : 0;
  default:
    return sizeof(int32_t);
  }
}

void moveToStep(const schema::PlanT &plan, const schema::ProgramT &program,
                const schema::LaunchT &launch, void *tokens, int64_t rows,
                int step, std::vector<void *> &addresses) {
  const auto &params = plan.kernels[launch.kernel]->params;
  const bool samples = takes(launch, schema::InputRole::SamplingParams);
  auto rowsOn = [&plan, rows](void *input, schema::InputRole role, int steps) {
    return static_cast<void *>(static_cast<uint8_t *>(input) +
                               static_cast<int64_t>(inputRowBytes(plan, role)) *
                                   rows * steps);
  };
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const schema::Operand &operand = launch.operands[i];
    for (const schema::InputRole role :
         {schema::InputRole::Tokens, schema::InputRole::Positions,
          schema::InputRole::SamplingParams})
      if (isInput(operand, role))
        addresses[i] = rowsOn(addresses[i], role, step);
    if (samples && params[i] == schema::ParamRole::Result &&
        operand.kind() == schema::OperandKind::Arena &&
        static_cast<int64_t>(operand.offset()) == program.tokensOffset)
      addresses[i] = rowsOn(tokens, schema::InputRole::Tokens, step + 1);
  }
}

int64_t rowsOf(const schema::LaunchT &launch, const StepShape &shape) {
  return !shape.samples && isSampling(launch) ? 0 : rowsOf(launch.rows, shape);
}

absl::Status checkShape(const schema::ProgramT &program,
                        const StepShape &shape) {
  if (shape.rows >= 0 && shape.rows <= program.maxRows &&
      shape.outputRows >= (shape.rows == 0) &&
      shape.outputRows <= program.maxOutputRows)
    return absl::OkStatus();
  return internalError(absl::StrCat(
      "program ", program.name, ": expected 0 to ", program.maxRows,
      " rows and 0 to ", program.maxOutputRows, " with logits, got ",
      shape.rows, " and ", shape.outputRows));
}

absl::Status checkLaunch(const schema::ProgramT &program, size_t launch) {
  if (launch < program.launches.size())
    return absl::OkStatus();
  return internalError(
      absl::StrCat("program ", program.name, ": expected one of ",
                   program.launches.size(), " launches, got ", launch));
}

absl::Status checkInside(uint64_t bytes, uint64_t offset, uint64_t size) {
  if (isInside(offset, size, bytes))
    return absl::OkStatus();
  return internalError(absl::StrCat("copy: expected to stay within ", bytes,
                                    " bytes, got ", size, " from ", offset));
}

absl::StatusOr<std::vector<double>>
PreparedProgram::runTimed(const StepShape &shape) {
  std::vector<double> seconds(program.launches.size());
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (rowsOf(*program.launches[i], shape) == 0)
      continue;
    const double start = steadySeconds();
    LLAMAC_RETURN_IF_ERROR(runLaunch(i, shape));
    seconds[i] = steadySeconds() - start;
  }
  return seconds;
}

absl::Status Device::forEach(size_t count,
                             absl::FunctionRef<void(size_t)> work) {
  for (size_t i = 0; i < count; ++i)
    work(i);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<DeviceMemory>> Device::memory() {
  return std::nullopt;
}

absl::StatusOr<std::optional<DeviceLimits>> Device::measureLimits() {
  return std::nullopt;
}

absl::Status Device::reserve(uint64_t) { return absl::OkStatus(); }

std::unique_ptr<Buffer> Device::share(absl::Span<const uint8_t>) {
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Buffer>>
shareOrCopy(absl::Span<const uint8_t> bytes, Device &device) {
  if (auto shared = device.share(bytes))
    return shared;
  LLAMAC_ASSIGN_OR_RETURN(auto copy,
                          device.allocate(bytes.size(), MemoryUse::Filled));
  LLAMAC_RETURN_IF_ERROR(device.write(*copy, 0, bytes));
  return copy;
}

absl::StatusOr<std::unique_ptr<StepQueue>> Device::newStepQueue(int, uint64_t) {
  return nullptr;
}

Buffer::~Buffer() = default;
Upload::~Upload() = default;
StepQueue::~StepQueue() = default;
RankExchange::~RankExchange() = default;
PreparedProgram::~PreparedProgram() = default;
LoadedCode::~LoadedCode() = default;
RankCommunicator::~RankCommunicator() = default;
Device::~Device() = default;
StepMemory::~StepMemory() = default;
LaunchObserver::~LaunchObserver() = default;

} // namespace llamac
