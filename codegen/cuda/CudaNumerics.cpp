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
//            fp16 or bf16, and an error in a score is one in its exponential
//
// A rounding to a relative error of at most e is a share of less than e^2 in
// squares. Products whose terms cancel more than random ones do enlarge the
// share, and so do large scores; hence the factors.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Configs.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/packing/TilePacking.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace llamac {

static constexpr double fp32Tolerance = 1e-9;
static constexpr double fp16Rounding = 0x1p-22;
static constexpr double bf16Rounding = 0x1p-16;
static constexpr double cancellation = 2;
static constexpr double scores = 64;

static double roundingOf(cuda::KvFormat format) {
  return format == cuda::KvFormat::F16 ? fp16Rounding : bf16Rounding;
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

double CudaTarget::tolerance(Operation *op, unsigned result) const {
  const double cache = roundingOf(targetOptions.kvFormat);
  const Type type = op->getResult(result).getType();
  // A step has attention, and gives a cache.
  if (isa<kernel::AttentionOp, kernel::AttentionMergeOp, kernel::ResidentOp>(
          op))
    return scores * cache +
           (isa<llama::KVType>(type) ? cache : resultTolerance(type));
  return productTolerance(op) +
         (isa<llama::KVType>(type) ? cache : resultTolerance(type));
}

/// The byte of a page at which token number `token` has its key of `head`; see
/// codegen/cuda/kernels/kvcache.cuh.
static int64_t keyAt(const cuda::KvConfig &kv, int64_t token, int64_t head) {
  return (head * 2 * kvPlaneElements(kv) + token * kv.headSize) * 2;
}

void CudaTarget::readKv(llama::KVType kv, const uint8_t *page, int64_t token,
                        float *key, float *value) const {
  const cuda::KvConfig config = kvConfig(kv, targetOptions);
  const DataType type = dataTypeOf(config.format);
  for (int64_t head = 0; head < config.kvHeads; ++head) {
    const uint8_t *from = page + keyAt(config, token, head);
    const int64_t first = head * config.headSize;
    dequantizeRow(type, from, config.headSize, key + first);
    dequantizeRow(type, from + 2 * kvPlaneElements(config), config.headSize,
                  value + first);
  }
}

void CudaTarget::writeKv(llama::KVType kv, const float *key, const float *value,
                         int64_t token, uint8_t *page) const {
  const cuda::KvConfig config = kvConfig(kv, targetOptions);
  const DataType type = dataTypeOf(config.format);
  for (int64_t head = 0; head < config.kvHeads; ++head) {
    uint8_t *to = page + keyAt(config, token, head);
    const int64_t first = head * config.headSize;
    quantizeRow(type, key + first, config.headSize, to);
    quantizeRow(type, value + first, config.headSize,
                to + 2 * kvPlaneElements(config));
  }
}

} // namespace llamac
