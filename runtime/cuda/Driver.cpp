//===- Driver.cpp - NVIDIA's driver, opened at run time -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Driver.h"

#include "runtime/base/Status.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

#include <bit>
#include <dlfcn.h>
#include <utility>

namespace llamac::cuda {

absl::StatusOr<std::shared_ptr<const Driver>>
Driver::open(const std::string &library) {
  // The handle stays open: the driver keeps state until the process ends.
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return deviceError(absl::StrCat(
        library, ": expected NVIDIA's driver, got no library that "
                 "opens; a plan that llamac compiles with --target cpu "
                 "needs no GPU"));
  std::shared_ptr<Driver> driver(new Driver);
  driver->library = library;
  const char *missing = nullptr;
// NOLINTBEGIN(bugprone-macro-parentheses)
#define LLAMAC_DRIVER_RESOLVE(name, result, parameters)                        \
  driver->name = reinterpret_cast<result(*) parameters>(dlsym(handle, #name)); \
  if (!driver->name && !missing)                                               \
    missing = #name;
  LLAMAC_DRIVER_FUNCTIONS(LLAMAC_DRIVER_RESOLVE)
#undef LLAMAC_DRIVER_RESOLVE
  // NOLINTEND(bugprone-macro-parentheses)
  if (missing)
    return deviceError(absl::StrCat(
        library, ": expected NVIDIA's driver, got a library without ", missing,
        "; update the driver"));
  LLAMAC_RETURN_IF_ERROR(driver->check(driver->cuInit(0), "cuInit"));
  return driver;
}

// Names the payload of errors that a fault caused: the driver's words are for
// people.
static constexpr absl::string_view faultUrl = "llamac/gpu-fault";

absl::Status Driver::check(Result result, const std::string &what) const {
  if (result == 0)
    return absl::OkStatus();
  const char *name = nullptr, *words = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &words);
  const std::string message = absl::StrCat(
      what, ": the driver says ", name ? name : absl::StrCat("error ", result),
      words ? absl::StrCat(" (", words, ")") : "");
  absl::Status status =
      result == errorOutOfMemory ? memoryError(message) : deviceError(message);
  if (isFault(result))
    status.SetPayload(faultUrl, absl::Cord());
  return status;
}

bool Driver::saysFault(const absl::Status &status) {
  return status.GetPayload(faultUrl).has_value();
}

absl::StatusOr<DeviceId> Driver::deviceAt(int index) const {
  int count = 0;
  LLAMAC_RETURN_IF_ERROR(check(cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (count > 0 && (index < 0 || index >= count))
    return usageError(absl::StrCat("--gpu-index: expected 0 to ", count - 1,
                                   ", the GPUs of this machine, got ", index));
  DeviceId device = 0;
  LLAMAC_RETURN_IF_ERROR(check(cuDeviceGet(&device, index), "cuDeviceGet"));
  return device;
}

absl::StatusOr<ComputeCapability> Driver::capabilityOf(DeviceId device) const {
  ComputeCapability capability;
  for (const auto &[attribute, value] :
       {std::pair(CapabilityMajor, &capability.major),
        std::pair(CapabilityMinor, &capability.minor)})
    LLAMAC_RETURN_IF_ERROR(check(cuDeviceGetAttribute(value, attribute, device),
                                 "cuDeviceGetAttribute"));
  return capability;
}

absl::StatusOr<DeviceTensorMap>
Driver::encodeTensorMap(void *base, const TensorMapShape &shape) const {
  // CU_TENSOR_MAP_...; swizzles of 0, 32, 64 and 128 bytes are 0 to 3.
  constexpr int noInterleave = 0, fillWithZeros = 0, promoteTo128Bytes = 2;
  const auto swizzle =
      static_cast<int>(std::bit_width(shape.swizzleBytes / 32));
  // The inner dimension comes first; it has no stride.
  const uint64_t extents[] = {shape.columns, shape.rows};
  const uint64_t strides[] = {shape.rowBytes};
  const uint32_t box[] = {shape.boxColumns, shape.boxRows};
  const uint32_t steps[] = {1, 1};
  DeviceTensorMap map;
  LLAMAC_RETURN_IF_ERROR(
      check(cuTensorMapEncodeTiled(
                &map,
                shape.elementBytes == 8   ? TensorMapType::Unsigned64
                : shape.elementBytes == 4 ? TensorMapType::Float32
                                          : TensorMapType::Unsigned16,
                /*rank=*/2, base, extents, strides, box, steps, noInterleave,
                swizzle, promoteTo128Bytes, fillWithZeros),
            absl::StrCat("cuTensorMapEncodeTiled of ", shape.rows, " rows of ",
                         shape.columns, " elements of ", shape.elementBytes,
                         " bytes")));
  return map;
}

} // namespace llamac::cuda

namespace llamac {

absl::StatusOr<ComputeCapability> gpuCapability(int index,
                                                const std::string &library) {
  LLAMAC_ASSIGN_OR_RETURN(const auto driver, cuda::Driver::open(library));
  LLAMAC_ASSIGN_OR_RETURN(const cuda::DeviceId device, driver->deviceAt(index));
  return driver->capabilityOf(device);
}

} // namespace llamac
