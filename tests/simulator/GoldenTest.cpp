//===- GoldenTest.cpp - Operands lie where CUTLASS has them ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The simulator and the functions of the device headers that know how operands
// lie, against tests/golden. Registers and shared memory are filled as the
// golden tables say; results are expected where they say. The numbers are small
// integers, so that sums are exact.
//
//===----------------------------------------------------------------------===//

#include "tests/golden/Golden.h"
#include "runtime/formats/FloatBits.h"
#include "simulator/SimTensorMap.h"
#include "tests/simulator/Support.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace llamac;

namespace {

/// A matrix by rows.
template <typename T> struct Matrix {
  uint32_t rows;
  uint32_t columns;
  std::vector<T> values = std::vector<T>(size_t{rows} * columns);

  T &at(uint32_t row, uint32_t column) {
    return values[size_t{row} * columns + column];
  }
  const T &at(uint32_t row, uint32_t column) const {
    return values[size_t{row} * columns + column];
  }
};

} // namespace

/// Numbers of -8 to 8.
static Matrix<float> numbers(uint32_t rows, uint32_t columns, uint32_t seed) {
  Matrix<float> result{rows, columns};
  for (uint32_t i = 0; i < rows * columns; ++i)
    result.values[i] =
        static_cast<float>((i * (7 + seed) + i / 11 + i / 256) % 17) - 8;
  return result;
}

/// Each element its own number, modulo what T holds.
template <typename T>
static Matrix<T> numbered(uint32_t rows, uint32_t columns) {
  Matrix<T> result{rows, columns};
  for (uint32_t i = 0; i < rows * columns; ++i)
    result.values[i] = static_cast<T>(i);
  return result;
}

template <typename To, typename Convert>
static Matrix<To> converted(const Matrix<float> &from, Convert convert) {
  Matrix<To> result{from.rows, from.columns};
  for (size_t i = 0; i < from.values.size(); ++i)
    result.values[i] = static_cast<To>(convert(from.values[i]));
  return result;
}

static Matrix<uint16_t> asBf16(const Matrix<float> &from) {
  return converted<uint16_t>(from, f32ToBf16);
}

/// a b^T.
template <typename T>
static Matrix<T> product(const Matrix<float> &a, const Matrix<float> &b) {
  Matrix<T> result{a.rows, b.rows};
  for (uint32_t row = 0; row < a.rows; ++row)
    for (uint32_t column = 0; column < b.rows; ++column)
      for (uint32_t k = 0; k < a.columns; ++k)
        result.at(row, column) +=
            static_cast<T>(a.at(row, k) * b.at(column, k));
  return result;
}

/// The elements of `matrix` that the threads have, from its column `first` on.
template <typename T>
static std::vector<T> spread(const golden::Fragment &fragment,
                             const Matrix<T> &matrix, uint32_t first = 0) {
  std::vector<T> result;
  for (uint32_t thread = 0; thread < fragment.threads(); ++thread)
    for (uint32_t value = 0; value < fragment.values(); ++value) {
      const golden::Place place = fragment.at(thread, value);
      result.push_back(matrix.at(place.row, first + place.column));
    }
  return result;
}

/// The bytes of shared memory that holds `matrix`.
template <typename T>
static std::vector<uint8_t> placed(const golden::SharedMatrix &shared,
                                   const Matrix<T> &matrix) {
  std::vector<uint8_t> result(shared.bytes());
  for (uint32_t row = 0; row < shared.rows; ++row)
    for (uint32_t column = 0; column < shared.columns; ++column)
      std::memcpy(&result[shared.at(row, column)], &matrix.at(row, column),
                  sizeof(T));
  return result;
}

/// A launch of one block of a kernel of Golden.cu.
static SimLaunch launchOf(const std::string &kernel, uint32_t threads = 32) {
  SimLaunch launch{kernel, {1}, {threads}};
  launch.sharedBytes = 98304;
  return launch;
}

/// Runs `launch` on every simulator, and expects `expected` from it.
template <typename T, typename... In>
static void expectOutput(SimLaunch launch, const std::vector<T> &expected,
                         const std::vector<In> &...in) {
  SCOPED_TRACE(launch.kernel);
  onEverySimulator(
      "Golden.cu", [&](Simulator &simulator, const SimModule &module) {
        DeviceVector<T> out(expected.size(), T{});
        launch.args = {output(simulator, out)};
        auto run = [&](auto &&...vectors) {
          (launch.args.push_back(input(simulator, vectors)), ...);
          ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
        };
        run(DeviceVector<In>(in)...);
        EXPECT_EQ(out.values(), expected);
      });
}

//===----------------------------------------------------------------------===//
// Fragments of a warp
//===----------------------------------------------------------------------===//

TEST(Golden, LdmatrixGivesEachLaneItsElements) {
  const Matrix<uint16_t> rows = numbered<uint16_t>(32, 8);
  const std::pair<const char *, golden::Fragment> loads[] = {
      {"matrices1", golden::matrices1},
      {"matrices2", golden::matrices2},
      {"matrices4", golden::matrices4},
      {"transposed1", golden::transposed1},
      {"transposed2", golden::transposed2},
      {"transposed4", golden::transposed4}};
  for (const auto &[kernel, fragment] : loads)
    expectOutput(launchOf(kernel), spread(fragment, rows), rows.values);
}

TEST(Golden, MmaOf16Bits) {
  const Matrix<float> a = numbers(16, 16, 0), b = numbers(8, 16, 2);
  const std::vector<float> expected =
      spread(golden::mma16C, product<float>(a, b));
  expectOutput(launchOf("multiplyBf16"), expected,
               spread(golden::mma16A, asBf16(a)),
               spread(golden::mma16B, asBf16(b)));
  expectOutput(launchOf("multiplyHalf"), expected,
               spread(golden::mma16A, converted<uint16_t>(a, f32ToF16)),
               spread(golden::mma16B, converted<uint16_t>(b, f32ToF16)));
}

TEST(Golden, MmaOf8Bits) {
  const Matrix<float> a = numbers(16, 32, 0), b = numbers(8, 32, 2);
  auto same = [](float value) { return value; };
  expectOutput(launchOf("multiplyInt8"),
               spread(golden::mma8C, product<int>(a, b)),
               spread(golden::mma8A, converted<int8_t>(a, same)),
               spread(golden::mma8B, converted<int8_t>(b, same)));
}

//===----------------------------------------------------------------------===//
// Products of a warpgroup
//===----------------------------------------------------------------------===//

/// The product of 64 rows with `b`, by the descriptors of CUTLASS. A is in
/// registers or, where `kernel` has it in shared memory, lies as B does.
static void expectProduct(const char *kernel, const golden::Fragment &sums,
                          const golden::SharedMatrix &layout, bool aShared) {
  const Matrix<float> a = numbers(64, layout.columns, 0);
  const Matrix<float> b = numbers(layout.rows, layout.columns, 2);
  const std::vector<uint8_t> bBytes = placed(layout, asBf16(b));
  std::vector<uint8_t> aBytes;
  std::vector<uint64_t> descriptors(layout.descriptors,
                                    layout.descriptors + layout.steps);
  ASSERT_EQ(layout.steps * 16U, layout.columns);
  if (aShared) {
    aBytes = placed(layout, asBf16(a));
    descriptors.insert(descriptors.end(), layout.descriptors,
                       layout.descriptors + layout.steps);
  } else {
    for (int step = 0; step < layout.steps; ++step) {
      const std::vector<uint16_t> own =
          spread(golden::wgmmaA, asBf16(a), 16 * step);
      const auto *bytes = reinterpret_cast<const uint8_t *>(own.data());
      aBytes.insert(aBytes.end(), bytes, bytes + 2 * own.size());
    }
  }
  SimLaunch launch = launchOf(kernel, 128);
  launch.rows = layout.steps;
  const std::vector<int> sizes = {static_cast<int>(aBytes.size()),
                                  static_cast<int>(bBytes.size())};
  expectOutput(launch, spread(sums, product<float>(a, b)), aBytes, bBytes,
               descriptors, sizes);
}

TEST(Golden, WgmmaOfBatches) {
  expectProduct("group16", golden::wgmmaC16, golden::rows16, false);
  expectProduct("group32", golden::wgmmaC32, golden::rows32, false);
}

TEST(Golden, WgmmaOfPanels) {
  expectProduct("group64", golden::wgmmaC64, golden::panel64, false);
  expectProduct("group128", golden::wgmmaC128, golden::panel128, false);
  expectProduct("group256", golden::wgmmaC256, golden::panel256, false);
  expectProduct("group64", golden::wgmmaC64, golden::keys128, false);
  expectProduct("group64Shared", golden::wgmmaC64, golden::panel64, true);
  expectProduct("group64Shared", golden::wgmmaC64, golden::keys128, true);
}

TEST(Golden, WgmmaOfOtherSwizzles) {
  for (const golden::SharedMatrix &layout :
       {golden::swizzled64, golden::swizzled32, golden::notSwizzled}) {
    expectProduct("group64", golden::wgmmaC64, layout, false);
    expectProduct("group64Shared", golden::wgmmaC64, layout, true);
  }
}

TEST(Golden, WgmmaOfTransposedOperands) {
  for (const golden::SharedMatrix &layout :
       {golden::values64, golden::valuesSwizzled64, golden::valuesSwizzled32})
    expectProduct("group64Transposed", golden::wgmmaC64, layout, false);
  expectProduct("group128Transposed", golden::wgmmaC128, golden::values128,
                false);
}

//===----------------------------------------------------------------------===//
// Tensor copies
//===----------------------------------------------------------------------===//

/// A box of the map that `call` makes lies as `box`.
template <typename T>
static void expectBox(const golden::TensorMapCall &call,
                      const golden::SharedMatrix &box) {
  TensorMapShape shape = golden::shapeOf(call);
  ASSERT_EQ(shape.boxRows, box.rows);
  ASSERT_EQ(shape.boxColumns, box.columns);
  ASSERT_EQ(shape.elementBytes, box.elementBytes);
  ASSERT_EQ(shape.elementBytes, sizeof(T));
  shape.rows = box.rows; // The copy has as many rows.
  const auto columns = static_cast<uint32_t>(shape.columns);
  const Matrix<T> matrix = numbered<T>(box.rows, columns);
  const std::vector<uint8_t> expected = placed(box, matrix);
  onEverySimulator(
      "Golden.cu", [&](Simulator &simulator, const SimModule &module) {
        DeviceVector<T> in(matrix.values);
        DeviceVector<uint8_t> out(expected.size(), 0);
        input(simulator, in);
        SimTensorMap map;
        ASSERT_EQ(encodeSimTensorMap(in.data(), shape, map), absl::OkStatus());
        SimLaunch launch = launchOf("copyBox");
        launch.args = {output(simulator, out), &map};
        launch.rows = static_cast<int32_t>(expected.size());
        ASSERT_EQ(simulator.run(module, launch), absl::OkStatus());
        EXPECT_EQ(out.values(), expected);
      });
}

TEST(Golden, BoxesOfTensorCopies) {
  expectBox<uint16_t>(golden::inputMap, golden::weightBox128);
  expectBox<uint16_t>(golden::weightMap128, golden::weightBox128);
  expectBox<uint16_t>(golden::weightMap64, golden::weightBox64);
  expectBox<uint16_t>(golden::weightMap32, golden::weightBox32);
  expectBox<uint16_t>(golden::tokenMap64, golden::tokenBox);
  expectBox<uint16_t>(golden::tokenMap128, golden::tokenBox);
}

//===----------------------------------------------------------------------===//
// Formulas of the device headers
//===----------------------------------------------------------------------===//

TEST(Golden, Swizzles) {
  constexpr int bytes = 1 << 14;
  const struct {
    const char *kernel;
    uint32_t swizzleBytes;
    golden::ByteSwizzle swizzle;
  } swizzles[] = {{"swizzle128", 128, golden::swizzle128},
                  {"swizzle64", 64, golden::swizzle64},
                  {"swizzle32", 32, golden::swizzle32}};
  for (const auto &[kernel, swizzleBytes, swizzle] : swizzles) {
    std::vector<uint32_t> expected, ofSimulator;
    for (uint32_t byte = 0; byte < bytes; ++byte) {
      expected.push_back(swizzle.at(byte));
      ofSimulator.push_back(swizzled(byte, swizzleBytes));
    }
    EXPECT_EQ(ofSimulator, expected) << kernel;
    SimLaunch launch = launchOf(kernel);
    launch.rows = bytes;
    expectOutput(launch, expected);
  }
}

/// The leading dimension's distance. It has no meaning where the depth is
/// contiguous within a swizzle, nor where one swizzle is as wide as the matrix:
/// CUTLASS has 1 or 0 there.
static constexpr uint64_t leadingBits = uint64_t{0x3fff} << 16;

static std::vector<uint64_t> descriptorsOf(const char *kernel, size_t count,
                                           uint32_t threads = 1) {
  DeviceVector<uint64_t> out(count, 0);
  Simulator simulator((SimOptions()));
  SimLaunch launch = launchOf(kernel, threads);
  launch.args = {output(simulator, out)};
  EXPECT_EQ(simulator.run(testModule("Golden.cu", false), launch),
            absl::OkStatus());
  return out.values();
}

TEST(Golden, DescriptorsOfProducts) {
  const golden::SharedMatrix &rows = golden::panel64;
  const golden::SharedMatrix &outputs = golden::panel256;
  ASSERT_EQ(rows.steps, outputs.steps);
  const std::vector<uint64_t> got =
      descriptorsOf("describeSlice", 2 * rows.steps, /*threads=*/160);
  for (int k = 0; k < rows.steps; ++k) {
    EXPECT_EQ(got[2 * k] & ~leadingBits, rows.descriptors[k] & ~leadingBits)
        << "rows, step " << k;
    EXPECT_EQ(got[2 * k + 1] & ~leadingBits,
              outputs.descriptors[k] & ~leadingBits)
        << "outputs, step " << k;
  }
}

TEST(Golden, DescriptorsOfKeysAndValues) {
  const struct {
    const char *kernel;
    golden::SharedMatrix keys;
    golden::SharedMatrix values;
    uint64_t valueBits;
  } heads[] = {
      {"describeStage64", golden::panel64, golden::values64, ~leadingBits},
      {"describeStage128", golden::keys128, golden::values128, ~0ULL}};
  for (const auto &[kernel, keys, values, valueBits] : heads) {
    SCOPED_TRACE(kernel);
    const std::vector<uint64_t> got =
        descriptorsOf(kernel, keys.steps + values.steps);
    for (int k = 0; k < keys.steps; ++k)
      EXPECT_EQ(got[k] & ~leadingBits, keys.descriptors[k] & ~leadingBits)
          << "keys, step " << k;
    for (int k = 0; k < values.steps; ++k)
      EXPECT_EQ(got[keys.steps + k] & valueBits,
                values.descriptors[k] & valueBits)
          << "values, step " << k;
  }
}

TEST(Golden, DescriptorsOfOtherSwizzles) {
  const std::vector<uint64_t> got = descriptorsOf("describeOthers", 5);
  const std::pair<golden::SharedMatrix, uint64_t> expected[] = {
      {golden::swizzled64, ~leadingBits},
      {golden::swizzled32, ~leadingBits},
      {golden::notSwizzled, ~0ULL},
      {golden::valuesSwizzled64, ~0ULL},
      {golden::valuesSwizzled32, ~0ULL}};
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i] & expected[i].second,
              expected[i].first.descriptors[0] & expected[i].second)
        << "descriptor " << i;
}
