//===- CollectivesTest.cpp - Ranks on GPUs that gather --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the fake driver and its NCCL, which really copy.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Collectives.h"

#include "runtime/base/Status.h"
#include "runtime/cuda/CudaDevice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A program with one launch that reads `rowBytes` bytes of a row of each rank.
std::unique_ptr<schema::ProgramT> programOf(int64_t maxRows,
                                            uint32_t rowBytes) {
  auto program = std::make_unique<schema::ProgramT>();
  program->maxRows = maxRows;
  program->launches.push_back(std::make_unique<schema::LaunchT>());
  schema::LaunchT &launch = *program->launches.back();
  launch.rows = schema::RowSymbol::Tokens;
  launch.operands.emplace_back(schema::OperandKind::Peers, rowBytes, 0);
  return program;
}

TEST(GatherLayoutTest, EveryNumberOfRowsHasItsAddresses) {
  schema::PlanT plan;
  plan.ranks = 3;
  plan.programs.push_back(programOf(2, 512));
  plan.programs.push_back(programOf(4, 64));
  const GatherLayout layout(plan);
  EXPECT_EQ(layout.partsBytes(), 3U * 2 * 512);
  EXPECT_EQ(layout.bytes(), layout.partsBytes() + (2 + 4) * 3 * 8);
  constexpr cuda::Address start = 0x10000;
  const std::vector<cuda::Address> tables = layout.tables(start);
  EXPECT_EQ(layout.partsBytes() + tables.size() * 8, layout.bytes());
  for (const auto &[rowBytes, most] : {std::pair(512, 2), std::pair(64, 4)})
    for (int rows = 1; rows <= most; ++rows)
      for (int rank = 0; rank < 3; ++rank)
        EXPECT_EQ(
            tables[(layout.tableAt(rowBytes, rows) - layout.partsBytes()) / 8 +
                   rank],
            start + static_cast<cuda::Address>(rank) * rows * rowBytes);
}

class CollectivesTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("LLAMAC_FAKE_CAPABILITY", "9.0,9.0", 1);
    auto made = createCudaRanks(
        2,
        {.threads = 1, .driver = LLAMAC_FAKE_DRIVER, .nccl = LLAMAC_FAKE_NCCL});
    ASSERT_TRUE(made.ok()) << made.status();
    for (auto &device : *made) {
      auto memory = device->allocate(256);
      ASSERT_TRUE(memory.ok()) << memory.status();
      memories.push_back(*std::move(memory));
      devices.push_back(std::static_pointer_cast<CudaDevice>(device));
    }
  }
  void TearDown() override { unsetenv("LLAMAC_FAKE_CAPABILITY"); }

  absl::Status gather(int rank, uint64_t bytes) {
    const CudaDevice &device = *devices[rank];
    LLAMAC_RETURN_IF_ERROR(device.enter());
    const auto at = reinterpret_cast<cuda::Address>(memories[rank]->address());
    return device.gather(at, at + 128, bytes, device.stream());
  }

  std::vector<std::shared_ptr<CudaDevice>> devices;
  std::vector<std::unique_ptr<Buffer>> memories;
};

TEST_F(CollectivesTest, EveryRankHasThePartsOfAllInTheirOrder) {
  for (uint8_t rank = 0; rank < 2; ++rank) {
    const uint8_t part[] = {static_cast<uint8_t>(10 + rank), rank};
    ASSERT_TRUE(devices[rank]->write(*memories[rank], 0, part).ok());
    ASSERT_TRUE(gather(rank, 2).ok());
  }
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<uint8_t> staging;
    const auto read = devices[rank]->read(*memories[rank], 128, 5, staging);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(*read, ElementsAre(10, 0, 11, 1, 0));
    EXPECT_TRUE(devices[rank]->ended(absl::OkStatus()).ok());
  }
}

TEST_F(CollectivesTest, ARankThatFailsEndsTheWaitOfTheOther) {
  ASSERT_TRUE(gather(0, 16).ok());
  absl::Status waited;
  std::thread other([&] {
    // Rank 1 never gathers.
    waited = devices[0]->check();
  });
  const absl::Status failed = devices[1]->ended(deviceError("it is broken"));
  other.join();
  for (const absl::Status &status :
       {failed, waited, gather(0, 16), gather(1, 16), devices[1]->check()}) {
    EXPECT_EQ(exitCode(status), ExitCode::Device);
    EXPECT_EQ(status.message(), "rank 1: it is broken");
  }
}

TEST(CudaRanksTest, FewerGpusThanRanksAreAnError) {
  const CudaDeviceOptions options{.threads = 1,
                                  .index = 0,
                                  .driver = LLAMAC_FAKE_DRIVER,
                                  .nccl = LLAMAC_FAKE_NCCL};
  const auto made = createCudaRanks(2, options);
  EXPECT_EQ(exitCode(made.status()), ExitCode::Device);
  EXPECT_THAT(std::string(made.status().message()),
              HasSubstr("expected GPU 1 for rank 1 of this machine, got 1"));
}

TEST_F(CollectivesTest, RanksWithoutAProcessInCommonJoinByAnId) {
  const auto id = devices[0]->newId();
  ASSERT_TRUE(id.ok()) << id.status();
  std::thread other([&] {
    EXPECT_TRUE(devices[1]->join(*id, 1, 2).ok());
    EXPECT_TRUE(gather(1, 2).ok());
    EXPECT_TRUE(devices[1]->check().ok());
  });
  EXPECT_TRUE(devices[0]->join(*id, 0, 2).ok());
  EXPECT_TRUE(gather(0, 2).ok());
  EXPECT_TRUE(devices[0]->check().ok());
  other.join();
  // They fail each for itself.
  EXPECT_FALSE(devices[1]->ended(deviceError("it is broken")).ok());
  EXPECT_TRUE(devices[0]->check().ok());
  EXPECT_EQ(devices[1]->check().message(), "it is broken");
}

TEST(NcclTest, ALibraryThatIsMissingIsNamedWithWhatToInstall) {
  const auto missing = cuda::Nccl::open("/nowhere/libnccl.so.2");
  EXPECT_EQ(exitCode(missing.status()), ExitCode::Device);
  EXPECT_THAT(std::string(missing.status().message()),
              testing::AllOf(HasSubstr("got none at /nowhere/libnccl.so.2"),
                             HasSubstr("pip install nvidia-nccl-cu13")));
}

} // namespace
} // namespace llamac
