//===- Driver.cpp - The CUDA driver ---------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Driver.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <dlfcn.h>
#include <utility>

namespace llamac {

namespace {
using Result = int;    // CUresult; 0 is success.
using DeviceId = int;  // CUdevice
using Attribute = int; // CUdevice_attribute
} // namespace

/// Every function that is used, with its signature in cuda.h.
#define LLAMAC_DRIVER_FUNCTIONS(X)                                             \
  X(cuInit, Result, (unsigned))                                                \
  X(cuDeviceGet, Result, (DeviceId *, int))                                    \
  X(cuDeviceGetAttribute, Result, (int *, Attribute, DeviceId))

namespace {

// A name and its type stand as they are.
// NOLINTBEGIN(bugprone-macro-parentheses)
struct Functions {
#define LLAMAC_DRIVER_MEMBER(name, result, parameters)                         \
  result(*name) parameters = nullptr;
  LLAMAC_DRIVER_FUNCTIONS(LLAMAC_DRIVER_MEMBER)
#undef LLAMAC_DRIVER_MEMBER

  /// Null where all functions were found, else the name of the first missing.
  const char *resolve(void *handle) {
#define LLAMAC_DRIVER_RESOLVE(name, result, parameters)                        \
  name = reinterpret_cast<result(*) parameters>(dlsym(handle, #name));         \
  if (!name)                                                                   \
    return #name;
    LLAMAC_DRIVER_FUNCTIONS(LLAMAC_DRIVER_RESOLVE)
#undef LLAMAC_DRIVER_RESOLVE
    return nullptr;
  }
};
// NOLINTEND(bugprone-macro-parentheses)

} // namespace

#undef LLAMAC_DRIVER_FUNCTIONS

static constexpr Attribute capabilityMajor = 75;
static constexpr Attribute capabilityMinor = 76;

absl::StatusOr<ComputeCapability> firstGpu(const std::string &library) {
  // The handle stays open: the driver keeps state until the process ends.
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return deviceError(absl::StrCat(
        library, ": expected NVIDIA's driver, got no library that opens"));
  Functions driver;
  if (const char *missing = driver.resolve(handle))
    return deviceError(absl::StrCat(library,
                                    ": expected NVIDIA's driver, got a library "
                                    "without ",
                                    missing));
  auto failed = [&](const char *function, Result result) {
    return deviceError(absl::StrCat(library, ": ", function,
                                    ": expected success, got error ", result));
  };
  DeviceId device = 0;
  ComputeCapability capability;
  if (const Result result = driver.cuInit(0))
    return failed("cuInit", result);
  if (const Result result = driver.cuDeviceGet(&device, 0))
    return failed("cuDeviceGet", result);
  for (const auto &[attribute, value] :
       {std::pair(capabilityMajor, &capability.major),
        std::pair(capabilityMinor, &capability.minor)})
    if (const Result result =
            driver.cuDeviceGetAttribute(value, attribute, device))
      return failed("cuDeviceGetAttribute", result);
  return capability;
}

} // namespace llamac
