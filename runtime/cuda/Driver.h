//===- Driver.h - NVIDIA's driver, opened at run time -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing of CUDA is needed to build: types and numbers of the driver's API
// that are used stand here, and libcuda is opened where a GPU is asked for.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_DRIVER_H
#define LLAMAC_RUNTIME_CUDA_DRIVER_H

#include "runtime/cuda/GpuSpec.h"
#include "runtime/plan/TensorMap.h"

#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace llamac::cuda {

using Result = int;                            // CUresult; 0 is success.
inline constexpr Result errorInvalidValue = 1; // CUDA_ERROR_INVALID_VALUE
inline constexpr Result errorOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

/// CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
inline constexpr Result errorCooperativeLaunchTooLarge = 720;

/// Whether a kernel ended so, after which the driver says the same of every
/// call: CUDA_ERROR_ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, and HARDWARE_STACK_ERROR
/// to LAUNCH_FAILED.
constexpr bool isFault(Result result) {
  return result == 700 || result == 702 || (result >= 714 && result <= 719);
}

using DeviceId = int;     // CUdevice
using Address = uint64_t; // CUdeviceptr
using Context = struct ContextTag *;
using Module = struct ModuleTag *;
using Function = struct FunctionTag *;
using Stream = struct StreamTag *;
using Event = struct EventTag *;
using Graph = struct GraphTag *;
using GraphExec = struct GraphExecTag *;

/// CU_DEVICE_ATTRIBUTE_...
enum DeviceAttribute : int {
  ClockRate = 13, ///< kHz, at most.
  MultiprocessorCount = 16,
  MemoryClockRate = 36, ///< kHz, at most.
  CapabilityMajor = 75,
  CapabilityMinor = 76,
  CooperativeLaunch = 95, ///< Whether all blocks of a launch may run at once.
};

/// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr int functionSharedBytes = 8;
/// CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: percent of what a
/// multiprocessor shares between its L1 cache and shared memory.
inline constexpr int functionSharedCarveout = 9;

/// CU_STREAM_NON_BLOCKING, CU_EVENT_DISABLE_TIMING,
/// CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
inline constexpr unsigned streamNonBlocking = 1;
inline constexpr unsigned eventWithoutTime = 2;

/// CU_EVENT_RECORD_EXTERNAL
inline constexpr unsigned eventRecordExternal = 1;
inline constexpr int captureOfThread = 1;

/// CUlaunchAttribute: one of CU_LAUNCH_ATTRIBUTE_..., with the words of its
/// value that are used.
struct LaunchAttribute {
  enum Id : int {
    Cooperative = 2,
    ClusterDimension = 4,
    ProgrammaticSerialization = 6,
  };

  int id = 0;
  int padding = 0;
  uint32_t value[16] = {}; ///< x, y, z of a cluster; 1 for yes.
};
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchConfig
struct LaunchConfig {
  unsigned gridX = 1, gridY = 1, gridZ = 1;
  unsigned blockX = 1, blockY = 1, blockZ = 1;
  unsigned sharedBytes = 0;
  Stream stream = nullptr;
  LaunchAttribute *attributes = nullptr;
  unsigned attributeCount = 0;
};

/// CU_TENSOR_MAP_DATA_TYPE_...
struct TensorMapType {
  enum Type : int { Unsigned16 = 1, Unsigned64 = 4, Float32 = 7 };
};

/// A CUtensorMap, which a kernel is given by value.
struct alignas(64) DeviceTensorMap {
  uint64_t words[16];
};

/// Every function of the driver that is used: name, result, parameters.
#define LLAMAC_DRIVER_FUNCTIONS(X)                                             \
  X(cuInit, Result, (unsigned))                                                \
  X(cuDriverGetVersion, Result, (int *))                                       \
  X(cuGetErrorName, Result, (Result, const char **))                           \
  X(cuGetErrorString, Result, (Result, const char **))                         \
  X(cuDeviceGet, Result, (DeviceId *, int))                                    \
  X(cuDeviceGetCount, Result, (int *))                                         \
  X(cuDeviceGetName, Result, (char *, int, DeviceId))                          \
  X(cuDeviceGetAttribute, Result, (int *, int, DeviceId))                      \
  X(cuDevicePrimaryCtxRetain, Result, (Context *, DeviceId))                   \
  X(cuDevicePrimaryCtxRelease_v2, Result, (DeviceId))                          \
  X(cuCtxSetCurrent, Result, (Context))                                        \
  X(cuMemGetInfo_v2, Result, (size_t *, size_t *))                             \
  X(cuMemAlloc_v2, Result, (Address *, size_t))                                \
  X(cuMemFree_v2, Result, (Address))                                           \
  X(cuMemsetD8Async, Result, (Address, unsigned char, size_t, Stream))         \
  X(cuMemcpyHtoDAsync_v2, Result, (Address, const void *, size_t, Stream))     \
  X(cuMemcpyDtoHAsync_v2, Result, (void *, Address, size_t, Stream))           \
  X(cuMemcpyDtoDAsync_v2, Result, (Address, Address, size_t, Stream))          \
  X(cuMemHostAlloc, Result, (void **, size_t, unsigned))                       \
  X(cuMemFreeHost, Result, (void *))                                           \
  X(cuEventCreate, Result, (Event *, unsigned))                                \
  X(cuEventRecord, Result, (Event, Stream))                                    \
  X(cuEventRecordWithFlags, Result, (Event, Stream, unsigned))                 \
  X(cuEventElapsedTime, Result, (float *, Event, Event))                       \
  X(cuEventSynchronize, Result, (Event))                                       \
  X(cuEventDestroy_v2, Result, (Event))                                        \
  X(cuModuleLoadData, Result, (Module *, const void *))                        \
  X(cuModuleUnload, Result, (Module))                                          \
  X(cuModuleGetFunction, Result, (Function *, Module, const char *))           \
  X(cuFuncSetAttribute, Result, (Function, int, int))                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, Result,                       \
    (int *, Function, int, size_t))                                            \
  X(cuLaunchKernelEx, Result,                                                  \
    (const LaunchConfig *, Function, void **, void **))                        \
  X(cuTensorMapEncodeTiled, Result,                                            \
    (void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,        \
     const uint32_t *, const uint32_t *, int, int, int, int))                  \
  X(cuStreamCreate, Result, (Stream *, unsigned))                              \
  X(cuStreamDestroy_v2, Result, (Stream))                                      \
  X(cuStreamSynchronize, Result, (Stream))                                     \
  X(cuStreamBeginCapture_v2, Result, (Stream, int))                            \
  X(cuStreamEndCapture, Result, (Stream, Graph *))                             \
  X(cuGraphInstantiateWithFlags, Result,                                       \
    (GraphExec *, Graph, unsigned long long))                                  \
  X(cuGraphLaunch, Result, (GraphExec, Stream))                                \
  X(cuGraphExecDestroy, Result, (GraphExec))                                   \
  X(cuGraphDestroy, Result, (Graph))

/// The functions of an opened driver, each by its own name.
class Driver {
public:
  /// Opens the library and starts the driver. Device error when it cannot be
  /// opened, lacks a function or does not start.
  static absl::StatusOr<std::shared_ptr<const Driver>>
  open(const std::string &library = "libcuda.so.1");

  /// OK for success; else a device error, or a memory error where the GPU's is
  /// used up, with `what` was done, and the driver's name and words for it.
  absl::Status check(Result result, const std::string &what) const;

  /// Whether check() made `status` of a fault.
  static bool saysFault(const absl::Status &status);

  /// GPU `index` of the machine, and what it can do. Device error when there is
  /// none, usage error when there are fewer.
  absl::StatusOr<DeviceId> deviceAt(int index) const;
  absl::StatusOr<ComputeCapability> capabilityOf(DeviceId device) const;

  /// The map of the matrix at `base`, on the device. Device error when the
  /// driver does not make it.
  absl::StatusOr<DeviceTensorMap>
  encodeTensorMap(void *base, const TensorMapShape &shape) const;

// NOLINTBEGIN(bugprone-macro-parentheses, readability-identifier-naming)
#define LLAMAC_DRIVER_MEMBER(name, result, parameters)                         \
  result(*name) parameters = nullptr;
  LLAMAC_DRIVER_FUNCTIONS(LLAMAC_DRIVER_MEMBER)
#undef LLAMAC_DRIVER_MEMBER
  // NOLINTEND(bugprone-macro-parentheses, readability-identifier-naming)

private:
  Driver() = default;

  std::string library;
};

} // namespace llamac::cuda

namespace llamac {

/// The compute capability of GPU `index` of the machine. Errors: those of
/// opening the driver and of Driver::deviceAt.
absl::StatusOr<ComputeCapability>
gpuCapability(int index = 0, const std::string &library = "libcuda.so.1");

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_DRIVER_H
