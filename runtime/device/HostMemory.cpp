//===- HostMemory.cpp - Device memory that the host sees ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/HostMemory.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace llamac {

namespace {

/// Pages of the process, zero until they are written.
class MappedBuffer final : public Buffer {
public:
  using Buffer::Buffer;
  ~MappedBuffer() override {
    if (size() != 0)
      munmap(address(), size());
  }
};

/// The host writes where kernels read.
class HostUpload final : public Upload {
public:
  explicit HostUpload(std::function<void(absl::Span<uint8_t>)> sent)
      : sent(std::move(sent)) {}

  absl::StatusOr<absl::Span<uint8_t>> next(Buffer &buffer, uint64_t offset,
                                           uint64_t size) override {
    LLAMAC_RETURN_IF_ERROR(checkInside(buffer, offset, size));
    piece = {static_cast<uint8_t *>(buffer.address()) + offset, size};
    return piece;
  }
  absl::Status send() override {
    if (sent && !piece.empty())
      sent(piece);
    return absl::OkStatus();
  }
  absl::Status finish() override { return absl::OkStatus(); }

private:
  std::function<void(absl::Span<uint8_t>)> sent;
  absl::Span<uint8_t> piece;
};

} // namespace

std::unique_ptr<Upload>
newHostUpload(std::function<void(absl::Span<uint8_t>)> sent) {
  return std::make_unique<HostUpload>(std::move(sent));
}

absl::StatusOr<std::unique_ptr<Buffer>> allocateHostMemory(uint64_t size,
                                                           MemoryUse use) {
  if (size == 0)
    return std::make_unique<MappedBuffer>(nullptr, 0);
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return memoryError(absl::StrCat(
        "cannot allocate ", size, " bytes of memory: ", std::strerror(errno)));
  // Advice only: small pages are as correct.
  if (use != MemoryUse::Sparse && size >= uint64_t{2} << 20)
    madvise(memory, size, MADV_HUGEPAGE);
  return std::make_unique<MappedBuffer>(memory, size);
}

std::unique_ptr<Buffer> HostDevice::share(absl::Span<const uint8_t> bytes) {
  // Kernels read weights only.
  return std::make_unique<Buffer>(const_cast<uint8_t *>(bytes.data()),
                                  bytes.size());
}

absl::Status HostDevice::write(Buffer &buffer, uint64_t offset,
                               absl::Span<const uint8_t> bytes) {
  LLAMAC_RETURN_IF_ERROR(checkInside(buffer, offset, bytes.size()));
  if (!bytes.empty())
    std::memcpy(static_cast<uint8_t *>(buffer.address()) + offset, bytes.data(),
                bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const uint8_t>>
HostDevice::read(const Buffer &buffer, uint64_t offset, uint64_t size,
                 std::vector<uint8_t> &) {
  LLAMAC_RETURN_IF_ERROR(checkInside(buffer, offset, size));
  return absl::Span<const uint8_t>(
      static_cast<const uint8_t *>(buffer.address()) + offset, size);
}

} // namespace llamac
