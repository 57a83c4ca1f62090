//===- SourceFilesTest.cpp - Plans that refer to their weights ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "runtime/plan/PlanReader.h"
#include "tests/runtime/plan/PlanBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace llamac {
namespace {

using testing::HasSubstr;

class SourceFilesTest : public testing::Test {
protected:
  void SetUp() override {
    writeBytes(source, std::string(5000, 'w'));
    toy::ToyPlan toy = toy::makeToyPlan();
    auto file = std::make_unique<schema::SourceFileT>();
    file->path = source;
    file->size = 5000;
    file->fingerprint = *fingerprintFiles({*MappedFile::open(source)});
    toy.plan.sourceFiles.push_back(std::move(file));
    ASSERT_TRUE(toy::writeToyPlan(toy, plan).ok());
  }

  absl::Status open() const {
    return openSourceFiles(**PlanReader::open(plan)).status();
  }

  void expectStale(const char *message) const {
    const absl::Status status = open();
    EXPECT_EQ(exitCode(status), ExitCode::BadPlan) << status;
    const std::string text(status.message());
    EXPECT_THAT(text, HasSubstr(plan));
    EXPECT_THAT(text, HasSubstr(source));
    EXPECT_THAT(text, HasSubstr(message));
    EXPECT_THAT(text, HasSubstr("compile it again"));
  }

  TemporaryFolder folder;
  std::string source = folder.file("model.bin");
  std::string plan = folder.file("the.plan");
};

TEST_F(SourceFilesTest, UnchangedFilesAreMapped) {
  const auto reader = PlanReader::open(plan);
  const auto files = openSourceFiles(**reader);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ((*files)[0]->size(), 5000u);
}

TEST_F(SourceFilesTest, AFileThatIsGoneIsNamed) {
  std::filesystem::remove(source);
  expectStale("cannot be opened");
}

TEST_F(SourceFilesTest, AFileOfAnotherSizeIsNamed) {
  writeBytes(source, std::string(5001, 'w'));
  expectStale("size: expected 5000, got 5001");
}

TEST_F(SourceFilesTest, AFileOfOtherContentIsNamed) {
  std::string bytes(5000, 'w');
  bytes[2500] = 'x';
  writeBytes(source, bytes);
  expectStale("fingerprint: expected");
}

} // namespace
} // namespace llamac
