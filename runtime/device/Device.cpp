//===- Device.cpp - What runs a plan --------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Device.h"

namespace llamac {

Buffer::~Buffer() = default;
PreparedProgram::~PreparedProgram() = default;
LoadedCode::~LoadedCode() = default;
Device::~Device() = default;

} // namespace llamac
