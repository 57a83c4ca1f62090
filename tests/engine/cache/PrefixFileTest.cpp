//===- PrefixFileTest.cpp - A prefix cache in a file ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/cache/PrefixFile.h"

#include "runtime/base/Status.h"
#include "tests/TemporaryFolder.h"
#include "tests/runtime/plan/PlanBytes.h"

#include "absl/strings/str_cat.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace llamac {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Where the parts of the file that is written here begin: its 3 nodes have 2
/// tokens and 2 groups of layers.
constexpr uint64_t tableAt = 64, nodesAt = tableAt + 16,
                   tokensAt = nodesAt + 3 * 24, presenceAt = tokensAt + 3 * 8,
                   identityAt = presenceAt + 3 * 2;

class PrefixFileTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(write().ok());
    bytes = readBytes(path);
  }

  /// The second node has no page of group 1.
  absl::Status write(FileCalls calls = FileCalls::system()) const {
    static constexpr int32_t tokens[] = {1, 2, 3, 4, 5, 6};
    const absl::Span<const int32_t> all = tokens;
    const PrefixFileNode nodes[] = {{-1, all.subspan(0, 2)},
                                    {0, all.subspan(2, 2)},
                                    {0, all.subspan(4, 2)}};
    return writePrefixFile(
        path, layout, nodes,
        [&](size_t node, size_t group,
            std::vector<uint8_t> &to) -> absl::StatusOr<bool> {
          if (node == 1 && group == 1)
            return false;
          to.insert(to.end(), layout.pageBytes[group], byteOf(node, group));
          return true;
        },
        std::move(calls));
  }

  static uint8_t byteOf(size_t node, size_t group) {
    return static_cast<uint8_t>(16 * (node + 1) + group);
  }

  absl::Status openStatus() const {
    return PrefixFile::open(path, layout).status();
  }

  /// The error of the file with other bytes at `offset`, and with the right
  /// checksum where `isSealed`.
  template <typename T>
  absl::Status withValue(uint64_t offset, T value, bool isSealed = true) {
    std::string changed = bytes;
    std::memcpy(changed.data() + offset, &value, sizeof(value));
    if (isSealed)
      seal(changed);
    writeBytes(path, changed);
    return openStatus();
  }

  static void seal(std::string &file) {
    const std::string hashed =
        file.substr(0, 48) +
        file.substr(tableAt, identityAt - tableAt + identity.size());
    const PlanHash hash = hashBytes(
        {reinterpret_cast<const uint8_t *>(hashed.data()), hashed.size()});
    std::memcpy(file.data() + 48, &hash, sizeof(hash));
  }

  inline static const std::string identity = "plan 1 on cpu";
  const PrefixFileLayout layout = {identity, 2, {100, 5000}};
  TemporaryFolder folder;
  std::string path = folder.file("prefixes");
  std::string bytes;
};

TEST_F(PrefixFileTest, NodesAndPagesComeBack) {
  const auto file = PrefixFile::open(path, layout);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->size(), 3u);
  const int64_t parents[] = {-1, 0, 0};
  for (size_t node = 0; node < 3; ++node) {
    EXPECT_EQ((*file)->node(node).parent, parents[node]);
    EXPECT_THAT((*file)->node(node).tokens,
                testing::ElementsAre(2 * node + 1, 2 * node + 2));
    for (size_t group = 0; group < 2; ++group) {
      ASSERT_EQ((*file)->has(node, group), node != 1 || group != 1);
      if (!(*file)->has(node, group))
        continue;
      const auto page = (*file)->page(node, group);
      ASSERT_TRUE(page.ok()) << page.status();
      EXPECT_EQ(page->size(), layout.pageBytes[group]);
      EXPECT_THAT(*page, testing::Each(byteOf(node, group)));
    }
  }
  (*file)->forget(2);
  EXPECT_FALSE((*file)->has(2, 0));
  EXPECT_TRUE((*file)->has(0, 1));
}

TEST_F(PrefixFileTest, EveryByteOfHeaderAndTableCounts) {
  for (uint64_t i = 0; i < identityAt + identity.size(); ++i) {
    const absl::Status status =
        withValue<uint8_t>(i, static_cast<uint8_t>(bytes[i]) ^ 1, false);
    EXPECT_EQ(exitCode(status), ExitCode::BadFile) << i << ": " << status;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
}

TEST_F(PrefixFileTest, AFileCutAnywhereIsRefused) {
  for (size_t size = 0; size < bytes.size(); size += size < 300 ? 1 : 997) {
    writeBytes(path, bytes.substr(0, size));
    EXPECT_EQ(exitCode(openStatus()), ExitCode::BadFile) << size;
  }
  writeBytes(path, bytes + "x");
  EXPECT_EQ(exitCode(openStatus()), ExitCode::BadFile);
}

TEST_F(PrefixFileTest, ErrorsSayWhatIsWrongWhereAndWhatToDo) {
  const auto says = [](const absl::Status &status, const std::string &what) {
    EXPECT_EQ(exitCode(status), ExitCode::BadFile);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(what), HasSubstr("name another")));
  };
  constexpr auto huge = uint64_t{1} << 63;
  says(withValue<uint64_t>(0, 0), ":0: magic: expected that of a prefix cache");
  says(withValue<uint32_t>(8, 7), ":8: version of the prefix cache: expected "
                                  "1, got 7");
  says(withValue<uint32_t>(12, 0x80000000), ":24: table: expected to end");
  says(withValue<uint32_t>(20, 5000), ":20: bytes of the identity: expected at "
                                      "most 4096, got 5000");
  for (const uint64_t nodes : {huge, ~uint64_t{0}, uint64_t{1000}})
    says(withValue<uint64_t>(24, nodes), ":24: table: expected to end within");
  says(withValue<uint64_t>(32, 5), ":32: size of the file: expected 5 bytes");
  says(withValue<uint64_t>(40, 5), ":40: reserved field: expected 0, got 5");
  says(withValue<uint8_t>(tokensAt, 9, false), ":48: checksum of header and");
  says(withValue<uint64_t>(tableAt + 8, huge),
       ":72: bytes of a page of group 1: expected 5000, got "
       "9223372036854775808");
  says(withValue<int64_t>(nodesAt + 24, 1),
       ":104: parent of node 1: expected a node before it, or -1, got 1");
  says(withValue<int64_t>(nodesAt, -2), ":80: parent of node 0");
  says(withValue<uint8_t>(presenceAt + 3, 1), "pages of node 2: expected to");
  says(withValue<uint8_t>(presenceAt + 5, 0), "size of the file: expected");
}

TEST_F(PrefixFileTest, ALayoutOfTheSameIdentityIsChecked) {
  PrefixFileLayout other = layout;
  other.pageTokens = 4;
  EXPECT_THAT(std::string(PrefixFile::open(path, other).status().message()),
              HasSubstr(":12: tokens of a page: expected 4, got 2"));
  other = layout;
  other.pageBytes = {100};
  EXPECT_THAT(std::string(PrefixFile::open(path, other).status().message()),
              HasSubstr(":16: groups of layers: expected 1, got 2"));
}

TEST_F(PrefixFileTest, AFileOfAnotherModelIsRefusedAndStays) {
  PrefixFileLayout other = layout;
  other.identity = "plan 2 on cpu";
  const absl::Status status = PrefixFile::open(path, other).status();
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_EQ(status.message(),
            absl::StrCat(path, ": expected a prefix cache of plan 2 on cpu, "
                               "got one of plan 1 on cpu; name another file, "
                               "or remove it to begin anew"));
  EXPECT_EQ(readBytes(path), bytes);
}

TEST_F(PrefixFileTest, DamagedPagesAreFoundOutWhenTheyAreRead) {
  bytes[bytes.size() - 1] ^= 1;
  writeBytes(path, bytes);
  const auto file = PrefixFile::open(path, layout);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->page(1, 0).ok());
  const absl::Status status = (*file)->page(2, 0).status();
  EXPECT_EQ(exitCode(status), ExitCode::BadFile);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("checksum of the pages of node 2: expected"));
}

TEST_F(PrefixFileTest, AWriteThatFailsLeavesTheOldFile) {
  FileCalls full = FileCalls::system();
  full.write = [](int, const void *, size_t, off_t) -> ssize_t {
    errno = ENOSPC;
    return -1;
  };
  FileCalls unsynced = FileCalls::system();
  unsynced.sync = [](int) {
    errno = EIO;
    return -1;
  };
  EXPECT_EQ(exitCode(write(full)), ExitCode::Memory);
  EXPECT_EQ(exitCode(write(unsynced)), ExitCode::Device);
  EXPECT_EQ(readBytes(path), bytes);
}

} // namespace
} // namespace llamac
