//===- WeightLayout.h - How packed weights lie in GPU memory ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled by both sides: the runtime, which packs weights, and the emitted
// source. No header may be included.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_WEIGHTLAYOUT_H
#define LLAMAC_RUNTIME_CUDA_WEIGHTLAYOUT_H

/// Functions of both sides say so to nvcc; NVRTC takes all as device code.
#ifdef __CUDACC__
#define LLAMAC_CONSTEXPR __host__ __device__ constexpr
#else
#define LLAMAC_CONSTEXPR constexpr
#endif

namespace llamac::cuda {

LLAMAC_CONSTEXPR long roundUp(long value, long unit) {
  return (value + unit - 1) / unit * unit;
}

/// Formats of a weight W [outputs][depth] on the device; a matrix in any other
/// format is uploaded as BF16.
///
/// Each is a plane of values, rows one after another, so that any 16 bytes at a
/// multiple of 16 are consecutive elements of one row; then, for the block
/// formats, a plane of scales [outputs][depth / 32] at a multiple of 256:
///
///   F16   u16 [8]    8 elements in 16 bytes
///   BF16  u16 [8]    8 elements
///   Q8_0  u8 [16]    16 elements, each q + 128; scales f16 d
///   Q4_0  u32 [4]    32 elements, 4 bits each, the first lowest;
///                    scales f16 d
///   Q4_1  u32 [4]    as Q4_0; scales f16 {d, m}
///   MXFP8 u8 [16]    16 elements in E4M3; scales E8M0
///
/// q, d and m are GGUF's: w = d * q for Q8_0, d * (q - 8) for Q4_0 and
/// d * q + m for Q4_1. MXFP8 is that of runtime/io/Mxfp8.h, but that no element
/// is NaN: a block with a NaN has the scale NaN.
enum class WeightFormat : unsigned char { F16, BF16, Q8_0, Q4_0, Q4_1, MXFP8 };

LLAMAC_CONSTEXPR bool hasScales(WeightFormat format) {
  return format != WeightFormat::F16 && format != WeightFormat::BF16;
}

/// Elements of 16 bytes of values.
LLAMAC_CONSTEXPR int chunkElements(WeightFormat format) {
  return format == WeightFormat::Q8_0 || format == WeightFormat::MXFP8 ? 16
         : hasScales(format)                                           ? 32
                                                                       : 8;
}

/// Elements that share a scale.
constexpr int scaleBlock = 32;

/// Bytes of the scale of one block.
LLAMAC_CONSTEXPR int scaleBytes(WeightFormat format) {
  return !hasScales(format)              ? 0
         : format == WeightFormat::Q4_1  ? 4
         : format == WeightFormat::MXFP8 ? 1
                                         : 2;
}

/// Whether rows of `depth` elements can be packed.
LLAMAC_CONSTEXPR bool isPackableDepth(WeightFormat format, long depth) {
  return depth > 0 && depth % (hasScales(format) ? scaleBlock : 8) == 0;
}

LLAMAC_CONSTEXPR long valueRowBytes(WeightFormat format, long depth) {
  return depth / chunkElements(format) * 16;
}

LLAMAC_CONSTEXPR long scaleRowBytes(WeightFormat format, long depth) {
  return depth / scaleBlock * scaleBytes(format);
}

/// Where the plane of scales begins.
LLAMAC_CONSTEXPR long scalesOffset(WeightFormat format, long outputs,
                                   long depth) {
  return roundUp(outputs * valueRowBytes(format, depth), 256);
}

LLAMAC_CONSTEXPR long packedWeightBytes(WeightFormat format, long outputs,
                                        long depth) {
  return scalesOffset(format, outputs, depth) +
         roundUp(outputs * scaleRowBytes(format, depth), 256);
}

} // namespace llamac::cuda

#endif // LLAMAC_RUNTIME_CUDA_WEIGHTLAYOUT_H
