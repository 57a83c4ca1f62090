//===- TuningStore.cpp - What tuning found, kept --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SQLite lets processes write at once and be killed at any moment, with its
// rollback journal on any file system. It reports damage but does not mend it:
// who opens the database for tuning checks all of it, and puts a damaged one
// aside under a lock of its own, so that other processes find the new database.
//
//===----------------------------------------------------------------------===//

#include "runtime/tuned/TuningStore.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/CacheFolder.h"
#include "runtime/io/JsonText.h"
#include "runtime/io/MappedFile.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

namespace llamac {

// Marks the database in a field that SQLite leaves to its users: "lltu".
static constexpr int64_t applicationId = 0x6c6c7475;
// Goes up with any change of an entry, here and in exported files.
static constexpr int64_t tuningVersion = 2;

// `value` is an entry as exported files have them.
static constexpr const char *createTable =
    "CREATE TABLE entry (device TEXT NOT NULL, generator TEXT NOT NULL, "
    "kernel TEXT NOT NULL, value TEXT NOT NULL, imported TEXT NOT NULL, "
    "PRIMARY KEY (device, generator, kernel))";
static constexpr const char *selectEntries =
    "SELECT value, imported FROM entry "
    "WHERE (?1 = '' OR device = ?1) AND (?2 = '' OR generator = ?2) "
    "ORDER BY device, generator, kernel";
static constexpr const char *insertEntry =
    "INSERT OR REPLACE INTO entry SELECT ?1, ?2, ?3, ?4, ?5 "
    "WHERE ?5 = '' OR NOT EXISTS (SELECT 1 FROM entry WHERE device = ?1 AND "
    "generator = ?2 AND kernel = ?3 AND imported = '')";

//===----------------------------------------------------------------------===//
// Entries as JSON
//===----------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

static constexpr std::pair<const char *, std::string TuningEntry::*> texts[] = {
    {"device", &TuningEntry::device},
    {"generator", &TuningEntry::generator},
    {"kernel", &TuningEntry::kernel},
    {"config", &TuningEntry::config},
    {"runner_up", &TuningEntry::runnerUp}};
static constexpr std::pair<const char *, double TuningEntry::*> numbers[] = {
    {"seconds", &TuningEntry::seconds},
    {"default_seconds", &TuningEntry::defaultSeconds},
    {"runner_up_seconds", &TuningEntry::runnerUpSeconds}};

/// Discarded when `text` is no JSON. Deeper values than those of an entry are
/// left out: trees are copied and written by recursion, which hostile ones
/// overflow.
static Json parseTuning(absl::string_view text) {
  constexpr int entryDepth = 4;
  return Json::parse(
      text.begin(), text.end(),
      [](int depth, Json::parse_event_t, Json &) {
        return depth <= entryDepth;
      },
      /*allow_exceptions=*/false);
}

static Json toJson(const TuningEntry &entry) {
  Json row = Json::object();
  for (const auto &[name, text] : texts)
    row[name] = entry.*text;
  for (const auto &[name, number] : numbers)
    row[name] = entry.*number;
  return row;
}

/// The member `name` of `object`; null when there is none.
static const Json *find(const Json &object, const char *name) {
  const auto member = object.find(name);
  return member == object.end() ? nullptr : &*member;
}

static absl::Status
wrong(const std::string &place, absl::string_view expected, const Json *got,
      absl::Status (*makeError)(absl::string_view) = badFileError) {
  return makeError(absl::StrCat(place, ": expected ", expected, ", got ",
                                got ? jsonText(*got).substr(0, 80) : "none"));
}

static absl::StatusOr<TuningEntry> fromJson(const std::string &place,
                                            const Json &row) {
  TuningEntry entry;
  for (const auto &[name, text] : texts) {
    const Json *member = find(row, name);
    if (!member || !member->is_string() ||
        member->get_ref<const std::string &>().size() > 4096)
      return wrong(place + name, "a text of at most 4096 bytes", member);
    entry.*text = member->get<std::string>();
  }
  for (const auto &[name, number] : numbers) {
    const Json *member = find(row, name);
    entry.*number = member && member->is_number() ? member->get<double>() : -1;
    if (!std::isfinite(entry.*number) || entry.*number < 0)
      return wrong(place + name, "a number of at least 0", member);
  }
  return entry;
}

absl::Status exportTuning(absl::Span<const TuningEntry> entries,
                          const std::string &file) {
  Json root = {{"format", "llamac-tuning"},
               {"version", tuningVersion},
               {"entries", Json::array()}};
  for (const TuningEntry &entry : entries)
    root["entries"].push_back(toJson(entry));
  return writeFileAtomically(file, jsonText(root, 1) + "\n");
}

absl::StatusOr<std::vector<TuningEntry>> importTuning(const std::string &file) {
  constexpr uint64_t limit = uint64_t{64} << 20;
  LLAMAC_ASSIGN_OR_RETURN(const auto mapped, MappedFile::open(file));
  if (mapped->size() > limit)
    return badFileError(absl::StrCat(file, ": expected at most ", limit,
                                     " bytes, got ", mapped->size()));
  const Json root = parseTuning(mapped->text());
  const Json *format = find(root, "format"), *rows = find(root, "entries");
  if (!format || *format != "llamac-tuning")
    return wrong(file + ": format", "llamac-tuning", format);
  if (const Json *version = find(root, "version");
      !version || *version != tuningVersion)
    return wrong(file + ": version", absl::StrCat(tuningVersion), version,
                 unsupportedError);
  if (!rows || !rows->is_array())
    return wrong(file + ": entries", "an array", rows);
  std::vector<TuningEntry> entries;
  for (size_t i = 0; i < rows->size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(
        entries.emplace_back(),
        fromJson(absl::StrCat(file, ": entries[", i, "]."), (*rows)[i]));
    entries.back().imported = true;
  }
  return entries;
}

//===----------------------------------------------------------------------===//
// SQLite
//===----------------------------------------------------------------------===//

namespace {

/// A prepared statement. After an error it does nothing more.
class Statement {
public:
  Statement(sqlite3 *database, const char *sql,
            std::initializer_list<absl::string_view> values = {})
      : code(sqlite3_prepare_v2(database, sql, -1, &handle, nullptr)) {
    int place = 0;
    for (const absl::string_view text : values)
      if (code == SQLITE_OK)
        code = sqlite3_bind_text64(handle, ++place, text.data(), text.size(),
                                   SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  Statement(const Statement &) = delete;
  ~Statement() { sqlite3_finalize(handle); }

  bool nextRow() {
    if (code == SQLITE_OK || code == SQLITE_ROW)
      code = sqlite3_step(handle);
    return code == SQLITE_ROW;
  }
  std::string text(int column) {
    const unsigned char *bytes = sqlite3_column_text(handle, column);
    return bytes ? reinterpret_cast<const char *>(bytes) : "";
  }
  int64_t number(int column) { return sqlite3_column_int64(handle, column); }

  /// SQLITE_OK where all went well.
  int result() const { return code == SQLITE_DONE ? SQLITE_OK : code; }

private:
  sqlite3_stmt *handle = nullptr;
  int code;
};

} // namespace

/// Whether a new database helps: only other tables refuse these statements.
static bool isDamage(int code) {
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB ||
         code == SQLITE_FORMAT || code == SQLITE_ERROR;
}

static int run(sqlite3 *database, const std::string &sql) {
  return sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
}

absl::Status TuningStore::failure(absl::string_view task, int code) const {
  return memoryError(
      absl::StrCat(path, ": ", task, ": ", sqlite3_errstr(code)));
}

/// Waits for others for `patience` milliseconds. SQLITE_NOTADB for a database
/// with other tables or of another version.
int TuningStore::openFile(int flags, int patience, bool &isEmpty) {
  sqlite3 *connection = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &connection, flags, nullptr);
  database.reset(connection, sqlite3_close);
  if (code != SQLITE_OK)
    return code;
  sqlite3_busy_timeout(connection, patience);
  Statement query(connection,
                  "SELECT application_id, user_version, "
                  "(SELECT count(*) FROM sqlite_schema) "
                  "FROM pragma_application_id, pragma_user_version");
  if (!query.nextRow())
    return query.result();
  const int64_t id = query.number(0), version = query.number(1);
  isEmpty = id == 0 && version == 0 && query.number(2) == 0;
  const bool isOurs = id == applicationId && version == tuningVersion;
  return isEmpty || isOurs ? SQLITE_OK : SQLITE_NOTADB;
}

/// Opens the database and reads all of it; makes the tables of a new one.
int TuningStore::openTables() {
  bool isEmpty = false;
  int code =
      openFile(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 5000, isEmpty);
  if (code == SQLITE_OK && isEmpty)
    code = run(database.get(),
               absl::StrCat("BEGIN IMMEDIATE; ", createTable,
                            "; PRAGMA application_id = ", applicationId,
                            "; PRAGMA user_version = ", tuningVersion,
                            "; COMMIT"));
  if (code != SQLITE_OK)
    return code;
  Statement check(database.get(), "PRAGMA integrity_check(1)");
  if (!check.nextRow())
    return check.result();
  // SQLite has checked its tables, which may have other columns than ours.
  return check.text(0) == "ok"
             ? Statement(database.get(), selectEntries).result()
             : SQLITE_CORRUPT;
}

absl::StatusOr<std::unique_ptr<TuningStore>>
TuningStore::open(const std::string &path,
                  absl::FunctionRef<void(absl::string_view)> warn) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(),
                                      error);
  const int lock = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT, 0600);
  if (lock < 0)
    return memoryError(
        absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
  const auto unlock = absl::MakeCleanup([&] { close(lock); });
  while (flock(lock, LOCK_EX) != 0 && errno == EINTR)
    ;
  std::unique_ptr<TuningStore> store(new TuningStore(path));
  int code = store->openTables();
  if (isDamage(code)) {
    store->database.reset();
    const std::string aside = path + ".damaged";
    warn(absl::StrCat(path, ": ", sqlite3_errstr(code), "; renamed to ", aside,
                      " and begun anew"));
    // Journals first: one left behind would be played into the new database.
    for (const char *suffix : {"-journal", "-wal", "-shm", ""}) {
      std::filesystem::remove(aside + suffix, error);
      std::filesystem::rename(path + suffix, aside + suffix, error);
    }
    code = store->openTables();
  }
  if (code != SQLITE_OK)
    return store->failure("opening it", code);
  return store;
}

// A reader may have to roll back the journal of a killed writer, and so opens
// for writing; SQLite falls back to reading where that is forbidden.
absl::StatusOr<std::unique_ptr<TuningStore>>
TuningStore::openExisting(const std::string &path) {
  if (std::error_code error; !std::filesystem::exists(path, error))
    return nullptr;
  std::unique_ptr<TuningStore> store(new TuningStore(path));
  bool isEmpty = false;
  const int code = store->openFile(SQLITE_OPEN_READWRITE, 1000, isEmpty);
  if (code != SQLITE_OK)
    return store->failure("opening it", code);
  return isEmpty ? nullptr : std::move(store);
}

absl::StatusOr<std::string> tuningStorePath() {
  LLAMAC_ASSIGN_OR_RETURN(const std::string folder, cacheFolder("tuning"));
  return folder + "/tuning.db";
}

absl::StatusOr<std::vector<TuningEntry>>
TuningStore::entries(const std::string &device, const std::string &generator) {
  std::vector<TuningEntry> all;
  Statement select(database.get(), selectEntries, {device, generator});
  while (select.nextRow()) {
    LLAMAC_ASSIGN_OR_RETURN(all.emplace_back(),
                            fromJson(path + ": ", parseTuning(select.text(0))));
    all.back().imported = !select.text(1).empty();
  }
  if (select.result() != SQLITE_OK)
    return failure("reading it", select.result());
  return all;
}

absl::StatusOr<int> TuningStore::keep(absl::Span<const TuningEntry> entries) {
  int taken = 0;
  int code = run(database.get(), "BEGIN IMMEDIATE");
  for (size_t i = 0; i < entries.size() && code == SQLITE_OK; ++i) {
    const TuningEntry &entry = entries[i];
    Statement insert(database.get(), insertEntry,
                     {entry.device, entry.generator, entry.kernel,
                      jsonText(toJson(entry)), entry.imported ? "yes" : ""});
    insert.nextRow();
    code = insert.result();
    taken += sqlite3_changes(database.get());
  }
  if (code == SQLITE_OK)
    code = run(database.get(), "COMMIT");
  if (code == SQLITE_OK)
    return taken;
  if (!sqlite3_get_autocommit(database.get()))
    run(database.get(), "ROLLBACK");
  return failure("keeping what was found", code);
}

} // namespace llamac
