//===- Register.h - Cases as tests ------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_REGISTER_H
#define LLAMAC_TESTS_CONFORMANCE_REGISTER_H

namespace llamac::conformance {

/// Registers a test for each PTX wrapper and device: Wrappers/DEVICE.KERNEL.
void registerWrapperTests();

/// Registers a test for each case of an op and device:
/// Conformance/DEVICE.CASE.
void registerOpTests();

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_REGISTER_H
