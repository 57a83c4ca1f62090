//===- MachineLimits.cpp - What the cores can do at most ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/MachineLimits.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"

#include <algorithm>
#include <cstring>

namespace llamac {

// The least seconds that `job` takes on all threads in some tries.
static absl::StatusOr<double> bestSeconds(CpuDevice &device, int tries,
                                          absl::FunctionRef<void(int)> job) {
  double best = 1e30;
  for (int i = 0; i < tries; ++i) {
    const double start = steadySeconds();
    LLAMAC_RETURN_IF_ERROR(device.run(job));
    best = std::min(best, steadySeconds() - start);
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

// Past every cache.
static constexpr uint64_t readBytes = uint64_t{1} << 30;

static void readStreams(const uint8_t *from, uint64_t bytes) {
  using Line = int64_t __attribute__((vector_size(64)));
  constexpr uint64_t streams = 4;
  constexpr uint64_t ahead = 1024;
  const uint64_t stride = bytes / streams / 64 * 64;
  Line sums[streams] = {};
  for (uint64_t at = 0; at < stride; at += 64)
    for (uint64_t stream = 0; stream < streams; ++stream) {
      const uint8_t *line = from + stream * stride + at;
      __builtin_prefetch(line + ahead);
      sums[stream] += *reinterpret_cast<const Line *>(line);
    }
  const Line total = sums[0] + sums[1] + sums[2] + sums[3];
  asm volatile("" : : "m"(total));
}

absl::StatusOr<double> readBandwidth(CpuDevice &device) {
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> buffer,
                          device.allocate(readBytes, MemoryUse::Dense));
  auto *bytes = static_cast<uint8_t *>(buffer->address());
  const uint64_t share =
      readBytes / static_cast<uint64_t>(device.threads()) / 64 * 64;
  // First touch puts each thread's part near it.
  LLAMAC_RETURN_IF_ERROR(device.run([&](int thread) {
    std::memset(bytes + static_cast<uint64_t>(thread) * share, 1, share);
  }));
  LLAMAC_ASSIGN_OR_RETURN(
      const double seconds, bestSeconds(device, /*tries=*/8, [&](int thread) {
        readStreams(bytes + static_cast<uint64_t>(thread) * share, share);
      }));
  return static_cast<double>(share) * device.threads() / seconds;
}

//===----------------------------------------------------------------------===//
// Multiply-adds
//===----------------------------------------------------------------------===//

// Independent chains (ILP) that hide the latency of an operation on two ports.
static constexpr int chains = 12;
static constexpr int64_t rounds = 2'000'000;

template <typename Vector>
[[gnu::always_inline]] static inline void multiplyAdds() {
  Vector sums[chains] = {};
  const Vector factor = Vector{} + 0.5f;
  for (int64_t i = 0; i < rounds; ++i)
    for (Vector &sum : sums)
      sum = sum * factor + factor;
  asm volatile("" : : "m"(sums));
}

using F32x4 = float __attribute__((vector_size(16)));

#if defined(__x86_64__)
using F32x8 = float __attribute__((vector_size(32)));
using F32x16 = float __attribute__((vector_size(64)));

__attribute__((target("avx2,fma"))) static void multiplyAdds8() {
  multiplyAdds<F32x8>();
}
__attribute__((target("avx512f"))) static void multiplyAdds16() {
  multiplyAdds<F32x16>();
}
#endif

absl::StatusOr<double> multiplyAddRate(CpuDevice &device) {
  int lanes = 4;
  void (*run)() = multiplyAdds<F32x4>;
#if defined(__x86_64__)
  if (device.isaLimit() >= IsaLevel::X86V4Vnni) {
    lanes = 16;
    run = multiplyAdds16;
  } else if (device.isaLimit() >= IsaLevel::X86V3) {
    lanes = 8;
    run = multiplyAdds8;
  }
#endif
  LLAMAC_ASSIGN_OR_RETURN(
      const double seconds,
      bestSeconds(device, /*tries=*/5, [&](int) { run(); }));
  return 2.0 * chains * static_cast<double>(rounds) * lanes * device.threads() /
         seconds;
}

} // namespace llamac
