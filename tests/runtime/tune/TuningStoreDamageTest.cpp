//===- TuningStoreDamageTest.cpp - Databases that cannot be used ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing that can be wrong with the database, or with where it is, is an error
// of those that use it.
//
//===----------------------------------------------------------------------===//

#include "TuningTestKit.h"

#include <chrono>
#include <sys/wait.h>
#include <unistd.h>

namespace llamac {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::Optional;

static std::string readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Bytes of a database with `count` entries.
static std::string databaseBytes(int count) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  {
    const auto store = TuningStore::open(path, nullptr);
    for (int i = 0; i < count; ++i)
      EXPECT_TRUE(store->keep(keyOf(i), entryOf(i)));
  }
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  return readBytes(path);
}

struct Damage {
  const char *name;
  std::function<std::string()> bytes; ///< Of a file in the database's place.
  const char *reason;
};
static void PrintTo(const Damage &damage, std::ostream *os) {
  *os << damage.name;
}
class TuningStoreRebuilds : public testing::TestWithParam<Damage> {};

TEST_P(TuningStoreRebuilds, WhatIsDamaged) {
  const TestDirectory directory;
  const std::string bytes = GetParam().bytes();
  const std::string path = directory.write("tuning.db", bytes);
  directory.write("tuning.db.damaged", "an older one");
  Warnings warnings;
  {
    const auto store = TuningStore::open(path, warnings.collect());
    warnings.expectOne(path, {GetParam().reason, path + ".damaged", "anew"});
    EXPECT_THAT(store->entries(), ElementsAre());
    EXPECT_TRUE(store->keep(keyOf(1), entryOf(1)));
    EXPECT_THAT(store->find(keyOf(1)), Optional(entryOf(1)));
  }
  EXPECT_EQ(readBytes(path + ".damaged"), bytes);
  EXPECT_THAT(TuningStore::open(path, warnings.collect())->find(keyOf(1)),
              Optional(entryOf(1)));
  EXPECT_THAT(warnings.lines, testing::SizeIs(1));
}

static std::string otherDatabase(const std::string &sql) {
  const TestDirectory directory;
  const std::string path =
      directory.write("t.db", databaseBytes(1)); // Its own tables first.
  OtherConnection(path).run(sql);
  return readBytes(path);
}

INSTANTIATE_TEST_SUITE_P(
    Damaged, TuningStoreRebuilds,
    testing::Values(
        Damage{"Text", [] { return std::string("no database\n"); },
               "not a database"},
        Damage{"Garbage",
               [] {
                 std::string bytes;
                 uint32_t state = 1;
                 for (int i = 0; i < 100'000; ++i)
                   bytes.push_back(static_cast<char>(
                       (state = state * 1664525 + 1013904223) >> 24));
                 return bytes;
               },
               "not a database"},
        Damage{"CutInTheMiddle",
               [] {
                 const std::string bytes = databaseBytes(40);
                 return bytes.substr(0, bytes.size() / 2);
               },
               "malformed"},
        Damage{"CutInAPage",
               [] {
                 const std::string bytes = databaseBytes(40);
                 return bytes.substr(0, bytes.size() / 4096 / 2 * 4096 + 1000);
               },
               "malformed"},
        Damage{"OverwrittenInTheMiddle",
               [] {
                 std::string bytes = databaseBytes(40);
                 for (size_t i = 0; i < 8192; ++i)
                   bytes[bytes.size() / 2 + i] ^= 0x5a;
                 return bytes;
               },
               ""},
        Damage{"OtherVersion",
               [] { return otherDatabase("PRAGMA user_version = 7"); },
               "expected tables of version 1, got 7"},
        Damage{"OfAnotherProgram",
               [] { return otherDatabase("PRAGMA application_id = 7"); },
               "not of tuning results"},
        Damage{"OtherColumns",
               [] {
                 return otherDatabase(
                     "ALTER TABLE entry RENAME COLUMN tiles TO tile");
               },
               "no such column"}),
    [](const auto &info) { return info.param.name; });

TEST(TuningStoreDamage, ReadingAloneWarnsAndLeavesADamagedDatabase) {
  for (const std::string &bytes :
       {std::string("no database\n"), otherDatabase("PRAGMA user_version = 7"),
        otherDatabase("PRAGMA application_id = 7")}) {
    const TestDirectory directory;
    const std::string path = directory.write("t.db", bytes);
    Warnings warnings;
    EXPECT_EQ(TuningStore::openExisting(path, warnings.collect()), nullptr);
    warnings.expectOne(path, {"not used"});
    EXPECT_EQ(readBytes(path), bytes);
  }
}

// Any one byte may change anywhere: what is then found is what was kept, or
// nothing.
TEST(TuningStoreDamage, AFlippedByteNeverGivesAnotherEntry) {
  const std::string good = databaseBytes(8);
  int lost = 0;
  for (size_t at = 100; at < good.size(); at += 97) {
    const TestDirectory directory;
    std::string bytes = good;
    bytes[at] ^= 0x11;
    const std::string path = directory.write("t.db", bytes);
    Warnings warnings;
    int found = 0;
    const auto count = [&](TuningStore &store) {
      for (int i = 0; i < 8; ++i)
        if (const auto entry = store.find(keyOf(i))) {
          EXPECT_EQ(*entry, entryOf(i)) << "byte " << at;
          ++found;
        }
    };
    if (const auto reader = TuningStore::openExisting(path, warnings.collect()))
      count(*reader);
    if (found < 8)
      ++lost;
    const auto store = TuningStore::open(path, warnings.collect());
    count(*store);
    EXPECT_TRUE(store->keep(keyOf(3), entryOf(3))) << "byte " << at;
    EXPECT_THAT(store->find(keyOf(3)), Optional(entryOf(3))) << "byte " << at;
  }
  EXPECT_GT(lost, 0);
}

TEST(TuningStoreDamage, ARowOfAWrongChecksumIsAWarningAndNoEntry) {
  for (const char *change :
       {"tiles = 'rows=9'", "seconds = seconds / 2", "origin = 0",
        "symbol = 'other'", "code = zeroblob(3000)",
        "code = substr(code, 1, 2999)", "checksum = checksum + 1"}) {
    const TestDirectory directory;
    const std::string path = directory.path("t.db");
    Warnings warnings;
    const auto store = TuningStore::open(path, warnings.collect());
    ASSERT_TRUE(store->keep(keyOf(1), entryOf(1)));
    ASSERT_TRUE(store->keep(keyOf(2), entryOf(2)));
    OtherConnection(path).run(absl::StrCat("UPDATE entry SET ", change,
                                           " WHERE kernel = '", keyOf(1).kernel,
                                           "'"));
    EXPECT_EQ(store->find(keyOf(1)), std::nullopt) << change;
    warnings.expectOne(path, {keyOf(1).kernel, "checksum"});
    EXPECT_THAT(store->entries(), testing::SizeIs(1)) << change;
    EXPECT_THAT(store->find(keyOf(2)), Optional(entryOf(2)));
    EXPECT_TRUE(store->keep(keyOf(1), entryOf(3)));
    EXPECT_THAT(store->find(keyOf(1)), Optional(entryOf(3)));
  }
}

TEST(TuningStoreDamage, AProbeOfAWrongChecksumIsAWarningAndNone) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  Warnings warnings;
  const auto store = TuningStore::open(path, warnings.collect());
  ASSERT_TRUE(store->keepProbe("device", "{}"));
  OtherConnection(path).run("UPDATE probe SET results = '[]'");
  EXPECT_EQ(store->findProbe("device"), std::nullopt);
  warnings.expectOne(path, {"checksum"});
}

TEST(TuningStoreDamage, DamageThatComesLaterIsMendedWhereItIsMet) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  Warnings warnings;
  const auto store = TuningStore::open(path, warnings.collect());
  ASSERT_TRUE(store->keep(keyOf(1), entryOf(1)));
  OtherConnection(path).run("DROP TABLE entry");
  EXPECT_EQ(store->find(keyOf(1)), std::nullopt);
  warnings.expectOne(path, {"no such table", "anew"});
  EXPECT_TRUE(store->keep(keyOf(2), entryOf(2)));
  EXPECT_THAT(store->find(keyOf(2)), Optional(entryOf(2)));
  EXPECT_THAT(warnings.lines, testing::SizeIs(1));
}

TEST(TuningStoreDamage, ADatabaseThatIsDeletedMeanwhileIsMadeAgain) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  Warnings warnings;
  const auto store = TuningStore::open(path, warnings.collect());
  ASSERT_TRUE(store->keep(keyOf(1), entryOf(1)));
  for (const char *suffix : {"", "-wal", "-shm"})
    std::filesystem::remove(path + suffix);
  EXPECT_TRUE(store->keep(keyOf(2), entryOf(2)));
  EXPECT_THAT(TuningStore::open(path, warnings.collect())->find(keyOf(2)),
              Optional(entryOf(2)));
  EXPECT_THAT(warnings.lines, ElementsAre());
}

// A wait without end would be a test without one.
static constexpr milliseconds patience{200};

TEST(TuningStoreDamage, ALockedDatabaseIsAWarningAfterAShortWait) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  ASSERT_TRUE(TuningStore::open(path, nullptr)->keep(keyOf(1), entryOf(1)));
  {
    OtherConnection other(path);
    other.run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; "
              "DELETE FROM entry");
    Warnings warnings;
    const auto store = TuningStore::open(path, warnings.collect(), patience);
    warnings.expectOne(path, {"locked", "0.2 s", "not kept"});
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->find(keyOf(1)), std::nullopt);
    EXPECT_FALSE(store->keep(keyOf(1), entryOf(1)));
    EXPECT_FALSE(store->exportTo(directory.path("t.json")).ok());
    EXPECT_THAT(warnings.lines, testing::SizeIs(1));
    Warnings readerWarnings;
    EXPECT_EQ(
        TuningStore::openExisting(path, readerWarnings.collect(), patience),
        nullptr);
    readerWarnings.expectOne(path, {"locked", "not used"});
    EXPECT_FALSE(std::filesystem::exists(path + ".damaged"));
  }
  EXPECT_THAT(TuningStore::open(path, nullptr)->find(keyOf(1)),
              Optional(entryOf(1)));
}

TEST(TuningStoreDamage, ALockDuringKeepingIsAWarning) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  Warnings warnings;
  const auto store = TuningStore::open(path, warnings.collect(), patience);
  OtherConnection other(path);
  other.run("BEGIN IMMEDIATE");
  EXPECT_FALSE(store->keep(keyOf(1), entryOf(1)));
  warnings.expectOne(path, {keyOf(1).kernel, "locked"});
  EXPECT_EQ(store->find(keyOf(1)), std::nullopt);
  other.run("COMMIT");
  EXPECT_TRUE(store->keep(keyOf(1), entryOf(1)));
  EXPECT_THAT(store->find(keyOf(1)), Optional(entryOf(1)));
  EXPECT_THAT(warnings.lines, testing::SizeIs(1));
}

TEST(TuningStoreDamage, APlaceThatCannotBeWrittenToIsAWarning) {
  const TestDirectory directory;
  const std::string path =
      directory.write("file", "no folder") + "/folder/tuning.db";
  Warnings warnings;
  const auto store = TuningStore::open(path, warnings.collect());
  ASSERT_NE(store, nullptr);
  warnings.expectOne(path, {"cannot be written", "not kept"});
  EXPECT_EQ(store->find(keyOf(1)), std::nullopt);
  EXPECT_FALSE(store->keep(keyOf(1), entryOf(1)));
  EXPECT_EQ(store->findProbe("device"), std::nullopt);
  EXPECT_FALSE(store->keepProbe("device", "{}"));
  EXPECT_THAT(store->entries(), ElementsAre());
  EXPECT_THAT(warnings.lines, testing::SizeIs(1));
  EXPECT_EQ(TuningStore::openExisting(path, warnings.collect()), nullptr);
}

TEST(TuningStoreDamage, AFolderInItsPlaceIsAWarning) {
  const TestDirectory directory;
  const std::string path = directory.path("tuning.db");
  std::filesystem::create_directories(path);
  Warnings warnings;
  EXPECT_FALSE(
      TuningStore::open(path, warnings.collect())->keep(keyOf(1), entryOf(1)));
  warnings.expectOne(path, {"not kept"});
}

// In a child that is no longer root, for whom permissions do not count.
TEST(TuningStoreDamage, ADatabaseThatMayOnlyBeReadIsRead) {
  const TestDirectory directory;
  const std::string folder = directory.path("a folder with ? and #");
  const std::string path = folder + "/tuning.db";
  ASSERT_TRUE(TuningStore::open(path, nullptr)->keep(keyOf(1), entryOf(1)));
  namespace fs = std::filesystem;
  const fs::perms readable =
      fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read;
  const fs::perms reachable = readable | fs::perms::owner_exec |
                              fs::perms::group_exec | fs::perms::others_exec;
  fs::permissions(directory.path(""), reachable);
  fs::permissions(path, readable);
  fs::permissions(path + ".lock", readable);
  fs::permissions(folder, reachable);

  const pid_t child = fork();
  if (child == 0) {
    if (getuid() == 0 && setuid(65534) != 0)
      _exit(10);
    Warnings warnings;
    const auto reader = TuningStore::openExisting(path, warnings.collect());
    if (!reader || reader->find(keyOf(1)) != entryOf(1))
      _exit(11);
    if (!warnings.lines.empty())
      _exit(12);
    const auto store = TuningStore::open(path, warnings.collect());
    if (store->keep(keyOf(2), entryOf(2)) || warnings.lines.empty())
      _exit(13);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  fs::permissions(directory.path(""), fs::perms::owner_all);
  fs::permissions(folder, fs::perms::owner_all);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace llamac
