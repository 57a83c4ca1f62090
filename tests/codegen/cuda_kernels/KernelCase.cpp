//===- KernelCase.cpp - Small models on the simulator ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelCase.h"

#include "runtime/formats/FloatBits.h"
#include "runtime/packing/TilePacking.h"
#include "tests/Tier.h"
#include "tests/codegen/cpu_kernels/Oracle.h"

#include <cmath>
#include <cstring>

namespace llamac::cuda {

// Models with every format, head sizes of 8 to 128, also such that are no
// multiple of 16, one kv head and several, a group of one, of more than a
// warp's vectors, and of what divides neither; a depth that is no multiple of a
// slice, and widths that no tile divides; vocabularies of an odd size; one
// with the tiles of large models; for formats of 256 columns, one group and
// more.
static constexpr SmallModel models[] = {
    {"bf16",
     DataType::BF16,
     {WeightFormat::BF16, KvFormat::F16, 64, 4, 2, 16, 96, 130, 4, 320, 64, 4,
      64}},
    {"f16",
     DataType::F16,
     {WeightFormat::F16, KvFormat::BF16, 72, 3, 3, 48, 200, 66, 1, 320, 64, 2,
      128}},
    {"q8_0",
     DataType::Q8_0,
     {WeightFormat::Q8_0, KvFormat::F16, 160, 8, 1, 64, 96, 258, 8, 320, 128, 3,
      64}},
    {"q4_0",
     DataType::Q4_0,
     {WeightFormat::Q4_0, KvFormat::BF16, 96, 9, 3, 32, 352, 34, 2, 320, 64, 16,
      64}},
    {"q4_1",
     DataType::Q4_1,
     {WeightFormat::Q4_1, KvFormat::F16, 128, 20, 1, 128, 64, 100, 1, 320, 64,
      4, 64}},
    {"mxfp8",
     DataType::MXFP8,
     {WeightFormat::MXFP8, KvFormat::F16, 160, 8, 1, 64, 96, 258, 8, 320, 128,
      3, 64}},
    {"odd_bf16",
     DataType::BF16,
     {WeightFormat::BF16, KvFormat::BF16, 48, 2, 1, 24, 72, 131, 4, 320, 64, 4,
      64}},
    {"wide_bf16",
     DataType::BF16,
     {WeightFormat::BF16, KvFormat::BF16, 328, 4, 2, 64, 136, 270, 1, 320, 128,
      4, 64}},
    {"odd_q8_0",
     DataType::Q8_0,
     {WeightFormat::Q8_0, KvFormat::F16, 160, 4, 2, 40, 32, 35, 2, 320, 64, 3,
      64}},
    {"odd_f16",
     DataType::F16,
     {WeightFormat::F16, KvFormat::F16, 104, 1, 1, 104, 56, 37, 1, 320, 16, 2,
      64}},
    {"odd_q4_1",
     DataType::Q4_1,
     {WeightFormat::Q4_1, KvFormat::BF16, 64, 8, 4, 8, 32, 67, 8, 320, 64, 2,
      64}},
    {"q5_0",
     DataType::Q5_0,
     {WeightFormat::Q5_0, KvFormat::BF16, 96, 3, 3, 32, 160, 34, 1, 320, 16, 4,
      64}},
    {"q5_1",
     DataType::Q5_1,
     {WeightFormat::Q5_1, KvFormat::F16, 160, 4, 2, 40, 96, 67, 2, 320, 64, 3,
      64}},
    {"q2_k",
     DataType::Q2_K,
     {WeightFormat::Q2_K, KvFormat::F16, 256, 4, 2, 64, 512, 67, 1, 320, 64, 4,
      64}},
    {"q3_k",
     DataType::Q3_K,
     {WeightFormat::Q3_K, KvFormat::BF16, 256, 8, 1, 32, 256, 34, 2, 320, 64, 2,
      64}},
    {"q4_k",
     DataType::Q4_K,
     {WeightFormat::Q4_K, KvFormat::F16, 256, 4, 2, 64, 512, 130, 2, 320, 32, 4,
      64}},
    {"q5_k",
     DataType::Q5_K,
     {WeightFormat::Q5_K, KvFormat::BF16, 256, 2, 1, 128, 256, 66, 4, 320, 64,
      2, 64}},
    {"q6_k",
     DataType::Q6_K,
     {WeightFormat::Q6_K, KvFormat::F16, 512, 4, 4, 64, 256, 35, 1, 320, 64, 4,
      64}},
    {"iq4_nl",
     DataType::IQ4_NL,
     {WeightFormat::IQ4_NL, KvFormat::F16, 128, 4, 2, 32, 96, 66, 4, 320, 64, 2,
      64}},
    {"iq4_xs",
     DataType::IQ4_XS,
     {WeightFormat::IQ4_XS, KvFormat::BF16, 256, 4, 2, 64, 256, 67, 2, 320, 128,
      3, 64}},
    {"mxfp4",
     DataType::MXFP4,
     {WeightFormat::MXFP4, KvFormat::F16, 96, 4, 1, 24, 224, 100, 2, 320, 64, 4,
      64}},
    {"fp8",
     DataType::FP8,
     {WeightFormat::FP8, KvFormat::F16, 160, 4, 2, 40, 352, 67, 4, 320, 64, 3,
      64}},
};

static constexpr RunMode modes[] = {{"forward", false, false},
                                    {"random", false, true},
                                    {"checked_forward", true, false},
                                    {"checked_random", true, true}};

// The default tier runs each of its models in one mode, and every mode.
std::vector<KernelCase> kernelCases() {
  std::vector<KernelCase> cases;
  for (size_t model = 0; model < std::size(models); ++model)
    for (size_t mode = 0; mode < std::size(modes); ++mode)
      if (isExhaustive() || mode == model % std::size(modes))
        cases.push_back({models[model], modes[mode]});
  return cases;
}

std::string nameOf(const testing::TestParamInfo<KernelCase> &info) {
  return std::string(info.param.small.name) + "_" + info.param.mode.name;
}

void KernelCaseTest::SetUp() {
  model = GetParam().small.model;
  type = GetParam().small.type;
  runner = std::make_unique<Runner>(model, GetParam().mode);
}

void KernelCaseTest::run(const std::string &name, const LaunchShape &shape,
                         int64_t rows, const std::vector<Operand> &operands,
                         const std::vector<MapShape> &maps) {
  EXPECT_EQ(runner->run(name, shape, rows, operands, maps), "");
}

std::vector<float> KernelCaseTest::floats(size_t count, float scale) {
  return oracle::randomFloats(count, scale, random);
}

static double halfAt(const uint8_t *at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return f16ToF32(bits);
}

/// The offset that is added to d q in row `row` and column `k`.
static double offsetOf(WeightFormat format, int64_t depth,
                       const uint8_t *packed, int64_t row, int64_t k) {
  const ScaleCoding coding = infoOf(format).scales;
  if (!hasOffsets(format))
    return 0;
  const uint8_t *tiles = packed + row / tileRows * unitBytes(format, depth);
  const int64_t ofTile = row % tileRows;
  const uint8_t *own =
      tiles + tileOffset(format, k / tileColumns) + tileScales(format) +
      (2 * ofTile + k % tileColumns / scaleBlock) * scaleBytes(format);
  if (coding == ScaleCoding::HalfPair)
    return halfAt(own + 2);
  const double dmin =
      halfAt(tiles + groupScalesOffset(format, k / tileColumns) +
             ofTile * groupScaleBytes(format) + 2);
  return -dmin *
         (coding == ScaleCoding::Offset32 ? own[1] : own[k % 32 / 16] >> 4);
}

Matrix KernelCaseTest::matrix(int64_t outputs, int64_t depth) {
  const std::vector<uint8_t> stored =
      oracle::randomWeights(type, outputs, depth, random);
  Matrix result{
      outputs,
      depth,
      {},
      {},
      DeviceBytes(packedWeightBytes(weightFormat(type), outputs, depth))};
  packWeight(type, depth, outputs, stored.data(), result.packed.data());
  const size_t rowBytes = stored.size() / outputs;
  for (int64_t row = 0; row < outputs; ++row) {
    const Doubles values =
        oracle::dequantizeRow(type, depth, stored.data() + row * rowBytes);
    result.values.insert(result.values.end(), values.begin(), values.end());
    for (int64_t k = 0; k < depth; ++k) {
      const double offset =
          offsetOf(weightFormat(type), depth, result.packed.data(), row, k);
      result.parts.push_back(std::abs(values[k] - offset) + std::abs(offset));
    }
  }
  return result;
}

Sum KernelCaseTest::product(const Matrix &w, int64_t output, const Doubles &x) {
  Sum sum;
  for (int64_t k = 0; k < w.depth; ++k) {
    const double term = w.values[output * w.depth + k] * x[k];
    sum.value += term;
    sum.magnitude += std::abs(term);
    sum.parts += w.parts[output * w.depth + k] * std::abs(x[k]);
  }
  return sum;
}

Doubles KernelCaseTest::normalised(const float *x,
                                   const std::vector<float> &gain) {
  double squares = 0;
  for (size_t k = 0; k < gain.size(); ++k)
    squares += static_cast<double>(x[k]) * x[k];
  const double scale =
      1 / std::sqrt(squares / static_cast<double>(gain.size()) + cases::eps);
  Doubles result(gain.size());
  for (size_t k = 0; k < gain.size(); ++k)
    result[k] = x[k] * scale * gain[k];
  return result;
}

uint16_t kvBits(KvFormat format, float value) {
  return format == KvFormat::F16 ? f32ToF16(value) : f32ToBf16(value);
}

double kvValue(KvFormat format, uint16_t bits) {
  return format == KvFormat::F16 ? f16ToF32(bits) : bf16ToF32(bits);
}

double roundedToKv(KvFormat format, float value) {
  return kvValue(format, kvBits(format, value));
}

double kvUnit(KvFormat format) {
  return format == KvFormat::F16 ? 0x1p-11 : 0x1p-8;
}

} // namespace llamac::cuda
