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
#include <fcntl.h>
#include <functional>
#include <sys/file.h>
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

std::vector<TuningEntry> entriesAt(const std::string &path) {
  const auto entries = TuningStore(path).entries();
  EXPECT_TRUE(entries.ok()) << entries.status();
  return entries.value_or(std::vector<TuningEntry>());
}

TEST(TuningStoreTest, EntriesStayAndTheNewOnesTakeThePlaceOfTheOld) {
  const TestDirectory directory;
  const std::string path = directory.path("t.json");
  EXPECT_THAT(entriesAt(path), ElementsAre());
  TuningEntry second = entryOf(1), newer = entryOf(2);
  second.device = "another";
  newer.config = "";
  const TuningStore store(path);
  EXPECT_EQ(*store.keep({entryOf(2), entryOf(1)}), 2);
  EXPECT_EQ(*store.keep({second, newer}), 2);
  EXPECT_THAT(entriesAt(path), ElementsAre(entryOf(1), newer, second));
}

TEST(TuningStoreTest, AnImportTakesNoMeasuredEntrysPlace) {
  const TestDirectory directory;
  const std::vector<TuningEntry> imported = {entryOf(1, true),
                                             entryOf(2, true)};
  const TuningStore store(directory.path("t.json"));
  ASSERT_TRUE(store.keep({entryOf(1)}).ok());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(*store.keep(imported), 1);
  EXPECT_THAT(*store.entries(), ElementsAre(entryOf(1), entryOf(2, true)));
  EXPECT_EQ(*store.keep({entryOf(2)}), 1);
  EXPECT_THAT(*store.entries(), ElementsAre(entryOf(1), entryOf(2)));
}

TEST(TuningStoreTest, AnExportIsReadBackAndTheFileIsOne) {
  const TestDirectory directory;
  const std::vector<TuningEntry> all = {entryOf(1), entryOf(2, true)};
  const std::string file = directory.path("export.json");
  ASSERT_TRUE(exportTuning(all, file).ok());
  EXPECT_EQ(*importTuning(file), all);
  const std::string path = directory.path("t.json");
  ASSERT_TRUE(TuningStore(path).keep(all).ok());
  EXPECT_EQ(*importTuning(path), all);
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
      {"]}", "]", "JSON: expected well-formed text"},
      {"1e-6", "1e999", "JSON: expected well-formed text, got "},
      {"\"d\"", std::string(100000, '['), "nesting: expected at most 3"},
      {"g\", \"v", "h\", \"v", "expected llamac-tuning, got \"llamac-tuninh\""},
      {"format", "form", "format: expected llamac-tuning, got none"},
      {": 2,", ": 1,", "version: expected 2, got 1", ExitCode::Unsupported},
      {": 2,", ": 2.5,", "version: expected an integer, got 2.5"},
      {"\"entries\"", "\"rows\"", "entries: expected an array, got none"},
      {"[{", "[3,{", "entries: expected an array of objects"},
      {"\"k\"", "3", "kernel: expected a string, got 3"},
      {"\"kernel\"", "\"kernels\"", "kernel: expected a text"},
      {"\"k\"", "\"" + std::string(5000, 'k') + "\"", "4096 bytes, got 5000"},
      {"1e-6", "-1e-6", "seconds: expected 0 to 1e+09 seconds, got -1e-06"},
      {"2e-6", "1e10", "default_seconds: expected 0 to 1e+09 seconds"},
      {": 0}", ": 0, \"imported\": 1}", "imported: expected true or false"},
  };
  for (const auto &[from, to, message, exit] : cases) {
    const std::string file =
        directory.write("bad.json", absl::StrReplaceAll(good, {{from, to}}));
    expectRefused(importTuning(file).status(), exit, file, {message});
  }
  const std::string huge = directory.write("huge.json", "{");
  std::filesystem::resize_file(huge, uint64_t{1} << 40);
  EXPECT_THAT(
      std::string(importTuning(huge).status().message()),
      HasSubstr("expected at most 67108864 bytes of JSON, got 1099511627776"));
}

/// The text that `work` writes to stderr.
std::string saidBy(const std::function<void()> &work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST(TuningStoreTest, AFileThatIsDamagedOrAnotherIsPutAside) {
  const TestDirectory directory;
  const std::string path = directory.path("t.json");
  ASSERT_TRUE(TuningStore(path).keep({entryOf(0)}).ok());
  int aside = 0;
  for (const std::string &damaged :
       {std::string("no JSON"), std::string(), std::string(4096, '\0'),
        std::string(R"({"format": "llamac-tuning", "version": 1})")}) {
    directory.write("t.json", damaged);
    // A reader says why, and leaves it to the next writer.
    const TuningStore store(path);
    EXPECT_THAT(std::string(store.entries().status().message()),
                StartsWith(path));
    const std::string to = absl::StrCat(
        path, ".damaged", aside == 0 ? "" : absl::StrCat("-", aside));
    ++aside;
    EXPECT_THAT(saidBy([&] { EXPECT_EQ(*store.keep({entryOf(1)}), 1); }),
                AllOf(StartsWith("warning: " + path),
                      HasSubstr("renamed to " + to + " and begun anew\n")));
    EXPECT_EQ((*MappedFile::open(to))->text(), damaged);
    EXPECT_THAT(entriesAt(path), ElementsAre(entryOf(1)));
  }
}

TEST(TuningStoreTest, WhatCouldNotBeReadAgainIsNotWritten) {
  const TestDirectory directory;
  const TuningStore store(directory.path("t.json"));
  ASSERT_TRUE(store.keep({entryOf(1)}).ok());
  TuningEntry wrong = entryOf(2);
  wrong.seconds = std::nan("");
  EXPECT_FALSE(store.keep({wrong}).ok());
  wrong = entryOf(2);
  wrong.kernel = std::string(5000, 'k');
  EXPECT_FALSE(store.keep({wrong}).ok());
  EXPECT_THAT(*store.entries(), ElementsAre(entryOf(1)));
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
    const std::string path = isDamaged ? directory.write("t.json", "no tuning")
                                       : directory.path("t.json");
    const auto work = [&](int process) {
      const TuningStore store(path);
      bool good = true;
      for (int i = 0; good && i < 10; ++i)
        good = store.keep({entryOf(process * 10 + i)}).ok();
      return good;
    };
    EXPECT_EQ(failuresOf(8, work), 0);
    EXPECT_EQ(entriesAt(path).size(), 80U);
    // One of them put it aside, and nobody what the others had begun.
    EXPECT_EQ(std::filesystem::exists(path + ".damaged"), isDamaged);
    EXPECT_FALSE(std::filesystem::exists(path + ".damaged-1"));
  }
}

TEST(TuningStoreTest, AProcessThatIsKilledLeavesWhatItHasKept) {
  const TestDirectory directory;
  const std::string path = directory.path("t.json");
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0)
      for (const TuningStore store(path);;)
        (void)store.keep({entryOf(0), entryOf(1), entryOf(2)});
    usleep(3000 * (round + 1));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_THAT(entriesAt(path).size(), testing::AnyOf(0U, 3U));
  }
}

TEST(TuningStoreTest, ACrashBeforeTheRenameLosesOnlyWhatWasNotKept) {
  const TestDirectory directory;
  const std::string path = directory.path("t.json");
  const TuningStore store(path);
  ASSERT_TRUE(store.keep({entryOf(1)}).ok());
  const auto files = [&] {
    std::vector<std::string> names;
    for (const auto &file : std::filesystem::directory_iterator(
             std::filesystem::path(path).parent_path()))
      names.push_back(file.path().filename());
    return names;
  };
  const size_t before = files().size();
  const pid_t child = fork();
  if (child == 0) {
    FileCalls calls = FileCalls::system();
    calls.rename = [](const char *, const char *) {
      return kill(getpid(), SIGKILL);
    };
    (void)TuningStore(path, calls).keep({entryOf(2)});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(files().size(), before + 1); // Its temporary file.
  EXPECT_THAT(*store.entries(), ElementsAre(entryOf(1)));
  EXPECT_EQ(*store.keep({entryOf(3)}), 1); // The lock went with it.
  EXPECT_THAT(*store.entries(), ElementsAre(entryOf(1), entryOf(3)));
  EXPECT_EQ(files().size(), before);
}

TEST(TuningStoreTest, AWriterWaitsForTheLockAndReadersDoNot) {
  const TestDirectory directory;
  const std::string path = directory.path("t.json");
  const TuningStore store(path);
  ASSERT_TRUE(store.keep({entryOf(1)}).ok());
  const int lock = open((path + ".lock").c_str(), O_RDWR);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  const pid_t child = fork();
  if (child == 0)
    _exit(store.keep({entryOf(2)}).ok() ? 0 : 1);
  usleep(100000);
  EXPECT_THAT(*store.entries(), ElementsAre(entryOf(1)));
  flock(lock, LOCK_UN); // The child has the descriptor, too.
  close(lock);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(*store.entries(), ElementsAre(entryOf(1), entryOf(2)));
}

TEST(TuningStoreTest, AFullDiskIsAnErrorOfTheMemoryKind) {
  const TestDirectory directory;
  const std::string path = directory.path("t.json");
  const auto work = [&](int) {
    const TuningStore store(path);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20 << 10, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<TuningEntry> many;
    for (int i = 0; i < 500; ++i)
      many.push_back(entryOf(i));
    const absl::Status status = store.keep(many).status();
    return exitCode(status) == ExitCode::Memory &&
           absl::StartsWith(status.message(), path) &&
           store.entries()->empty() && store.keep({entryOf(1)}).ok();
  };
  EXPECT_EQ(failuresOf(1, work), 0);
  EXPECT_THAT(entriesAt(path), ElementsAre(entryOf(1)));
  const std::string inFile = directory.write("file", "no folder") + "/t.json";
  const absl::Status status = TuningStore(inFile).keep({}).status();
  EXPECT_EQ(exitCode(status), ExitCode::Memory);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(inFile + ": cannot be written"));
}

} // namespace
} // namespace llamac
