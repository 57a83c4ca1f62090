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
//   in blocks of 32 (kernels/int8.h), but for --exact. The step of a block is
//   its range over 127, the mean square of the error a twelfth of the step's
//   square, and the range's square at most 32 times the block's mean square: a
//   share of 32 / (12 * 127^2) = 1.7e-4 of it in the worst case. Products whose
//   terms cancel more than random ones do enlarge the share; hence three times
//   that.
//
//   The KV cache rounds to fp16 or bf16: an element is at most 2^-11 or 2^-8
//   of itself off, so their squares are that of the mean squares. The check
//   gives attention keys and values that are rounded already. Q8_0 rounds a
//   block of 16 to steps of its range over 127, which by the count above is at
//   most 16 / (12 * 127^2) = 8.3e-5.
//
//   Attention over Q8_0 has queries in 16 bits: for 128 elements a share of
//   128 / (12 * 32767^2) = 1e-8 of a score's square, and an error in a score
//   is one in its exponential; the factor 64 is for scores up to 8.
//
// fp32 itself: a sum of n products, added one after the other, is off by
// about sqrt(n) roundings of 2^-25, a share of n * 2^-50 in squares, or 1e-11
// for the longest rows of a Llama (28672). Polynomials for exp are exact to a
// few roundings. 1e-9 leaves room for sums that cancel, and is 1e5 times less
// than one missing element among 1e4.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuTarget.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/formats/FloatBits.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace llamac {

static constexpr double fp32Tolerance = 1e-9;
static constexpr double int8Tolerance = 5e-4;
static constexpr double int16QueryTolerance = 64 * 1e-8;

/// Whether `op` multiplies its rows by weights in 8-bit integers.
static bool roundsActivations(Operation *op, bool exact) {
  if (isa<kernel::EmbedOp>(op))
    return false; // Looks rows up.
  return llvm::any_of(op->getOperandTypes(), [exact](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    const auto quant =
        tensor ? dyn_cast<llama::QuantType>(tensor.getElementType()) : nullptr;
    return quant && cpu::usesInt8(panelFormat(quant.getFormat()), exact);
  });
}

double CpuTarget::cacheTolerance() const {
  switch (targetOptions.kvFormat) {
  case cpu::KvFormat::F32:
    return 0;
  case cpu::KvFormat::F16:
    return 0x1p-22;
  case cpu::KvFormat::BF16:
    return 0x1p-16;
  case cpu::KvFormat::Q8_0:
    return 1e-4;
  }
  llvm_unreachable("no other format");
}

double CpuTarget::tolerance(Operation *op, unsigned result) const {
  const double products = roundsActivations(op, targetOptions.exact)
                              ? int8Tolerance
                              : fp32Tolerance;
  if (isa<llama::KVType>(op->getResult(result).getType()))
    return products + cacheTolerance();
  return isa<kernel::AttentionOp, kernel::AttentionMergeOp>(op) &&
                 targetOptions.kvFormat == cpu::KvFormat::Q8_0
             ? int16QueryTolerance
             : products;
}

namespace {

/// Elements of one token's key or value that are stored together: one, or a
/// block of Q8_0.
struct CacheRun {
  int64_t first; ///< Index into [heads * size].
  int64_t count;
  int64_t at;     ///< Byte of the first element in the page.
  int64_t stride; ///< Bytes to each pair of elements behind it.
  int64_t scale;  ///< Byte of the scale.
};

} // namespace

/// Calls `visit(run, isKey)` for the key and the value of a token, by the
/// layout that KvConfig describes.
static void
forEachRun(const cpu::KvConfig &kv, int64_t token,
           llvm::function_ref<void(const CacheRun &run, bool isKey)> visit) {
  const bool isQ8 = kv.format == cpu::KvFormat::Q8_0;
  const int64_t bytes = cpu::kvElementBytes(kv.format);
  const int64_t count = isQ8 ? cpu::kvBlock : 1;
  for (int64_t head = 0; head < kv.kvHeads; ++head)
    for (int64_t d = 0; d < kv.headSize; d += count) {
      const int64_t keys = head * cpu::kvHeadBytes(kv);
      const int64_t values = keys + cpu::kvKeyBytes(kv);
      const int64_t first = head * kv.headSize + d;
      const int64_t scale =
          kv.pageTokens * kv.headSize + (d / count * kv.pageTokens + token) * 2;
      // In Q8_0 a token has two consecutive elements, else one.
      const int64_t key =
          (token / 16 * kv.headSize + d) * 16 + token % 16 * (isQ8 ? 2 : 1);
      const int64_t value = token * cpu::paddedHead(kv.headSize) + d;
      visit({first, count, keys + key * bytes, 32, keys + scale}, true);
      visit({first, count, values + value * bytes, 2, values + scale}, false);
    }
}

static int64_t codeAt(const CacheRun &run, int64_t i) {
  return run.at + i / 2 * run.stride + i % 2;
}

static void readBlock(const CacheRun &run, const uint8_t *page, float *row) {
  uint16_t scale = 0;
  std::memcpy(&scale, page + run.scale, sizeof scale);
  for (int64_t i = 0; i < run.count; ++i)
    row[run.first + i] =
        bf16ToF32(scale) *
        static_cast<float>(static_cast<int8_t>(page[codeAt(run, i)]));
}

/// Rounds like toKvBlock() of kernels/kvcache.h.
static void writeBlock(const CacheRun &run, const float *row, uint8_t *page) {
  float largest = 0;
  for (int64_t i = 0; i < run.count; ++i) {
    const float magnitude = std::abs(row[run.first + i]);
    if (std::isnan(magnitude) || magnitude > largest)
      largest = magnitude;
  }
  uint16_t scale = f32ToBf16(largest / 127);
  const float widened = bf16ToF32(scale);
  if (widened < 0x1p-126F)
    scale = 0;
  std::memcpy(page + run.scale, &scale, sizeof scale);
  const bool isNumber = scale != 0 && std::isfinite(widened);
  for (int64_t i = 0; i < run.count; ++i)
    page[codeAt(run, i)] = static_cast<uint8_t>(
        isNumber ? std::lrint(row[run.first + i] / widened) : 0);
}

void CpuTarget::readKv(llama::KVType kv, const uint8_t *page, int64_t token,
                       float *key, float *value) const {
  const cpu::KvConfig config = kvConfig(kv, targetOptions);
  forEachRun(config, token, [&](const CacheRun &run, bool isKey) {
    float *row = isKey ? key : value;
    if (config.format == cpu::KvFormat::Q8_0)
      readBlock(run, page, row);
    else
      dequantizeRow(dataTypeOf(config.format), page + run.at, 1,
                    row + run.first);
  });
}

void CpuTarget::writeKv(llama::KVType kv, const float *key, const float *value,
                        int64_t token, uint8_t *page) const {
  const cpu::KvConfig config = kvConfig(kv, targetOptions);
  forEachRun(config, token, [&](const CacheRun &run, bool isKey) {
    const float *row = isKey ? key : value;
    if (config.format == cpu::KvFormat::Q8_0)
      writeBlock(run, row, page);
    else
      quantizeRow(dataTypeOf(config.format), row + run.first, 1, page + run.at);
  });
}

} // namespace llamac
