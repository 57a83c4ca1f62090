//===- HostMemory.h - Device memory that the host sees ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What devices share that run on the host's cores: an address is a pointer.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_DEVICE_HOSTMEMORY_H
#define LLAMAC_RUNTIME_DEVICE_HOSTMEMORY_H

#include "runtime/device/Device.h"

#include <functional>

namespace llamac {

/// `size` zero bytes of the process, taken as they are first written. Memory
/// error with the system's reason.
absl::StatusOr<std::unique_ptr<Buffer>> allocateHostMemory(uint64_t size);

/// Asks for large pages under `buffer`: advice only, small ones are as correct.
void adviseLargePages(const Buffer &buffer);

/// Such memory is filled in place; `sent` is then told.
std::unique_ptr<Upload>
newHostUpload(std::function<void(absl::Span<uint8_t>)> sent = {});

/// Device::write() and read() for such memory. Internal error for bytes
/// outside of it.
absl::Status writeHostMemory(Buffer &buffer, uint64_t offset,
                             absl::Span<const uint8_t> bytes);
absl::StatusOr<absl::Span<const uint8_t>>
readHostMemory(const Buffer &buffer, uint64_t offset, uint64_t size);

} // namespace llamac

#endif // LLAMAC_RUNTIME_DEVICE_HOSTMEMORY_H
