//===- DriverStub.cpp - Stands in for libcuda -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A driver with one GPU, of the capability in LLAMAC_STUB_CAPABILITY ("8.6").
// The function that LLAMAC_STUB_FAILS names returns 100, no device.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <cstdlib>
#include <cstring>

static int resultOf(const char *function) {
  const char *failing = std::getenv("LLAMAC_STUB_FAILS");
  return failing && std::strcmp(failing, function) == 0 ? 100 : 0;
}

extern "C" {

int cuInit(unsigned) { return resultOf("cuInit"); }

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return resultOf("cuDeviceGet");
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int major = 0, minor = 0;
  const char *capability = std::getenv("LLAMAC_STUB_CAPABILITY");
  if (device != 0 || !capability ||
      std::sscanf(capability, "%d.%d", &major, &minor) != 2)
    return 1;
  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
  if (attribute != 75 && attribute != 76)
    return 1;
  *value = attribute == 75 ? major : minor;
  return resultOf("cuDeviceGetAttribute");
}
}
