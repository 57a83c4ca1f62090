//===- TuningStoreTest.cpp - What tuning found, kept ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuningTestKit.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

namespace llamac {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::Pair;

TEST(TuningStore, FindsWhatWasKeptAfterItIsOpenedAgain) {
  const TestDirectory directory;
  const std::string path = directory.path("new/folder/tuning.db");
  Warnings warnings;
  {
    const auto store = TuningStore::open(path, warnings.collect());
    EXPECT_TRUE(store->keep(keyOf(1), entryOf(1)));
    EXPECT_THAT(store->find(keyOf(1)), Optional(entryOf(1)));
  }
  EXPECT_THAT(TuningStore::open(path, warnings.collect())->find(keyOf(1)),
              Optional(entryOf(1)));
  const auto reader = TuningStore::openExisting(path, warnings.collect());
  ASSERT_NE(reader, nullptr);
  EXPECT_THAT(reader->find(keyOf(1)), Optional(entryOf(1)));
  EXPECT_THAT(warnings.lines, ElementsAre());
}

TEST(TuningStore, KeepsWhatIsEmptyOrUnusual) {
  const TestDirectory directory;
  Warnings warnings;
  const auto store =
      TuningStore::open(directory.path("t.db"), warnings.collect());
  TuningEntry entry;
  entry.seconds = std::numeric_limits<double>::denorm_min();
  entry.firstSeconds = std::numeric_limits<double>::max();
  entry.predicted = -0.0;
  entry.origin = TuningOrigin::Modelled;
  const TuningKey key{"a 'quoted'; DROP TABLE entry; --",
                      std::string("zero \0 inside", 13), "%_*?\n\xff"};
  EXPECT_TRUE(store->keep(key, entry));
  EXPECT_THAT(store->find(key), Optional(entry));
  EXPECT_THAT(store->entries(), ElementsAre(Pair(key, entry)));
  EXPECT_THAT(warnings.lines, ElementsAre());
}

TEST(TuningStore, TellsKeysApartByEachOfTheirParts) {
  const TestDirectory directory;
  const auto store = TuningStore::open(directory.path("t.db"), nullptr);
  ASSERT_TRUE(store->keep({"device", "generator", "kernel"}, entryOf(1)));
  EXPECT_EQ(store->find({"other", "generator", "kernel"}), std::nullopt);
  EXPECT_EQ(store->find({"device", "other", "kernel"}), std::nullopt);
  EXPECT_EQ(store->find({"device", "generator", "other"}), std::nullopt);
  EXPECT_EQ(store->find({"device", "generator", "KERNEL"}), std::nullopt);
}

TEST(TuningStore, ReplacesAnEntry) {
  const TestDirectory directory;
  const auto store = TuningStore::open(directory.path("t.db"), nullptr);
  ASSERT_TRUE(store->keep(keyOf(1), entryOf(1)));
  ASSERT_TRUE(store->keep(keyOf(1), entryOf(2)));
  EXPECT_THAT(store->entries(), ElementsAre(Pair(keyOf(1), entryOf(2))));
}

TEST(TuningStore, ListsEntriesByKeyAndByDevice) {
  const TestDirectory directory;
  const auto store = TuningStore::open(directory.path("t.db"), nullptr);
  const TuningKey first{"a", "g", "k2"};
  const TuningKey second{"b", "g", "k1"};
  const TuningKey third{"b", "g", "k2"};
  ASSERT_TRUE(store->keep(third, entryOf(3)));
  ASSERT_TRUE(store->keep(first, entryOf(1)));
  ASSERT_TRUE(store->keep(second, entryOf(2)));
  EXPECT_THAT(store->entries(),
              ElementsAre(Pair(first, entryOf(1)), Pair(second, entryOf(2)),
                          Pair(third, entryOf(3))));
  EXPECT_THAT(store->entries("b"),
              ElementsAre(Pair(second, entryOf(2)), Pair(third, entryOf(3))));
  EXPECT_THAT(store->entries("c"), ElementsAre());
}

TEST(TuningStore, KeepsWhatADeviceWasMeasuredToDo) {
  const TestDirectory directory;
  const auto store = TuningStore::open(directory.path("t.db"), nullptr);
  EXPECT_EQ(store->findProbe("device"), std::nullopt);
  ASSERT_TRUE(store->keepProbe("device", R"({"read": 1})"));
  ASSERT_TRUE(store->keepProbe("other", R"({"read": 2})"));
  ASSERT_TRUE(store->keepProbe("device", R"({"read": 3})"));
  EXPECT_THAT(store->findProbe("device"),
              Optional(std::string(R"({"read": 3})")));
  EXPECT_THAT(store->findProbe("other"),
              Optional(std::string(R"({"read": 2})")));
}

TEST(TuningStore, RefusesNumbersThatNoLaunchTakes) {
  const TestDirectory directory;
  const std::string path = directory.path("t.db");
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {0.0, -1e-6, infinity, nan}) {
    Warnings warnings;
    const auto store = TuningStore::open(path, warnings.collect());
    TuningEntry entry = entryOf(1);
    entry.seconds = bad;
    EXPECT_FALSE(store->keep(keyOf(1), entry));
    warnings.expectOne(path, {keyOf(1).kernel, "seconds", "over 0",
                              absl::StrCat("got ", bad)});
    EXPECT_EQ(store->find(keyOf(1)), std::nullopt);
  }
}

TEST(TuningStore, ReadingAloneMakesNothing) {
  const TestDirectory directory;
  const std::string path = directory.path("folder/tuning.db");
  Warnings warnings;
  EXPECT_EQ(TuningStore::openExisting(path, warnings.collect()), nullptr);
  EXPECT_FALSE(std::filesystem::exists(directory.path("folder")));
  // Another process has made the file, but not yet its tables.
  directory.write("folder/tuning.db", "");
  EXPECT_EQ(TuningStore::openExisting(path, warnings.collect()), nullptr);
  EXPECT_THAT(warnings.lines, ElementsAre());
}

TEST(TuningStore, ReadingAloneLeavesTheFolderAsItWas) {
  const TestDirectory directory;
  const std::string path = directory.path("tuning.db");
  ASSERT_TRUE(TuningStore::open(path, nullptr)->keep(keyOf(1), entryOf(1)));
  const auto list = [&] {
    std::vector<std::string> names;
    for (const auto &file : std::filesystem::directory_iterator(
             std::filesystem::path(path).parent_path()))
      names.push_back(file.path().filename().string());
    std::ranges::sort(names);
    return names;
  };
  const std::vector<std::string> before = list();
  Warnings warnings;
  {
    const auto reader = TuningStore::openExisting(path, warnings.collect());
    ASSERT_NE(reader, nullptr);
    EXPECT_THAT(reader->find(keyOf(1)), Optional(entryOf(1)));
    EXPECT_FALSE(reader->keep(keyOf(2), entryOf(2)));
    warnings.expectOne(path, {keyOf(2).kernel});
  }
  EXPECT_EQ(list(), before);
}

TEST(TuningStore, IsKeptInTheUsersCacheFolder) {
  const TestDirectory directory;
  ASSERT_EQ(setenv("XDG_CACHE_HOME", directory.path("cache").c_str(), 1), 0);
  const auto path = tuningStorePath();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, directory.path("cache/llamac/tuning/tuning.db"));
}

TEST(TuningExchange, MovesEntriesBetweenStoresWithoutTheirCode) {
  const TestDirectory directory;
  const auto from = TuningStore::open(directory.path("from.db"), nullptr);
  ASSERT_TRUE(from->keep(keyOf(1), entryOf(1)));
  TuningEntry modelled = entryOf(2);
  modelled.origin = TuningOrigin::Modelled;
  ASSERT_TRUE(from->keep(keyOf(2), modelled));
  const std::string file = directory.path("tuning.json");
  ASSERT_TRUE(from->exportTo(file).ok());

  const auto to = TuningStore::open(directory.path("to.db"), nullptr);
  EXPECT_THAT(*to->importFrom(file), 2);
  TuningEntry measuredElsewhere = entryOf(1);
  measuredElsewhere.origin = TuningOrigin::Imported;
  measuredElsewhere.symbol.clear();
  measuredElsewhere.code.clear();
  modelled.symbol.clear();
  modelled.code.clear();
  EXPECT_THAT(to->entries(), ElementsAre(Pair(keyOf(1), measuredElsewhere),
                                         Pair(keyOf(2), modelled)));
  // What comes out of it again is as it came in.
  const std::string again = directory.path("again.json");
  ASSERT_TRUE(to->exportTo(again).ok());
  const auto third = TuningStore::open(directory.path("third.db"), nullptr);
  EXPECT_THAT(*third->importFrom(again), 2);
  EXPECT_EQ(third->entries(), to->entries());
}

TEST(TuningExchange, WritesTheDocumentedMembers) {
  const TestDirectory directory;
  const auto store = TuningStore::open(directory.path("t.db"), nullptr);
  ASSERT_TRUE(store->keep({"d", "g", "k"}, entryOf(1)));
  ASSERT_TRUE(store->exportTo(directory.path("t.json")).ok());
  const auto root =
      nlohmann::json::parse(std::ifstream(directory.path("t.json")));
  const TuningEntry entry = entryOf(1);
  EXPECT_EQ(root,
            nlohmann::json({{"format", "llamac-tuning"},
                            {"version", 1},
                            {"entries",
                             {{{"device", "d"},
                               {"generator", "g"},
                               {"kernel", "k"},
                               {"tiles", entry.tiles},
                               {"seconds", entry.seconds},
                               {"first_seconds", entry.firstSeconds},
                               {"predicted", entry.predicted},
                               {"runner_up", entry.runnerUp},
                               {"runner_up_seconds", entry.runnerUpSeconds},
                               {"origin", "measured"},
                               {"time", entry.time}}}}}));
}

TEST(TuningExchange, ReplacesOnlyWhatIsTrustedNoMore) {
  const TestDirectory directory;
  const auto from = TuningStore::open(directory.path("from.db"), nullptr);
  const auto to = TuningStore::open(directory.path("to.db"), nullptr);
  const TuningOrigin origins[] = {
      TuningOrigin::Modelled, TuningOrigin::Imported, TuningOrigin::Measured};
  // A kernel for each pair of what comes in and what is there.
  for (int there = 0; there < 3; ++there)
    for (int coming = 0; coming < 3; ++coming) {
      TuningEntry entry = entryOf(1);
      entry.origin = origins[coming];
      ASSERT_TRUE(from->keep(keyOf(3 * there + coming), entry));
      entry = entryOf(2);
      entry.origin = origins[there];
      ASSERT_TRUE(to->keep(keyOf(3 * there + coming), entry));
    }
  ASSERT_TRUE(from->exportTo(directory.path("t.json")).ok());
  EXPECT_THAT(*to->importFrom(directory.path("t.json")), 5);
  const auto tilesOf = [&](int there, int coming) {
    return to->find(keyOf(3 * there + coming))->tiles;
  };
  const std::string fromFile = entryOf(1).tiles;
  const std::string own = entryOf(2).tiles;
  for (int coming = 0; coming < 3; ++coming) {
    EXPECT_EQ(tilesOf(0, coming), fromFile);
    EXPECT_EQ(tilesOf(1, coming), coming == 0 ? own : fromFile);
    EXPECT_EQ(tilesOf(2, coming), own);
  }
}

struct BadExport {
  const char *name;
  const char *from; ///< Replaced in a good file, everything if empty,
  std::string to;   ///< by this.
  std::vector<std::string> pieces;
  ExitCode exit = ExitCode::BadFile;
};
static void PrintTo(const BadExport &bad, std::ostream *os) { *os << bad.name; }
class TuningExchangeRefuses : public testing::TestWithParam<BadExport> {};

TEST_P(TuningExchangeRefuses, FileAndChangesNothing) {
  const BadExport &bad = GetParam();
  // The second entry is the bad one: the first must not be taken either.
  std::string text =
      R"({"format": "llamac-tuning", "version": 1, "entries": [)";
  for (const char *kernel : {"good", "bad"})
    text += absl::StrCat(
        R"({"device": "d", "generator": "g", "kernel": ")", kernel,
        R"(", "tiles": "t", "seconds": 1e-6, "first_seconds": 2e-6, )",
        R"("predicted": 1e-6, "runner_up": "", "runner_up_seconds": 0, )",
        R"("origin": "measured", "time": 5})", *kernel == 'g' ? ", " : "]}");
  const TestDirectory directory;
  Warnings warnings;
  const auto store =
      TuningStore::open(directory.path("t.db"), warnings.collect());
  ASSERT_TRUE(store->keep(keyOf(1), entryOf(1)));
  ASSERT_TRUE(store->importFrom(directory.write("good.json", text)).ok());
  const std::vector<KeptTuning> before = store->entries();
  ASSERT_EQ(before.size(), 3U);

  if (*bad.from) {
    // Newer names, so that a part of the file that is taken would be seen.
    for (size_t at = text.find("\"g\""); at != std::string::npos;
         at = text.find("\"g\"", at))
      text.replace(at, 3, "\"h\"");
    const size_t at = text.rfind(bad.from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, std::string(bad.from).size(), bad.to);
  } else {
    text = bad.to;
  }
  const std::string file = directory.write("bad.json", text);
  expectRefused(store->importFrom(file).status(), bad.exit, file, bad.pieces);
  EXPECT_EQ(store->entries(), before);
  EXPECT_THAT(warnings.lines, ElementsAre());
}

INSTANTIATE_TEST_SUITE_P(
    Bad, TuningExchangeRefuses,
    testing::Values(
        BadExport{"NoJson", "", "seconds = 1", {"JSON", "well-formed"}},
        BadExport{"CutShort", "\"time\": 5}]}", "\"ti", {"JSON"}},
        BadExport{"NoObject", "", "[]", {"root", "an object"}},
        BadExport{"OtherFormat",
                  "llamac-tuning",
                  "something",
                  {"format", "llamac-tuning", "something"}},
        BadExport{"OtherVersion",
                  "\"version\": 1",
                  "\"version\": 2",
                  {"version", "expected 1", "got 2"},
                  ExitCode::Unsupported},
        BadExport{"NoEntries",
                  "\"entries\"",
                  "\"rows\"",
                  {"entries", "an array", "no such key"}},
        BadExport{"EntriesNoArray",
                  "",
                  R"({"format":"llamac-tuning","version":1,"entries":3})",
                  {"entries", "an array", "3"}},
        BadExport{"MissingMember",
                  "\"tiles\"",
                  "\"tile\"",
                  {"tiles", "a string", "no such key"}},
        BadExport{"MissingNumber",
                  "\"seconds\"",
                  "\"second\"",
                  {"seconds", "a number", "no such key"}},
        BadExport{
            "NotANumber", "\"seconds\": 1e-6", "\"seconds\": NaN", {"JSON"}},
        BadExport{"TooLarge",
                  "\"seconds\": 1e-6",
                  "\"seconds\": 1e999",
                  {"JSON", "1e999"}},
        BadExport{"Text",
                  "\"seconds\": 1e-6",
                  "\"seconds\": \"1\"",
                  {"seconds", "a finite number"}},
        BadExport{"Negative",
                  "\"seconds\": 1e-6",
                  "\"seconds\": -1e-6",
                  {"seconds", "over 0", "-1e-06"}},
        BadExport{"Zero",
                  "\"first_seconds\": 2e-6",
                  "\"first_seconds\": 0",
                  {"first_seconds", "over 0", "got 0"}},
        BadExport{"NegativePrediction",
                  "\"predicted\": 1e-6",
                  "\"predicted\": -1",
                  {"predicted", "at least 0", "-1"}},
        BadExport{"BeforeItsTime",
                  "\"time\": 5",
                  "\"time\": -5",
                  {"time", "at least 0", "-5"}},
        BadExport{"OtherOrigin",
                  "\"measured\"",
                  "\"guessed\"",
                  {"origin", "measured", "guessed"}},
        BadExport{"EmptyKey",
                  "\"kernel\": \"bad\"",
                  "\"kernel\": \"\"",
                  {"kernel", "1 to 4096 bytes", "got 0"}},
        BadExport{"LongKey",
                  "\"kernel\": \"bad\"",
                  "\"kernel\": \"" + std::string(5000, 'k') + "\"",
                  {"kernel", "4096", "got 5000"}},
        BadExport{"DeepNesting",
                  "\"time\": 5",
                  "\"x\": " + std::string(100, '['),
                  {"nesting", "8"}}),
    [](const auto &info) { return info.param.name; });

TEST(TuningExchange, RefusesAHugeFileWithoutReadingIt) {
  const TestDirectory directory;
  const auto store = TuningStore::open(directory.path("t.db"), nullptr);
  const std::string file = directory.write("huge.json", "{");
  std::filesystem::resize_file(file, uint64_t{1} << 40);
  expectRefused(store->importFrom(file).status(), ExitCode::BadFile, file,
                {"size", "67108864", "1099511627776"});
}

TEST(TuningExchange, NamesFilesThatCannotBeReadOrWritten) {
  const TestDirectory directory;
  const auto store = TuningStore::open(directory.path("t.db"), nullptr);
  const std::string missing = directory.path("missing/t.json");
  const absl::Status notRead = store->importFrom(missing).status();
  EXPECT_EQ(exitCode(notRead), ExitCode::BadFile);
  EXPECT_THAT(notRead.message(), HasSubstr(missing));
  const absl::Status notWritten = store->exportTo(missing);
  EXPECT_EQ(exitCode(notWritten), ExitCode::Usage);
  EXPECT_THAT(notWritten.message(), HasSubstr(missing));
}

} // namespace llamac
