//===- CudaSource.cpp - CUDA source on a GPU ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/wrappers/CudaSource.h"

#include "runtime/base/Status.h"
#include "tests/conformance/wrappers/CudaModule.h"

#include "absl/strings/str_cat.h"

#include <cstring>

namespace llamac::conformance {

namespace {

class CudaSourceDevice final : public SourceDevice {
public:
  explicit CudaSourceDevice(std::shared_ptr<const CudaModule> kernels)
      : kernels(std::move(kernels)) {}

  absl::StatusOr<Words> run(const WordLaunch &launch, const Words &in,
                            size_t outWords) override;

private:
  std::shared_ptr<const CudaModule> kernels;
};

} // namespace

static absl::Span<const uint8_t> bytesOf(const Words &words) {
  return {reinterpret_cast<const uint8_t *>(words.data()),
          words.size() * sizeof(uint32_t)};
}

absl::StatusOr<Words> CudaSourceDevice::run(const WordLaunch &launch,
                                            const Words &in, size_t outWords) {
  CudaDevice &device = kernels->device();
  const cuda::Driver &driver = device.driver();
  LLAMAC_RETURN_IF_ERROR(device.enter());
  const cuda::Function function = kernels->find(launch.kernel);
  if (!function)
    return absl::UnimplementedError(absl::StrCat(
        launch.kernel, ": not among the kernels for ", device.architecture()));
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> input,
                          device.allocate(in.size() * sizeof(uint32_t)));
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> output,
                          device.allocate(outWords * sizeof(uint32_t)));
  LLAMAC_RETURN_IF_ERROR(device.write(*input, 0, bytesOf(in)));

  void *out = output->address(), *from = input->address();
  int32_t rows = 1;
  std::vector<void *> arguments = {&out, &from};
  cuda::DeviceTensorMap map;
  if (launch.map) {
    LLAMAC_ASSIGN_OR_RETURN(
        map, driver.encodeTensorMap(from, mapOfInput(*launch.map)));
    arguments.push_back(&map);
  }
  arguments.push_back(&rows);
  LLAMAC_RETURN_IF_ERROR(driver.check(
      driver.cuFuncSetAttribute(function, cuda::functionSharedBytes,
                                static_cast<int>(launch.sharedBytes)),
      absl::StrCat(launch.kernel, ": cuFuncSetAttribute")));
  cuda::LaunchAttribute cluster{.id = cuda::LaunchAttribute::ClusterDimension,
                                .value = {launch.cluster, 1, 1}};
  const cuda::LaunchConfig config{.gridX = launch.cluster,
                                  .blockX = launch.threads,
                                  .sharedBytes = launch.sharedBytes,
                                  .stream = device.stream(),
                                  .attributes = &cluster,
                                  .attributeCount = launch.cluster > 1};
  LLAMAC_RETURN_IF_ERROR(driver.check(
      driver.cuLaunchKernelEx(&config, function, arguments.data(), nullptr),
      absl::StrCat(launch.kernel, ": cuLaunchKernelEx")));
  LLAMAC_RETURN_IF_ERROR(
      driver.check(driver.cuStreamSynchronize(device.stream()), launch.kernel));
  std::vector<uint8_t> staging;
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> bytes,
      device.read(*output, 0, outWords * sizeof(uint32_t), staging));
  Words words(outWords);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

SourceDeviceRow cudaSourceRow(const std::shared_ptr<CudaDevice> &device) {
  auto known = std::make_shared<std::shared_ptr<const CudaModule>>();
  return {"cuda",
          [known, device](const SourceFile &source)
              -> absl::StatusOr<std::unique_ptr<SourceDevice>> {
            if (!*known) {
              LLAMAC_ASSIGN_OR_RETURN(*known,
                                      CudaModule::compile(device, source));
            }
            return std::make_unique<CudaSourceDevice>(*known);
          }};
}

} // namespace llamac::conformance
