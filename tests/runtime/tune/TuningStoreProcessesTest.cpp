//===- TuningStoreProcessesTest.cpp - Many processes, and killed ones -----===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuningTestKit.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace llamac {

using testing::ElementsAre;
using testing::Optional;

// Long enough for a machine that is busy with other things.
static constexpr std::chrono::seconds patience{60};

/// Starts `count` processes that each run `work(number)`, and gives how many
/// did not say that all went well.
static int failuresOf(int count, const std::function<bool(int)> &work) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0)
      _exit(work(i) ? 0 : 1);
    children.push_back(child);
  }
  int failures = 0;
  for (const pid_t child : children) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0)
      ++failures;
  }
  return failures;
}

static void expectHoldsAll(const std::string &path, int count) {
  Warnings warnings;
  const auto store = TuningStore::open(path, warnings.collect());
  EXPECT_EQ(store->entries().size(), static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    EXPECT_THAT(store->find(keyOf(i)), Optional(entryOf(i)));
  EXPECT_THAT(warnings.lines, ElementsAre());
}

TEST(TuningStoreProcesses, EightThatKeepAtOnceLoseNothing) {
  const TestDirectory directory;
  const std::string path = directory.path("folder/t.db");
  EXPECT_EQ(failuresOf(8,
                       [&](int process) {
                         Warnings warnings;
                         const auto store = TuningStore::open(
                             path, warnings.collect(), patience);
                         bool good = true;
                         for (int i = process * 50; i < process * 50 + 50; ++i)
                           good = store->keep(keyOf(i), entryOf(i)) && good;
                         return good && warnings.lines.empty();
                       }),
            0);
  expectHoldsAll(path, 400);
}

TEST(TuningStoreProcesses, EightThatOpenADamagedDatabaseMakeOneNewOne) {
  const TestDirectory directory;
  const std::string path = directory.write("t.db", "no database");
  EXPECT_EQ(failuresOf(8,
                       [&](int process) {
                         const auto store =
                             TuningStore::open(path, nullptr, patience);
                         bool good = true;
                         for (int i = process * 5; i < process * 5 + 5; ++i)
                           good = store->keep(keyOf(i), entryOf(i)) && good;
                         return good;
                       }),
            0);
  expectHoldsAll(path, 40);
  EXPECT_EQ(std::filesystem::file_size(path + ".damaged"), 11U);
}

TEST(TuningStoreProcesses, ReadersFindEntriesWhileOthersKeep) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  ASSERT_TRUE(TuningStore::open(path, nullptr)->keep(keyOf(0), entryOf(0)));
  EXPECT_EQ(failuresOf(6,
                       [&](int process) {
                         Warnings warnings;
                         bool good = true;
                         for (int i = 0; i < 40; ++i)
                           if (process < 2) {
                             good = TuningStore::open(path, warnings.collect(),
                                                      patience)
                                        ->keep(keyOf(40 * process + i),
                                               entryOf(40 * process + i)) &&
                                    good;
                           } else {
                             const auto reader = TuningStore::openExisting(
                                 path, warnings.collect(), patience);
                             good = reader &&
                                    reader->find(keyOf(0)) == entryOf(0) &&
                                    good;
                           }
                         return good && warnings.lines.empty();
                       }),
            0);
  expectHoldsAll(path, 80);
}

TEST(TuningStoreProcesses, OneKilledWhileKeepingLosesNothingItHadKept) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  int next = 0;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto store = TuningStore::open(path, nullptr, patience);
      for (int i = next;; ++i)
        if (!store->keep(keyOf(i), entryOf(i)) ||
            write(ends[1], &i, sizeof i) != sizeof i)
          _exit(1);
    }
    close(ends[1]);
    // Kills it somewhere after the first few; then reads what it still said.
    int kept = 0;
    int reports = 0;
    while (read(ends[0], &kept, sizeof kept) == sizeof kept) {
      EXPECT_EQ(kept, next++);
      if (++reports == 3 + round) {
        usleep(static_cast<useconds_t>(137 * round));
        kill(child, SIGKILL);
      }
    }
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_GE(reports, 3 + round);

    EXPECT_EQ(OtherConnection(path).run("PRAGMA integrity_check"), "ok");
    Warnings warnings;
    const auto store = TuningStore::open(path, warnings.collect());
    for (int i = 0; i < next; ++i)
      ASSERT_THAT(store->find(keyOf(i)), Optional(entryOf(i))) << i;
    EXPECT_THAT(warnings.lines, ElementsAre());
    // One more may be there: kept, but not yet said.
    EXPECT_LE(store->entries().size(), static_cast<size_t>(next) + 1);
  }
}

} // namespace llamac
