//===- HostMemory.h - Device memory that the host sees ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory and base of devices that run on the host's cores: an address is a
// pointer.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_DEVICE_HOSTMEMORY_H
#define LLAMAC_RUNTIME_DEVICE_HOSTMEMORY_H

#include "runtime/device/Device.h"

#include <functional>

namespace llamac {

/// `size` zero bytes of the process, taken as they are first written. Memory
/// error with the system's reason.
absl::StatusOr<std::unique_ptr<Buffer>>
allocateHostMemory(uint64_t size, MemoryUse use = MemoryUse::Sparse);

/// Such memory is filled in place; `sent` is then told.
std::unique_ptr<Upload>
newHostUpload(std::function<void(absl::Span<uint8_t>)> sent = {});

/// The base of all devices that run on the host's cores.
class HostDevice : public Device {
public:
  absl::StatusOr<std::unique_ptr<Buffer>>
  allocate(uint64_t size, MemoryUse use = MemoryUse::Sparse) override {
    return allocateHostMemory(size, use);
  }
  std::unique_ptr<Buffer> share(absl::Span<const uint8_t> bytes) override;
  absl::Status write(Buffer &buffer, uint64_t offset,
                     absl::Span<const uint8_t> bytes) override;
  absl::StatusOr<std::unique_ptr<Upload>> newUpload(uint64_t) override {
    return newHostUpload();
  }
  absl::StatusOr<absl::Span<const uint8_t>>
  read(const Buffer &buffer, uint64_t offset, uint64_t size,
       std::vector<uint8_t> &staging) override;

protected:
  using Device::Device;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_DEVICE_HOSTMEMORY_H
