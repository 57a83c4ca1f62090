//===- EmittedModel.h - The source of a published shape ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_CUDA_EMITTEDMODEL_H
#define LLAMAC_TESTS_CODEGEN_CUDA_EMITTEDMODEL_H

#include "compiler/driver/Compiler.h"
#include "frontends/Checkpoint.h"
#include "runtime/cuda/Nvrtc.h"
#include "tests/TemporaryFolder.h"

namespace llamac {

/// The plan and the source that the cuda target makes of a configuration.
class EmittedModel {
public:
  /// `shape` is a folder of tests/compiler/Inputs/shapes; `withoutPass` is left
  /// out of the pipeline; `residentStep` and `cache`, the format
  /// of the cache, are as CompileOptions has them.
  EmittedModel(const std::string &shape, const std::string &gpu,
               const std::string &weights = "keep",
               const char *withoutPass = nullptr,
               const char *residentStep = "off", const char *cache = "f16");

  mlir::ModuleOp module() const { return compilation->module(); }
  /// The names of all kernels, in order.
  std::vector<std::string> kernels() const;
  std::string source(const std::string &kernel) const;

private:
  TemporaryFolder folder;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Compilation> compilation;
};

/// The number that the first group of `pattern` finds first in `source`; 0
/// where it finds none.
int numberIn(const std::string &source, const std::string &pattern);

/// The input of NVRTC: `text`, the source of `kernel`, and every header.
CudaSource cudaSource(const std::string &kernel, const std::string &text);

} // namespace llamac

#endif // LLAMAC_TESTS_CODEGEN_CUDA_EMITTEDMODEL_H
