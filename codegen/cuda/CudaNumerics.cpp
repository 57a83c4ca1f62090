//===- CudaNumerics.cpp - How exact the cuda kernels are ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums are in fp32 (codegen/cpu/CpuNumerics.cpp says what that is worth). What
// makes errors larger is rounding what is multiplied:
//
//   gemm     the tensor cores take bf16: an element of the input is at most
//            2^-8 of itself off, and so is a weight that is no bf16
//   gemv     fp32 inputs and weights as they are stored, but for those in fp32,
//            which are rounded to bf16
//   attend   queries and weights of keys are rounded as the cache rounds, to
//            fp16 or bf16, and an error in a score is one in its exponential;
//            blocks of the cache are widened to fp16
//
// Blocks of the cache: of 16 integers the error of one is at most half a step,
// which is the largest magnitude over 127, a share of 16 / (12 * 127^2) =
// 8.3e-5; an E4M3 is at most 2^-4 of itself off, and a twelfth of the square of
// an eighth is 1.3e-3 in the worst case.
//
// A rounding to a relative error of at most e is a share of less than e^2 in
// squares. Products whose terms cancel more than random ones do enlarge the
// share, and so do large scores; hence the factors.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Configs.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/formats/FloatBits.h"
#include "runtime/formats/Fp8.h"
#include "runtime/packing/TilePacking.h"

#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/bit.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;

namespace llamac {

static constexpr double fp32Tolerance = 1e-9;
static constexpr double fp16Rounding = 0x1p-22;
static constexpr double bf16Rounding = 0x1p-16;
static constexpr double cancellation = 2;
static constexpr double scores = 64;

/// The error of tensor cores' operands for a cache of `format`.
static double operandRounding(cuda::KvFormat format) {
  return format == cuda::KvFormat::BF16 ? bf16Rounding : fp16Rounding;
}

/// Whether a weight of `op` becomes another number on its way to the kernel.
static bool roundsWeights(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || tensor.getRank() != 2)
      return false;
    return cuda::isRounded(llama::dataTypeOf(tensor.getElementType()));
  });
}

/// The error in the result of `op` that rounding its operands causes.
static double productTolerance(Operation *op) {
  const auto config = op->getAttrOfType<kernel::MatmulConfigAttr>("config");
  const bool rounds =
      (config && config.getFamily() != kernel::MatmulFamily::Gemv) ||
      roundsWeights(op);
  return rounds ? cancellation * bf16Rounding : fp32Tolerance;
}

/// The error that rounding to `type` adds, where a number that is a little off
/// rounds to the other side.
static double resultTolerance(Type type) {
  return getElementTypeOrSelf(type).isBF16() ? bf16Rounding : 0;
}

double CudaTarget::cacheTolerance() const {
  switch (targetOptions.kvFormat) {
  case cuda::KvFormat::F16:
    return fp16Rounding;
  case cuda::KvFormat::BF16:
    return bf16Rounding;
  case cuda::KvFormat::Q8_0:
    return 1e-4;
  case cuda::KvFormat::FP8:
    return 1.5e-3;
  }
  llvm_unreachable("no other format");
}

double CudaTarget::tolerance(Operation *op, unsigned result) const {
  const double cache = cacheTolerance();
  const Type type = op->getResult(result).getType();
  // A step has attention, and gives a cache.
  if (isa<kernel::AttentionOp, kernel::AttentionMergeOp, kernel::ResidentOp>(
          op))
    return scores * operandRounding(targetOptions.kvFormat) +
           (isa<llama::KVType>(type) ? cache : resultTolerance(type));
  return productTolerance(op) +
         (isa<llama::KVType>(type) ? cache : resultTolerance(type));
}

/// Calls visit(row, at, scales) for the key and the value of each head of a
/// token, part of `key` and `value`: where their codes and their scales are, in
/// bytes of a page; see codegen/cuda/kernels/kvcache.cuh.
template <typename Row>
static void forEachHead(
    const cuda::KvConfig &kv, int64_t token, Row *key, Row *value,
    llvm::function_ref<void(Row *row, int64_t at, int64_t scales)> visit) {
  for (int64_t head = 0; head < kv.kvHeads; ++head)
    for (int plane = 0; plane < 2; ++plane) {
      const int64_t first = (head * 2 + plane) * kvPlaneBytes(kv);
      visit((plane == 0 ? key : value) + head * kv.headSize,
            first + token * kvRowBytes(kv),
            first + kvScalesOffset(kv) + token * kvScaleWords(kv) * 4);
    }
}

/// The elements that share a scale, and the bytes of one.
static int64_t blockOf(const cuda::KvConfig &kv) {
  return kv.format == cuda::KvFormat::FP8 ? kv.headSize : cuda::kvBlock;
}
static int64_t scaleBytes(cuda::KvFormat format) {
  return format == cuda::KvFormat::FP8 ? 4 : 2;
}

static float elementOf(cuda::KvFormat format, uint8_t code) {
  return format == cuda::KvFormat::FP8
             ? e4m3ToF32(code)
             : static_cast<float>(static_cast<int>(code) - 128);
}
static uint8_t codeOf(cuda::KvFormat format, float element) {
  return format == cuda::KvFormat::FP8
             ? f32ToE4m3(element)
             : static_cast<uint8_t>(std::lrint(element) + 128);
}

/// The scale of a format at `at`.
static float scaleAt(cuda::KvFormat format, const uint8_t *at) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, scaleBytes(format));
  return format == cuda::KvFormat::FP8 ? llvm::bit_cast<float>(bits)
                                       : bf16ToF32(static_cast<uint16_t>(bits));
}

/// Rounds a block like HeadBlocks of codegen/cuda/kernels/heads.cuh, to its
/// codes and its scale.
static void roundBlock(cuda::KvFormat format, const float *row, int64_t count,
                       uint8_t *codes, uint8_t *scaleTo) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float magnitude = std::abs(row[i]);
    if (std::isnan(magnitude) || magnitude > largest)
      largest = magnitude;
  }
  const bool isFp8 = format == cuda::KvFormat::FP8;
  float scale = isFp8 ? largest / 448 : bf16ToF32(f32ToBf16(largest / 127));
  if (scale < std::numeric_limits<float>::min())
    scale = 0;
  const auto bits = llvm::bit_cast<uint32_t>(scale) >> (isFp8 ? 0 : 16);
  std::memcpy(scaleTo, &bits, scaleBytes(format));
  const bool isNumber = scale != 0 && std::isfinite(scale);
  for (int64_t i = 0; i < count; ++i)
    codes[i] = codeOf(format, isNumber ? row[i] / scale : 0);
}

void CudaTarget::readKv(llama::KVType kv, const uint8_t *page, int64_t token,
                        float *key, float *value) const {
  const cuda::KvConfig config = kvConfig(kv, targetOptions);
  forEachHead<float>(
      config, token, key, value, [&](float *row, int64_t at, int64_t scales) {
        if (!hasBlocks(config.format))
          return dequantizeRow(dataTypeOf(config.format), page + at,
                               config.headSize, row);
        const int64_t bytes = scaleBytes(config.format);
        for (int64_t i = 0; i < config.headSize; ++i)
          row[i] = scaleAt(config.format,
                           page + scales + i / blockOf(config) * bytes) *
                   elementOf(config.format, page[at + i]);
      });
}

void CudaTarget::writeKv(llama::KVType kv, const float *key, const float *value,
                         int64_t token, uint8_t *page) const {
  const cuda::KvConfig config = kvConfig(kv, targetOptions);
  forEachHead<const float>(
      config, token, key, value,
      [&](const float *row, int64_t at, int64_t scales) {
        if (!hasBlocks(config.format))
          return quantizeRow(dataTypeOf(config.format), row, config.headSize,
                             page + at);
        const int64_t count = blockOf(config);
        for (int64_t i = 0; i < config.headSize; i += count)
          roundBlock(config.format, row + i, count, page + at + i,
                     page + scales + i / count * scaleBytes(config.format));
      });
}

} // namespace llamac
