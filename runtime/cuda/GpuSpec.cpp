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

// MiB of memory, and GB/s. Reads of a whole H200 were measured at 4,255 GB/s
// elsewhere; nobody has measured the others for us.
static constexpr GpuProduct productOf(const char *name, const char *gpu,
                                      uint64_t mebibytes, double gigabytes,
                                      double readShare = 0.88,
                                      const char *shareFrom = "assumed") {
  return {name, gpu, mebibytes << 20, gigabytes * 1e9, readShare, shareFrom};
}

static constexpr GpuProduct products[] = {
    productOf("a100-40gb", "sm_80", 40960, 1555),
    productOf("a100", "sm_80", 81920, 2039),
    productOf("rtx-3090", "sm_86", 24576, 936),
    productOf("rtx-4090", "sm_89", 24564, 1008),
    productOf("l40s", "sm_89", 46068, 864),
    productOf("l4", "sm_89", 23034, 300),
    productOf("h200", "sm_90a", 143771, 4800, 4255.0 / 4800,
              "measured by others"),
    productOf("h100", "sm_90a", 81559, 3350),
    productOf("b200", "sm_100a", 182630, 8000),
    productOf("rtx-5090", "sm_120a", 32607, 1792),
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

static std::string namesOf(const auto &list) {
  return absl::StrJoin(list, ", ", [](std::string *out, const auto &of) {
    out->append(of.name);
  });
}

std::string gpuNames() { return namesOf(specs); }

absl::Span<const GpuProduct> gpuProducts() { return products; }

const GpuProduct *findGpuProduct(absl::string_view name) {
  for (const GpuProduct &product : products)
    if (product.name == name || product.gpu == name)
      return &product;
  return nullptr;
}

std::string gpuProductNames() { return namesOf(products); }

} // namespace llamac
