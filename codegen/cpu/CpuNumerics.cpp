//===- CpuNumerics.cpp - How exact the cpu target's kernels are -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every kernel computes in fp32. What makes errors larger than fp32's is
// either of two:
//
//   Products with weights in GGUF's block formats round activations to 8 bits
//   in blocks of 32 (kernels/int8.h). The step of a block is its range over
//   127, the mean square of the error a twelfth of the step's square, and the
//   range's square at most 32 times the block's mean square: a share of
//   32 / (12 * 127^2) = 1.7e-4 of it in the worst case. Products whose terms
//   cancel more than random ones do enlarge the share; hence three times that.
//
//   The KV cache rounds to fp16 or bf16: an element is at most 2^-11 or 2^-8
//   of itself off, so their squares are that of the mean squares. The check
//   gives attention keys and values that are rounded already.
//
// fp32 itself: a sum of n products, added one after the other, is off by
// about sqrt(n) roundings of 2^-25, a share of n * 2^-50 in squares, or 1e-11
// for the longest rows of a Llama (28672). Polynomials for exp are exact to a
// few roundings. 1e-9 leaves room for sums that cancel, and is 1e5 times less
// than one missing element among 1e4.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuNumerics.h"

#include "runtime/io/FloatBits.h"

#include <algorithm>
#include <cstring>
#include <functional>

using namespace mlir;

namespace llamac {

static constexpr double fp32Tolerance = 1e-9;
static constexpr double int8Tolerance = 5e-4;

/// Whether `op` multiplies its rows by weights in 8-bit integers.
static bool roundsActivations(Operation *op) {
  if (isa<kernel::EmbedOp>(op))
    return false; // Looks rows up.
  return llvm::any_of(op->getOperandTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    const auto quant =
        tensor ? dyn_cast<llama::QuantType>(tensor.getElementType()) : nullptr;
    return quant && quant.getFormat() != llama::BlockFormat::MXFP8;
  });
}

static double cacheTolerance(cpu::KvFormat format) {
  switch (format) {
  case cpu::KvFormat::F32:
    return 0;
  case cpu::KvFormat::F16:
    return 0x1p-22;
  case cpu::KvFormat::BF16:
    return 0x1p-16;
  }
  llvm_unreachable("no other format");
}

double CpuNumerics::tolerance(Operation *op, unsigned result) const {
  const double products = roundsActivations(op) ? int8Tolerance : fp32Tolerance;
  return isa<llama::KVType>(op->getResult(result).getType())
             ? products + cacheTolerance(targetOptions.kvFormat)
             : products;
}

/// Calls `visit(index, key, value)` for element `index` of [heads * size] with
/// where a token's key and value lie in a page; KvConfig has the layout.
static void forEachElement(const cpu::KvConfig &kv, int64_t token,
                           const std::function<void(int64_t index, int64_t key,
                                                    int64_t value)> &visit) {
  const int64_t bytes = cpu::kvElementBytes(kv.format);
  for (int64_t head = 0; head < kv.kvHeads; ++head)
    for (int64_t d = 0; d < kv.headSize; ++d) {
      const int64_t key = (token / 16 * kv.headSize + d) * 16 + token % 16;
      const int64_t value = kv.pageTokens * kv.headSize +
                            token * cpu::paddedHead(kv.headSize) + d;
      const int64_t base = head * cpu::kvHeadBytes(kv);
      visit(head * kv.headSize + d, base + key * bytes, base + value * bytes);
    }
}

static float loadElement(cpu::KvFormat format, const uint8_t *from) {
  uint16_t half = 0;
  float single = 0;
  switch (format) {
  case cpu::KvFormat::F32:
    std::memcpy(&single, from, sizeof single);
    return single;
  case cpu::KvFormat::F16:
    std::memcpy(&half, from, sizeof half);
    return f16ToF32(half);
  case cpu::KvFormat::BF16:
    std::memcpy(&half, from, sizeof half);
    return bf16ToF32(half);
  }
  llvm_unreachable("no other format");
}

static void storeElement(cpu::KvFormat format, float value, uint8_t *to) {
  if (format == cpu::KvFormat::F32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  const uint16_t half =
      format == cpu::KvFormat::F16 ? f32ToF16(value) : f32ToBf16(value);
  std::memcpy(to, &half, sizeof half);
}

void CpuNumerics::readKv(llama::KVType kv, const uint8_t *page, int64_t token,
                         float *key, float *value) const {
  const cpu::KvConfig config = kvConfig(kv, targetOptions);
  forEachElement(config, token,
                 [&](int64_t index, int64_t keyAt, int64_t valueAt) {
                   key[index] = loadElement(config.format, page + keyAt);
                   value[index] = loadElement(config.format, page + valueAt);
                 });
}

void CpuNumerics::writeKv(llama::KVType kv, const float *key,
                          const float *value, int64_t token,
                          uint8_t *page) const {
  const cpu::KvConfig config = kvConfig(kv, targetOptions);
  forEachElement(config, token,
                 [&](int64_t index, int64_t keyAt, int64_t valueAt) {
                   storeElement(config.format, key[index], page + keyAt);
                   storeElement(config.format, value[index], page + valueAt);
                 });
}

} // namespace llamac
