//===- GpuSpec.h - The GPUs that are named ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Limits of what a kernel may use of a GPU, by the name that compilers give its
// architecture, with figures of the table of technical specifications in the
// CUDA C++ Programming Guide; and the memory of GPUs as they are sold, by
// NVIDIA's data sheets and, for its size, which these round, by what nvidia-smi
// prints.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_GPUSPEC_H
#define LLAMAC_RUNTIME_CUDA_GPUSPEC_H

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <string>

namespace llamac {

/// A GPU's compute capability: 8.6 is {8, 6}.
struct ComputeCapability {
  int major = 0;
  int minor = 0;
};

/// The instructions that kernels for a GPU use.
enum class KernelTier : unsigned char {
  Sm80, ///< Instructions of sm_80, which every later GPU has.
  Sm90, ///< Hopper's own, which no other GPU has.
};

struct GpuSpec {
  /// Shared memory that CUDA keeps for each block, beside the block's own.
  static constexpr int blockReservedBytes = 1024;

  const char *name; ///< "sm_90a", as -arch takes it.
  ComputeCapability capability;
  KernelTier tier = KernelTier::Sm80;
  int blockSharedBytes; ///< The most that one block may have.
  int smSharedBytes;    ///< For all blocks of a multiprocessor.
  int smRegisters;      ///< Registers of 32 bits.
  int smThreads;
  int smBlocks;
  int blockThreads;
  /// Multiprocessors of a common product: kernels that have a block on each are
  /// made for so many, and are right on any number.
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

/// A GPU as it is sold.
struct GpuProduct {
  const char *name;      ///< "h200".
  const char *gpu;       ///< The name of its GpuSpec.
  uint64_t memoryBytes;  ///< Its memory as the driver counts it.
  double bandwidth;      ///< Bytes a second of its memory, of the data sheet.
  double readShare;      ///< The part of that bandwidth that reads reach.
  const char *shareFrom; ///< Who says so.
};

/// Every product that is named; the first of a GpuSpec is the one that its
/// kernels are made for.
absl::Span<const GpuProduct> gpuProducts();

/// The one called `name`, or the first of the GpuSpec called so; null when
/// there is none.
const GpuProduct *findGpuProduct(absl::string_view name);

/// "a100-40gb, a100, ...", for messages.
std::string gpuProductNames();

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_GPUSPEC_H
