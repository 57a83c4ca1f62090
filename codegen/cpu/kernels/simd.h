//===- simd.h - Vectors of the cpu kernels ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vector types of 16 lanes and what the kernels do with them. A lane is one of
// the 16 rows of a weight panel. Clang divides a vector that is wider than the
// machine's registers, so all but the few functions under "instruction sets"
// are written once; those, the tile sizes that depend on the number of
// registers, and amx.h are the only places that ask for the instruction set.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_SIMD_H
#define LLAMAC_CPU_SIMD_H

#include "llamac/KernelAbi.h"

// Everything is inlined, so how a wide vector would be passed is of no concern.
#pragma clang diagnostic ignored "-Wpsabi"

/// Without the width, LLVM may halve 512-bit vectors for processors that it
/// tunes for 256.
#define LLAMAC_INLINE                                                          \
  inline __attribute__((always_inline, min_vector_width(512)))

namespace llamac::cpu {

using I8 = signed char;
using U8 = unsigned char;
using I16 = short;
using U16 = unsigned short;
using U32 = unsigned int;

using F32x8 = float __attribute__((ext_vector_type(8)));
using F32x16 = float __attribute__((ext_vector_type(16)));
using I32x16 = int __attribute__((ext_vector_type(16)));
using U32x16 = U32 __attribute__((ext_vector_type(16)));
using U16x16 = U16 __attribute__((ext_vector_type(16)));
using U8x16 = U8 __attribute__((ext_vector_type(16)));
using I8x16 = I8 __attribute__((ext_vector_type(16)));
using I8x32 = I8 __attribute__((ext_vector_type(32)));
using I16x16 = I16 __attribute__((ext_vector_type(16)));
using I16x32 = I16 __attribute__((ext_vector_type(32)));

template <class T>
LLAMAC_INLINE T *operand(const CpuLaunch &launch, int index) {
  return static_cast<T *>(launch.args[index]);
}

// Loads, stores, conversions

/// A vector at any address.
template <class V> LLAMAC_INLINE V load(const void *from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(V));
  return v;
}

template <class V> LLAMAC_INLINE void store(void *to, V v) {
  __builtin_memcpy(to, &v, sizeof(V));
}

template <class To, class From> LLAMAC_INLINE To bits(From from) {
  return __builtin_bit_cast(To, from);
}

LLAMAC_INLINE F32x16 splat(float x) { return F32x16(x); }

/// The first `lanes` values at `from`; the other lanes are zero.
LLAMAC_INLINE F32x16 load16(const float *from, int lanes = 16) {
  if (lanes == 16)
    return load<F32x16>(from);
  F32x16 v = 0;
  for (int i = 0; i < lanes; ++i)
    v[i] = from[i];
  return v;
}

LLAMAC_INLINE void store16(float *to, F32x16 v, int lanes = 16) {
  if (lanes == 16)
    return store(to, v);
  for (int i = 0; i < lanes; ++i)
    to[i] = v[i];
}

/// A bit for each lane of a comparison's result.
LLAMAC_INLINE U32 laneBits(I32x16 mask) {
  using Bool16 = bool __attribute__((ext_vector_type(16)));
  return bits<U16>(__builtin_convertvector(mask, Bool16));
}

/// a * b + c, rounded once where the machine can. Only what is written so is
/// fused: were it for the compiler to choose, two instantiations of a kernel
/// could round differently.
template <class V> LLAMAC_INLINE V fma(V a, V b, V c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}

LLAMAC_INLINE F32x16 fromF16(U16x16 h) {
#if defined(__F16C__) || defined(__aarch64__)
  using F16x16 = _Float16 __attribute__((ext_vector_type(16)));
  return __builtin_convertvector(bits<F16x16>(h), F32x16);
#else
  // Exponents move by 112; a product does it for subnormal numbers too.
  U32x16 wide = __builtin_convertvector(h, U32x16);
  U32x16 magnitude = (wide & 0x7fff) << 13;
  F32x16 scaled = bits<F32x16>(magnitude) * 0x1p112f;
  U32x16 special = bits<U32x16>(I32x16(magnitude >= 0x0f800000)) & 0x7f800000;
  return bits<F32x16>(bits<U32x16>(scaled) | special | (wide & 0x8000) << 16);
#endif
}

LLAMAC_INLINE U16x16 toF16(F32x16 x) {
#if defined(__F16C__) || defined(__aarch64__)
  using F16x16 = _Float16 __attribute__((ext_vector_type(16)));
  return bits<U16x16>(__builtin_convertvector(x, F16x16));
#else
  // Round to nearest even in integers; adding 0.5 aligns subnormal results.
  U32x16 u = bits<U32x16>(x);
  U32x16 magnitude = u & 0x7fffffff;
  U32x16 normal =
      (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  U32x16 subnormal = bits<U32x16>(bits<F32x16>(magnitude) + 0.5f) - 0x3f000000;
  U32x16 h = magnitude < 0x38800000 ? subnormal : normal;
  h = magnitude >= 0x477ff000 ? U32x16(0x7c00) : h;
  h = magnitude > 0x7f800000 ? U32x16(0x7e00) : h;
  return __builtin_convertvector(h | (u >> 16 & 0x8000), U16x16);
#endif
}

LLAMAC_INLINE F32x16 fromBF16(U16x16 h) {
  return bits<F32x16>(__builtin_convertvector(h, U32x16) << 16);
}

/// Rounds to nearest even; a NaN stays one.
LLAMAC_INLINE U16x16 toBF16(F32x16 x) {
  U32x16 u = bits<U32x16>(x);
  U32x16 rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  U32x16 nan = u >> 16 | 0x40;
  return __builtin_convertvector((u & 0x7fffffff) > 0x7f800000 ? nan : rounded,
                                 U16x16);
}

LLAMAC_INLINE void prefetch(const void *at) {
  __builtin_prefetch(at, /*rw=*/0, /*locality=*/3);
}

// Instruction sets

/// x * 2^n for integral n, |n| up to 200 and |x| near 1: the result may be
/// infinite or zero.
LLAMAC_INLINE F32x16 scaleByPowerOfTwo(F32x16 x, F32x16 n) {
#if defined(__AVX512F__)
  using Vendor = float __attribute__((vector_size(64)));
  return (F32x16)__builtin_ia32_scalefps512_mask((Vendor)x, (Vendor)n, Vendor{},
                                                 -1, /*current rounding*/ 4);
#else
  // In two steps, since n spans more than the exponent of one factor. Adding
  // 1.5 x 2^23 leaves n in the low bits, and a NaN does no harm there.
  constexpr float magic = 0x1.8p23f;
  I32x16 exponent = bits<I32x16>(n + magic) - bits<int>(magic);
  I32x16 half = exponent >> 1;
  return x * bits<F32x16>((half + 127) << 23) *
         bits<F32x16>((exponent - half + 127) << 23);
#endif
}

/// The register tile of accumulate(): weights of panels x depth, and the sums
/// of some rows, enough to hide the latency of a multiply-add; `fewSums` are
/// the sums of accumulateFew(). Sums by blocks (attention.h) take two of those
/// each.
#if defined(__AVX512F__)
constexpr int tilePanels = 2, tileDepth = 8, tileRows = 4, fewSums = 16;
#elif defined(__AVX2__) || defined(__aarch64__)
constexpr int tilePanels = 1, tileDepth = 4, tileRows = 2, fewSums = 4;
#else
constexpr int tilePanels = 1, tileDepth = 2, tileRows = 1, fewSums = 2;
#endif

/// Lanes of a panel that a product in 8-bit integers takes at a time, and how
/// many times it does.
#if defined(__AVX2__) && !defined(__AVX512BW__)
constexpr int dotLanes = 8;
#else
constexpr int dotLanes = 16;
#endif
constexpr int dotSlices = panelRows / dotLanes;

using F32xD = float __attribute__((ext_vector_type(dotLanes)));
using I32xD = int __attribute__((ext_vector_type(dotLanes)));
using U32xD = U32 __attribute__((ext_vector_type(dotLanes)));
using U8xD = U8 __attribute__((ext_vector_type(4 * dotLanes)));
using I8xD = I8 __attribute__((ext_vector_type(4 * dotLanes)));

/// Every lane rotated, by less than 32.
LLAMAC_INLINE U32xD rotatedRight(U32xD v, U32 by) {
#if defined(__AVX512BW__)
  using Vendor = int __attribute__((vector_size(64)));
  return (U32xD)__builtin_ia32_prorvd512((Vendor)v, (Vendor)U32xD(by));
#else
  return v >> by | v << (-by & 31);
#endif
}

/// The bits of `a` that `mask` has in every byte, and the others of `b`.
LLAMAC_INLINE U8xD mergedBits(U8xD a, U8xD b, U8 mask) {
#if defined(__AVX512BW__)
  // Spelled out, the compiler takes what b is made of apart.
  using Vendor = int __attribute__((vector_size(64)));
  return (U8xD)__builtin_ia32_pternlogd512_mask(
      (Vendor)a, (Vendor)b, (Vendor)U8xD(mask), /*c ? a : b*/ 0xe4, -1);
#else
  return (a & mask) | (b & U8(~mask));
#endif
}

/// `lanes` half floats at any address.
template <int lanes> LLAMAC_INLINE auto loadF16(const U8 *from) {
  if constexpr (lanes == 16) {
    return fromF16(load<U16x16>(from));
  } else {
    using Halves = _Float16 __attribute__((ext_vector_type(lanes)));
    using Floats = float __attribute__((ext_vector_type(lanes)));
    return __builtin_convertvector(load<Halves>(from), Floats);
  }
}

/// values[q] + `plus` in every byte, of which the low four bits are q and the
/// others zero.
template <const I8 *values, int plus = 0, class Vector>
LLAMAC_INLINE Vector lookedUp(Vector q) {
#if defined(__AVX512BW__)
  constexpr int width = 64;
#elif defined(__AVX2__)
  constexpr int width = 32;
#else
  constexpr int width = 16;
#endif
  using Vendor = char __attribute__((vector_size(width)));
  struct Parts {
    Vendor of[sizeof(Vector) / width];
  };
  auto parts = bits<Parts>(q);
#if defined(__SSSE3__)
  alignas(width) constexpr auto table = [] {
    struct {
      I8 of[width];
    } repeated;
    for (int i = 0; i < width; ++i)
      repeated.of[i] = I8(values[i % 16] + plus);
    return repeated;
  }();
#endif
  for (Vendor &part : parts.of)
#if defined(__AVX512BW__)
    part = __builtin_ia32_pshufb512(bits<Vendor>(table), part);
#elif defined(__AVX2__)
    part = __builtin_ia32_pshufb256(bits<Vendor>(table), part);
#elif defined(__SSSE3__)
    part = __builtin_ia32_pshufb128(bits<Vendor>(table), part);
#else
    for (int i = 0; i < width; ++i)
      part[i] = char(values[int(part[i])] + plus);
#endif
  return bits<Vector>(parts);
}

#if defined(__AVX512VNNI__)
constexpr bool hasVnni = true;
#else
constexpr bool hasVnni = false;
#endif

/// Rows over which products in 8-bit integers are unrolled, as tileRows.
constexpr int dotRows = hasVnni ? 4 : 1;

/// Panels over which one row's products in 8-bit integers are unrolled: each is
/// read by a stream of its own.
#if defined(__AVX512BW__)
constexpr int dotPanels = 4;
#else
constexpr int dotPanels = 2;
#endif

// DotUnsigned and DotI8 sum up to 32 products of weights and activations in
// each lane, from what start() sets. add(w, x) takes four k: w has them in each
// lane, x repeats the same four i8 activations. The weights are
//   DotUnsigned<most>   u8 up to `most`, 127 at most
//   DotI8               8 bits: offset by 128, so unsigned, where hasVnni; else
//                       signed
// DotUnsigned::materialize() computes what was added so far. LLVM keeps loads
// and prefetches in order but delays arithmetic, which spills its operands
// where registers are few.

/// Four activations in every lane.
LLAMAC_INLINE I32xD repeat4(const I8 *x) { return load<int>(x); }

#if defined(__AVX512VNNI__)

using VendorI32 = int __attribute__((vector_size(64)));

struct DotBytes {
  VendorI32 sum;

  LLAMAC_INLINE void start(int value) { sum = (VendorI32)I32xD(value); }
  LLAMAC_INLINE void add(U8xD w, I32xD x) {
    sum = __builtin_ia32_vpdpbusd512(sum, (VendorI32)w, (VendorI32)x);
  }
  LLAMAC_INLINE void materialize() const {}
  LLAMAC_INLINE I32xD total() const { return (I32xD)sum; }
};

using DotI8 = DotBytes;
template <int most> using DotUnsigned = DotBytes;

#elif defined(__AVX2__)

using VendorI8 = char __attribute__((vector_size(32)));
using VendorI16 = short __attribute__((vector_size(32)));

/// u8 times i8, neighbours added in 16 bits.
LLAMAC_INLINE VendorI16 multiplyPairs(U8xD w, I8xD x) {
  return (VendorI16)__builtin_ia32_pmaddubsw256((VendorI8)w, (VendorI8)x);
}

LLAMAC_INLINE I32xD sumPairs(VendorI16 pairs) {
  auto ones = VendorI16{} + 1;
  return (I32xD)__builtin_ia32_pmaddwd256(pairs, ones);
}

/// x with the signs of w; unspecified where w is 0.
LLAMAC_INLINE I8xD withSigns(I8xD x, I8xD w) {
  return (I8xD)__builtin_ia32_psignb256((VendorI8)x, (VendorI8)w);
}

// A pair of products is at most 2 x most x 127, and as many are added in 16
// bits as stay there; `held` is a constant in unrolled loops.
template <int most> struct DotUnsigned {
  static constexpr int capacity = 32767 / (2 * most * 127);
  static_assert(capacity >= 1);

  int first;
  I32xD sum;
  VendorI16 pairs;
  int held;

  LLAMAC_INLINE void start(int value) {
    first = value;
    sum = 0;
    pairs = VendorI16{};
    held = 0;
  }
  LLAMAC_INLINE void add(U8xD w, I32xD x) {
    if (held == capacity) {
      sum += sumPairs(pairs);
      pairs = VendorI16{};
      held = 0;
    }
    pairs += multiplyPairs(w, (I8xD)x);
    ++held;
  }
  LLAMAC_INLINE void materialize() { asm volatile("" : "+x"(pairs)); }
  LLAMAC_INLINE I32xD total() const { return sum + sumPairs(pairs) + first; }
};

// |w| is the unsigned side and x takes the sign of w: 2 x 128 x 127 fits.
struct DotI8 {
  I32xD sum;

  LLAMAC_INLINE void start(int value) { sum = value; }
  LLAMAC_INLINE void add(U8xD w, I32xD x) {
    auto weight = (I8xD)w;
    auto magnitude = (U8xD)(weight < 0 ? -weight : weight);
    sum += sumPairs(multiplyPairs(magnitude, withSigns((I8xD)x, weight)));
  }
  LLAMAC_INLINE I32xD total() const { return sum; }
};

#else

struct DotI8 {
  I32xD sum;

  LLAMAC_INLINE void start(int value) { sum = value; }
  LLAMAC_INLINE void add(U8xD w, I32xD x) {
    for (int j = 0; j < 4; ++j)
      sum += (bits<I32xD>(w) << (24 - 8 * j) >> 24) * (x << (24 - 8 * j) >> 24);
  }
  LLAMAC_INLINE void materialize() const {}
  LLAMAC_INLINE I32xD total() const { return sum; }
};

template <int most> using DotUnsigned = DotI8;

#endif

/// sum + the products of neighbours: to lane i goes w[2i] x[2i] +
/// w[2i + 1] x[2i + 1].
LLAMAC_INLINE I32x16 addPairs(I32x16 sum, I16x32 w, I16x32 x) {
#if defined(__AVX512VNNI__)
  using Vendor = int __attribute__((vector_size(64)));
  return (I32x16)__builtin_ia32_vpdpwssd512((Vendor)sum, (Vendor)w, (Vendor)x);
#elif defined(__SSE2__)
#if defined(__AVX2__)
  using Vendor = I16 __attribute__((vector_size(32)));
  auto multiply = [](Vendor a, Vendor b) {
    return (Vendor)__builtin_ia32_pmaddwd256(a, b);
  };
#else
  using Vendor = I16 __attribute__((vector_size(16)));
  auto multiply = [](Vendor a, Vendor b) {
    return (Vendor)__builtin_ia32_pmaddwd128(a, b);
  };
#endif
  struct Parts {
    Vendor of[sizeof(w) / sizeof(Vendor)];
  };
  Parts a = bits<Parts>(w);
  const Parts b = bits<Parts>(x);
  for (unsigned long i = 0; i < sizeof(w) / sizeof(Vendor); ++i)
    a.of[i] = multiply(a.of[i], b.of[i]);
  return sum + bits<I32x16>(a);
#else
  // The lower and the upper half of each 32 bits.
  const auto a = bits<I32x16>(w), b = bits<I32x16>(x);
  return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_SIMD_H
