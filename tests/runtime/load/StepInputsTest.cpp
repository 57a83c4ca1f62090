//===- StepInputsTest.cpp - What a step is given --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/StepInputs.h"
#include "runtime/cpu/CpuDevice.h"
#include "tests/engine/toy/ToyModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace llamac {
namespace {

using schema::InputRole;

class StepInputsTest : public testing::Test {
protected:
  /// Sends what was filled; gives how many bytes that were, in how many writes.
  std::pair<uint64_t, int> send() {
    std::pair<uint64_t, int> sent;
    EXPECT_TRUE(
        inputs
            .send([&](uint64_t offset, absl::Span<const uint8_t> bytes) {
              sent.first += bytes.size();
              ++sent.second;
              return device->write(*buffer, offset, bytes);
            })
            .ok());
    return sent;
  }

  /// A row of an input, where kernels find it.
  int32_t onDevice(InputRole role, size_t row) const {
    int32_t value = 0;
    std::memcpy(&value,
                static_cast<const int32_t *>(inputs.layout().addresses(
                    buffer->address())[static_cast<size_t>(role)]) +
                    row,
                sizeof(value));
    return value;
  }

  const toy::ToyPlanFile file;
  std::shared_ptr<CpuDevice> device = *CpuDevice::create({1, ""});
  std::shared_ptr<const PlanReader> plan = *PlanReader::open(file.path());
  StepInputs inputs{plan->plan()};
  std::unique_ptr<Buffer> buffer =
      *device->allocate(inputs.layout().totalBytes());
};

TEST_F(StepInputsTest, InputsLieApartWithThePageTablesLast) {
  const InputLayout &layout = inputs.layout();
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (const InputRole role : schema::EnumValuesInputRole())
    places.emplace_back(layout.offset(role), layout.bytes(role));
  std::ranges::sort(places);
  uint64_t end = 0;
  for (const auto &[offset, bytes] : places) {
    EXPECT_GE(offset, end);
    EXPECT_EQ(offset % 64, 0u);
    end = offset + bytes;
  }
  EXPECT_EQ(places.back().first, layout.offset(InputRole::PageTable));
  EXPECT_EQ(end, layout.totalBytes());
}

TEST_F(StepInputsTest, WhatWasFilledIsSentInOneWrite) {
  inputs.rows<int32_t>(InputRole::Sequences, 2)[1] = 5;
  inputs.rows<int32_t>(InputRole::Tokens, 3)[2] = 7;
  inputs.rows<int32_t>(InputRole::Positions, 2)[0] = 9;
  EXPECT_EQ(send().second, 1);
  EXPECT_EQ(onDevice(InputRole::Sequences, 1), 5);
  EXPECT_EQ(onDevice(InputRole::Tokens, 2), 7);
  EXPECT_EQ(onDevice(InputRole::Positions, 0), 9);
  // Once.
  EXPECT_EQ(send(), std::pair(uint64_t{0}, 0));
}

TEST_F(StepInputsTest, WhatTheDeviceWroteBeforeAndBehindStays) {
  const InputLayout &layout = inputs.layout();
  const int32_t ours = 77;
  const auto write = [&](InputRole role) {
    ASSERT_TRUE(device
                    ->write(*buffer, layout.offset(role),
                            {reinterpret_cast<const uint8_t *>(&ours), 4})
                    .ok());
  };
  write(InputRole::Tokens);
  write(InputRole::OutputRows);
  inputs.rows<int32_t>(InputRole::Positions, 2)[1] = 3;
  EXPECT_EQ(send().first, 2 * sizeof(int32_t));
  EXPECT_EQ(onDevice(InputRole::Positions, 1), 3);
  EXPECT_EQ(onDevice(InputRole::Tokens, 0), ours);
  EXPECT_EQ(onDevice(InputRole::OutputRows, 0), ours);
}

} // namespace
} // namespace llamac
