//===- TuningStore.cpp - What tuning found, kept --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SQLite sees to it that processes can write at once and be killed at any
// moment. Left to this file is what SQLite does not do:
//
//  - It has no checksums: each row carries one of its own, over all of its
//    columns, and a row without the right one counts as not there.
//  - It reports damage but does not mend it. Whoever opens the database for
//    tuning checks all of it, and puts it aside when something is wrong. That
//    happens under a lock of its own, so that of several processes only the
//    first does it, and the others find the new database.
//  - A connection whose file was put aside, or deleted with its folder, goes on
//    in the old file. Writers look before each statement and open anew.
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/TuningStore.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/CacheFolder.h"
#include "runtime/tune/TuningExchange.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <thread>
#include <unistd.h>
#include <xxhash.h>

namespace llamac {

using std::chrono::milliseconds;

// Marks the database as one of these, in a field that SQLite leaves to its
// users: "lltu".
static constexpr int64_t applicationId = 0x6c6c7475;
// Goes up with any change of the tables or of what their columns mean.
static constexpr int64_t schemaVersion = 1;

static constexpr const char *makeEntryTable =
    "CREATE TABLE entry ("
    "device TEXT NOT NULL, generator TEXT NOT NULL, kernel TEXT NOT NULL, "
    "tiles TEXT NOT NULL, seconds REAL NOT NULL, first_seconds REAL NOT NULL, "
    "predicted REAL NOT NULL, runner_up TEXT NOT NULL, "
    "runner_up_seconds REAL NOT NULL, origin INTEGER NOT NULL, "
    "time INTEGER NOT NULL, symbol TEXT NOT NULL, code BLOB NOT NULL, "
    "checksum INTEGER NOT NULL, PRIMARY KEY (device, generator, kernel))";
static constexpr const char *makeProbeTable =
    "CREATE TABLE probe (device TEXT PRIMARY KEY NOT NULL, "
    "results TEXT NOT NULL, checksum INTEGER NOT NULL)";

// The columns in the order of readRow() and insert().
static constexpr const char *selectEntries =
    "SELECT device, generator, kernel, tiles, seconds, first_seconds, "
    "predicted, runner_up, runner_up_seconds, origin, time, symbol, code, "
    "checksum FROM entry ";
static constexpr const char *insertEntry =
    "INSERT OR REPLACE INTO entry (device, generator, kernel, tiles, seconds, "
    "first_seconds, predicted, runner_up, runner_up_seconds, origin, time, "
    "symbol, code, checksum) "
    "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14 ";
static constexpr const char *unlessOneIsTrustedMore =
    "WHERE NOT EXISTS (SELECT 1 FROM entry WHERE device = ?1 AND "
    "generator = ?2 AND kernel = ?3 AND origin > ?10)";
static constexpr const char *selectProbe =
    "SELECT results, checksum FROM probe WHERE device = ?1";
static constexpr const char *insertProbe =
    "INSERT OR REPLACE INTO probe (device, results, checksum) "
    "VALUES (?1, ?2, ?3)";

static constexpr size_t maxTextBytes = 4096;
static constexpr size_t maxCodeBytes = size_t{64} << 20;

//===----------------------------------------------------------------------===//
// Checks and checksums
//===----------------------------------------------------------------------===//

std::optional<TuningProblem> findProblem(const TuningKey &key,
                                         const TuningEntry &entry) {
  struct Text {
    absl::string_view field;
    const std::string &text;
    size_t least = 0;
    size_t most = maxTextBytes;
  };
  const Text texts[] = {{"device", key.device, 1},
                        {"generator", key.generator, 1},
                        {"kernel", key.kernel, 1},
                        {"tiles", entry.tiles},
                        {"runner_up", entry.runnerUp},
                        {"symbol", entry.symbol},
                        {"code", entry.code, 0, maxCodeBytes}};
  for (const auto &[field, text, least, most] : texts)
    if (text.size() < least || text.size() > most)
      return TuningProblem{field, absl::StrCat(least, " to ", most, " bytes"),
                           absl::StrCat(text.size())};
  struct Seconds {
    absl::string_view field;
    double seconds;
    bool mayBeZero;
  };
  const Seconds all[] = {{"seconds", entry.seconds, false},
                         {"first_seconds", entry.firstSeconds, false},
                         {"predicted", entry.predicted, true},
                         {"runner_up_seconds", entry.runnerUpSeconds, true}};
  for (const auto &[field, seconds, mayBeZero] : all)
    if (!std::isfinite(seconds) || seconds < 0 || (seconds == 0 && !mayBeZero))
      return TuningProblem{field,
                           mayBeZero ? "a finite number of at least 0"
                                     : "a finite number over 0",
                           absl::StrCat(seconds)};
  if (entry.time < 0)
    return TuningProblem{"time", "at least 0", absl::StrCat(entry.time)};
  return std::nullopt;
}

// Lengths keep a byte from wandering from one text to the next.
static void appendText(std::string &all, absl::string_view text) {
  absl::StrAppend(&all, text.size(), ":", text);
}

static int64_t hashOf(absl::string_view all) {
  return std::bit_cast<int64_t>(XXH3_64bits(all.data(), all.size()));
}

static int64_t checksumOf(const TuningKey &key, const TuningEntry &entry) {
  std::string all;
  for (const std::string *text :
       {&key.device, &key.generator, &key.kernel, &entry.tiles, &entry.runnerUp,
        &entry.symbol, &entry.code})
    appendText(all, *text);
  // Of the two zeros SQLite keeps but one; the sum makes it the same one.
  for (const double seconds : {entry.seconds, entry.firstSeconds,
                               entry.predicted, entry.runnerUpSeconds})
    absl::StrAppend(&all, std::bit_cast<uint64_t>(seconds + 0.0), ",");
  absl::StrAppend(&all, static_cast<int>(entry.origin), ",", entry.time);
  return hashOf(all);
}

static int64_t checksumOf(const std::string &device, absl::string_view probe) {
  std::string all;
  appendText(all, device);
  appendText(all, probe);
  return hashOf(all);
}

//===----------------------------------------------------------------------===//
// Files beside the database
//===----------------------------------------------------------------------===//

namespace {

// Held by one process at a time, until the object or the process ends.
class FileLock {
public:
  FileLock(const std::string &path, milliseconds patience) {
    using Clock = std::chrono::steady_clock;
    descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) {
      problem = absl::StrCat("cannot be written: ", std::strerror(errno));
      return;
    }
    const Clock::time_point end = Clock::now() + patience;
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      // File systems without such locks have to do without.
      if (errno != EWOULDBLOCK && errno != EINTR)
        return;
      if (Clock::now() >= end) {
        problem = "being opened by another process for too long";
        return;
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;
  ~FileLock() {
    if (descriptor >= 0)
      close(descriptor);
  }

  std::string problem; ///< Why it is not held; empty: it is.

private:
  int descriptor = -1;
};

} // namespace

// Whether `path` is on a file system that several machines may have mounted.
static bool isOnNetwork(const std::string &path) {
  constexpr uint32_t lustreMagic = 0x0bd00bd0;
  constexpr uint32_t gpfsMagic = 0x47504653;
  constexpr uint32_t network[] = {
      NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
      AFS_SUPER_MAGIC,  CODA_SUPER_MAGIC, CEPH_SUPER_MAGIC, V9FS_MAGIC,
      FUSE_SUPER_MAGIC, lustreMagic,      gpfsMagic};
  struct statfs info;
  return statfs(path.c_str(), &info) == 0 &&
         std::ranges::find(network, static_cast<uint32_t>(info.f_type)) !=
             std::end(network);
}

// Renames the database and its journals, which SQLite finds by their names. The
// journals go first: one left behind would be played into the new database.
bool TuningStore::putAside() {
  const std::string aside = path + ".damaged";
  std::error_code error;
  std::filesystem::remove(path + "-shm", error);
  for (const char *suffix : {"-wal", "-journal"}) {
    std::filesystem::remove(aside + suffix, error);
    std::filesystem::rename(path + suffix, aside + suffix, error);
  }
  std::filesystem::rename(path, aside, error);
  return !error;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

TuningStore::TuningStore(std::string path, Warn warn, milliseconds patience,
                         bool writes)
    : path(std::move(path)), warn(std::move(warn)), patience(patience),
      writes(writes) {}

void TuningStore::warnOf(absl::string_view what) const {
  if (warn)
    warn(absl::StrCat(path, ": ", what));
}

std::string TuningStore::problemOf(SqliteResult result) const {
  return result == SqliteResult::Busy
             ? absl::StrCat("locked by another process for more than ",
                            static_cast<double>(patience.count()) / 1000, " s")
             : database->message();
}

// Done for the tables of this version, or, with `isEmpty`, for a database
// without any; Damaged for others, of which `problem` says more.
SqliteResult TuningStore::checkTables(bool &isEmpty, std::string &problem) {
  int64_t id = 0;
  int64_t version = 0;
  int64_t tables = 0;
  SqliteResult result = database->readNumber("PRAGMA application_id", id);
  if (result == SqliteResult::Done)
    result = database->readNumber("PRAGMA user_version", version);
  if (result == SqliteResult::Done)
    result = database->readNumber("SELECT count(*) FROM sqlite_schema", tables);
  if (result != SqliteResult::Done)
    return result;
  isEmpty = id == 0 && version == 0 && tables == 0;
  if (isEmpty || (id == applicationId && version == schemaVersion))
    return SqliteResult::Done;
  problem = id == applicationId ? absl::StrCat("expected tables of version ",
                                               schemaVersion, ", got ", version)
                                : "a database, but not of tuning results";
  return SqliteResult::Damaged;
}

SqliteResult TuningStore::makeTables() {
  SqliteResult result = SqliteResult::Done;
  for (const std::string &sql :
       {std::string("BEGIN IMMEDIATE"), std::string(makeEntryTable),
        std::string(makeProbeTable),
        absl::StrCat("PRAGMA application_id = ", applicationId),
        absl::StrCat("PRAGMA user_version = ", schemaVersion),
        std::string("COMMIT")})
    if (result == SqliteResult::Done)
      result = database->run(sql);
  return result;
}

// With a write-ahead log readers and a writer do not wait for each other, and a
// commit does not wait for the disk (synchronous = NORMAL): of a process that
// is killed nothing is lost, since the system has its pages; a power cut may
// take the last entries, which can be measured again, but not harm the rest.
// The log's index is memory shared by processes of one machine: on file systems
// of several, and where SQLite refuses a log, a rollback journal has to do, and
// that one is safe from power cuts only if it waits (FULL).
SqliteResult TuningStore::chooseJournal() {
  SqliteStatement statement =
      database->prepare(isOnNetwork(path) ? "PRAGMA journal_mode = DELETE"
                                          : "PRAGMA journal_mode = WAL");
  const SqliteResult result = statement.step();
  const bool hasLog =
      result == SqliteResult::Row && statement.readText() == "wal";
  if (result == SqliteResult::Busy || result == SqliteResult::Damaged)
    return result;
  return database->run(hasLog ? "PRAGMA synchronous = NORMAL"
                              : "PRAGMA synchronous = FULL");
}

// Reads all of the database.
SqliteResult TuningStore::checkPages(std::string &problem) {
  {
    SqliteStatement check = database->prepare("PRAGMA integrity_check(1)");
    const SqliteResult result = check.step();
    if (result != SqliteResult::Row)
      return result;
    const std::string found = check.readText();
    if (found != "ok") {
      // Lines with the table and page; the first says enough.
      problem = absl::StrCat("damaged: ", found.substr(0, found.find('\n')));
      return SqliteResult::Damaged;
    }
  }
  // SQLite checks the tables that there are, these their columns.
  for (const char *sql : {selectEntries, selectProbe}) {
    const SqliteResult result = database->prepare(sql).step();
    if (result != SqliteResult::Row && result != SqliteResult::Done)
      return result;
  }
  return SqliteResult::Done;
}

SqliteResult TuningStore::openForWriting(std::string &problem) {
  problem.clear();
  database = std::make_unique<SqliteDatabase>();
  bool isEmpty = false;
  SqliteResult result =
      database->open(path, SqliteDatabase::Access::Create, patience);
  if (result == SqliteResult::Done)
    result = checkTables(isEmpty, problem);
  if (result == SqliteResult::Done)
    result = chooseJournal();
  if (result == SqliteResult::Done)
    result = isEmpty ? makeTables() : checkPages(problem);
  if (result != SqliteResult::Done && problem.empty())
    problem = problemOf(result);
  return result;
}

void TuningStore::reopen() {
  database.reset();
  const FileLock lock(path + ".lock", patience);
  std::string problem = lock.problem;
  if (problem.empty()) {
    SqliteResult result = openForWriting(problem);
    if (result == SqliteResult::Damaged) {
      database.reset();
      if (putAside()) {
        warnOf(absl::StrCat(problem, "; renamed to ", path,
                            ".damaged, and tuning results begun anew"));
        result = openForWriting(problem);
      }
    }
    if (result == SqliteResult::Done)
      return;
  }
  database.reset();
  warnOf(absl::StrCat(problem, "; tuning results are not kept"));
}

std::unique_ptr<TuningStore>
TuningStore::open(const std::string &path, Warn warn, milliseconds patience) {
  std::unique_ptr<TuningStore> store(
      new TuningStore(path, std::move(warn), patience, true));
  // Where this fails, so does all that follows, and says why.
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(),
                                      error);
  store->reopen();
  return store;
}

// Whether there is something to read.
bool TuningStore::openForReading() {
  database = std::make_unique<SqliteDatabase>();
  bool isEmpty = false;
  std::string problem;
  SqliteResult result =
      database->open(path, SqliteDatabase::Access::Read, patience);
  if (result == SqliteResult::Done)
    result = checkTables(isEmpty, problem);
  // A log wants files made beside it. Where they cannot be, nobody can write to
  // the database either, unless a log is there already.
  if (result == SqliteResult::Failed &&
      !std::filesystem::exists(path + "-wal")) {
    result = database->open(path, SqliteDatabase::Access::ReadFixed, patience);
    if (result == SqliteResult::Done)
      result = checkTables(isEmpty, problem);
  }
  if (result != SqliteResult::Done)
    warnOf(absl::StrCat(problem.empty() ? problemOf(result) : problem,
                        "; tuning results are not used"));
  return result == SqliteResult::Done && !isEmpty;
}

std::unique_ptr<TuningStore> TuningStore::openExisting(const std::string &path,
                                                       Warn warn,
                                                       milliseconds patience) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return nullptr;
  std::unique_ptr<TuningStore> store(
      new TuningStore(path, std::move(warn), patience, false));
  return store->openForReading() ? std::move(store) : nullptr;
}

absl::StatusOr<std::string> tuningStorePath() {
  LLAMAC_ASSIGN_OR_RETURN(const std::string folder, cacheFolder("tuning"));
  return folder + "/tuning.db";
}

//===----------------------------------------------------------------------===//
// Reading and keeping
//===----------------------------------------------------------------------===//

// Runs `statements`, which end in Done. When they find damage, they run once
// more on what reopen() leaves. An error is for the caller to pass on.
absl::Status
TuningStore::attempt(absl::string_view task,
                     absl::FunctionRef<SqliteResult()> statements) {
  if (database && writes && database->hasMoved())
    reopen();
  std::string problem = "no tuning results can be read or kept there";
  for (bool isAgain = false; database; isAgain = true) {
    const SqliteResult result = statements();
    if (result == SqliteResult::Done)
      return absl::OkStatus();
    problem = problemOf(result);
    database->rollBack();
    if (!writes) {
      // A run asks for many entries: one warning, and one wait, will do.
      database.reset();
    } else if (result == SqliteResult::Damaged && !isAgain) {
      reopen();
    } else {
      break;
    }
  }
  return usageError(absl::StrCat(path, ": ", task, ": ", problem));
}

// Passes the error of an attempt on as a warning; whether there was none.
bool TuningStore::warnIfFailed(const absl::Status &status) const {
  if (!status.ok() && warn)
    warn(status.message());
  return status.ok();
}

// The row that the statement stands at; none, after a warning, when it is not
// what was kept.
std::optional<KeptTuning> TuningStore::readRow(SqliteStatement &row) const {
  KeptTuning kept;
  auto &[key, entry] = kept;
  key.device = row.readText();
  key.generator = row.readText();
  key.kernel = row.readText();
  entry.tiles = row.readText();
  entry.seconds = row.readReal();
  entry.firstSeconds = row.readReal();
  entry.predicted = row.readReal();
  entry.runnerUp = row.readText();
  entry.runnerUpSeconds = row.readReal();
  entry.origin = static_cast<TuningOrigin>(row.readInt());
  entry.time = row.readInt();
  entry.symbol = row.readText();
  entry.code = row.readBlob();
  if (row.readInt() == checksumOf(key, entry))
    return kept;
  warnOf(absl::StrCat("the entry of ", key.kernel,
                      " does not match its checksum and is passed over"));
  return std::nullopt;
}

std::optional<TuningEntry> TuningStore::find(const TuningKey &key) {
  if (!database)
    return std::nullopt;
  std::optional<KeptTuning> found;
  warnIfFailed(attempt(absl::StrCat("finding ", key.kernel), [&] {
    found.reset();
    SqliteStatement select = database->prepare(absl::StrCat(
        selectEntries, "WHERE device = ?1 AND generator = ?2 AND kernel = ?3"));
    select.bind(key.device).bind(key.generator).bind(key.kernel);
    const SqliteResult result = select.step();
    if (result != SqliteResult::Row)
      return result;
    found = readRow(select);
    return SqliteResult::Done;
  }));
  if (!found || found->first != key)
    return std::nullopt;
  return std::move(found->second);
}

absl::Status TuningStore::readAll(const std::optional<std::string> &device,
                                  std::vector<KeptTuning> &all) {
  return attempt("reading all entries", [&] {
    all.clear();
    SqliteStatement select = database->prepare(
        absl::StrCat(selectEntries, device ? "WHERE device = ?1 " : "",
                     "ORDER BY device, generator, kernel"));
    if (device)
      select.bind(*device);
    SqliteResult result = select.step();
    for (; result == SqliteResult::Row; result = select.step())
      if (std::optional<KeptTuning> kept = readRow(select))
        all.push_back(*std::move(kept));
    return result;
  });
}

std::vector<KeptTuning>
TuningStore::entries(const std::optional<std::string> &device) {
  std::vector<KeptTuning> all;
  if (!database || !warnIfFailed(readAll(device, all)))
    return {};
  return all;
}

SqliteResult TuningStore::insert(absl::string_view condition,
                                 const TuningKey &key,
                                 const TuningEntry &entry) {
  SqliteStatement statement =
      database->prepare(absl::StrCat(insertEntry, condition));
  statement.bind(key.device)
      .bind(key.generator)
      .bind(key.kernel)
      .bind(entry.tiles)
      .bind(entry.seconds)
      .bind(entry.firstSeconds)
      .bind(entry.predicted)
      .bind(entry.runnerUp)
      .bind(entry.runnerUpSeconds)
      .bind(static_cast<int64_t>(entry.origin))
      .bind(entry.time)
      .bind(entry.symbol)
      .bindBlob(entry.code)
      .bind(checksumOf(key, entry));
  return statement.step();
}

bool TuningStore::keep(const TuningKey &key, const TuningEntry &entry) {
  if (!database)
    return false;
  const std::string task = absl::StrCat("keeping ", key.kernel);
  if (const std::optional<TuningProblem> problem = findProblem(key, entry)) {
    warnOf(absl::StrCat(task, ": ", problem->field, ": expected ",
                        problem->expected, ", got ", problem->got));
    return false;
  }
  return warnIfFailed(attempt(task, [&] { return insert("", key, entry); }));
}

std::optional<std::string> TuningStore::findProbe(const std::string &device) {
  if (!database)
    return std::nullopt;
  std::optional<std::string> found;
  warnIfFailed(attempt("finding a device's measures", [&] {
    found.reset();
    SqliteStatement select = database->prepare(selectProbe);
    select.bind(device);
    const SqliteResult result = select.step();
    if (result != SqliteResult::Row)
      return result;
    found = select.readText();
    if (select.readInt() != checksumOf(device, *found)) {
      warnOf("a device's measures do not match their checksum");
      found.reset();
    }
    return SqliteResult::Done;
  }));
  return found;
}

bool TuningStore::keepProbe(const std::string &device, absl::string_view json) {
  if (!database)
    return false;
  return warnIfFailed(attempt("keeping a device's measures", [&] {
    SqliteStatement statement = database->prepare(insertProbe);
    statement.bind(device).bind(json).bind(checksumOf(device, json));
    return statement.step();
  }));
}

//===----------------------------------------------------------------------===//
// Between machines
//===----------------------------------------------------------------------===//

absl::Status TuningStore::exportTo(const std::string &file) {
  std::vector<KeptTuning> all;
  LLAMAC_RETURN_IF_ERROR(readAll(std::nullopt, all));
  return writeFileAtomically(file, tuningToJson(all));
}

absl::StatusOr<int> TuningStore::importFrom(const std::string &file) {
  LLAMAC_ASSIGN_OR_RETURN(std::vector<KeptTuning> all, readTuningJson(file));
  int taken = 0;
  LLAMAC_RETURN_IF_ERROR(attempt(absl::StrCat("taking ", file), [&] {
    taken = 0;
    SqliteResult result = database->run("BEGIN IMMEDIATE");
    for (auto &[key, entry] : all) {
      entry.origin = std::min(entry.origin, TuningOrigin::Imported);
      if (result == SqliteResult::Done)
        result = insert(unlessOneIsTrustedMore, key, entry);
      if (result != SqliteResult::Done)
        break;
      taken += static_cast<int>(database->changedRows());
    }
    return result == SqliteResult::Done ? database->run("COMMIT") : result;
  }));
  return taken;
}

} // namespace llamac
