//===- KernelVariants.h - Kernels with other tiles --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a plan holds for the tuner: for each kernel the configs that its target
// says it may have in place of its own, as source and geometry. Nothing of it
// is compiled until somebody tunes.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_KERNELVARIANTS_H
#define LLAMAC_COMPILER_DRIVER_KERNELVARIANTS_H

#include "codegen/Backend.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>

namespace llamac {

/// Hash of what kernels are made of beside their own source: the headers that
/// they include, and llamac's version.
std::string generatorHash(llvm::ArrayRef<KernelHeader> headers);

/// A short hash of `text`, for names.
std::string textHash(llvm::StringRef text);

/// The source of `kernel` alone, as it is written; none, without a diagnostic,
/// when the device has no room for it.
std::optional<std::string> kernelSource(plan::KernelOp kernel,
                                        const Backend &backend);

/// The variants of the kernels of `plan`, which is to hold `contents`, best
/// first by the cost model, by the kernels' names; none of one that is in
/// `fixed`. Those that the device has no room for, or that need memory which
/// the plan does not set aside, are left out.
llvm::StringMap<KernelTuning> listVariants(mlir::ModuleOp plan,
                                           const PlanContents &contents,
                                           const Backend &backend,
                                           llvm::ArrayRef<std::string> fixed);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_KERNELVARIANTS_H
