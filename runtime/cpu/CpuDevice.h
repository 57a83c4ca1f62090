//===- CpuDevice.h - Plans run by the host's cores --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CPU_CPUDEVICE_H
#define LLAMAC_RUNTIME_CPU_CPUDEVICE_H

#include "runtime/cpu/IsaLevel.h"
#include "runtime/device/HostMemory.h"
#include "runtime/threads/ThreadPool.h"

#include <memory>
#include <mutex>
#include <string>

namespace llamac {

struct CpuDeviceOptions {
  /// Threads to run kernels on; 0 for one on each physical core the process
  /// may use.
  int threads = 0;
  /// The best instruction-set level to use, by name; the empty name asks the
  /// environment's LLAMAC_ISA, then the machine. A level that the machine does
  /// not run is refused.
  std::string isa = {};
};

/// Runs plans on the host. An address of this device is a pointer.
class CpuDevice final : public HostDevice {
public:
  /// Errors: usage for a number of threads or a level that cannot be.
  static absl::StatusOr<std::shared_ptr<CpuDevice>>
  create(const CpuDeviceOptions &options = {});

  IsaLevel isaLimit() const { return limit; }

  /// The number of the code object of `plan` that runs here. Device error when
  /// there is none.
  absl::StatusOr<size_t> chooseCode(const schema::PlanT &plan) const;

  std::string identity(const schema::PlanT &plan) const override;
  absl::Status forEach(size_t count,
                       absl::FunctionRef<void(size_t)> work) override;
  absl::StatusOr<std::optional<DeviceLimits>> measureLimits() override;
  absl::StatusOr<std::unique_ptr<LoadedCode>>
  loadCode(std::shared_ptr<const PlanReader> plan) override;

  /// Calls `job(thread)` on all threads; callers wait for each other. Device
  /// error in a child that was forked after the device was made.
  absl::Status run(absl::FunctionRef<void(int)> job);

  /// The barrier of the running job.
  void barrier() { pool.barrier(); }

private:
  CpuDevice(int threads, IsaLevel limit);

  IsaLevel limit;
  std::mutex running;
  ThreadPool pool;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_CPU_CPUDEVICE_H
