//===- Register.h - Cases as tests ------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_REGISTER_H
#define LLAMAC_TESTS_CONFORMANCE_REGISTER_H

#include "tests/conformance/ops/OpDevice.h"
#include "tests/conformance/wrappers/SourceDevice.h"

namespace llamac::conformance {

/// Registers a test for each PTX wrapper and device: Wrappers/DEVICE.KERNEL.
void registerWrapperTests(const std::vector<SourceDeviceRow> &devices);

/// Registers a test for each case of an op and device:
/// Conformance/DEVICE.CASE.
void registerOpTests(const std::vector<OpDeviceRow> &devices);

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_REGISTER_H
