//===- PlanWriterTest.cpp - Writes a plan file ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These tests look at the files that a failed or killed writer leaves behind.
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/PlanWriter.h"

#include "runtime/base/Status.h"
#include "tests/runtime/plan/PlanBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A toy plan that takes several writes.
static toy::ToyPlan largerPlan() {
  toy::ToyPlan toy = toy::makeToyPlan();
  for (int i = 0; i < 3; ++i)
    toy.sections.push_back(
        {SectionKind::Source,
         std::string(1'500'000, static_cast<char>('a' + i))});
  return toy;
}

/// The system's calls, of which number `failing` does `failure` instead.
static FileCalls callsThatFail(int failing, std::function<int()> failure,
                               int *count) {
  const FileCalls system = FileCalls::system();
  auto next = [=] { return (*count)++ == failing; };
  return {
      [=](int file, const void *data, size_t size, off_t offset) -> ssize_t {
        return next() ? failure() : system.write(file, data, size, offset);
      },
      [=](int file) { return next() ? failure() : system.sync(file); },
      [=](const char *from, const char *to) {
        return next() ? failure() : system.rename(from, to);
      }};
}

class PlanWriterTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(toy::writeToyPlan(toy::makeToyPlan(), path).ok());
    old = readBytes(path);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder.name()))
      names.push_back(entry.path().filename());
    return names;
  }

  /// Calls of the system that a whole plan takes.
  int callsOfAPlan() const {
    int count = 0;
    const std::string other = folder.file("other.plan");
    EXPECT_TRUE(
        toy::writeToyPlan(largerPlan(), other, callsThatFail(-1, {}, &count))
            .ok());
    std::filesystem::remove(other);
    return count;
  }

  TemporaryFolder folder;
  std::string path = folder.file("the.plan");
  std::string old;
};

TEST_F(PlanWriterTest, ReplacesAnOlderPlan) {
  ASSERT_TRUE(toy::writeToyPlan(largerPlan(), path).ok());
  EXPECT_NE(readBytes(path), old);
  EXPECT_TRUE(PlanReader::open(path).ok());
  EXPECT_THAT(files(), ElementsAre("the.plan"));
}

TEST_F(PlanWriterTest, PiecesOfASectionMakeNoDifference) {
  const toy::ToyPlan toy = largerPlan();
  auto writer = PlanWriter::create(path);
  ASSERT_TRUE(writer.ok());
  for (const toy::ToySection &section : toy.sections)
    ASSERT_TRUE((*writer)
                    ->addSection(
                        section.kind,
                        [&](PlanWriter &out) {
                          const std::string &bytes = section.bytes;
                          for (size_t at = 0; at < bytes.size(); at += 777) {
                            const std::string part = bytes.substr(at, 777);
                            const absl::Status status = out.append(
                                {reinterpret_cast<const uint8_t *>(part.data()),
                                 part.size()});
                            if (!status.ok())
                              return status;
                          }
                          return absl::OkStatus();
                        })
                    .ok());
  ASSERT_TRUE((*writer)->finish(toy.plan).ok());
  EXPECT_EQ(readBytes(path), unsoundPlan(toy));
}

TEST_F(PlanWriterTest, AFailureAtAnyCallLeavesTheOldPlan) {
  // All but the folder's own sync, which comes when the new plan has its name.
  const int calls = callsOfAPlan() - 1;
  ASSERT_GE(calls, 6);
  const struct {
    int error;
    ExitCode code;
  } failures[] = {{ENOSPC, ExitCode::Memory},
                  {EDQUOT, ExitCode::Memory},
                  {EIO, ExitCode::Device}};
  for (const auto &[error, code] : failures) {
    for (int failing = 0; failing < calls; ++failing) {
      int count = 0;
      const absl::Status status = toy::writeToyPlan(largerPlan(), path,
                                                    callsThatFail(
                                                        failing,
                                                        [error = error] {
                                                          errno = error;
                                                          return -1;
                                                        },
                                                        &count));
      EXPECT_EQ(exitCode(status), code) << "call " << failing;
      EXPECT_THAT(std::string(status.message()), HasSubstr("the.plan: cannot"));
      EXPECT_EQ(readBytes(path), old) << "call " << failing;
      EXPECT_THAT(files(), ElementsAre("the.plan"));
    }
  }
}

TEST_F(PlanWriterTest, ShortAndInterruptedWritesAreGoneOnWith) {
  const FileCalls system = FileCalls::system();
  FileCalls calls = system;
  int count = 0;
  calls.write = [&](int file, const void *data, size_t size,
                    off_t offset) -> ssize_t {
    if (++count % 3 == 0) {
      errno = EINTR;
      return -1;
    }
    return system.write(file, data, std::min<size_t>(size, 100'000), offset);
  };
  ASSERT_TRUE(toy::writeToyPlan(largerPlan(), path, calls).ok());
  EXPECT_EQ(readBytes(path), unsoundPlan(largerPlan()));
}

TEST_F(PlanWriterTest, KilledAtAnyCallLeavesTheOldPlanOrTheNewOne) {
  const int calls = callsOfAPlan();
  const std::string after = unsoundPlan(largerPlan());
  for (int killing = 0; killing < calls; ++killing) {
    SetUp();
    const pid_t child = fork();
    if (child == 0) {
      int count = 0;
      const absl::Status status = toy::writeToyPlan(largerPlan(), path,
                                                    callsThatFail(
                                                        killing,
                                                        [] {
                                                          raise(SIGKILL);
                                                          return -1;
                                                        },
                                                        &count));
      _exit(status.ok() ? 0 : 1);
    }
    int result = 0;
    ASSERT_EQ(waitpid(child, &result, 0), child);
    EXPECT_TRUE(WIFSIGNALED(result)) << "call " << killing;
    const std::string now = readBytes(path);
    EXPECT_EQ(now, killing == calls - 1 ? after : old) << "call " << killing;
    // The next writer takes what the killed one left away.
    ASSERT_TRUE(toy::writeToyPlan(largerPlan(), path).ok());
    EXPECT_THAT(files(), ElementsAre("the.plan"));
  }
}

TEST_F(PlanWriterTest, KilledAtAnyTimeLeavesTheOldPlanOrTheNewOne) {
  const std::string after = unsoundPlan(largerPlan());
  for (int round = 0; round < 40; ++round) {
    SetUp();
    const pid_t child = fork();
    if (child == 0) {
      for (;;)
        if (!toy::writeToyPlan(largerPlan(), path).ok())
          _exit(1);
    }
    usleep(500u * round);
    kill(child, SIGKILL);
    int result = 0;
    ASSERT_EQ(waitpid(child, &result, 0), child);
    EXPECT_TRUE(WIFSIGNALED(result));
    const std::string now = readBytes(path);
    EXPECT_TRUE(now == old || now == after) << "round " << round;
  }
}

TEST_F(PlanWriterTest, AnotherWritersTemporaryIsLeftAlone) {
  auto first = PlanWriter::create(path);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(files().size(), 2u);
  ASSERT_TRUE(toy::writeToyPlan(largerPlan(), path).ok());
  EXPECT_EQ(files().size(), 2u);
  first->reset();
  EXPECT_THAT(files(), ElementsAre("the.plan"));
}

TEST_F(PlanWriterTest, AnErrorOfTheFillerIsPassedOn) {
  auto writer = PlanWriter::create(path);
  const auto section =
      (*writer)->addSection(SectionKind::Weight, [](PlanWriter &) {
        return badFileError("model.gguf:7: no");
      });
  EXPECT_EQ(exitCode(section.status()), ExitCode::BadFile);
  writer->reset();
  EXPECT_EQ(readBytes(path), old);
}

TEST_F(PlanWriterTest, APlanTheReaderWouldRefuseIsABug) {
  toy::ToyPlan toy = toy::makeToyPlan();
  toy.plan.programs.clear();
  const absl::Status status = toy::writeToyPlan(toy, path);
  EXPECT_EQ(exitCode(status), ExitCode::Internal);
  EXPECT_EQ(readBytes(path), old);
}

TEST_F(PlanWriterTest, AFolderThatIsNotThereIsAUsageError) {
  const auto writer = PlanWriter::create(folder.file("no/x.plan"));
  EXPECT_EQ(exitCode(writer.status()), ExitCode::Usage);
  EXPECT_THAT(std::string(writer.status().message()), HasSubstr("x.plan"));
}

TEST_F(PlanWriterTest, APipeStaysWhatItIs) {
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto writer = PlanWriter::create(pipe);
  EXPECT_EQ(exitCode(writer.status()), ExitCode::Usage);
  EXPECT_THAT(std::string(writer.status().message()),
              HasSubstr("expected the name of a file, got a device or pipe"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(PlanWriterDiskTest, AFullDiskIsAMemoryError) {
  FileCalls calls = FileCalls::system();
  const int full = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  calls.write = [&](int, const void *data, size_t size, off_t) {
    return ::write(full, data, size);
  };
  const TemporaryFolder folder;
  const absl::Status status =
      toy::writeToyPlan(largerPlan(), folder.file("x.plan"), calls);
  EXPECT_EQ(exitCode(status), ExitCode::Memory);
  EXPECT_THAT(std::string(status.message()), HasSubstr("No space left"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("x.plan")));
  close(full);
}

} // namespace
} // namespace llamac
