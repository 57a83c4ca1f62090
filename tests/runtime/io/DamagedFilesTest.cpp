//===- DamagedFilesTest.cpp - Outliving a truncated file ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/DamagedFiles.h"

#include "TestFiles.h"
#include "runtime/base/FatalEvents.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <thread>
#include <unistd.h>
#include <vector>

namespace llamac {

using testing::ExitedWithCode;

/// The work of a child that outlives damaged files; it ends with 0 where all
/// was as expected, else with the line of the failed check.
class DamagedFiles : public testing::Test {
protected:
  static constexpr size_t size = 1 << 20, kept = 8192;

  static void start() {
    installFatalHandlers("tool");
    outliveDamagedFiles();
  }

  std::shared_ptr<MappedFile> map(const std::string &name) {
    return *MappedFile::open(directory.write(name, std::string(size, 'x')),
                             ExitCode::BadPlan);
  }

  static void shrink(const MappedFile &file) {
    truncate(file.path().c_str(), kept);
  }

  static void expect(bool isSo, int line) {
    if (!isSo)
      _exit(line % 256);
  }

  TestDirectory directory;
};

TEST_F(DamagedFiles, WhatIsGoneAreZerosAndTheFileIsKnown) {
  const auto child = [&] {
    start();
    const auto file = map("m"), other = map("other");
    shrink(*file);
    const std::string path = file->path();
    expect(!isDamaged(path), __LINE__); // Nobody has missed anything.
    const absl::Span<const uint8_t> bytes = file->span();
    expect(bytes[kept - 1] == 'x' && !isDamaged(path), __LINE__);
    expect(std::ranges::all_of(bytes.subspan(size / 2),
                               [](uint8_t byte) { return byte == 0; }),
           __LINE__);
    expect(isDamaged(path) && !isDamaged(other->path()), __LINE__);
    expect(bytes[kept - 1] == 'x' && bytes[kept] == 0, __LINE__);
    expect(other->data()[size - 1] == 'x', __LINE__);
    _exit(0);
  };
  EXPECT_EXIT(child(), ExitedWithCode(0), "^$");
}

TEST_F(DamagedFiles, WhoeverSeesAZeroOfItFindsItDamaged) {
  const auto child = [&] {
    start();
    for (int round = 0; round < 16; ++round) {
      const auto file = map(absl::StrCat("m", round));
      shrink(*file);
      std::vector<std::thread> threads;
      for (size_t i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
          for (size_t at = size - 1 - i; at >= kept; at -= 4096)
            expect(file->data()[at] == 0 && isDamaged(file->path()), __LINE__);
        });
      for (std::thread &thread : threads)
        thread.join();
    }
    _exit(0);
  };
  EXPECT_EXIT(child(), ExitedWithCode(0), "^$");
}

TEST_F(DamagedFiles, OneMoreThanCanBeKnownEndsTheProcess) {
  const auto child = [&] {
    start();
    for (int number = 0;; ++number) {
      const auto file = map(absl::StrCat("m", number));
      shrink(*file);
      if (file->data()[size - 1] != 0 || number > 16)
        _exit(0);
    }
  };
  EXPECT_EXIT(
      child(), ExitedWithCode(static_cast<int>(ExitCode::BadPlan)),
      "^tool: error: [^ ]*/m16: cannot be read: it was truncated [^\n]*\n$");
}

} // namespace llamac
