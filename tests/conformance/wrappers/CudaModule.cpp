//===- CudaModule.cpp - CUDA source compiled for a GPU --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/wrappers/CudaModule.h"

#include "runtime/base/Status.h"
#include "runtime/cuda/Nvrtc.h"

#include "absl/strings/str_cat.h"

namespace llamac::conformance {

absl::StatusOr<std::shared_ptr<const CudaModule>>
CudaModule::compile(std::shared_ptr<CudaDevice> device,
                    const SourceFile &source) {
  const std::shared_ptr<CudaModule> kernels(new CudaModule(std::move(device)));
  LLAMAC_ASSIGN_OR_RETURN(const Nvrtc nvrtc, Nvrtc::open());
  static const SourceHeader headers[] = {
#include "DeviceHeaders.inc"
  };
  // Cached as a plan's kernels are: a suite in many processes compiles once.
  const CudaSource code{
      source.name, source.text, {std::begin(headers), std::end(headers)}};
  LLAMAC_ASSIGN_OR_RETURN(const std::string image,
                          nvrtc.image(code, kernels->gpu->architecture()));
  LLAMAC_RETURN_IF_ERROR(kernels->gpu->enter());
  const cuda::Driver &driver = kernels->gpu->driver();
  LLAMAC_RETURN_IF_ERROR(
      driver.check(driver.cuModuleLoadData(&kernels->module, image.data()),
                   absl::StrCat(source.name, ": cuModuleLoadData")));
  return kernels;
}

CudaModule::~CudaModule() {
  gpu->enter().IgnoreError();
  if (module)
    gpu->driver().cuModuleUnload(module);
}

cuda::Function CudaModule::find(const std::string &kernel) const {
  cuda::Function function = nullptr;
  const bool found =
      gpu->enter().ok() &&
      gpu->driver().cuModuleGetFunction(&function, module, kernel.c_str()) == 0;
  return found ? function : nullptr;
}

} // namespace llamac::conformance
