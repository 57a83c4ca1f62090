//===- GpuSpec.cpp - The GPUs that are named ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/GpuSpec.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace llamac {

// Shared memory of a block and of a multiprocessor in KiB, threads and blocks
// of a multiprocessor, and how many multiprocessors there are.
static constexpr GpuSpec specOf(const char *name, ComputeCapability capability,
                                int blockShared, int smShared, int threads,
                                int blocks, int multiprocessors,
                                KernelTier tier = KernelTier::Sm80) {
  return {.name = name,
          .capability = capability,
          .tier = tier,
          .blockSharedBytes = blockShared * 1024,
          .smSharedBytes = smShared * 1024,
          .smRegisters = 65536,
          .smThreads = threads,
          .smBlocks = blocks,
          .blockThreads = 1024,
          .multiprocessors = multiprocessors};
}

static constexpr GpuSpec specs[] = {
    specOf("sm_80", {8, 0}, 163, 164, 2048, 32, 108),
    specOf("sm_86", {8, 6}, 99, 100, 1536, 16, 84),
    specOf("sm_89", {8, 9}, 99, 100, 1536, 24, 128),
    specOf("sm_90a", {9, 0}, 227, 228, 2048, 32, 132, KernelTier::Sm90),
    specOf("sm_100a", {10, 0}, 227, 228, 2048, 32, 148),
    specOf("sm_120a", {12, 0}, 99, 100, 1536, 24, 170),
};

bool GpuSpec::isSpecific() const { return absl::EndsWith(name, "a"); }

absl::Span<const GpuSpec> gpuSpecs() { return specs; }

const GpuSpec *findGpuSpec(absl::string_view name) {
  for (const GpuSpec &spec : specs)
    if (spec.name == name)
      return &spec;
  return nullptr;
}

const GpuSpec *gpuSpecFor(ComputeCapability capability) {
  const GpuSpec *nearest = nullptr;
  for (const GpuSpec &spec : specs) {
    if (spec.capability.major != capability.major ||
        spec.capability.minor > capability.minor)
      continue;
    if (spec.capability.minor == capability.minor || !spec.isSpecific())
      nearest = &spec;
  }
  return nearest;
}

const GpuSpec &defaultGpuSpec() { return *findGpuSpec("sm_90a"); }

std::string gpuNames() {
  return absl::StrJoin(specs, ", ", [](std::string *out, const GpuSpec &spec) {
    out->append(spec.name);
  });
}

} // namespace llamac
