//===- TuningStoreTest.cpp - What tuning found, kept ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuned/TuningStore.h"

#include "tests/runtime/io/TestFiles.h"

#include "absl/strings/str_replace.h"

#include <csignal>
#include <functional>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace llamac {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// An entry that differs from those of other numbers in every member.
TuningEntry entryOf(int number, bool imported = false) {
  return {.device = "a cpu, 2 cores",
          .generator = "0123456789abcdef",
          .kernel = absl::StrCat("gemv q4_1 ", 100 + number, ", 1 row"),
          .config = absl::StrCat("rows=", number),
          .seconds = 1e-6 * (number + 1) / 3,
          .defaultSeconds = 2e-6 * (number + 1) / 3,
          .runnerUp = absl::StrCat("rows=", number + 1),
          .runnerUpSeconds = 4e-6 * (number + 1) / 3,
          .imported = imported};
}

std::unique_ptr<TuningStore> openStore(const std::string &path) {
  auto store = TuningStore::open(
      path, [](absl::string_view warning) { ADD_FAILURE() << warning; });
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

std::vector<TuningEntry> entriesAt(const std::string &path) {
  const auto store = TuningStore::openExisting(path);
  EXPECT_TRUE(store.ok()) << store.status();
  return *(*store)->entries();
}

TEST(TuningStoreTest, EntriesStayAndTheNewOnesTakeThePlaceOfTheOld) {
  const TestDirectory directory;
  const std::string path = directory.path("a/b/t.db");
  EXPECT_EQ(*TuningStore::openExisting(path), nullptr);
  TuningEntry second = entryOf(1), newer = entryOf(2);
  second.device = "another";
  newer.config = "";
  const auto store = openStore(path);
  EXPECT_EQ(*store->keep({entryOf(2), entryOf(1)}), 2);
  EXPECT_EQ(*store->keep({second, newer}), 2);
  EXPECT_THAT(*store->entries("another", second.generator),
              ElementsAre(second));
  EXPECT_THAT(*store->entries("another", "other"), ElementsAre());
  EXPECT_THAT(entriesAt(path), ElementsAre(entryOf(1), newer, second));
}

TEST(TuningStoreTest, AnImportTakesNoMeasuredEntrysPlace) {
  const TestDirectory directory;
  const std::string file = directory.path("t.json");
  ASSERT_TRUE(exportTuning({entryOf(1), entryOf(2)}, file).ok());
  const auto imported = importTuning(file);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(*imported, ElementsAre(entryOf(1, true), entryOf(2, true)));
  const auto store = openStore(directory.path("t.db"));
  ASSERT_TRUE(store->keep({entryOf(1)}).ok());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(*store->keep(*imported), 1);
  EXPECT_THAT(*store->entries(), ElementsAre(entryOf(1), entryOf(2, true)));
  EXPECT_EQ(*store->keep({entryOf(2)}), 1);
  EXPECT_THAT(*store->entries(), ElementsAre(entryOf(1), entryOf(2)));
}

TEST(TuningStoreTest, AnImportThatIsWrongSaysWhere) {
  const TestDirectory directory;
  const std::string good =
      R"({"format": "llamac-tuning", "version": 2, "entries": [)"
      R"({"device": "d", "generator": "g", "kernel": "k", "config": "c",)"
      R"("runner_up": "", "seconds": 1e-6, "default_seconds": 2e-6,)"
      R"("runner_up_seconds": 0}]})";
  ASSERT_TRUE(importTuning(directory.write("good.json", good)).ok());
  const struct {
    const char *from;
    std::string to;
    std::string message;
    ExitCode exit = ExitCode::BadFile;
  } cases[] = {
      {"]}", "]", "format: expected llamac-tuning, got none"},
      {"1e-6", "1e999", "format: expected llamac-tuning, got none"},
      {"\"d\"", std::string(100000, '['), "format: expected llamac-tuning"},
      {"g\", \"v", "h\", \"v", "got \"llamac-tuninh\""},
      {"\"llamac-tuning\"", std::string(100000, '[') + std::string(100000, ']'),
       "format: expected llamac-tuning, got [[["},
      {": 2,", ": 1,", "version: expected 2, got 1", ExitCode::Unsupported},
      {"\"entries\"", "\"rows\"", "entries: expected an array, got none"},
      {"[{", "[3,{", "entries[0].device: expected a text"},
      {"\"k\"", "\"" + std::string(5000, 'k') + "\"", "at most 4096 bytes"},
      {"1e-6", "-1e-6", "entries[0].seconds: expected a number of at least 0"},
  };
  for (const auto &[from, to, message, exit] : cases) {
    const std::string file =
        directory.write("bad.json", absl::StrReplaceAll(good, {{from, to}}));
    const absl::Status status = importTuning(file).status();
    EXPECT_EQ(exitCode(status), exit);
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(file + ": "), HasSubstr(message)));
  }
  const std::string huge = directory.write("huge.json", "{");
  std::filesystem::resize_file(huge, uint64_t{1} << 40);
  EXPECT_THAT(std::string(importTuning(huge).status().message()),
              HasSubstr("expected at most 67108864 bytes, got 1099511627776"));
}

void runSql(const std::string &path, const char *sql) {
  sqlite3 *other = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(other, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
}

void overwriteFrom(const std::string &path, double part) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(
      part * static_cast<double>(std::filesystem::file_size(path))));
  file << std::string(8192, '\x5a');
}

const std::function<void(const std::string &path)> damages[] = {
    [](const std::string &path) { overwriteFrom(path, 0); },
    [](const std::string &path) { overwriteFrom(path, 0.5); },
    [](const std::string &path) {
      std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    },
    [](const std::string &path) { runSql(path, "PRAGMA user_version = 1"); },
    [](const std::string &path) { runSql(path, "PRAGMA application_id = 7"); },
    [](const std::string &path) {
      runSql(path, "ALTER TABLE entry RENAME COLUMN value TO tiles");
    }};

TEST(TuningStoreTest, ADatabaseThatIsDamagedOrAnotherIsPutAside) {
  for (const auto &damage : damages) {
    const TestDirectory directory;
    const std::string path = directory.path("t.db");
    std::vector<TuningEntry> many;
    for (int i = 0; i < 200; ++i)
      many.push_back(entryOf(i));
    ASSERT_TRUE(openStore(path)->keep(many).ok());
    directory.write("t.db.damaged", "an older one");
    damage(path);
    std::vector<std::string> warnings;
    const auto store = TuningStore::open(path, [&](absl::string_view warning) {
      warnings.emplace_back(warning);
    });
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_THAT(warnings, ElementsAre(AllOf(
                              StartsWith(path),
                              HasSubstr(path + ".damaged and begun anew"))));
    EXPECT_GT(std::filesystem::file_size(path + ".damaged"), 20U);
    EXPECT_TRUE((*store)->keep({entryOf(1)}).ok());
    EXPECT_THAT(entriesAt(path), ElementsAre(entryOf(1)));
  }
}

/// Runs `work(number)` in `count` processes at once; how many say false.
int failuresOf(int count, const std::function<bool(int)> &work) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i)
    if (children.push_back(fork()); children.back() == 0)
      _exit(work(i) ? 0 : 1);
  int failures = 0;
  for (const pid_t child : children) {
    int status = 0;
    failures += waitpid(child, &status, 0) != child || status != 0;
  }
  return failures;
}

TEST(TuningStoreTest, EightProcessesAtOnceLoseNothing) {
  for (const bool isDamaged : {false, true}) {
    const TestDirectory directory;
    const std::string path = isDamaged ? directory.write("t.db", "no database")
                                       : directory.path("t.db");
    const auto work = [&](int process) {
      auto store = TuningStore::open(path, [](absl::string_view) {});
      bool good = store.ok();
      for (int i = 0; good && i < 10; ++i)
        good = (*store)->keep({entryOf(process * 10 + i)}).ok();
      return good;
    };
    EXPECT_EQ(failuresOf(8, work), 0);
    EXPECT_EQ(entriesAt(path).size(), 80U);
  }
}

TEST(TuningStoreTest, AProcessThatIsKilledLeavesWhatItHasKept) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  for (int round = 0; round < 10; ++round) {
    openStore(path); // All of it is sound.
    const pid_t child = fork();
    if (child == 0)
      for (auto store = openStore(path);;)
        (void)store->keep({entryOf(0), entryOf(1), entryOf(2)});
    usleep(3000 * (round + 1));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_THAT(entriesAt(path).size(), testing::AnyOf(0U, 3U));
  }
}

TEST(TuningStoreTest, AFullDiskIsAnErrorOfTheMemoryKind) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  const auto work = [&](int) {
    const auto store = openStore(path);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20 << 10, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<TuningEntry> many;
    for (int i = 0; i < 500; ++i)
      many.push_back(entryOf(i));
    const absl::Status status = store->keep(many).status();
    return exitCode(status) == ExitCode::Memory &&
           absl::StartsWith(status.message(), path) &&
           store->entries()->empty() && store->keep({entryOf(1)}).ok();
  };
  EXPECT_EQ(failuresOf(1, work), 0);
  EXPECT_THAT(entriesAt(path), ElementsAre(entryOf(1)));
  const std::string inFile = directory.write("file", "no folder") + "/t.db";
  const auto store = TuningStore::open(inFile, [](absl::string_view) {});
  EXPECT_EQ(exitCode(store.status()), ExitCode::Memory);
  EXPECT_THAT(std::string(store.status().message()),
              HasSubstr(inFile + ": cannot be written"));
}

} // namespace
} // namespace llamac
