//===- SimDevice.h - Plans run by the simulator -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs plans compiled for the target sim: the kernels of the cuda target, on
// fibers of the host. A plan that holds checked code (simulator/SimCode.h)
// has every access to memory checked: bounds, races and uninitialised reads.
// The memory of the device starts uninitialised.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_SIMDEVICE_H
#define LLAMAC_SIMULATOR_SIMDEVICE_H

#include "runtime/device/HostMemory.h"
#include "simulator/Simulator.h"

#include "absl/strings/string_view.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

namespace llamac {

/// A schedule by name: forward, reverse, random or stalled (of seed 0),
/// random:SEED or stalled:SEED. Usage error for another.
struct NamedSchedule {
  SimSchedule schedule = SimSchedule::Forward;
  uint64_t seed = 0;
};
absl::StatusOr<NamedSchedule> parseSimSchedule(absl::string_view name);

struct SimDeviceOptions {
  NamedSchedule order = {};
  int threads = 0; ///< Threads of the host; 0 for one on each core.
  bool checked = false;
  /// Blocks of a resident kernel, at most.
  uint32_t residentBlocks = SimLaunch::usualResidentBlocks;
};

class SimDevice final : public HostDevice {
public:
  explicit SimDevice(const SimDeviceOptions &options);

  absl::StatusOr<std::unique_ptr<Buffer>>
  allocate(uint64_t size, MemoryUse use = MemoryUse::Sparse) override;
  std::unique_ptr<Buffer> share(absl::Span<const uint8_t> bytes) override;
  absl::Status write(Buffer &buffer, uint64_t offset,
                     absl::Span<const uint8_t> bytes) override;
  absl::StatusOr<std::unique_ptr<Upload>>
  newUpload(uint64_t pieceBytes) override;
  absl::StatusOr<std::unique_ptr<StepQueue>>
  newStepQueue(int depth, uint64_t runBytes) override;
  absl::StatusOr<std::unique_ptr<LoadedCode>>
  loadCode(std::shared_ptr<const PlanReader> plan) override;

  /// Runs `launches` in order, after the bytes of `undefined` become
  /// uninitialised. Callers wait for each other.
  absl::Status run(const SimModule &module,
                   absl::Span<const SimLaunch> launches,
                   absl::Span<uint8_t> undefined);

  /// Names memory for messages.
  void rename(void *address, std::string name);

  /// Blocks of a resident kernel, at most.
  uint32_t residentBlocks() const { return options.residentBlocks; }

private:
  SimDeviceOptions options;
  std::mutex running;
  Simulator simulator;
};

} // namespace llamac

#endif // LLAMAC_SIMULATOR_SIMDEVICE_H
