//===- WeightMapTest.cpp - Rows of weights wherever they lie --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/WeightMap.h"

#include "TestFiles.h"
#include "runtime/formats/FloatBits.h"
#include "runtime/io/AtomicFile.h"

#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace llamac {

using testing::ElementsAreArray;
using testing::HasSubstr;

// A file of the values 0, 1, 2, ... as fp32.
static std::string counting(int count, int first = 0) {
  Bytes bytes;
  for (int i = 0; i < count; ++i)
    bytes.put(static_cast<float>(first + i));
  return bytes.text;
}

/// Expects that some columns of rows [first, first + count) are those of `all`.
static void expectColumns(const WeightMap &map, const WeightSource &weight,
                          int64_t first, int64_t count,
                          const std::vector<float> &all,
                          const ColumnRange &columns) {
  const int64_t width = *columns.count;
  std::vector<float> expected;
  for (int64_t row = 0; row < count; ++row)
    expected.insert(expected.end(),
                    all.begin() + row * weight.cols + columns.first,
                    all.begin() + row * weight.cols + columns.first + width);
  std::vector<float> values(expected.size());
  const absl::Status status =
      map.readRowsAsF32(weight, first, count, values.data(), columns);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(values, expected) << "columns " << columns.first << " +" << width;
}

static std::vector<float> readAll(const WeightMap &map,
                                  const WeightSource &weight, int64_t first,
                                  int64_t count) {
  std::vector<float> values(static_cast<size_t>(count * weight.cols));
  const absl::Status status =
      map.readRowsAsF32(weight, first, count, values.data());
  EXPECT_TRUE(status.ok()) << status;
  // The stored bytes are the same rows.
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  EXPECT_TRUE(map.readRows(weight, first, count, bytes.data()).ok());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(),
                         reinterpret_cast<const uint8_t *>(values.data())));
  for (int64_t begin = 0; begin <= weight.cols; ++begin)
    for (int64_t width = 0; width <= weight.cols - begin; ++width)
      expectColumns(map, weight, first, count, values, {begin, width});
  return values;
}

static void expectError(const absl::Status &status, ExitCode exit,
                        const std::vector<absl::string_view> &words) {
  EXPECT_EQ(exitCode(status), exit);
  for (const absl::string_view word : words)
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(word)));
}

TEST(WeightMap, ReadsRowsOfAWholeMatrix) {
  TestDirectory directory;
  WeightMap map;
  map.addFile(directory.map("f", counting(12)));
  ASSERT_TRUE(map.add({.name = "w",
                       .tensor = "w",
                       .rows = 4,
                       .cols = 3,
                       .parts = {{0, 0, 48}}})
                  .ok());
  const std::vector<float> expected = {3, 4, 5, 6, 7, 8};
  EXPECT_THAT(readAll(map, *map.find("w"), 1, 2), ElementsAreArray(expected));
  EXPECT_TRUE(readAll(map, *map.find("w"), 4, 0).empty());
  EXPECT_EQ(map.find("v"), nullptr);
}

TEST(WeightMap, JoinsPartsOfRows) {
  TestDirectory directory;
  WeightMap map;
  map.addFile(directory.map("a", "xx" + counting(2)));
  map.addFile(directory.map("b", counting(4, 2)));
  // The parts need not be of one size.
  ASSERT_TRUE(map.add({.name = "w",
                       .tensor = "w",
                       .rows = 3,
                       .cols = 2,
                       .parts = {{0, 2, 8}, {1, 0, 16}}})
                  .ok());
  const std::vector<float> expected = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(readAll(map, *map.find("w"), 0, 3), ElementsAreArray(expected));
  EXPECT_THAT(readAll(map, *map.find("w"), 2, 1), testing::ElementsAre(4, 5));
}

TEST(WeightMap, JoinsPartsOfColumns) {
  TestDirectory directory;
  WeightMap map;
  map.addFile(directory.map("a", counting(2)));
  map.addFile(directory.map("b", counting(4, 10)));
  ASSERT_TRUE(map.add({.name = "w",
                       .tensor = "w",
                       .rows = 2,
                       .cols = 3,
                       .parts = {{0, 0, 8}, {1, 0, 16}},
                       .partsDim = 1})
                  .ok());
  const std::vector<float> expected = {0, 10, 11, 1, 12, 13};
  EXPECT_THAT(readAll(map, *map.find("w"), 0, 2), ElementsAreArray(expected));
}

TEST(WeightMap, SeesRotaryHalvesAsPairs) {
  TestDirectory directory;
  WeightMap map;
  map.addFile(directory.map("a", counting(8)));
  ASSERT_TRUE(map.add({.name = "w",
                       .tensor = "w",
                       .rows = 8,
                       .cols = 1,
                       .parts = {{0, 0, 16}, {0, 16, 16}},
                       .rotaryHalves = 4})
                  .ok());
  const std::vector<float> expected = {0, 2, 1, 3, 4, 6, 5, 7};
  EXPECT_THAT(readAll(map, *map.find("w"), 0, 8), ElementsAreArray(expected));
  EXPECT_THAT(readAll(map, *map.find("w"), 2, 3),
              testing::ElementsAre(1, 3, 4));
}

TEST(WeightMap, SeesRotaryHalvesOfAVectorAsPairs) {
  TestDirectory directory;
  WeightMap map;
  map.addFile(directory.map("a", counting(8)));
  WeightSource source = {.name = "b",
                         .tensor = "b",
                         .rows = 1,
                         .cols = 8,
                         .parts = {{0, 0, 32}},
                         .rotaryHalves = 4};
  ASSERT_TRUE(map.add(source).ok());
  const std::vector<float> expected = {0, 2, 1, 3, 4, 6, 5, 7};
  EXPECT_THAT(readAll(map, *map.find("b"), 0, 1), ElementsAreArray(expected));
  // Heads that do not make the vector; elements that share a scale.
  source.name = "c";
  source.rotaryHalves = 6;
  EXPECT_EQ(exitCode(map.add(source)), ExitCode::BadFile);
  source = {.name = "q",
            .tensor = "q",
            .type = DataType::Q8_0,
            .rows = 1,
            .cols = 32,
            .parts = {{0, 0, 34}},
            .rotaryHalves = 4};
  EXPECT_EQ(exitCode(map.add(source)), ExitCode::BadFile);
}

TEST(WeightMap, AddsWhatGainsAreStoredLess) {
  TestDirectory directory;
  WeightMap map;
  map.addFile(directory.map("a", counting(4)));
  ASSERT_TRUE(map.add({.name = "g",
                       .tensor = "g",
                       .rows = 1,
                       .cols = 4,
                       .parts = {{0, 0, 16}},
                       .addend = 1})
                  .ok());
  const std::vector<float> expected = {1, 2, 3, 4};
  std::vector<float> values(4), same(4);
  ASSERT_TRUE(map.readRowsAsF32(*map.find("g"), 0, 1, values.data()).ok());
  EXPECT_THAT(values, ElementsAreArray(expected));
  ASSERT_TRUE(map.readRowsAs(*map.find("g"), DataType::F32, 0, 1,
                             reinterpret_cast<uint8_t *>(same.data()))
                  .ok());
  EXPECT_THAT(same, ElementsAreArray(expected));
}

TEST(WeightMap, JoinsBlocksOfColumns) {
  TestDirectory directory;
  // Q8_0 blocks: d = 1 and every q the row's number, or 10 more on the right.
  Bytes left, right;
  for (int row = 0; row < 2; ++row) {
    left.u16(0x3c00).add(std::string(32, static_cast<char>(row)));
    right.u16(0x3c00).add(std::string(32, static_cast<char>(10 + row)));
  }
  WeightMap map;
  map.addFile(directory.map("a", left.text));
  map.addFile(directory.map("b", right.text));
  ASSERT_TRUE(map.add({.name = "w",
                       .tensor = "w",
                       .type = DataType::Q8_0,
                       .rows = 2,
                       .cols = 64,
                       .parts = {{0, 0, 68}, {1, 0, 68}},
                       .partsDim = 1})
                  .ok());
  std::vector<float> values(128);
  ASSERT_TRUE(map.readRowsAsF32(*map.find("w"), 0, 2, values.data()).ok());
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[32], 10);
  EXPECT_EQ(values[64], 1);
  EXPECT_EQ(values[127], 11);
  std::vector<uint8_t> bytes(4 * 34);
  ASSERT_TRUE(map.readRows(*map.find("w"), 0, 2, bytes.data()).ok());
  EXPECT_EQ(bytes[34 + 2], 10);
  EXPECT_EQ(bytes[68 + 2], 1);
  // Within blocks, at their borders and over them; as stored, at borders alone.
  for (const ColumnRange columns :
       {ColumnRange{0, 32}, {32, 32}, {5, 20}, {20, 30}, {31, 2}})
    expectColumns(map, *map.find("w"), 0, 2, values, columns);
  ASSERT_TRUE(map.readRows(*map.find("w"), 0, 2, bytes.data(), {32, 32}).ok());
  EXPECT_EQ(bytes[2], 10);
  EXPECT_EQ(bytes[34 + 2], 11);
  for (const ColumnRange columns : {ColumnRange{16, 32}, {0, 16}, {32, 64}})
    EXPECT_FALSE(
        map.readRows(*map.find("w"), 0, 2, bytes.data(), columns).ok());
}

TEST(WeightMap, ReadsFromSeveralThreads) {
  TestDirectory directory;
  constexpr int rows = 2000;
  WeightMap map;
  map.addFile(directory.map("a", counting(rows * 16)));
  ASSERT_TRUE(map.add({.name = "w",
                       .tensor = "w",
                       .rows = rows,
                       .cols = 16,
                       .parts = {{0, 0, rows * 64}}})
                  .ok());
  std::vector<float> values(rows * 16);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int row = t; row < rows; row += 4)
        EXPECT_TRUE(
            map.readRowsAsF32(*map.find("w"), row, 1, &values[row * 16]).ok());
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int i = 0; i < rows * 16; ++i)
    ASSERT_EQ(values[i], i);
}

TEST(WeightMap, RefusesWeightsThatDoNotFit) {
  TestDirectory directory;
  WeightMap map;
  map.addFile(directory.map("f", counting(64)));
  const WeightSource good = {.name = "w",
                             .tensor = "model.w",
                             .rows = 4,
                             .cols = 4,
                             .parts = {{0, 0, 64}}};
  ASSERT_TRUE(map.add(good).ok());
  const auto refuses = [&](auto change, const std::string &piece) {
    WeightSource source = good;
    source.name = "other";
    change(source);
    const absl::Status status = map.add(source);
    EXPECT_EQ(exitCode(status), ExitCode::BadFile);
    EXPECT_THAT(std::string(status.message()), HasSubstr("model.w"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(piece));
  };
  refuses([](WeightSource &s) { s.name = "w"; }, "a second");
  refuses([](WeightSource &s) { s.rows = 0; }, "[0, 4]");
  refuses([](WeightSource &s) { s.rows = -4; }, "[-4, 4]");
  refuses([](WeightSource &s) { s.parts.clear(); }, "at least one");
  refuses([](WeightSource &s) { s.parts[0].file = 1; }, "below 1");
  refuses([](WeightSource &s) { s.parts[0].offset = 200; }, "256 bytes");
  refuses([](WeightSource &s) { s.parts[0].offset = UINT64_MAX; }, "extent");
  refuses([](WeightSource &s) { s.parts[0].size = 48; }, "64 bytes");
  refuses([](WeightSource &s) { s.parts[0].size = 7; }, "multiple of 16");
  refuses([](WeightSource &s) { s.type = DataType::Q8_0; }, "multiple of 32");
  refuses([](WeightSource &s) { s.rotaryHalves = 3; }, "even head size");
  refuses(
      [](WeightSource &s) {
        s.rows = int64_t{1} << 40;
        s.cols = int64_t{1} << 40;
      },
      "2^64");
  EXPECT_EQ(map.weights().size(), 1U);
}

TEST(WeightMap, NoticesAFileCutOffWhileInUse) {
  TestDirectory directory;
  const auto file = directory.map("f", counting(4096));
  WeightMap map;
  map.addFile(file);
  ASSERT_TRUE(map.add({.name = "w",
                       .tensor = "w",
                       .rows = 64,
                       .cols = 64,
                       .parts = {{0, 0, 16384}}})
                  .ok());
  std::filesystem::resize_file(file->path(), 5);
  std::vector<float> values(64);
  expectRefused(map.readRowsAsF32(*map.find("w"), 63, 1, values.data()),
                ExitCode::BadFile, file->path(), {"size", "16384", "5"});
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  TestDirectory directory;
  const auto expectBad = [](const std::string &path, const std::string &why) {
    const auto file = MappedFile::open(path);
    EXPECT_EQ(exitCode(file.status()), ExitCode::BadFile);
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(path));
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(why));
  };
  expectBad(directory.path("none"), "No such file");
  expectBad(directory.path(""), "directory");
  expectBad("/dev/null", "device");
  const std::string pipe = directory.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expectBad(pipe, "pipe");
}

TEST(WeightMap, WhatIsNotFiniteIsNotBroughtToBlocks) {
  TestDirectory directory;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(3 * 32, 1);
    values[32 + 5] = bad;
    WeightMap map;
    map.addFile(directory.map(
        "f", {reinterpret_cast<const char *>(values.data()), 3 * 32 * 4}));
    ASSERT_TRUE(map.add({.name = "w",
                         .tensor = "w.weight",
                         .rows = 3,
                         .cols = 32,
                         .parts = {{0, 0, 3 * 32 * 4}}})
                    .ok());
    std::vector<uint8_t> rows(3 * 32 * 4);
    for (const DataType type :
         {DataType::Q8_0, DataType::Q4_0, DataType::MXFP8, DataType::FP8}) {
      const auto read = [&](int64_t first, int64_t count) {
        return map.readRowsAs(*map.find("w"), type, first, count, rows.data());
      };
      expectError(read(0, 3), ExitCode::BadFile,
                  {"w.weight: row 1, column 5", dataTypeName(type)});
      expectError(read(1, 1), ExitCode::BadFile, {"row 1, column 5"});
      EXPECT_TRUE(read(2, 1).ok());
    }
    // It is still there, and shows in the logits.
    ASSERT_TRUE(
        map.readRowsAs(*map.find("w"), DataType::BF16, 1, 1, rows.data()).ok());
    EXPECT_FALSE(
        isFinite(bf16ToF32(static_cast<uint16_t>(rows[10] | rows[11] << 8))));
  }
}

TEST(MappedFile, WithoutFreeDescriptorsTheErrorIsOfTheMemoryKind) {
  TestDirectory directory;
  const std::string path = directory.write("f", "text");
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status read = MappedFile::open(path).status();
  const absl::Status written = AtomicFile::create(path).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  expectError(read, ExitCode::Memory, {path, "Too many open files"});
  expectError(written, ExitCode::Memory, {path, "Too many open files"});
}

TEST(MappedFile, SlicesWithinItsBounds) {
  TestDirectory directory;
  const auto file = directory.map("f", "0123456789");
  const auto slice = file->slice(3, 4);
  ASSERT_TRUE(slice.ok());
  EXPECT_EQ(std::string(slice->begin(), slice->end()), "3456");
  EXPECT_TRUE(file->slice(10, 0).ok());
  for (const auto &[offset, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {10, 1}, {11, 0}, {0, 11}, {5, UINT64_MAX}, {UINT64_MAX, 1}})
    expectRefused(file->slice(offset, size).status(), ExitCode::BadFile,
                  file->path(), {"extent", "10 bytes"});
  const auto empty = directory.map("empty", "");
  EXPECT_EQ(empty->size(), 0U);
  EXPECT_TRUE(empty->slice(0, 0).ok());
}

TEST(Fingerprint, ChangesWithContentSizeNameAndTime) {
  TestDirectory directory;
  constexpr size_t size = 3 << 20;
  std::string content(size, 'a');
  const std::string path = directory.write("f", content);
  const auto time = std::filesystem::last_write_time(path);
  const auto fingerprint = [&](const std::string &where) {
    const auto file = MappedFile::open(where);
    const auto result = fingerprintFiles({*file});
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->size(), 32U);
    return *result;
  };
  const std::string original = fingerprint(path);
  EXPECT_EQ(fingerprint(path), original);

  // In the same directory or another one, by the same name: the same model.
  const std::string moved = directory.write("sub/f", content);
  std::filesystem::last_write_time(moved, time);
  EXPECT_EQ(fingerprint(moved), original);

  for (size_t at : {size_t{0}, size_t{1 << 20}, size - 1}) {
    std::string changed = content;
    changed[at] = 'b';
    directory.write("f", changed);
    std::filesystem::last_write_time(path, time);
    EXPECT_NE(fingerprint(path), original) << at;
  }
  directory.write("f", content);
  std::filesystem::last_write_time(path, time);
  EXPECT_EQ(fingerprint(path), original);
  std::filesystem::last_write_time(path, time + std::chrono::seconds(1));
  EXPECT_NE(fingerprint(path), original);
  const std::string renamed = directory.write("g", content);
  std::filesystem::last_write_time(renamed, time);
  EXPECT_NE(fingerprint(renamed), original);
}

static std::vector<bool> syncs; ///< Whether each was of a folder.

/// In the place of the system's.
extern "C" int fsync(int descriptor) {
  struct stat info;
  syncs.push_back(fstat(descriptor, &info) == 0 && S_ISDIR(info.st_mode));
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

TEST(AtomicFile, TheNameIsOnTheDiskToo) {
  TestDirectory directory;
  syncs.clear();
  ASSERT_TRUE(writeFileAtomically(directory.path("f"), "text").ok());
  EXPECT_EQ(syncs, (std::vector<bool>{false, true}));
}

TEST(AtomicFile, LeavesTheOldFileUntilItIsWhole) {
  TestDirectory directory;
  const std::string path = directory.write("f", "old");
  const auto content = [&](const std::string &name) {
    const auto file = MappedFile::open(directory.path(name));
    return file.ok() ? std::string((*file)->text()) : "none";
  };
  const auto files = [&] {
    return std::distance(
        std::filesystem::directory_iterator(directory.path("")),
        std::filesystem::directory_iterator());
  };
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->write("new").ok());
    EXPECT_EQ(content("f"), "old");
    EXPECT_EQ(files(), 2);
  }
  EXPECT_EQ(content("f"), "old");
  EXPECT_EQ(files(), 1) << "the temporary file stays";

  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file.ok());
  const std::string large(3 << 20, 'x');
  ASSERT_TRUE((*file)->write("ab").ok());
  ASSERT_TRUE((*file)->write(large).ok());
  ASSERT_TRUE((*file)->write("cd").ok());
  const uint8_t patch[] = {'B'};
  ASSERT_TRUE((*file)->overwrite(1, patch).ok());
  ASSERT_TRUE((*file)->commit().ok());
  EXPECT_EQ(content("f"), "aB" + large + "cd");
  EXPECT_EQ(files(), 1);
}

TEST(AtomicFile, PutsNoFileInThePlaceOfADeviceOrDirectory) {
  TestDirectory directory;
  const std::string pipe = directory.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string &path : {pipe, directory.path("")}) {
    const auto file = AtomicFile::create(path);
    EXPECT_EQ(exitCode(file.status()), ExitCode::Usage);
    EXPECT_THAT(std::string(file.status().message()),
                HasSubstr("expected the name of a file"));
  }
  // Text goes through the pipe, which stays one.
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(writeFileAtomically(pipe, "text").ok());
  char got[8] = {};
  EXPECT_EQ(read(reader, got, sizeof(got)), 4);
  EXPECT_STREQ(got, "text");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(AtomicFile, SaysWhyAPathCannotBeWritten) {
  const auto file = AtomicFile::create("/nonexistent-directory/f");
  EXPECT_EQ(exitCode(file.status()), ExitCode::Usage);
  EXPECT_THAT(
      std::string(file.status().message()),
      HasSubstr("/nonexistent-directory/f: cannot be written: No such"));
}

} // namespace llamac
