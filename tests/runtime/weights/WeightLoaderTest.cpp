//===- WeightLoaderTest.cpp - Weights to where kernels read them ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightLoader.h"

#include "engine/step/Engine.h"
#include "runtime/base/Status.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/packing/TilePacking.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/weights/RandomWeights.h"
#include "tests/engine/toy/ToyModel.h"
#include "tests/runtime/io/TestFiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace llamac {
namespace {

using testing::HasSubstr;
using toy::ToyPlan;
using toy::ToyPlanFile;

/// A file of float32 values, and plans whose weights refer to it.
class WeightLoaderTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern =
        std::filesystem::temp_directory_path() / "llamac-weights-XXXXXX";
    folder = mkdtemp(pattern.data());
    path = folder + "/model.bin";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void writeValues(const std::vector<float> &values) const {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
  }

  void addFile(ToyPlan &toy) const {
    auto file = std::make_unique<schema::SourceFileT>();
    file->path = path;
    const auto mapped = *MappedFile::open(path);
    file->size = mapped->size();
    file->fingerprint = *fingerprintFiles({mapped});
    toy.plan.sourceFiles.push_back(std::move(file));
  }

  /// Makes `weight` the float32 values of the file from `offset` on.
  static void refer(schema::WeightT &weight, uint64_t offset) {
    weight.section = -1;
    weight.source = std::make_unique<schema::WeightSourceT>();
    weight.source->tensor = weight.name + ".weight";
    weight.source->type = schema::DataType::F32;
    weight.source->parts = {schema::SourceExtent(
        0, offset, static_cast<uint64_t>(weight.rows * weight.cols) * 4)};
  }

  /// The toy plan with both embeddings in the file.
  std::function<void(ToyPlan &)> referring() const {
    std::vector<float> values = {-1, -1, -1};
    for (int layer = 0; layer < 2; ++layer)
      for (int token = 0; token < toy::vocab; ++token)
        values.push_back(static_cast<float>(toy::embed(layer, token)));
    writeValues(values);
    return [this](ToyPlan &toy) {
      addFile(toy);
      refer(*toy.plan.weights[0], 12);
      refer(*toy.plan.weights[1], 12 + toy::vocab * 4);
    };
  }

  std::string folder;
  std::string path;
};

TEST_F(WeightLoaderTest, ReferencedWeightsGiveTheSameLogits) {
  const ToyPlanFile plan(referring());
  const auto model = Model::load(plan.path(), {.threads = 2});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto engine = *Engine::create(*model);
  Sequence sequence = *engine->newSequence();
  const std::vector<int> prompt = toy::cleanTokens(9, 4);
  ASSERT_TRUE(engine
                  ->step({{&sequence, prompt}},
                         [&](const LogitsRow &row) {
                           EXPECT_EQ(row.values[toy::argmaxAfter(prompt)], 0);
                           return absl::OkStatus();
                         })
                  .ok());
}

TEST_F(WeightLoaderTest, AStaleFileIsNamed) {
  const ToyPlanFile plan(referring());
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .write("x", 1);
  const absl::Status status = Model::load(plan.path()).status();
  EXPECT_EQ(exitCode(status), ExitCode::BadPlan);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_THAT(std::string(status.message()), HasSubstr("fingerprint"));
}

// 40 rows make three panels, the last one padded with zeros; bf16 keeps the
// upper half of these small whole numbers.
TEST_F(WeightLoaderTest, ReferencedWeightsArePacked) {
  constexpr int rows = 40;
  constexpr int cols = 24;
  std::vector<float> values;
  for (int i = 0; i < rows * cols; ++i)
    values.push_back(static_cast<float>(i % 128));
  writeValues(values);
  for (const auto type : {schema::DataType::F32, schema::DataType::BF16}) {
    const ToyPlanFile file([&](ToyPlan &toy) {
      addFile(toy);
      auto weight = std::make_unique<schema::WeightT>();
      weight->name = "packed";
      weight->type = type;
      weight->rows = rows;
      weight->cols = cols;
      weight->layout = schema::WeightLayout::Panel16;
      refer(*weight, 0);
      toy.plan.weights.push_back(std::move(weight));
    });
    const auto plan = *PlanReader::open(file.path());
    const auto device = *CpuDevice::create({2, ""});
    const auto buffers = loadWeights(*plan, *device);
    ASSERT_TRUE(buffers.ok()) << buffers.status();
    ASSERT_EQ(buffers->size(), 3u);
    const Buffer &packed = *(*buffers)[2];
    const bool wide = type == schema::DataType::F32;
    ASSERT_EQ(packed.size(), 3u * cols * 16 * (wide ? 4 : 2));
    const auto *bytes = static_cast<const uint8_t *>(packed.address());
    for (int row = 0; row < 48; ++row) {
      for (int k = 0; k < cols; ++k) {
        const int panel = row / 16 * cols * 16;
        float value = 0;
        if (wide) {
          std::memcpy(&value, bytes + (panel + k * 16 + row % 16) * 4, 4);
        } else {
          // Pairs of k adjacent.
          const int at = panel + k / 2 * 32 + row % 16 * 2 + k % 2;
          std::memcpy(reinterpret_cast<uint8_t *>(&value) + 2, bytes + at * 2,
                      2);
        }
        ASSERT_EQ(value, row < rows ? values[row * cols + k] : 0)
            << "row " << row << " k " << k;
      }
    }
  }
}

// 40 rows make three units of 16, the last one short.
TEST(WeightPackerTest, ThreadsPackTilesByUnits) {
  constexpr int64_t rows = 40, cols = 96;
  const uint64_t rowBytes = dataTypeBytes(DataType::Q8_0, cols);
  std::vector<uint8_t> stored(rows * rowBytes);
  std::iota(stored.begin(), stored.end(), uint8_t{0});
  const auto source = [&](int64_t first, int64_t count, uint8_t *out) {
    std::memcpy(out, stored.data() + first * rowBytes, count * rowBytes);
    return absl::OkStatus();
  };
  WeightPacker packer(source, DataType::Q8_0, rows, cols,
                      schema::WeightLayout::Tiles);
  ASSERT_EQ(packer.units(), 3);
  const uint64_t unit = packer.unitBytes();
  std::vector<uint8_t> whole(3 * unit), parts(3 * unit);
  cuda::packWeight(DataType::Q8_0, cols, rows, stored.data(), whole.data());
  ASSERT_TRUE(packer.packOnThreads(2, 1, 2, parts.data() + unit).ok());
  ASSERT_TRUE(packer.packOnThreads(2, 0, 1, parts.data()).ok());
  EXPECT_EQ(parts, whole);
}

TEST(RandomWeightsTest, RowsHaveTheirSpreadAndDoNotDependOnTheOrder) {
  constexpr int64_t rows = 64, cols = 512;
  for (const DataTypeInfo &info : dataTypes()) {
    SCOPED_TRACE(info.name);
    const DataType type = info.type;
    schema::WeightT weight;
    weight.name = "layers.0.attention.wo";
    weight.type = toPlan(type);
    weight.rows = rows;
    weight.cols = cols;
    const uint64_t rowBytes = dataTypeBytes(type, cols);
    auto made = [&](uint64_t seed) {
      std::vector<uint8_t> bytes(rows * rowBytes);
      EXPECT_TRUE(randomRows(weight, 0, seed)(0, rows, bytes.data()).ok());
      return bytes;
    };
    const std::vector<uint8_t> all = made(7);
    EXPECT_EQ(all, made(7));
    EXPECT_NE(all, made(8));
    std::vector<uint8_t> one(rowBytes);
    ASSERT_TRUE(randomRows(weight, 0, 7)(33, 1, one.data()).ok());
    EXPECT_TRUE(
        std::equal(one.begin(), one.end(), all.begin() + 33 * rowBytes));

    std::vector<float> values(rows * cols);
    for (int64_t row = 0; row < rows; ++row)
      dequantizeRow(type, all.data() + row * rowBytes, cols,
                    values.data() + row * cols);
    double sum = 0, squares = 0;
    for (const float value : values) {
      sum += value;
      squares += value * value;
    }
    const double count = rows * cols, deviation = 1 / std::sqrt(double{cols});
    // The steps of four bits lie half a step beside the middle.
    EXPECT_NEAR(sum / count, 0, 0.12 * deviation);
    // A scale of MXFP4 is a power of two.
    EXPECT_NEAR(squares / count * cols, 1,
                type == DataType::MXFP4 ? 0.1 : 0.05);
  }
}

/// All rows of part `part` of `weight`.
static std::vector<uint8_t> partOfRandom(const schema::WeightT &weight,
                                         int64_t part) {
  std::vector<uint8_t> bytes(weight.rows *
                             dataTypeBytes(fromPlan(weight.type), weight.cols));
  EXPECT_TRUE(randomRows(weight, part, 7)(0, weight.rows, bytes.data()).ok());
  return bytes;
}

TEST(RandomWeightsTest, PartsAreRowsOrColumnsOfTheWhole) {
  for (const auto type : {schema::DataType::BF16, schema::DataType::Q8_0}) {
    schema::WeightT weight;
    weight.name = "layers.0.feed_forward.w2";
    weight.type = type;
    weight.rows = 4;
    weight.cols = 128;
    const std::vector<uint8_t> whole = partOfRandom(weight, 0);
    const auto half = static_cast<ptrdiff_t>(whole.size() / 2);
    weight.parts = 2;

    weight.rows = 2;
    EXPECT_EQ(partOfRandom(weight, 1),
              std::vector<uint8_t>(whole.begin() + half, whole.end()));

    weight.rows = 4;
    weight.cols = 64;
    weight.partsDim = 1;
    const std::vector<uint8_t> right = partOfRandom(weight, 1);
    for (ptrdiff_t row = 0; row < 4; ++row)
      EXPECT_TRUE(std::equal(right.begin() + row * half / 4,
                             right.begin() + (row + 1) * half / 4,
                             whole.begin() + row * half / 2 + half / 4));
  }
}

TEST(RowsOfPartTest, PartsAreRowsOrWholeBlocksOfColumns) {
  // Four rows of 128 elements in four blocks.
  constexpr uint64_t blockBytes = 34, rowBytes = 4 * blockBytes;
  std::string whole(4 * rowBytes, '\0');
  std::iota(whole.begin(), whole.end(), '\0');
  TestDirectory directory;
  WeightMap weights;
  weights.addFile(directory.map("f", whole));
  ASSERT_TRUE(weights
                  .add({.name = "w",
                        .tensor = "w",
                        .type = DataType::Q8_0,
                        .rows = 4,
                        .cols = 128,
                        .parts = {{0, 0, whole.size()}}})
                  .ok());
  schema::WeightT weight;
  weight.type = schema::DataType::Q8_0;
  weight.parts = 2;
  const auto readHalf = [&](int64_t first, int64_t count) {
    std::string bytes(rowBytes, '\0');
    EXPECT_TRUE(rowsOfPart(weights, *weights.find("w"), weight, 1)(
                    first, count, reinterpret_cast<uint8_t *>(bytes.data()))
                    .ok());
    return bytes;
  };

  weight.rows = 2;
  weight.cols = 128;
  weight.partsDim = 0;
  EXPECT_EQ(readHalf(1, 1), whole.substr(3 * rowBytes));

  weight.rows = 4;
  weight.cols = 64;
  weight.partsDim = 1;
  EXPECT_EQ(readHalf(2, 2),
            whole.substr(2 * rowBytes + 2 * blockBytes, 2 * blockBytes) +
                whole.substr(3 * rowBytes + 2 * blockBytes));
}

} // namespace
} // namespace llamac
