//===- Sqlite.cpp - SQLite's handles as objects ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Sqlite.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

#include <sqlite3.h>

namespace llamac {

// The kind of one of SQLite's result codes (sqlite.org/rescode.html).
static SqliteResult resultOf(int code) {
  if (code == SQLITE_IOERR_CORRUPTFS)
    return SqliteResult::Damaged;
  switch (code & 0xff) {
  case SQLITE_OK:
  case SQLITE_DONE:
    return SqliteResult::Done;
  case SQLITE_ROW:
    return SqliteResult::Row;
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
  case SQLITE_PROTOCOL: // A race for the locks of a write-ahead log was lost.
    return SqliteResult::Busy;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
  case SQLITE_FORMAT:
  case SQLITE_ERROR: // Statements are constants: only other tables refuse them.
    return SqliteResult::Damaged;
  default:
    return SqliteResult::Failed;
  }
}

void SqliteStatement::Finalize::operator()(sqlite3_stmt *statement) const {
  sqlite3_finalize(statement);
}

void SqliteDatabase::Close::operator()(sqlite3 *connection) const {
  sqlite3_close(connection);
}

// Values are copied by SQLite: a caller's text may go before the statement. A
// pointer that is null would bind NULL instead of nothing.
SqliteStatement &SqliteStatement::bind(absl::string_view text) {
  if (code == SQLITE_OK)
    code = sqlite3_bind_text64(handle.get(), ++bound,
                               text.data() ? text.data() : "", text.size(),
                               SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

SqliteStatement &SqliteStatement::bindBlob(absl::string_view bytes) {
  if (code == SQLITE_OK)
    code = sqlite3_bind_blob64(handle.get(), ++bound,
                               bytes.data() ? bytes.data() : "", bytes.size(),
                               SQLITE_TRANSIENT);
  return *this;
}

SqliteStatement &SqliteStatement::bind(int64_t value) {
  if (code == SQLITE_OK)
    code = sqlite3_bind_int64(handle.get(), ++bound, value);
  return *this;
}

SqliteStatement &SqliteStatement::bind(double value) {
  if (code == SQLITE_OK)
    code = sqlite3_bind_double(handle.get(), ++bound, value);
  return *this;
}

SqliteResult SqliteStatement::step() {
  if (code != SQLITE_OK)
    return resultOf(code);
  read = 0;
  return resultOf(sqlite3_step(handle.get()));
}

std::string SqliteStatement::readText() {
  const int column = read++;
  const unsigned char *text = sqlite3_column_text(handle.get(), column);
  const int size = sqlite3_column_bytes(handle.get(), column);
  return text ? std::string(reinterpret_cast<const char *>(text),
                            static_cast<size_t>(size))
              : std::string();
}

std::string SqliteStatement::readBlob() {
  const int column = read++;
  const void *bytes = sqlite3_column_blob(handle.get(), column);
  const int size = sqlite3_column_bytes(handle.get(), column);
  return bytes ? std::string(static_cast<const char *>(bytes),
                             static_cast<size_t>(size))
               : std::string();
}

int64_t SqliteStatement::readInt() {
  return sqlite3_column_int64(handle.get(), read++);
}

double SqliteStatement::readReal() {
  return sqlite3_column_double(handle.get(), read++);
}

// `path` as a URI (sqlite.org/uri.html) that says nobody writes to the file.
static std::string fixedUri(const std::string &path) {
  std::string uri = "file:";
  for (const char c : path)
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
        absl::StrContains("/-._~", c))
      uri += c;
    else
      absl::StrAppendFormat(&uri, "%%%02X", static_cast<unsigned char>(c));
  return uri + "?immutable=1";
}

SqliteResult SqliteDatabase::open(const std::string &path, Access access,
                                  std::chrono::milliseconds patience) {
  // A reader opens for writing too: as the last one to close a database with a
  // write-ahead log, it can only then take the log's files away again. SQLite
  // falls back to reading where writing is forbidden.
  const bool isFixed = access == Access::ReadFixed;
  const int flags =
      isFixed ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
              : SQLITE_OPEN_READWRITE |
                    (access == Access::Create ? SQLITE_OPEN_CREATE : 0);
  sqlite3 *connection = nullptr;
  const int code = sqlite3_open_v2((isFixed ? fixedUri(path) : path).c_str(),
                                   &connection, flags, nullptr);
  handle.reset(connection);
  if (code != SQLITE_OK)
    return resultOf(code);
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, static_cast<int>(patience.count()));
  return access == Access::Create ? SqliteResult::Done
                                  : run("PRAGMA query_only = 1");
}

SqliteStatement SqliteDatabase::prepare(absl::string_view sql) {
  SqliteStatement statement;
  sqlite3_stmt *prepared = nullptr;
  statement.code =
      sqlite3_prepare_v2(handle.get(), sql.data(), static_cast<int>(sql.size()),
                         &prepared, nullptr);
  statement.handle.reset(prepared);
  return statement;
}

SqliteResult SqliteDatabase::run(absl::string_view sql) {
  SqliteStatement statement = prepare(sql);
  SqliteResult result = statement.step();
  while (result == SqliteResult::Row)
    result = statement.step();
  return result;
}

SqliteResult SqliteDatabase::readNumber(absl::string_view sql,
                                        int64_t &number) {
  SqliteStatement statement = prepare(sql);
  const SqliteResult result = statement.step();
  number = result == SqliteResult::Row ? statement.readInt() : 0;
  return result == SqliteResult::Row ? SqliteResult::Done : result;
}

void SqliteDatabase::rollBack() {
  if (!sqlite3_get_autocommit(handle.get()))
    run("ROLLBACK");
}

std::string SqliteDatabase::message() const {
  return sqlite3_errmsg(handle.get());
}

int64_t SqliteDatabase::changedRows() const {
  return sqlite3_changes64(handle.get());
}

bool SqliteDatabase::hasMoved() const {
  int moved = 0;
  return sqlite3_file_control(handle.get(), "main", SQLITE_FCNTL_HAS_MOVED,
                              &moved) == SQLITE_OK &&
         moved;
}

} // namespace llamac
