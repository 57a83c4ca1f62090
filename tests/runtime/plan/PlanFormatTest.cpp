//===- PlanFormatTest.cpp - The container of a plan file ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Headers and tables that lie, with checksums that fit the lie.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "tests/runtime/plan/PlanBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace llamac {
namespace {

using testing::HasSubstr;

struct Lie {
  const char *name;
  std::function<void(PlanParts &)> tell;
  const char *message;
};

void PrintTo(const Lie &lie, std::ostream *out) { *out << lie.name; }

constexpr uint64_t maxOffset = std::numeric_limits<uint64_t>::max();

const Lie lies[] = {
    {"Magic", [](PlanParts &p) { p.header.magic[1] = 'X'; },
     "expected a plan or a model, got another kind of file"},
    {"VersionBefore", [](PlanParts &p) { p.header.version = 0; },
     "plan version: expected 8, got 0"},
    {"VersionAfter", [](PlanParts &p) { p.header.version = 9; },
     "plan version: expected 8, got 9"},
    {"NoSections", [](PlanParts &p) { p.header.sectionCount = 0; },
     "section count: expected 1 to"},
    {"TooManySections", [](PlanParts &p) { p.header.sectionCount = 1u << 31; },
     "section count: expected 1 to"},
    {"MoreSectionsThanTable", [](PlanParts &p) { p.header.sectionCount = 40; },
     "section count: expected 1 to"},
    {"OneSectionLess", [](PlanParts &p) { --p.header.sectionCount; },
     "expected the manifest to be the last"},
    {"OneSectionMore", [](PlanParts &p) { ++p.header.sectionCount; },
     "hashes of section 5: expected 16 bytes, got 0"},
    {"FileSize", [](PlanParts &p) { ++p.header.fileBytes; },
     "file size: expected"},
    {"FileSizeHuge", [](PlanParts &p) { p.header.fileBytes = maxOffset; },
     "file size: expected"},
    {"TableBeforeHeaderEnds", [](PlanParts &p) { p.header.tableOffset = 8; },
     "section table: expected to end the file"},
    {"TableOutside", [](PlanParts &p) { p.header.tableOffset = maxOffset; },
     "section table: expected to end the file"},
    {"TableLater",
     [](PlanParts &p) {
       p.header.tableOffset += 16;
       p.header.tableBytes -= 16;
     },
     "checksum of header and table"},
    {"TableTooLong", [](PlanParts &p) { p.header.tableBytes = maxOffset; },
     "section table: expected to end the file"},
    {"HeaderReserved", [](PlanParts &p) { p.header.reserved = 1; },
     "reserved field: expected 0, got 1"},
    {"UnknownKind", [](PlanParts &p) { p.entries[1].kind = 7; },
     "section 1 (unknown): kind: expected 1 to 6, got 7"},
    {"KindZero", [](PlanParts &p) { p.entries[1].kind = 0; },
     "kind: expected 1 to 6, got 0"},
    {"TwoManifests", [](PlanParts &p) { p.entries[0].kind = 1; },
     "expected the manifest to be the last section and no other"},
    {"NoManifest", [](PlanParts &p) { p.entries.back().kind = 2; },
     "expected the manifest to be the last section"},
    {"Overlap", [](PlanParts &p) { p.entries[1].offset -= 64; },
     "section 1 (weight): offset: expected 8192"},
    {"Hole", [](PlanParts &p) { p.entries[1].offset += 4096; },
     "section 1 (weight): offset: expected 8192, got 12288"},
    {"Misaligned", [](PlanParts &p) { p.entries[1].offset += 1; },
     "section 1 (weight): offset: expected 8192, got 8193"},
    {"OffsetHuge", [](PlanParts &p) { p.entries[1].offset = maxOffset - 63; },
     "section 1 (weight): offset: expected 8192"},
    {"SizeHuge", [](PlanParts &p) { p.entries[0].size = maxOffset; },
     "section 0 (weight): size: expected to end before"},
    {"SizeWraps", [](PlanParts &p) { p.entries[0].size = maxOffset - 4095; },
     "section 0 (weight): size: expected to end before"},
    {"SizeIntoTable", [](PlanParts &p) { p.entries.back().size += 1; },
     "size: expected to end before"},
    {"SizeShort", [](PlanParts &p) { p.entries.back().size -= 1; },
     "section table: expected at"},
    {"PiecesMore", [](PlanParts &p) { p.entries[2].pieces = 2; },
     "section 2 (constants): hashes: expected 1, got 2"},
    {"PiecesNone", [](PlanParts &p) { p.entries[2].pieces = 0; },
     "section 2 (constants): hashes: expected 1, got 0"},
    {"PiecesHuge", [](PlanParts &p) { p.entries[2].pieces = 0xffffffff; },
     "section 2 (constants): hashes: expected 1"},
    {"EntryReserved", [](PlanParts &p) { p.entries[3].reserved = 9; },
     "section 3 (code): reserved field: expected 0, got 9"},
    {"DirtyGap", [](PlanParts &p) { p.sections[100] = 'x'; },
     "gap before section 0 (weight): expected zeros, got 120"},
    {"HashMissing",
     [](PlanParts &p) {
       p.hashes.pop_back();
       p.header.tableBytes -= 16;
       p.header.fileBytes -= 16;
     },
     "hashes of section 6: expected 16 bytes, got 0"},
    {"HashTooMany",
     [](PlanParts &p) {
       p.hashes.emplace_back();
       p.header.tableBytes += 16;
       p.header.fileBytes += 16;
     },
     "section table: expected at"},
    {"HashOfWeight", [](PlanParts &p) { p.hashes[1].low ^= 1; },
     "section 1 (weight): checksum of 384 bytes: expected"},
    {"HashOfManifest", [](PlanParts &p) { p.hashes.back().high ^= 1; },
     "section 6 (manifest): checksum of"},
    {"SectionsSwapped",
     [](PlanParts &p) { std::swap(p.hashes[0], p.hashes[1]); },
     "section 0 (weight): checksum of 384 bytes"},
};

class PlanFormatTest : public testing::TestWithParam<Lie> {};

TEST_P(PlanFormatTest, IsFound) {
  PlanParts parts = splitPlan(unsoundPlan(toy::makeToyPlan()));
  GetParam().tell(parts);
  const absl::Status status = readStatus(parts.bytes());
  EXPECT_EQ(exitCode(status), ExitCode::BadPlan) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("bad.plan:"));
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_THAT(message, testing::ContainsRegex(
                           "compile it again|: llamac compile |a model is a"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Lies, PlanFormatTest, testing::ValuesIn(lies),
                         [](const auto &info) { return info.param.name; });

TEST(PlanFormatTest, HandMadePlansAreTheWriters) {
  const TemporaryFolder folder;
  const std::string path = folder.file("toy.plan");
  ASSERT_TRUE(toy::writeToyPlan(toy::makeToyPlan(), path).ok());
  EXPECT_EQ(readBytes(path), unsoundPlan(toy::makeToyPlan()));
}

} // namespace
} // namespace llamac
