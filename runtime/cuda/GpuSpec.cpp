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

static constexpr int kib = 1024;

static constexpr GpuSpec specs[] = {
    {.name = "sm_80",
     .capability = {8, 0},
     .blockSharedBytes = 163 * kib,
     .smSharedBytes = 164 * kib,
     .smRegisters = 65536,
     .smThreads = 2048,
     .smBlocks = 32,
     .blockThreads = 1024,
     .multiprocessors = 108},
    {.name = "sm_86",
     .capability = {8, 6},
     .blockSharedBytes = 99 * kib,
     .smSharedBytes = 100 * kib,
     .smRegisters = 65536,
     .smThreads = 1536,
     .smBlocks = 16,
     .blockThreads = 1024,
     .multiprocessors = 84},
    {.name = "sm_89",
     .capability = {8, 9},
     .blockSharedBytes = 99 * kib,
     .smSharedBytes = 100 * kib,
     .smRegisters = 65536,
     .smThreads = 1536,
     .smBlocks = 24,
     .blockThreads = 1024,
     .multiprocessors = 128},
    {.name = "sm_90a",
     .capability = {9, 0},
     .tier = KernelTier::Sm90,
     .blockSharedBytes = 227 * kib,
     .smSharedBytes = 228 * kib,
     .smRegisters = 65536,
     .smThreads = 2048,
     .smBlocks = 32,
     .blockThreads = 1024,
     .multiprocessors = 132},
    {.name = "sm_100a",
     .capability = {10, 0},
     .blockSharedBytes = 227 * kib,
     .smSharedBytes = 228 * kib,
     .smRegisters = 65536,
     .smThreads = 2048,
     .smBlocks = 32,
     .blockThreads = 1024,
     .multiprocessors = 148},
    {.name = "sm_120a",
     .capability = {12, 0},
     .blockSharedBytes = 99 * kib,
     .smSharedBytes = 100 * kib,
     .smRegisters = 65536,
     .smThreads = 1536,
     .smBlocks = 24,
     .blockThreads = 1024,
     .multiprocessors = 170},
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
