//===- LineFilesTest.cpp - Files of lines, read and appended to -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/LineFiles.h"

#include "TestFiles.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llamac {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The lines of a file, "<long>" for one of more than `maxBytes`.
static std::vector<std::string> linesOf(const std::string &path,
                                        uint64_t maxBytes = 10) {
  std::vector<std::string> lines;
  const auto reader = *LineReader::open(path, maxBytes);
  while (*reader->next(/*waits=*/true) == LineReader::Outcome::Line) {
    lines.emplace_back(reader->line().value_or("<long>"));
    EXPECT_EQ(reader->number(), static_cast<int64_t>(lines.size()));
  }
  EXPECT_EQ(reader->bytes(), std::filesystem::file_size(path));
  return lines;
}

TEST(LineReader, GivesLinesWithoutTheirEnds) {
  const TestDirectory directory;
  EXPECT_THAT(linesOf(directory.write("f", "a\r\n\n\r\nb c\nlast")),
              ElementsAre("a", "", "", "b c", "last"));
  EXPECT_THAT(linesOf(directory.write("f", "a\n")), ElementsAre("a"));
  EXPECT_THAT(linesOf(directory.write("f", "")), IsEmpty());
}

TEST(LineReader, PassesOverLinesThatAreTooLong) {
  const TestDirectory directory;
  for (const size_t size : {10, 11, 12, 1 << 19}) {
    const std::string line(size, 'x');
    const std::string shown = size > 10 ? "<long>" : line;
    for (const char *end : {"\n", "\r\n"})
      EXPECT_THAT(linesOf(directory.write("f", "a\n" + line + end + "b\n")),
                  ElementsAre("a", shown, "b"))
          << size;
  }
}

TEST(LineReader, KeepsLinesAcrossBlocks) {
  const TestDirectory directory;
  std::vector<std::string> expected;
  std::string text;
  for (size_t i = 0; i < 40; ++i) {
    expected.emplace_back(i * 997, static_cast<char>('a' + i % 26));
    text += expected.back() + "\n";
  }
  ASSERT_GT(text.size(), size_t{1} << 19);
  EXPECT_EQ(linesOf(directory.write("f", text), 1 << 20), expected);
}

TEST(LineReader, DoesNotWaitForAPipe) {
  const TestDirectory directory;
  const std::string path = directory.path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int writer = open(path.c_str(), O_RDWR);
  const auto reader = *LineReader::open(path, 10);
  EXPECT_EQ(*reader->next(/*waits=*/false), LineReader::Outcome::Pending);
  ASSERT_EQ(write(writer, "ab", 2), 2);
  EXPECT_EQ(*reader->next(/*waits=*/false), LineReader::Outcome::Pending);
  ASSERT_EQ(write(writer, "c\n", 2), 2);
  EXPECT_EQ(*reader->next(/*waits=*/false), LineReader::Outcome::Line);
  EXPECT_EQ(reader->line(), "abc");
  close(writer);
}

TEST(LineReader, AFileThatCannotBeReadIsNamed) {
  const TestDirectory directory;
  const auto missing = LineReader::open(directory.path("none"), 10);
  EXPECT_EQ(exitCode(missing.status()), ExitCode::BadFile);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("none: cannot be read: No such file"));
  const auto folder = *LineReader::open(directory.path(""), 10);
  EXPECT_EQ(exitCode(folder->next(/*waits=*/true).status()), ExitCode::BadFile);
}

/// The lines that recover() gives of a file whose lines begin with "{".
static absl::StatusOr<std::vector<std::string>>
recovered(LineAppender &appender) {
  std::vector<std::string> lines;
  const absl::Status status = appender.recover(
      [&](absl::string_view line, int64_t number) {
        lines.emplace_back(line);
        EXPECT_EQ(number, static_cast<int64_t>(lines.size()));
        return absl::OkStatus();
      },
      [](absl::string_view torn) { return torn[0] == '{'; });
  if (!status.ok())
    return status;
  return lines;
}

static std::string bytesOf(const std::string &path) {
  return std::string((*MappedFile::open(path))->text());
}

TEST(LineAppender, CutsOffATornLineAndGoesOn) {
  const TestDirectory directory;
  const std::string whole = "{1}\n{22}\n";
  for (const std::string torn : {"", "{", "{3", "{3}"}) {
    const std::string path = directory.write("f", whole + torn);
    const auto appender = *LineAppender::open(path);
    EXPECT_THAT(*recovered(*appender), ElementsAre("{1}", "{22}"));
    ASSERT_TRUE(appender->append("{4}").ok());
    ASSERT_TRUE(appender->sync().ok());
    EXPECT_EQ(bytesOf(path), whole + "{4}\n");
  }
}

TEST(LineAppender, LeavesAFileOfOthersAsItIs) {
  const TestDirectory directory;
  const std::string other(1 << 20, 'x');
  const std::string path = directory.write("f", other);
  {
    const auto appender = *LineAppender::open(path);
    EXPECT_EQ(exitCode(recovered(*appender).status()), ExitCode::Usage);
  }
  EXPECT_EQ(bytesOf(path), other);
}

TEST(LineAppender, KeepsASecondWriterOut) {
  const TestDirectory directory;
  const std::string path = directory.path("f");
  const auto first = *LineAppender::open(path);
  const auto second = LineAppender::open(path);
  EXPECT_EQ(exitCode(second.status()), ExitCode::Usage);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("another process appends to it"));
}

TEST(LineAppender, AFullDiskIsAnErrorOfTheMemoryKind) {
  const auto appender = *LineAppender::open("/dev/full");
  EXPECT_THAT(*recovered(*appender), IsEmpty());
  const absl::Status status = appender->append("{1}");
  EXPECT_EQ(exitCode(status), ExitCode::Memory);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/dev/full: cannot be written: No space left"));
}

} // namespace llamac
