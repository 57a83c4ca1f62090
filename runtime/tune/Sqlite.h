//===- Sqlite.h - SQLite's handles as objects -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thin layer over SQLite's C interface: handles close themselves, values are
// bound, never pasted into a statement, and of SQLite's many result codes only
// the kinds are left that call for different acts.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_SQLITE_H
#define LLAMAC_RUNTIME_TUNE_SQLITE_H

#include "absl/strings/string_view.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace llamac {

enum class SqliteResult {
  Done,    ///< The statement has run to its end.
  Row,     ///< Columns of one more row can be read.
  Busy,    ///< Another connection held its lock for too long.
  Damaged, ///< The file is no database, a broken one, or has other tables.
  Failed,  ///< The system refused: no such folder, no right, a full disk.
};

/// A statement that values are bound to in order, and columns read from in
/// order. An error of its preparation is what step() gives.
class SqliteStatement {
public:
  SqliteStatement(SqliteStatement &&) = default;

  SqliteStatement &bind(absl::string_view text);
  SqliteStatement &bindBlob(absl::string_view bytes);
  SqliteStatement &bind(int64_t value);
  SqliteStatement &bind(double value);

  /// Runs until the next row or the end.
  SqliteResult step();

  /// The next column of the row.
  std::string readText();
  std::string readBlob();
  int64_t readInt();
  double readReal();

private:
  friend class SqliteDatabase;
  SqliteStatement() = default;

  struct Finalize {
    void operator()(sqlite3_stmt *statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle;
  int code = 0; ///< SQLite's, of the first call that failed.
  int bound = 0;
  int read = 0;
};

/// A connection. It must not be carried over a fork.
class SqliteDatabase {
public:
  enum class Access {
    Create,    ///< Reads and writes; the file is made if it is not there.
    Read,      ///< The file is there; changes nothing in it.
    ReadFixed, ///< The same, where nobody can write: takes no locks.
  };

  SqliteDatabase() = default;

  /// Opens the file at `path`; Done when that went well. Statements wait up to
  /// `patience` for the locks of others.
  SqliteResult open(const std::string &path, Access access,
                    std::chrono::milliseconds patience);

  SqliteStatement prepare(absl::string_view sql);
  /// Runs a statement that has no values; its rows are passed over.
  SqliteResult run(absl::string_view sql);
  /// The first column of the first row, as a number; 0 when there is none.
  SqliteResult readNumber(absl::string_view sql, int64_t &number);

  /// Ends a transaction that an error left open.
  void rollBack();

  /// What SQLite says of the last call that failed.
  std::string message() const;
  /// How many rows the last statement wrote.
  int64_t changedRows() const;
  /// Whether the path has another file now, or none.
  bool hasMoved() const;

private:
  struct Close {
    void operator()(sqlite3 *connection) const;
  };
  std::unique_ptr<sqlite3, Close> handle;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_SQLITE_H
