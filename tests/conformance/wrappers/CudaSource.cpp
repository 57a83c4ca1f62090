//===- CudaSource.cpp - CUDA source on a GPU ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/wrappers/CudaSource.h"

#include "runtime/base/Status.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/DeviceTensorMap.h"
#include "runtime/cuda/Nvrtc.h"

#include "absl/strings/str_cat.h"

#include <cstring>

namespace llamac::conformance {

namespace {

/// The kernels of one source, loaded.
struct CudaKernels {
  ~CudaKernels() {
    device->enter().IgnoreError();
    if (module)
      device->driver().cuModuleUnload(module);
  }

  std::shared_ptr<CudaDevice> device;
  cuda::Module module = nullptr;
};

class CudaSourceDevice final : public SourceDevice {
public:
  explicit CudaSourceDevice(std::shared_ptr<const CudaKernels> kernels)
      : kernels(std::move(kernels)) {}

  absl::StatusOr<Words> run(const WordLaunch &launch, const Words &in,
                            size_t outWords) override;

private:
  std::shared_ptr<const CudaKernels> kernels;
};

} // namespace

static absl::Span<const uint8_t> bytesOf(const Words &words) {
  return {reinterpret_cast<const uint8_t *>(words.data()),
          words.size() * sizeof(uint32_t)};
}

absl::StatusOr<Words> CudaSourceDevice::run(const WordLaunch &launch,
                                            const Words &in, size_t outWords) {
  CudaDevice &device = *kernels->device;
  const cuda::Driver &driver = device.driver();
  LLAMAC_RETURN_IF_ERROR(device.enter());
  cuda::Function function = nullptr;
  if (driver.cuModuleGetFunction(&function, kernels->module,
                                 launch.kernel.c_str()) != 0)
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
        map, cuda::encodeTensorMap(driver, from, mapOfInput(*launch.map)));
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

static absl::StatusOr<std::shared_ptr<const CudaKernels>>
compileKernels(const SourceFile &source) {
  auto kernels = std::make_shared<CudaKernels>();
  LLAMAC_ASSIGN_OR_RETURN(kernels->device, CudaDevice::create());
  LLAMAC_ASSIGN_OR_RETURN(const Nvrtc nvrtc, Nvrtc::open());
  static const SourceHeader headers[] = {
#include "DeviceHeaders.inc"
  };
  LLAMAC_ASSIGN_OR_RETURN(
      const Cubin cubin,
      nvrtc.compile(
          {source.name, source.text, {std::begin(headers), std::end(headers)}},
          kernels->device->architecture()));
  const cuda::Driver &driver = kernels->device->driver();
  LLAMAC_RETURN_IF_ERROR(driver.check(
      driver.cuModuleLoadData(&kernels->module, cubin.image.data()),
      absl::StrCat(source.name, ": cuModuleLoadData")));
  return kernels;
}

SourceDeviceRow cudaSourceRow() {
  auto known = std::make_shared<std::shared_ptr<const CudaKernels>>();
  return {"cuda",
          [known](const SourceFile &source)
              -> absl::StatusOr<std::unique_ptr<SourceDevice>> {
            if (!*known) {
              LLAMAC_ASSIGN_OR_RETURN(*known, compileKernels(source));
            }
            return std::make_unique<CudaSourceDevice>(*known);
          }};
}

} // namespace llamac::conformance
