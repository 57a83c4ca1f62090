//===- CudaDevice.h - Plans run by an NVIDIA GPU ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan for cuda holds the source of its kernels. They are compiled by NVRTC
// for the GPU that is found, each once: cubins are cached (DiskCache.h). Steps
// run on one stream; those of the small programs, which decode runs again and
// again, as one CUDA graph for each number of rows.
//
// Threads may run engines of their own at the same time. The stream orders the
// work of each, and that of others is on other memory. A graph is captured on a
// stream of its own.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_CUDADEVICE_H
#define LLAMAC_RUNTIME_CUDA_CUDADEVICE_H

#include "runtime/cuda/Collectives.h"
#include "runtime/cuda/CudaMemory.h"
#include "runtime/cuda/Driver.h"
#include "runtime/device/Device.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

struct CudaDeviceOptions {
  int threads = 0; ///< Host threads to compile and pack with; 0: all.
  int index = 0;   ///< Which GPU of the machine.
  /// The rank's number among those of this machine. Each takes a GPU, from
  /// `index` on; past the last again GPU 0, where NCCL is told to have several
  /// ranks on one.
  int localRank = 0;
  std::string driver = "libcuda.so.1";
  std::string nccl = {}; ///< For ranks; empty: as Nccl::open() finds it.
};

/// A GPU of the machine. An address is one of its memory.
class CudaDevice final : public Device, public RankCommunicator {
public:
  /// Device error, with the next step, where there is no driver or no GPU, one
  /// that the kernels are not for, or none for the rank.
  static absl::StatusOr<std::shared_ptr<CudaDevice>>
  create(const CudaDeviceOptions &options = {});
  ~CudaDevice() override;

  /// Its name, multiprocessors and clocks, the driver and the compiler.
  std::string identity(const schema::PlanT &plan) const override;
  RankCommunicator *communicator() override { return this; }
  absl::StatusOr<std::vector<uint8_t>> newId() override;
  absl::Status join(absl::Span<const uint8_t> id, int rank, int ranks) override;
  absl::Status check() override;
  absl::StatusOr<std::optional<DeviceMemory>> memory() override;
  absl::StatusOr<std::optional<DeviceLimits>> measureLimits() override;
  absl::Status reserve(uint64_t size) override;
  absl::StatusOr<std::unique_ptr<Buffer>>
  allocate(uint64_t size, MemoryUse use = MemoryUse::Sparse) override;
  absl::Status write(Buffer &buffer, uint64_t offset,
                     absl::Span<const uint8_t> bytes) override;
  absl::StatusOr<std::unique_ptr<Upload>>
  newUpload(uint64_t pieceBytes) override;
  absl::StatusOr<absl::Span<const uint8_t>>
  read(const Buffer &buffer, uint64_t offset, uint64_t size,
       std::vector<uint8_t> &staging) override;
  absl::StatusOr<std::unique_ptr<StepQueue>>
  newStepQueue(int depth, uint64_t runBytes) override;
  absl::StatusOr<std::unique_ptr<LoadedCode>>
  loadCode(std::shared_ptr<const PlanReader> plan) override;

  /// See LoadedCode.
  absl::Status compileAhead(const PlanReader &plan, size_t kernel,
                            size_t variant) const;

  const cuda::Driver &driver() const { return *functions; }

  /// All work is ordered by it: it does not wait for the driver's own stream,
  /// nor that one for it.
  cuda::Stream stream() const { return work; }

  /// The GPU's value of `which`, by the driver.
  absl::StatusOr<int> attribute(cuda::DeviceAttribute which) const;

  /// Whether the GPU has programmatic dependent launches: kernels that are
  /// compiled for it wait for the launch before them themselves.
  bool overlapsLaunches() const { return hasDependentLaunches; }

  /// The architecture that kernels are compiled for: "sm_90a".
  const std::string &architecture() const { return target; }

  /// Makes it the device of rank `rank`, beside others of this process.
  void setRank(std::shared_ptr<Collectives> collectives, int rank) {
    shared = std::move(collectives);
    number = rank;
    description.rankLink = RankLink::Gathers;
  }

  /// Brings what all ranks have to memory of its own; see Collectives. Of a
  /// device of one of several ranks.
  absl::Status gather(cuda::Address from, cuda::Address to, uint64_t bytes,
                      cuda::Stream stream) const {
    return shared->gather(number, from, to, bytes, stream);
  }

  /// The result of a run that ended with `own` on this device; an error of
  /// another rank of this process counts, too (Collectives::ended()).
  absl::Status ended(absl::Status own) const {
    return shared ? shared->ended(number, std::move(own)) : own;
  }

  /// Before calls of the driver: makes the GPU that of the calling thread. The
  /// fault that was kept, where there is one.
  absl::Status enter() const;

  /// Keeps `status` as what enter() gives from now on, unless another one is
  /// kept: after a fault a driver does nothing more. Gives the one that is
  /// kept.
  absl::Status keepFault(absl::Status status);

private:
  explicit CudaDevice(std::shared_ptr<const cuda::Driver> functions)
      : functions(std::move(functions)) {}

  absl::Status start(const CudaDeviceOptions &options);
  absl::Status checkTier(const schema::PlanT &plan) const;
  absl::StatusOr<std::vector<std::string>>
  compileKernels(const PlanReader &plan) const;

  std::shared_ptr<const cuda::Driver> functions;
  std::unique_ptr<CudaMemory> blocks;
  cuda::DeviceId device = 0;
  bool hasContext = false;
  bool hasDependentLaunches = false;
  cuda::Context context = nullptr;
  cuda::Stream work = nullptr;
  std::string nccl;      ///< Its library; see CudaDeviceOptions.
  std::string name;      ///< "NVIDIA H200".
  int driverVersion = 0; ///< The CUDA it was made for: 13000.
  std::string target;    ///< architecture()
  /// Null for the only rank.
  std::shared_ptr<Collectives> shared;
  int number = 0; ///< The rank's.
  mutable std::mutex keeping;
  absl::Status fault; ///< The fault that enter() returns; else ok.
};

/// The devices of `ranks` ranks of this process, from local rank 0 on. Errors:
/// those of CudaDevice::create and Collectives::connect.
absl::StatusOr<std::vector<std::shared_ptr<Device>>>
createCudaRanks(int ranks, const CudaDeviceOptions &options);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_CUDADEVICE_H
