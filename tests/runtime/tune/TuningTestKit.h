//===- TuningTestKit.h - Entries and warnings of the tests ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_RUNTIME_TUNE_TUNINGTESTKIT_H
#define LLAMAC_TESTS_RUNTIME_TUNE_TUNINGTESTKIT_H

#include "runtime/tune/TuningStore.h"

#include "tests/runtime/io/TestFiles.h"

#include "absl/strings/str_cat.h"

#include <sqlite3.h>

namespace llamac {

inline TuningKey keyOf(int number) {
  return {"a cpu, 2 cores, AVX-512", "0123456789abcdef",
          absl::StrCat("gemv q4_1 ", number, "x576, 1 row")};
}

/// An entry that differs from those of other numbers in every member, with code
/// of every byte there is.
inline TuningEntry entryOf(int number) {
  TuningEntry entry;
  entry.tiles = absl::StrCat("rows=", number);
  entry.seconds = 1e-6 * (number + 1) / 3;
  entry.firstSeconds = 2e-6 * (number + 1) / 3;
  entry.predicted = 3e-6 * (number + 1) / 3;
  entry.runnerUp = absl::StrCat("rows=", number + 1);
  entry.runnerUpSeconds = 4e-6 * (number + 1) / 3;
  entry.time = 1'700'000'000 + number;
  entry.symbol = absl::StrCat("kernel_", number);
  for (int i = 0; i < 3000; ++i)
    entry.code.push_back(static_cast<char>(i + number));
  return entry;
}

/// The warnings of a store, in order.
class Warnings {
public:
  TuningStore::Warn collect() {
    return [this](absl::string_view text) { lines.emplace_back(text); };
  }
  /// Expects one line that names `path` and has all of `pieces`.
  void expectOne(const std::string &path,
                 const std::vector<std::string> &pieces) const {
    EXPECT_THAT(lines, testing::SizeIs(1));
    for (const std::string &line : lines) {
      EXPECT_THAT(line, testing::StartsWith(path));
      EXPECT_THAT(line, testing::Not(testing::HasSubstr("\n")));
      for (const std::string &piece : pieces)
        EXPECT_THAT(line, testing::HasSubstr(piece));
    }
  }

  std::vector<std::string> lines;
};

/// A database that another program has open.
class OtherConnection {
public:
  explicit OtherConnection(const std::string &path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  }
  OtherConnection(const OtherConnection &) = delete;
  OtherConnection &operator=(const OtherConnection &) = delete;
  ~OtherConnection() { sqlite3_close(handle); }

  /// Runs statements; gives the text of the first column of the last row.
  std::string run(const std::string &sql) {
    std::string last;
    const auto keepLast = [](void *to, int, char **values, char **) {
      *static_cast<std::string *>(to) = values[0] ? values[0] : "";
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), keepLast, &last, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(handle);
    return last;
  }

private:
  sqlite3 *handle = nullptr;
};

} // namespace llamac

#endif // LLAMAC_TESTS_RUNTIME_TUNE_TUNINGTESTKIT_H
