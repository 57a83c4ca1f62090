//===- TestFiles.h - Files for tests of readers --------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builders of well-formed and broken binary files, and the check that every
// refusal passes.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_RUNTIME_IO_TESTFILES_H
#define LLAMAC_TESTS_RUNTIME_IO_TESTFILES_H

#include "runtime/base/Status.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>
#include <zlib.h>

namespace llamac {

/// A directory that goes away with the object.
class TestDirectory {
public:
  TestDirectory() {
    // In memory where there is such a place: tests write thousands of files.
    const std::filesystem::path memory = "/dev/shm";
    const std::filesystem::path parent =
        std::filesystem::is_directory(memory)
            ? memory
            : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "llamac-io-XXXXXX").string();
    root = mkdtemp(pattern.data());
  }
  TestDirectory(const TestDirectory &) = delete;
  TestDirectory &operator=(const TestDirectory &) = delete;
  ~TestDirectory() { std::filesystem::remove_all(root); }

  std::string path(const std::string &name) const { return root + "/" + name; }

  /// Writes a file and gives its path.
  std::string write(const std::string &name, const std::string &bytes) const {
    const std::string to = path(name);
    std::filesystem::create_directories(
        std::filesystem::path(to).parent_path());
    std::ofstream(to, std::ios::binary) << bytes;
    return to;
  }

  std::shared_ptr<MappedFile> map(const std::string &name,
                                  const std::string &bytes) const {
    absl::StatusOr<std::shared_ptr<MappedFile>> file =
        MappedFile::open(write(name, bytes));
    EXPECT_TRUE(file.ok()) << file.status();
    return *file;
  }

private:
  std::string root;
};

/// Little-endian fields, one after the other.
class Bytes {
public:
  template <typename T> Bytes &put(T value) {
    text.append(reinterpret_cast<const char *>(&value), sizeof(T));
    return *this;
  }
  Bytes &u8(uint64_t v) { return put(static_cast<uint8_t>(v)); }
  Bytes &u16(uint64_t v) { return put(static_cast<uint16_t>(v)); }
  Bytes &u32(uint64_t v) { return put(static_cast<uint32_t>(v)); }
  Bytes &u64(uint64_t v) { return put(v); }
  Bytes &add(const std::string &bytes) {
    text += bytes;
    return *this;
  }
  /// A u64 length and the bytes, as GGUF has strings.
  Bytes &string(const std::string &value) {
    return u64(value.size()).add(value);
  }
  Bytes &alignTo(size_t alignment) {
    while (text.size() % alignment != 0)
      text += '\0';
    return *this;
  }

  std::string text;
};

/// Checks that `status` is an error of kind `exit` with one line of the form
/// `file:offset: field: expected ..., got ...`, or of JSON
/// `file:line:column: ...`, that names `file` and has all of `pieces`.
inline void expectRefused(const absl::Status &status, ExitCode exit,
                          const std::string &file,
                          const std::vector<std::string> &pieces) {
  ASSERT_FALSE(status.ok()) << "was accepted";
  const std::string message(status.message());
  SCOPED_TRACE(message);
  EXPECT_EQ(exitCode(status), exit);
  ASSERT_TRUE(absl::StartsWith(message, absl::StrCat(file, ":")));
  EXPECT_THAT(message.substr(file.size()),
              testing::MatchesRegex(":[0-9:]+: .+: expected .+, got .+"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_LT(message.size() - file.size(), 1000U);
  for (const std::string &piece : pieces)
    EXPECT_THAT(message.substr(file.size()), testing::HasSubstr(piece));
}

/// One entry of a zip file; the fields can be made to lie.
struct TestEntry {
  std::string name;
  std::string data;
  uint16_t method = 0;
  uint16_t flags = 0;
  /// When set, what the local header says instead.
  std::string localName = {};
  std::optional<uint32_t> localSize = {};
  std::optional<uint32_t> crc = {};
  std::optional<uint32_t> size = {};
  std::optional<uint32_t> headerOffset = {};
  std::string extra = {};
};

/// The fields of a zip file's end, when they lie.
struct TestZipEnd {
  std::optional<uint16_t> entries = {};
  std::optional<uint32_t> size = {};
  std::optional<uint32_t> offset = {};
  uint16_t disk = 0;
  std::string comment = {};
};

inline uint32_t crcOf(const std::string &data) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef *>(data.data()),
            static_cast<uInt>(data.size())));
}

inline std::string makeZip(const std::vector<TestEntry> &entries,
                           const TestZipEnd &end = {}) {
  Bytes file;
  std::vector<size_t> headers;
  for (const TestEntry &e : entries) {
    headers.push_back(file.text.size());
    const std::string name = e.localName.empty() ? e.name : e.localName;
    file.u32(0x04034b50).u16(20).u16(e.flags).u16(e.method).u32(0);
    file.u32(e.crc.value_or(crcOf(e.data)));
    file.u32(e.localSize.value_or(e.data.size()));
    file.u32(e.localSize.value_or(e.data.size()));
    file.u16(name.size()).u16(0).add(name).add(e.data);
  }
  const size_t directory = file.text.size();
  for (size_t i = 0; i < entries.size(); ++i) {
    const TestEntry &e = entries[i];
    file.u32(0x02014b50).u16(20).u16(20).u16(e.flags).u16(e.method).u32(0);
    file.u32(e.crc.value_or(crcOf(e.data)));
    file.u32(e.size.value_or(e.data.size()));
    file.u32(e.size.value_or(e.data.size()));
    file.u16(e.name.size()).u16(e.extra.size()).u16(0).u16(0).u16(0).u32(0);
    file.u32(e.headerOffset.value_or(headers[i])).add(e.name).add(e.extra);
  }
  const size_t size = file.text.size() - directory;
  file.u32(0x06054b50).u16(end.disk).u16(0);
  file.u16(end.entries.value_or(entries.size()));
  file.u16(end.entries.value_or(entries.size()));
  file.u32(end.size.value_or(size)).u32(end.offset.value_or(directory));
  file.u16(end.comment.size()).add(end.comment);
  return file.text;
}

/// Pieces of a pickle of protocol 2.
inline std::string pickleText(const std::string &value) {
  return Bytes().add("X").u32(value.size()).add(value).text;
}
inline std::string pickleInt(uint32_t value) {
  return Bytes().add("J").u32(value).text;
}
inline std::string pickleGlobal(const std::string &module,
                                const std::string &name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string pickleTuple(const std::vector<uint32_t> &values) {
  std::string text = "(";
  for (uint32_t value : values)
    text += pickleInt(value);
  return text + "t";
}

/// The fields of a pickled tensor.
struct TestTensor {
  std::string storageType = "FloatStorage";
  std::string key = "0";
  uint32_t storageElements = 6;
  std::string offset = pickleInt(0);
  std::string shape = pickleTuple({2, 3});
  std::string strides = pickleTuple({3, 1});
};
inline std::string pickleTensor(const TestTensor &t = {}) {
  return pickleGlobal("torch._utils", "_rebuild_tensor_v2") + "((" +
         pickleText("storage") + pickleGlobal("torch", t.storageType) +
         pickleText(t.key) + pickleText("cpu") + pickleInt(t.storageElements) +
         "tQ" + t.offset + t.shape + t.strides + "\x89" +
         pickleGlobal("collections", "OrderedDict") + ")RtR";
}
/// A state dict of items, each a pickled key and value.
inline std::string pickleDict(const std::string &items) {
  return "\x80\x02" + pickleGlobal("collections", "OrderedDict") + ")R(" +
         items + "u.";
}

} // namespace llamac

#endif // LLAMAC_TESTS_RUNTIME_IO_TESTFILES_H
