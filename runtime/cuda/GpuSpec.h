//===- GpuSpec.h - The GPUs that are named ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a kernel may use of a GPU, by the name that compilers give its
// architecture. Figures are those of the table of technical specifications in
// the CUDA C++ Programming Guide.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_GPUSPEC_H
#define LLAMAC_RUNTIME_CUDA_GPUSPEC_H

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <string>

namespace llamac {

/// A GPU's compute capability: 8.6 is {8, 6}.
struct ComputeCapability {
  int major = 0;
  int minor = 0;
};

/// The instructions that kernels for a GPU use.
enum class KernelTier : unsigned char {
  Sm80, ///< Those of sm_80, which every later GPU has.
  Sm90, ///< Hopper's own, which no other GPU has.
};

struct GpuSpec {
  const char *name; ///< "sm_90a", as -arch takes it.
  ComputeCapability capability;
  KernelTier tier = KernelTier::Sm80;
  int blockSharedBytes; ///< That a block may have.
  int smSharedBytes;    ///< Of a multiprocessor, for all its blocks.
  int smRegisters;      ///< Of 32 bits.
  int smThreads;
  int smBlocks;
  int blockThreads;
  /// Of a common product: kernels that have a block on each are made for so
  /// many, and are right on any number.
  int multiprocessors;

  /// Code for this architecture runs on no other: it may use instructions that
  /// later GPUs do not have.
  bool isSpecific() const;
};

/// Every GPU that is named, the oldest first.
absl::Span<const GpuSpec> gpuSpecs();

/// The one called `name`; null when there is none.
const GpuSpec *findGpuSpec(absl::string_view name);

/// The one whose code runs on a GPU of `capability`: its own, or else that of
/// the nearest older one of the same generation; null when there is none.
const GpuSpec *gpuSpecFor(ComputeCapability capability);

/// sm_90a, which is compiled for where there is no GPU.
const GpuSpec &defaultGpuSpec();

/// "sm_80, sm_86, ...", for messages.
std::string gpuNames();

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_GPUSPEC_H
