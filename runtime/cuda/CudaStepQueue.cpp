//===- CudaStepQueue.cpp - Steps in flight on a GPU -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudaProgram.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <cstring>

namespace llamac {

namespace {

class CudaStepQueue final : public StepQueue {
public:
  CudaStepQueue(const CudaDevice &device, int depth, uint64_t runBytes)
      : device(device), driver(device.driver()), runBytes(runBytes),
        runs(depth) {}
  ~CudaStepQueue() override;

  absl::Status start();

  absl::Status write(Buffer &to, uint64_t offset,
                     absl::Span<const uint8_t> bytes) override;
  absl::Status copy(Buffer &to, uint64_t toOffset, const Buffer &from,
                    uint64_t fromOffset, uint64_t size) override;
  absl::Status run(PreparedProgram &program, const StepShape &shape,
                   int steps) override;
  absl::Status fetch(const Buffer &from, uint64_t offset,
                     uint64_t size) override;
  absl::StatusOr<absl::Span<const uint8_t>> take() override;
  absl::Status finish() override;

private:
  struct Run {
    cuda::Event fetched = nullptr;
    absl::Span<const uint8_t> result;
  };

  absl::StatusOr<uint8_t *> place(uint64_t size);

  /// Call enter() of the device and check() of the driver; a fault is told by
  /// the program whose steps are in flight.
  absl::Status enter() const { return explained(device.enter()); }
  absl::Status check(cuda::Result result, const std::string &what) const {
    return explained(driver.check(result, what));
  }
  absl::Status explained(absl::Status status) const {
    return inFlight ? inFlight->explain(std::move(status)) : status;
  }

  const CudaDevice &device;
  const cuda::Driver &driver;
  uint64_t runBytes;
  void *memory = nullptr;
  std::vector<Run> runs;
  /// The program of the last run, until finish().
  const CudaSteps *inFlight = nullptr;
  uint64_t queued = 0, taken = 0;
  uint64_t used = 0; ///< Bytes, of the run that is being queued.
};

} // namespace

absl::Status CudaStepQueue::start() {
  LLAMAC_RETURN_IF_ERROR(device.enter());
  const uint64_t bytes = runs.size() * runBytes;
  LLAMAC_RETURN_IF_ERROR(
      driver.check(driver.cuMemHostAlloc(&memory, bytes, 0),
                   absl::StrCat("cuMemHostAlloc of ", bytes, " bytes")));
  for (Run &run : runs)
    LLAMAC_RETURN_IF_ERROR(
        driver.check(driver.cuEventCreate(&run.fetched, cuda::eventWithoutTime),
                     "cuEventCreate"));
  return absl::OkStatus();
}

CudaStepQueue::~CudaStepQueue() {
  device.enter().IgnoreError();
  if (queued != taken || used != 0)
    driver.cuStreamSynchronize(device.stream());
  for (const Run &run : runs)
    if (run.fetched)
      driver.cuEventDestroy_v2(run.fetched);
  if (memory)
    driver.cuMemFreeHost(memory);
}

static cuda::Address addressOf(const Buffer &buffer, uint64_t offset) {
  return reinterpret_cast<cuda::Address>(buffer.address()) + offset;
}

/// The next bytes of the run that is being queued.
absl::StatusOr<uint8_t *> CudaStepQueue::place(uint64_t size) {
  if (queued - taken == runs.size() || size > runBytes - used)
    return internalError(absl::StrCat("runs in flight: expected at most ",
                                      runs.size(), " of ", runBytes,
                                      " bytes, got one more or ", used + size));
  auto *start =
      static_cast<uint8_t *>(memory) + queued % runs.size() * runBytes + used;
  used += size;
  return start;
}

absl::Status CudaStepQueue::write(Buffer &to, uint64_t offset,
                                  absl::Span<const uint8_t> bytes) {
  LLAMAC_RETURN_IF_ERROR(checkInside(to, offset, bytes.size()));
  LLAMAC_RETURN_IF_ERROR(enter());
  LLAMAC_ASSIGN_OR_RETURN(uint8_t *pinned, place(bytes.size()));
  std::memcpy(pinned, bytes.data(), bytes.size());
  return check(driver.cuMemcpyHtoDAsync_v2(addressOf(to, offset), pinned,
                                           bytes.size(), device.stream()),
               "cuMemcpyHtoDAsync");
}

absl::Status CudaStepQueue::copy(Buffer &to, uint64_t toOffset,
                                 const Buffer &from, uint64_t fromOffset,
                                 uint64_t size) {
  LLAMAC_RETURN_IF_ERROR(checkInside(to, toOffset, size));
  LLAMAC_RETURN_IF_ERROR(checkInside(from, fromOffset, size));
  LLAMAC_RETURN_IF_ERROR(enter());
  return check(driver.cuMemcpyDtoDAsync_v2(addressOf(to, toOffset),
                                           addressOf(from, fromOffset), size,
                                           device.stream()),
               "cuMemcpyDtoDAsync");
}

absl::Status CudaStepQueue::run(PreparedProgram &program,
                                const StepShape &shape, int steps) {
  LLAMAC_RETURN_IF_ERROR(enter());
  auto &queued = static_cast<CudaSteps &>(program);
  inFlight = &queued;
  return explained(queued.enqueue(shape, steps));
}

absl::Status CudaStepQueue::fetch(const Buffer &from, uint64_t offset,
                                  uint64_t size) {
  LLAMAC_RETURN_IF_ERROR(checkInside(from, offset, size));
  LLAMAC_RETURN_IF_ERROR(enter());
  LLAMAC_ASSIGN_OR_RETURN(uint8_t *pinned, place(size));
  LLAMAC_RETURN_IF_ERROR(
      check(driver.cuMemcpyDtoHAsync_v2(pinned, addressOf(from, offset), size,
                                        device.stream()),
            "cuMemcpyDtoHAsync"));
  Run &run = runs[queued % runs.size()];
  LLAMAC_RETURN_IF_ERROR(check(
      driver.cuEventRecord(run.fetched, device.stream()), "cuEventRecord"));
  run.result = {pinned, size};
  ++queued;
  used = 0;
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const uint8_t>> CudaStepQueue::take() {
  if (taken == queued)
    return internalError("runs in flight: expected one to take, got none");
  LLAMAC_RETURN_IF_ERROR(enter());
  const Run &run = runs[taken % runs.size()];
  LLAMAC_RETURN_IF_ERROR(
      check(driver.cuEventSynchronize(run.fetched), "a run of steps"));
  ++taken;
  return run.result;
}

absl::Status CudaStepQueue::finish() {
  if (queued != taken || used != 0) {
    taken = queued;
    used = 0;
    // After a fault too: pinned memory is freed only when no copy uses it.
    absl::Status status = enter();
    status.Update(
        check(driver.cuStreamSynchronize(device.stream()), "steps in flight"));
    LLAMAC_RETURN_IF_ERROR(status);
  }
  inFlight = nullptr;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StepQueue>>
newCudaStepQueue(const CudaDevice &device, int depth, uint64_t runBytes) {
  auto queue = std::make_unique<CudaStepQueue>(device, depth, runBytes);
  LLAMAC_RETURN_IF_ERROR(queue->start());
  return queue;
}

} // namespace llamac
