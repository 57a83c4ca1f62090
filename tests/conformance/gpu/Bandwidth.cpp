//===- Bandwidth.cpp - What the memory of a GPU gives ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/gpu/Bandwidth.h"

#include "runtime/base/Status.h"
#include "tests/conformance/Sources.h"
#include "tests/conformance/wrappers/CudaModule.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>

namespace llamac::conformance {

namespace {

constexpr uint64_t mib = 1 << 20;
constexpr uint32_t blockThreads = 512;
constexpr uint32_t blocksOfSm = 4;

/// Two buffers and the kernels.
class Meter {
public:
  explicit Meter(std::shared_ptr<const CudaModule> kernels)
      : kernels(std::move(kernels)), device(this->kernels->device()) {}

  absl::Status fill(int mebibytes);
  absl::StatusOr<double> bytesPerSecond(const char *kernel, int passes);
  absl::Status checkRead();
  absl::Status checkCopy();

private:
  absl::Status launch(cuda::Function function);
  absl::Status finish(const char *kernel);

  std::shared_ptr<const CudaModule> kernels;
  CudaDevice &device;
  uint32_t blocks = 0;
  int32_t rows = 0;
  std::vector<uint32_t> piece; ///< The MiB that the input repeats.
  std::unique_ptr<Buffer> in, out;
};

} // namespace

/// Random words, so that nothing can be compressed on the way.
absl::Status Meter::fill(int mebibytes) {
  int multiprocessors = 0;
  LLAMAC_RETURN_IF_ERROR(
      device.driver().check(device.driver().cuDeviceGetAttribute(
                                &multiprocessors, cuda::MultiprocessorCount, 0),
                            "cuDeviceGetAttribute"));
  blocks = static_cast<uint32_t>(multiprocessors) * blocksOfSm;
  rows = mebibytes;
  std::mt19937 random(7);
  piece.resize(mib / sizeof(uint32_t));
  for (uint32_t &word : piece)
    word = random();
  const uint64_t bytes = mebibytes * mib;
  LLAMAC_ASSIGN_OR_RETURN(in, device.allocate(bytes));
  LLAMAC_ASSIGN_OR_RETURN(
      out, device.allocate(std::max<uint64_t>(
               bytes, uint64_t{blocks} * blockThreads * sizeof(uint32_t))));
  for (int i = 0; i < mebibytes; ++i)
    LLAMAC_RETURN_IF_ERROR(device.write(
        *in, i * mib, {reinterpret_cast<const uint8_t *>(piece.data()), mib}));
  return absl::OkStatus();
}

absl::Status Meter::launch(cuda::Function function) {
  void *to = out->address(), *from = in->address();
  void *arguments[] = {&to, &from, &rows};
  const cuda::LaunchConfig config{
      .gridX = blocks, .blockX = blockThreads, .stream = device.stream()};
  return device.driver().check(
      device.driver().cuLaunchKernelEx(&config, function, arguments, nullptr),
      "cuLaunchKernelEx");
}

absl::Status Meter::finish(const char *kernel) {
  return device.driver().check(
      device.driver().cuStreamSynchronize(device.stream()), kernel);
}

/// Bandwidth of the input; the output comes on top.
absl::StatusOr<double> Meter::bytesPerSecond(const char *kernel, int passes) {
  const cuda::Function function = kernels->find(kernel);
  if (!function)
    return internalError(absl::StrCat(kernel, ": no such kernel"));
  LLAMAC_RETURN_IF_ERROR(launch(function));
  LLAMAC_RETURN_IF_ERROR(finish(kernel));
  std::array<double, 5> seconds{};
  for (double &round : seconds) {
    const auto start = std::chrono::steady_clock::now();
    for (int pass = 0; pass < passes; ++pass)
      LLAMAC_RETURN_IF_ERROR(launch(function));
    LLAMAC_RETURN_IF_ERROR(finish(kernel));
    round =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }
  std::nth_element(seconds.begin(), seconds.begin() + 2, seconds.end());
  return static_cast<double>(passes) * rows * static_cast<double>(mib) /
         seconds[2];
}

/// The exclusive or of all threads' sums is that of all words.
absl::Status Meter::checkRead() {
  std::vector<uint8_t> staging;
  const uint64_t count = uint64_t{blocks} * blockThreads;
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> bytes,
      device.read(*out, 0, count * sizeof(uint32_t), staging));
  uint32_t got = 0, expected = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t sum;
    std::memcpy(&sum, bytes.data() + i * sizeof sum, sizeof sum);
    got ^= sum;
  }
  for (int32_t row = 0; row < rows; ++row)
    for (const uint32_t word : piece)
      expected ^= word;
  return got == expected ? absl::OkStatus()
                         : accuracyError("readAll: not all words were read");
}

absl::Status Meter::checkCopy() {
  std::vector<uint8_t> staging;
  for (int32_t row = 0; row < rows; ++row) {
    LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                            device.read(*out, row * mib, mib, staging));
    if (std::memcmp(bytes.data(), piece.data(), mib) != 0)
      return accuracyError(absl::StrCat("copyAll: MiB ", row, " is wrong"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Bandwidth>
measureBandwidth(const std::shared_ptr<CudaDevice> &device, int mebibytes,
                 int passes) {
  LLAMAC_ASSIGN_OR_RETURN(auto kernels,
                          CudaModule::compile(device, bandwidthSource()));
  Meter meter(std::move(kernels));
  LLAMAC_RETURN_IF_ERROR(meter.fill(mebibytes));
  Bandwidth bandwidth;
  LLAMAC_ASSIGN_OR_RETURN(bandwidth.readBytes,
                          meter.bytesPerSecond("readAll", passes));
  LLAMAC_RETURN_IF_ERROR(meter.checkRead());
  LLAMAC_ASSIGN_OR_RETURN(bandwidth.copyBytes,
                          meter.bytesPerSecond("copyAll", passes));
  bandwidth.copyBytes *= 2;
  LLAMAC_RETURN_IF_ERROR(meter.checkCopy());
  return bandwidth;
}

} // namespace llamac::conformance
