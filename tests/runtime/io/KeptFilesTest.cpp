//===- KeptFilesTest.cpp - What can be made again, kept on disk -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/KeptFiles.h"

#include "tests/runtime/io/TestFiles.h"

#include <chrono>
#include <set>
#include <thread>

namespace llamac {
namespace {

namespace fs = std::filesystem;

TEST(KeptFiles, KeysDependOnEveryByteAndOnWherePartsEnd) {
  const std::vector<std::vector<absl::string_view>> all = {
      {}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"ab", ""}, {"b", "a"}};
  std::set<std::string> keys;
  for (const auto &parts : all)
    keys.insert(keyOf(parts));
  EXPECT_EQ(keys.size(), all.size());
  EXPECT_EQ(keyOf({"a", "b"}).size(), 32u);
}

TEST(KeptFiles, GivesBackWhatWasKeptAndNothingElse) {
  const TestDirectory folder;
  fs::create_directories(folder.path("x"));
  const KeptFiles files(folder.path("x"), ".o");
  EXPECT_EQ(files.find("k"), std::nullopt);
  for (const std::string &bytes : {std::string(), std::string("a\0b", 3)}) {
    ASSERT_TRUE(files.keep("k", bytes).ok());
    EXPECT_EQ(files.find("k"), bytes);
  }
  EXPECT_EQ(files.find("other"), std::nullopt);
  EXPECT_EQ(KeptFiles(folder.path("x"), ".cubin").find("k"), std::nullopt);
}

TEST(KeptFiles, WhatIsDamagedCountsAsNothing) {
  const TestDirectory folder;
  const KeptFiles files(folder.path(""), ".o");
  ASSERT_TRUE(files.keep("k", "some bytes").ok());
  const auto size = static_cast<size_t>(fs::file_size(folder.path("k.o")));
  for (size_t i = 0; i < size; ++i) {
    ASSERT_TRUE(files.keep("k", "some bytes").ok());
    {
      std::fstream file(folder.path("k.o"),
                        std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(i));
      const auto flipped = static_cast<char>(file.peek() ^ 0x10);
      file.seekp(static_cast<std::streamoff>(i));
      file.put(flipped);
    }
    EXPECT_EQ(files.find("k"), std::nullopt) << "byte " << i;
    fs::resize_file(folder.path("k.o"), i);
    EXPECT_EQ(files.find("k"), std::nullopt) << i << " bytes";
  }
}

TEST(KeptFiles, WhatNobodyAsksForGoesAndWhatIsFoundStays) {
  const TestDirectory folder;
  const KeptFiles files(folder.path(""), ".o");
  for (const char *key : {"old", "found", "new"})
    ASSERT_TRUE(files.keep(key, key).ok());
  const std::string other = folder.write("old.plan", "x");
  const auto longAgo =
      fs::file_time_type::clock::now() - std::chrono::hours(24 * 31);
  for (const std::string &path :
       {folder.path("old.o"), folder.path("found.o"), other})
    fs::last_write_time(path, longAgo);
  EXPECT_EQ(files.find("found"), "found");
  removeUnusedFiles(folder.path(""), ".o");
  EXPECT_EQ(files.find("old"), std::nullopt);
  EXPECT_EQ(files.find("found"), "found");
  EXPECT_EQ(files.find("new"), "new");
  EXPECT_TRUE(fs::exists(other));
}

TEST(KeptFiles, SaysWhyItCannotKeep) {
  const KeptFiles files("/nowhere/at/all", ".o");
  EXPECT_THAT(std::string(files.keep("k", "x").message()),
              testing::HasSubstr("/nowhere/at/all/k.o"));
  EXPECT_EQ(files.find("k"), std::nullopt);
}

TEST(KeptFiles, ManyMayKeepTheSameAtOnce) {
  const TestDirectory folder;
  const KeptFiles files(folder.path(""), ".o");
  const std::string bytes(100000, 'x');
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        EXPECT_TRUE(files.keep("k", bytes).ok());
        EXPECT_EQ(files.find("k"), bytes);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path("")), {}), 1);
}

} // namespace
} // namespace llamac
