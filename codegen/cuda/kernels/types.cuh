//===- types.cuh - Element and vector types of device code ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device code includes neither CUDA's headers nor the standard library's: this
// header and ptx.cuh are all it stands on. The same text is compiled for a GPU
// by NVRTC or nvcc, and for the simulator by Clang, which then has read
// simulator/shim.h and sees LLAMAC_SIM.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_TYPES_CUH
#define LLAMAC_CODEGEN_DEVICE_TYPES_CUH

#define LLAMAC_DEVICE __device__ __forceinline__

/// Whether instructions of sm_89 and later, of sm_90 and later, and of sm_90a
/// alone (wgmma, setmaxnreg) may be used; the simulator has them all.
#if defined(LLAMAC_SIM)
#define LLAMAC_HAS_SM89 1
#define LLAMAC_HAS_SM90 1
#define LLAMAC_HAS_SM90A 1
#else
#if defined(__CUDA_ARCH__)
#define LLAMAC_HAS_SM89 (__CUDA_ARCH__ >= 890)
#define LLAMAC_HAS_SM90 (__CUDA_ARCH__ >= 900)
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define LLAMAC_HAS_SM90A 1
#endif
#endif

// The simulator's wrappers whose results are rounded know where they stand.
#ifndef LLAMAC_SIM
#define LLAMAC_SIM_SITE
#endif

namespace llamac {

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long;
using uint64_t = unsigned long;
static_assert(sizeof(int64_t) == 8, "device code is compiled for LP64 hosts");

/// bfloat16 as its bits; ptx.cuh converts.
struct BFloat16 {
  uint16_t bits;
};

/// bfloat16 in rows of a multiple of 16 columns, which lie as the lanes of
/// wgmma's packed operand have them (#kernel.lane_order): columns 4t and 4t + 1
/// of each 16 at 2t, 4t + 2 and 4t + 3 at 2t + 8. An address is that of the
/// column; store2() finds where it lies.
struct LaneBFloat16 {
  uint16_t bits;
};

/// IEEE half precision as its bits; ptx.cuh converts.
struct Half {
  uint16_t bits;
};

/// N elements that are loaded and stored as one; N * sizeof(T) is a power of
/// two, at most 16 for one instruction.
template <typename T, int N> struct alignas(sizeof(T) * N) Vec {
  T values[N];

  LLAMAC_DEVICE constexpr T &operator[](int i) { return values[i]; }
  LLAMAC_DEVICE constexpr const T &operator[](int i) const { return values[i]; }
};

/// The vector of type V at `address`, which its size divides: a GPU stops at
/// one that lies otherwise, and the simulator names it.
template <typename V, typename T> LLAMAC_DEVICE V &vectorAt(T *address) {
#ifdef LLAMAC_SIM_CHECKED
  LLAMAC_SIM_IN_PLACE llamacSim->checkAlignment(address, alignof(V));
#endif
  return *reinterpret_cast<V *>(address);
}

using Words2 = Vec<uint32_t, 2>;

/// 16 bytes as one load sees them: what weights are packed for.
using Words4 = Vec<uint32_t, 4>;

/// `T` itself: lets a macro take any type, arrays and commas included.
template <typename T> struct IdentityOf {
  using Type = T;
};
template <typename T> using Identity = typename IdentityOf<T>::Type;

/// `A` if `isA` holds, else `B`.
template <bool isA, typename A, typename B> struct ChooseOf {
  using Type = A;
};
template <typename A, typename B> struct ChooseOf<false, A, B> {
  using Type = B;
};
template <bool isA, typename A, typename B>
using ChooseType = typename ChooseOf<isA, A, B>::Type;

/// The bits of `from` as a To of the same size.
template <typename To, typename From>
LLAMAC_DEVICE constexpr To bitCast(const From &from) {
  static_assert(sizeof(To) == sizeof(From), "sizes must agree");
  return __builtin_bit_cast(To, from);
}

template <typename T> LLAMAC_DEVICE constexpr T minOf(T a, T b) {
  return b < a ? b : a;
}

template <typename T> LLAMAC_DEVICE constexpr T maxOf(T a, T b) {
  return a < b ? b : a;
}

/// Quotient rounded up, of positive integers.
template <typename T> LLAMAC_DEVICE constexpr T ceilDiv(T a, T b) {
  return (a + b - 1) / b;
}

/// The next stage of a ring, and the parity of its round. Who fills a stage
/// waits for the round before, whose parity is the other.
template <int stages> struct RingPlace {
  int stage = 0;
  uint32_t phase = 0;

  LLAMAC_DEVICE void advance() {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

} // namespace llamac

/// Shared memory comes from these two macros only: the simulator gives each
/// block its own. LLAMAC_SHARED(tile, float[32][33]); declares `tile` inside a
/// function; all calls of that function in a block share it, and its first
/// content is undefined. LLAMAC_SHARED_DYNAMIC(bytes); declares `bytes`, the
/// launch's dynamic shared memory, 1,024-aligned, as unsigned char[].
#ifndef LLAMAC_SIM
#define LLAMAC_SHARED(name, ...) __shared__ llamac::Identity<__VA_ARGS__> name
#define LLAMAC_SHARED_DYNAMIC(name)                                            \
  extern __shared__ __align__(1024) unsigned char name[]
#endif

/// LLAMAC_TABLE(Operands, operands) declares a parameter of a kernel that is a
/// structure of pointers.
#ifndef LLAMAC_SIM
#define LLAMAC_TABLE(type, name) const __grid_constant__ type name
#endif

#endif // LLAMAC_CODEGEN_DEVICE_TYPES_CUH
