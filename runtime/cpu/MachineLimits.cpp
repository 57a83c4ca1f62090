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
#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

namespace {

// A loop that keeps the units of products busy.
struct ProductLoop {
  void (*run)();
  double operations; // Additions and multiplications of one run.
};

} // namespace

static absl::StatusOr<double> rateOf(CpuDevice &device,
                                     const ProductLoop &loop) {
  LLAMAC_ASSIGN_OR_RETURN(
      const double seconds,
      bestSeconds(device, /*tries=*/5, [&](int) { loop.run(); }));
  return loop.operations * device.threads() / seconds;
}

// Independent chains (ILP) that hide the latency of an operation on two ports.
static constexpr int chains = 12;
static constexpr int64_t rounds = 2'000'000;

// A loop of one instruction a chain and round, which multiplies `products`. Its
// operand is its result before, so that none can be left out.
static constexpr ProductLoop chainsOf(void (*run)(), int products) {
  return {run, 2.0 * chains * static_cast<double>(rounds) * products};
}

template <typename Vector>
[[gnu::always_inline]] static inline void multiplyAdds() {
  Vector sums[chains] = {};
  const Vector factor = Vector{} + 3; // Infinite sums take no longer.
  for (int64_t i = 0; i < rounds; ++i)
    for (Vector &sum : sums)
      sum = sum * factor + factor;
  asm volatile("" : : "m"(sums));
}

using F32x4 = float __attribute__((vector_size(16)));
// Bytes are multiplied in 16 bits where no instruction takes them.
using U16x8 = uint16_t __attribute__((vector_size(16)));

#if defined(__x86_64__)
using F32x8 = float __attribute__((vector_size(32)));
using F32x16 = float __attribute__((vector_size(64)));

__attribute__((target("avx2,fma"))) static void f32Avx2() {
  multiplyAdds<F32x8>();
}
__attribute__((target("avx512f"))) static void f32Avx512() {
  multiplyAdds<F32x16>();
}

__attribute__((target("avx2"))) static void int8Avx2() {
  const __m256i factor = _mm256_set1_epi8(3);
  __m256i sums[chains] = {};
  for (int64_t i = 0; i < rounds; ++i)
    for (__m256i &sum : sums)
      sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(sum, factor));
  asm volatile("" : : "m"(sums));
}
__attribute__((target("avx512f,avx512vnni"))) static void int8Vnni() {
  const __m512i factor = _mm512_set1_epi8(3);
  __m512i sums[chains] = {};
  for (int64_t i = 0; i < rounds; ++i)
    for (__m512i &sum : sums)
      sum = _mm512_dpbusd_epi32(sum, sum, factor);
  asm volatile("" : : "m"(sums));
}

// Tiles of 16 rows of 64 bytes; codegen/cpu/kernels/amx.h has the source.
static constexpr int tileRows = 16;
static constexpr int tileBytes = 64;
static constexpr int tileChains = 4;
static constexpr int64_t tileRounds = rounds / 10;

__attribute__((target("amx-tile,amx-int8"))) static void int8Amx() {
  struct alignas(64) {
    uint8_t palette = 1;
    uint8_t startRow = 0;
    uint8_t reserved[14] = {};
    uint16_t rowBytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  static_assert(sizeof(config) == 64);
  for (int tile = 0; tile < tileChains + 2; ++tile) {
    config.rows[tile] = tileRows;
    config.rowBytes[tile] = tileBytes;
  }
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t i = 0; i < tileRounds; ++i) {
    _tile_dpbsud(0, 4, 5);
    _tile_dpbsud(1, 4, 5);
    _tile_dpbsud(2, 4, 5);
    _tile_dpbsud(3, 4, 5);
  }
  _tile_release();
}

static constexpr ProductLoop amxLoop = {
    int8Amx, 2.0 * tileChains *static_cast<double>(tileRounds) *
                 tileRows *tileRows *tileBytes};
#endif

absl::StatusOr<double> f32Rate(CpuDevice &device) {
#if defined(__x86_64__)
  if (device.isaLimit() >= IsaLevel::X86V4Vnni)
    return rateOf(device, chainsOf(f32Avx512, 16));
  if (device.isaLimit() >= IsaLevel::X86V3)
    return rateOf(device, chainsOf(f32Avx2, 8));
#endif
  return rateOf(device, chainsOf(multiplyAdds<F32x4>, 4));
}

absl::StatusOr<double> int8Rate(CpuDevice &device) {
#if defined(__x86_64__)
  if (device.isaLimit() >= IsaLevel::X86V4Amx)
    return rateOf(device, amxLoop);
  if (device.isaLimit() >= IsaLevel::X86V4Vnni)
    return rateOf(device, chainsOf(int8Vnni, 64));
  if (device.isaLimit() >= IsaLevel::X86V3)
    return rateOf(device, chainsOf(int8Avx2, 32));
#endif
  return rateOf(device, chainsOf(multiplyAdds<U16x8>, 8));
}

} // namespace llamac
