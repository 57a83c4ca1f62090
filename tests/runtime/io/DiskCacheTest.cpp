//===- DiskCacheTest.cpp - What can be made again, on disk ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DiskCache.h"

#include "runtime/base/Status.h"
#include "tests/runtime/io/TestFiles.h"

#include <chrono>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace llamac {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(CacheKey, DependsOnEveryByteAndOnWherePartsEnd) {
  const std::vector<std::vector<absl::string_view>> all = {
      {}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"ab", ""}, {"b", "a"}};
  std::set<std::string> keys;
  for (const auto &parts : all)
    keys.insert(keyOf(parts));
  EXPECT_EQ(keys.size(), all.size());
  EXPECT_EQ(keyOf({"a", "b"}).size(), 32u);
}

class DiskCacheTest : public testing::Test {
protected:
  ~DiskCacheTest() override {
    unsetenv("XDG_CACHE_HOME");
    unsetenv("LLAMAC_OBJECT_CACHE");
    unsetenv("LLAMAC_CACHE_SIZE");
  }

  static std::string key(char digit) { return std::string(32, digit); }

  /// A plan of `size` bytes that was used `age` ago.
  static std::string makePlan(char digit, size_t size,
                              std::chrono::hours age = {}) {
    const DiskCache plans(CacheKind::Plans);
    EXPECT_TRUE(plans.usable());
    const std::string path = plans.pathOf(key(digit));
    std::ofstream(path) << std::string(size, 'x');
    makeOlder(path, age);
    return path;
  }

  static void makeOlder(const std::string &path, std::chrono::hours age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }

  /// The names of the files in the cache of plans.
  static std::set<std::string> plans() {
    std::set<std::string> names;
    for (const auto &file :
         fs::directory_iterator(*DiskCache(CacheKind::Plans).folder()))
      names.insert(file.path().filename());
    return names;
  }

  DiskCache ownObjects() const {
    setenv("XDG_CACHE_HOME", folder.path("cache").c_str(), /*overwrite=*/1);
    unsetenv("LLAMAC_OBJECT_CACHE");
    return DiskCache(CacheKind::Objects);
  }

  const TestDirectory folder;
  const DiskCache objects = ownObjects();
};

TEST_F(DiskCacheTest, GivesBackWhatWasKeptAndNothingElse) {
  EXPECT_EQ(objects.find(key('a')), std::nullopt);
  for (const std::string &bytes : {std::string(), std::string("a\0b", 3)}) {
    objects.keep(key('a'), bytes);
    EXPECT_EQ(objects.find(key('a')), bytes);
  }
  EXPECT_EQ(objects.find(key('b')), std::nullopt);
  EXPECT_EQ(DiskCache(CacheKind::Cubins).find(key('a')), std::nullopt);
}

TEST_F(DiskCacheTest, WhatIsDamagedCountsAsNothing) {
  objects.keep(key('a'), "some bytes");
  const std::string path = objects.pathOf(key('a'));
  const auto size = static_cast<size_t>(fs::file_size(path));
  for (size_t i = 0; i < size; ++i) {
    objects.keep(key('a'), "some bytes");
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(i));
      const auto flipped = static_cast<char>(file.peek() ^ 0x10);
      file.seekp(static_cast<std::streamoff>(i));
      file.put(flipped);
    }
    EXPECT_EQ(objects.find(key('a')), std::nullopt) << "byte " << i;
    fs::resize_file(path, i);
    EXPECT_EQ(objects.find(key('a')), std::nullopt) << i << " bytes";
  }
}

TEST_F(DiskCacheTest, WhatNobodyUsesGoesAndWhatIsFoundStays) {
  makePlan('a', 10, std::chrono::hours(24 * 31));
  makePlan('b', 10, std::chrono::hours(24 * 31));
  makePlan('c', 10);
  const DiskCache cache(CacheKind::Plans);
  EXPECT_TRUE(cache.has(key('b')));
  cache.added(key('c'));
  EXPECT_THAT(plans(), ElementsAre(key('b') + ".plan", key('c') + ".plan"));
}

TEST_F(DiskCacheTest, FilesOfOtherNamesStayAndItHasAFolderOfItsOwn) {
  setenv("LLAMAC_OBJECT_CACHE", folder.path("mine").c_str(), 1);
  const std::string mine = folder.write("mine/" + key('a') + ".o", "mine");
  const DiskCache cache(CacheKind::Objects);
  cache.keep(key('b'), "an object");
  EXPECT_EQ(*cache.folder(), folder.path("mine/objects"));
  std::vector<std::string> others = {mine};
  for (const std::string &name :
       {std::string("main.o"), key('a').substr(1) + ".o", key('g') + ".o",
        key('a') + ".plan", key('a') + ".o.bak", "." + key('a') + ".o",
        key('a') + ".tmp-1", std::string("x.o.tmp-1")})
    others.push_back(folder.write("mine/objects/" + name, "mine"));
  for (const std::string &path : others)
    makeOlder(path, std::chrono::hours(24 * 365));
  setenv("LLAMAC_CACHE_SIZE", "0", 1);
  makePlan('c', 10);
  DiskCache(CacheKind::Plans).added(key('c'));
  EXPECT_EQ(cache.find(key('b')), std::nullopt) << "evicted for the plan";
  for (const std::string &path : others)
    EXPECT_TRUE(fs::exists(path)) << path;
}

TEST_F(DiskCacheTest, TheLeastRecentlyUsedMakeRoom) {
  setenv("LLAMAC_CACHE_SIZE", "3K", 1);
  for (int i = 0; i < 5; ++i)
    makePlan(static_cast<char>('0' + i), 1000, std::chrono::hours(10 - i));
  const DiskCache cache(CacheKind::Plans);
  EXPECT_TRUE(cache.has(key('0')));
  cache.added(key('4'));
  EXPECT_THAT(plans(), ElementsAre(key('0') + ".plan", key('3') + ".plan",
                                   key('4') + ".plan"));
  // One that is larger than the limit is there for the run that made it.
  makePlan('5', 5000);
  cache.added(key('5'));
  EXPECT_THAT(plans(), ElementsAre(key('5') + ".plan"));
}

TEST_F(DiskCacheTest, TheLimitIsANumberOfBytesWithAUnit) {
  const std::pair<const char *, uint64_t> sizes[] = {
      {"17", 17},          {"2k", 2048},
      {"3M", 3ull << 20},  {"10G", 10ull << 30},
      {"", 10ull << 30},   {"many", 10ull << 30},
      {"-1", 10ull << 30}, {"99999999999T", 10ull << 30}};
  for (const auto &[text, bytes] : sizes) {
    setenv("LLAMAC_CACHE_SIZE", text, 1);
    EXPECT_EQ(cacheLimit().bytes, bytes) << text;
  }
}

TEST_F(DiskCacheTest, AKeptLimitHoldsUntilItIsTakenBack) {
  const std::string old = makePlan('a', 1000, std::chrono::hours(1));
  makePlan('b', 1000);
  ASSERT_TRUE(keepCacheLimit("1500").ok());
  EXPECT_EQ(cacheLimit().bytes, 1500u);
  EXPECT_EQ(cacheLimit().source, "llamac cache limit");
  EXPECT_FALSE(fs::exists(old)) << "over the limit at once";
  setenv("LLAMAC_CACHE_SIZE", "2K", 1);
  EXPECT_EQ(cacheLimit().bytes, 2048u);
  unsetenv("LLAMAC_CACHE_SIZE");
  for (const char *bad : {"", "many", "-1", "1.5G"})
    EXPECT_EQ(exitCode(keepCacheLimit(bad).status()), ExitCode::Usage) << bad;
  EXPECT_EQ(cacheLimit().bytes, 1500u);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(keepCacheLimit("default").ok());
  EXPECT_EQ(cacheLimit().bytes, uint64_t{10} << 30);
}

TEST_F(DiskCacheTest, WhatKilledWritersLeftGoesAfterAnHour) {
  const std::string old[] = {"." + key('a') + ".plan.tmp-4711-0",
                             "." + key('b') + ".plan.tmp-9-12"};
  const std::string recent[] = {"." + key('c') + ".plan.tmp-4711-0",
                                "." + key('d') + ".plan.tmp-9-12"};
  const std::string plan = makePlan('e', 10);
  const std::string in = fs::path(plan).parent_path().string() + "/";
  for (const std::string &name : old) {
    std::ofstream(in + name) << "x";
    makeOlder(in + name, std::chrono::hours(2));
  }
  for (const std::string &name : recent)
    std::ofstream(in + name) << "x";
  DiskCache(CacheKind::Plans).added(key('e'));
  EXPECT_THAT(plans(), ElementsAre(recent[0], recent[1], key('e') + ".plan"));
}

TEST_F(DiskCacheTest, FoldersAndFilesAreTheUsersAlone) {
  const mode_t before = umask(0);
  objects.keep(key('a'), "bytes");
  umask(before);
  EXPECT_EQ(fs::status(folder.path("cache/llamac")).permissions(),
            fs::perms::owner_all);
  EXPECT_EQ(fs::status(*objects.folder()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(objects.pathOf(key('a'))).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(DiskCacheTest, AFolderThatOthersCanWriteIsDoneWithout) {
  objects.keep(key('a'), "bytes");
  for (const mode_t mode : {0777, 0770, 01777, 0707}) {
    ASSERT_EQ(chmod(objects.folder()->c_str(), mode), 0);
    EXPECT_EQ(objects.find(key('a')), std::nullopt) << mode;
    EXPECT_FALSE(objects.usable());
    objects.keep(key('b'), "bytes");
    EXPECT_FALSE(fs::exists(objects.pathOf(key('b'))));
  }
  ASSERT_EQ(chmod(objects.folder()->c_str(), 0755), 0);
  EXPECT_EQ(objects.find(key('a')), "bytes");
}

TEST_F(DiskCacheTest, AFileThatOthersCanWriteIsMadeAgain) {
  objects.keep(key('a'), "bytes");
  ASSERT_EQ(chmod(objects.pathOf(key('a')).c_str(), 0664), 0);
  EXPECT_EQ(objects.find(key('a')), std::nullopt);
  objects.keep(key('a'), "bytes again");
  EXPECT_EQ(objects.find(key('a')), "bytes again");
  // A link would lead out of the folder.
  fs::rename(objects.pathOf(key('a')), folder.path("elsewhere"));
  fs::create_symlink(folder.path("elsewhere"), objects.pathOf(key('a')));
  EXPECT_EQ(objects.find(key('a')), std::nullopt);
}

TEST_F(DiskCacheTest, WhatIsSomebodyElsesIsDoneWithout) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can give files away";
  objects.keep(key('a'), "bytes");
  ASSERT_EQ(chown(objects.pathOf(key('a')).c_str(), 12345, 12345), 0);
  EXPECT_EQ(objects.find(key('a')), std::nullopt);
  objects.keep(key('a'), "bytes");
  ASSERT_EQ(chown(objects.folder()->c_str(), 12345, 12345), 0);
  EXPECT_EQ(objects.find(key('a')), std::nullopt);
  EXPECT_FALSE(objects.usable());
}

TEST_F(DiskCacheTest, AWarningSaysOnceWhyNothingIsCached) {
  // Each test program warns once; a child of its own does here.
  EXPECT_EXIT(
      {
        folder.write("file", "x");
        setenv("XDG_CACHE_HOME", folder.path("file").c_str(), 1);
        const DiskCache cache(CacheKind::Cubins);
        cache.keep(key('a'), "bytes");
        cache.keep(key('a'), "bytes");
        _exit(cache.find(key('a')) ? 1 : 0);
      },
      testing::ExitedWithCode(0),
      "^warning: cubins are not cached: .*/file/llamac/cubins: cannot be made: "
      "Not a directory[^\n]*\n$");
}

TEST_F(DiskCacheTest, AFolderThatIsDeletedIsMadeAgain) {
  objects.keep(key('a'), "bytes");
  fs::remove_all(folder.path("cache"));
  EXPECT_EQ(objects.find(key('a')), std::nullopt);
  fs::remove_all(folder.path("cache"));
  objects.keep(key('a'), "bytes");
  EXPECT_EQ(objects.find(key('a')), "bytes");
}

TEST_F(DiskCacheTest, ManyMayKeepTheSameAtOnce) {
  const std::string bytes(100000, 'x');
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        objects.keep(key('a'), bytes);
        EXPECT_EQ(objects.find(key('a')), bytes);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(objects.files().size(), 1u);
}

} // namespace
} // namespace llamac
