//===- shim.h - CUDA C++ as Clang compiles it for the host ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Read before every kernel that is compiled for the simulator: CUDA's keywords,
// its built-in variables and the functions of its mathematics library that
// device code uses. A shared object has one unit more, which defines
// LLAMAC_SIM_SUPPORT: there are the table of calls, which the loader fills in,
// and the hooks of -fsanitize=thread, which hand each access to the simulator.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_SHIM_H
#define LLAMAC_SIMULATOR_SHIM_H

#define LLAMAC_SIM 1

/// Whether accesses to memory are told to the simulator.
#if __has_feature(thread_sanitizer)
#define LLAMAC_SIM_CHECKED 1
#endif

#include "llamac/sim/SimCalls.h"

#define __global__ __attribute__((visibility("default"), used))
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

/// Before a call that must not be merged with another: which of two barriers a
/// thread is at is an error's to know.
#define LLAMAC_SIM_IN_PLACE [[clang::nomerge]]

// Hostile rounding: which of two neighbours an inexact result becomes depends
// on its operands and on the line that asks for it. Two paths of one result
// then differ unless they are the same text on the same operands, as they may
// on a GPU, whose approximations and tensor cores round as they like. What is
// exact stays so: a weight of 0, a factor of 1, a power of two.
//
// LLAMAC_SIM_SITE is the parameter of a wrapper that rounds, LLAMAC_SIM_LINE
// its value; LLAMAC_SIM_ROUNDED is `value`, an approximation of `exact`.
#ifdef LLAMAC_SIM_HOSTILE
#define LLAMAC_SIM_SITE , int site = __builtin_LINE()
#define LLAMAC_SIM_LINE site
#define LLAMAC_SIM_ROUNDED(value, exact, ...)                                  \
  llamacSimRounded(value, exact, {__VA_ARGS__}, site)
template <unsigned long count>
static inline float llamacSimRounded(float value, double exact,
                                     const float (&operands)[count], int site) {
  const double error = double(value) - exact;
  if (!(error < 0 || error > 0)) // Exact, infinite or a NaN.
    return value;
  unsigned hash = static_cast<unsigned>(site) * 0x9e3779b1u;
  for (const float operand : operands)
    hash = (hash ^ __builtin_bit_cast(unsigned, operand)) * 0x85ebca6bu;
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  if ((bits & 0x7f800000u) == 0x7f800000u || bits << 1 == 0)
    return value; // Its neighbour would be of another kind.
  return __builtin_bit_cast(float, bits ^ (hash >> 31));
}
#else
#define LLAMAC_SIM_SITE
#define LLAMAC_SIM_LINE 0
#define LLAMAC_SIM_ROUNDED(value, ...) (value)
#endif

extern "C" const llamac::SimCalls *llamacSim;

/// An index or size of the launch. It never changes for a thread, so calls may
/// be merged.
extern "C" __attribute__((const)) unsigned llamacSimCoordinate(int which);

struct LlamacSimCoordinates {
  int first;
  unsigned getX() const { return llamacSimCoordinate(first); }
  unsigned getY() const { return llamacSimCoordinate(first + 1); }
  unsigned getZ() const { return llamacSimCoordinate(first + 2); }
  __declspec(property(get = getX)) unsigned x;
  __declspec(property(get = getY)) unsigned y;
  __declspec(property(get = getZ)) unsigned z;
};
static constexpr LlamacSimCoordinates threadIdx{llamac::SimCoordinate::Thread};
static constexpr LlamacSimCoordinates blockIdx{llamac::SimCoordinate::Block};
static constexpr LlamacSimCoordinates blockDim{
    llamac::SimCoordinate::BlockSize};
static constexpr LlamacSimCoordinates gridDim{llamac::SimCoordinate::GridSize};

extern "C" {
float ceilf(float);
float cosf(float);
float exp2f(float);
float expf(float);
float fabsf(float);
float floorf(float);
float fmaf(float, float, float);
float fmaxf(float, float);
float fminf(float, float);
float log2f(float);
float logf(float);
float powf(float, float);
float rintf(float);
float roundf(float);
float sinf(float);
float sqrtf(float);
float tanhf(float);
float truncf(float);
}

// glibc declares functions of these names, so they are macros.
#define __expf expf
#define __logf logf
#define __fdividef(a, b) ((a) / (b))
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float __uint_as_float(unsigned x) {
  return __builtin_bit_cast(float, x);
}
static inline unsigned __float_as_uint(float x) {
  return __builtin_bit_cast(unsigned, x);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }

// A variable of a function is the block's own: the address of a byte that each
// instantiation of the function has once tells the simulator which.
#define LLAMAC_SHARED(name, ...)                                               \
  static char name##Key;                                                       \
  auto &name =                                                                 \
      *static_cast<llamac::Identity<__VA_ARGS__> *>(llamacSim->sharedStatic(   \
          &name##Key, #name, sizeof(llamac::Identity<__VA_ARGS__>),            \
          alignof(llamac::Identity<__VA_ARGS__>)))
#define LLAMAC_SHARED_DYNAMIC(name)                                            \
  auto *name = static_cast<unsigned char *>(llamacSim->sharedDynamic())

// A parameter that is a structure comes as its address.
#define LLAMAC_TENSOR_MAP(name) const llamac::TensorMap &name
#define LLAMAC_TABLE(type, name) const type &name

#ifdef LLAMAC_SIM_SUPPORT

#define LLAMAC_UNCHECKED                                                       \
  extern "C" __attribute__((visibility("default"), used,                       \
                            disable_sanitizer_instrumentation))

LLAMAC_UNCHECKED const llamac::SimCalls *llamacSim = nullptr;

/// A loader with another table knows the object by it.
LLAMAC_UNCHECKED const unsigned long llamacSimBytes = sizeof(llamac::SimCalls);

LLAMAC_UNCHECKED unsigned llamacSimCoordinate(int which) {
  return llamacSim->coordinate(which);
}

#define LLAMAC_HOOKS(name, size)                                               \
  LLAMAC_UNCHECKED void __tsan_##name##read##size(void *address) {             \
    llamacSim->access(address, size, false, __builtin_return_address(0));      \
  }                                                                            \
  LLAMAC_UNCHECKED void __tsan_##name##write##size(void *address) {            \
    llamacSim->access(address, size, true, __builtin_return_address(0));       \
  }
LLAMAC_HOOKS(, 1)
LLAMAC_HOOKS(, 2)
LLAMAC_HOOKS(, 4)
LLAMAC_HOOKS(, 8)
LLAMAC_HOOKS(, 16)
LLAMAC_HOOKS(unaligned_, 2)
LLAMAC_HOOKS(unaligned_, 4)
LLAMAC_HOOKS(unaligned_, 8)
LLAMAC_HOOKS(unaligned_, 16)

LLAMAC_UNCHECKED void __tsan_init() {}

LLAMAC_UNCHECKED void *__tsan_memcpy(void *to, const void *from,
                                     unsigned long size) {
  llamacSim->access(from, size, false, __builtin_return_address(0));
  llamacSim->access(to, size, true, __builtin_return_address(0));
  return __builtin_memcpy(to, from, size);
}
LLAMAC_UNCHECKED void *__tsan_memmove(void *to, const void *from,
                                      unsigned long size) {
  llamacSim->access(from, size, false, __builtin_return_address(0));
  llamacSim->access(to, size, true, __builtin_return_address(0));
  return __builtin_memmove(to, from, size);
}
LLAMAC_UNCHECKED void *__tsan_memset(void *to, int value, unsigned long size) {
  llamacSim->access(to, size, true, __builtin_return_address(0));
  return __builtin_memset(to, value, size);
}

#endif // LLAMAC_SIM_SUPPORT

#endif // LLAMAC_SIMULATOR_SHIM_H
