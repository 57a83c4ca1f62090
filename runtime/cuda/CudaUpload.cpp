//===- CudaUpload.cpp - Uploads to a GPU ----------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudaProgram.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <array>

namespace llamac {

namespace {

class CudaUpload final : public Upload {
public:
  CudaUpload(const CudaDevice &device, uint64_t pieceBytes)
      : device(device), driver(device.driver()), pieceBytes(pieceBytes) {}
  ~CudaUpload() override;

  absl::Status start();

  absl::StatusOr<absl::Span<uint8_t>> next(Buffer &buffer, uint64_t offset,
                                           uint64_t size) override;
  absl::Status send() override;
  absl::Status finish() override;

private:
  struct Piece {
    void *memory = nullptr;
    cuda::Event copied = nullptr;
  };

  absl::Status prepare(Piece &piece) const;

  const CudaDevice &device;
  const cuda::Driver &driver;
  uint64_t pieceBytes;
  cuda::Stream copies = nullptr;
  std::array<Piece, 3> pieces;
  size_t current = 0; ///< The piece that the host fills.
  cuda::Address target = 0;
  uint64_t size = 0;
  bool isPending = false; ///< Whether copies may not be done.
};

} // namespace

absl::Status CudaUpload::start() {
  LLAMAC_RETURN_IF_ERROR(device.enter());
  return driver.check(driver.cuStreamCreate(&copies, cuda::streamNonBlocking),
                      "cuStreamCreate for uploads");
}

CudaUpload::~CudaUpload() {
  device.enter().IgnoreError();
  if (isPending)
    driver.cuStreamSynchronize(copies);
  for (const Piece &piece : pieces) {
    if (piece.copied)
      driver.cuEventDestroy_v2(piece.copied);
    if (piece.memory)
      driver.cuMemFreeHost(piece.memory);
  }
  if (copies)
    driver.cuStreamDestroy_v2(copies);
}

/// Gives a piece its memory, or waits until what it held is copied.
absl::Status CudaUpload::prepare(Piece &piece) const {
  if (piece.copied)
    return driver.check(driver.cuEventSynchronize(piece.copied),
                        "copying weights");
  LLAMAC_RETURN_IF_ERROR(
      driver.check(driver.cuMemHostAlloc(&piece.memory, pieceBytes, 0),
                   absl::StrCat("cuMemHostAlloc of ", pieceBytes, " bytes")));
  return driver.check(
      driver.cuEventCreate(&piece.copied, cuda::eventWithoutTime),
      "cuEventCreate");
}

absl::StatusOr<absl::Span<uint8_t>>
CudaUpload::next(Buffer &buffer, uint64_t offset, uint64_t bytes) {
  LLAMAC_RETURN_IF_ERROR(checkInside(buffer, offset, bytes));
  if (bytes > pieceBytes)
    return internalError(absl::StrCat("upload: expected at most ", pieceBytes,
                                      " bytes at a time, got ", bytes));
  LLAMAC_RETURN_IF_ERROR(device.enter());
  Piece &piece = pieces[current];
  LLAMAC_RETURN_IF_ERROR(prepare(piece));
  target = reinterpret_cast<cuda::Address>(buffer.address()) + offset;
  size = bytes;
  return absl::MakeSpan(static_cast<uint8_t *>(piece.memory), bytes);
}

absl::Status CudaUpload::send() {
  const Piece &piece = pieces[current];
  current = (current + 1) % pieces.size();
  isPending = true;
  LLAMAC_RETURN_IF_ERROR(driver.check(
      driver.cuMemcpyHtoDAsync_v2(target, piece.memory, size, copies),
      "cuMemcpyHtoDAsync"));
  return driver.check(driver.cuEventRecord(piece.copied, copies),
                      "cuEventRecord");
}

absl::Status CudaUpload::finish() {
  LLAMAC_RETURN_IF_ERROR(device.enter());
  isPending = false;
  return driver.check(driver.cuStreamSynchronize(copies), "copying weights");
}

absl::StatusOr<std::unique_ptr<Upload>> newCudaUpload(const CudaDevice &device,
                                                      uint64_t pieceBytes) {
  auto upload = std::make_unique<CudaUpload>(device, pieceBytes);
  LLAMAC_RETURN_IF_ERROR(upload->start());
  return upload;
}

} // namespace llamac
