//===- VariantCompilers.h - Machine code for the tuner ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_VARIANTCOMPILERS_H
#define LLAMAC_COMPILER_DRIVER_VARIANTCOMPILERS_H

#include "runtime/tune/Tuner.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace llamac {

/// By Clang, for cpu and sim.
class ClangVariantCompiler final : public VariantCompiler {
public:
  absl::StatusOr<std::string> compile(absl::Span<const KernelSource> kernels,
                                      const std::string &target,
                                      const std::string &isa) override;
};

/// The generator of plans for `target`: generatorHash() of the headers that its
/// variants are compiled with here, by this compiler or by NVRTC.
std::string generatorOf(llvm::StringRef target);

/// Bad-plan error when the kernels of `plan`, of the file `path`, were made of
/// other headers than this llamac has, with which its variants may not compile
/// or work.
absl::Status checkGenerator(const std::string &path, const schema::PlanT &plan);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_VARIANTCOMPILERS_H
