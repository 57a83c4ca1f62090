//===- CudaMemory.h - A GPU's memory, cut into buffers ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_CUDAMEMORY_H
#define LLAMAC_RUNTIME_CUDA_CUDAMEMORY_H

#include "runtime/cuda/Driver.h"
#include "runtime/device/Device.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

namespace llamac {

/// Blocks of the driver, and what is free in them. A buffer is put at the first
/// fit, else in a block of its own; a block is freed with the last buffer in
/// it. Callers have entered the device.
class CudaMemory {
public:
  /// The work of `work` is done before a block is freed. `name` is the GPU's,
  /// for messages; all outlive the object.
  CudaMemory(const cuda::Driver &driver, cuda::Stream work,
             const std::string &name)
      : driver(driver), work(work), name(name) {}
  CudaMemory(const CudaMemory &) = delete;
  CudaMemory &operator=(const CudaMemory &) = delete;
  ~CudaMemory();

  absl::StatusOr<DeviceMemory> ofDevice() const;

  /// Asks for a block of `size` bytes. Memory error, with what is free, when
  /// the GPU has no such block.
  absl::Status reserve(uint64_t size);

  /// `size` bytes, at least 1, at a multiple of 256, uninitialised. Errors of
  /// reserve().
  absl::StatusOr<cuda::Address> take(uint64_t size);
  void giveBack(cuda::Address address, uint64_t size);

private:
  struct Block {
    uint64_t size;
    std::map<uint64_t, uint64_t> free; ///< Bytes, by where they begin.
  };

  absl::Status addBlock(uint64_t size);
  void freeBlock(cuda::Address start) const;

  const cuda::Driver &driver;
  cuda::Stream work;
  const std::string &name;
  std::mutex mutex;
  std::atomic<uint64_t> taken = 0; ///< Bytes of buffers.
  std::map<cuda::Address, Block> blocks;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_CUDAMEMORY_H
