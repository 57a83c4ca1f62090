//===- TuningStore.h - What tuning found, kept ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A SQLite database of the tiles that were found best, by device, generator
// and kernel. Any number of processes may read and write it at once, and any
// may be killed at any moment. Nothing that is wrong with the database is ever
// an error of those that use it: it holds what can be measured again, so a
// warning is given, and they go on without.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_TUNINGSTORE_H
#define LLAMAC_RUNTIME_TUNE_TUNINGSTORE_H

#include "runtime/tune/Sqlite.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// What an entry is for. All three are readable text, of 1 to 4096 bytes.
struct TuningKey {
  std::string device;    ///< What runs it: name, cores, instruction set, ...
  std::string generator; ///< Hash of the code generator that made the kernel.
  std::string kernel;    ///< Op, shapes, element types, rows.

  friend bool operator==(const TuningKey &, const TuningKey &) = default;
};

/// Where an entry comes from, in the order of how far it is to be trusted.
enum class TuningOrigin {
  Modelled, ///< By the cost model: nobody has run it.
  Imported, ///< Measured on another machine with such a device.
  Measured, ///< Measured on this machine.
};

struct TuningEntry {
  /// Of the pick, as the plan names them; empty: the plan's own first choice.
  std::string tiles;
  double seconds = 0;         ///< Of a launch with the pick.
  double firstSeconds = 0;    ///< Of a launch with the plan's first choice.
  double predicted = 0;       ///< What the model gives the pick; 0: no model.
  std::string runnerUp;       ///< Tiles of the second best.
  double runnerUpSeconds = 0; ///< Of a launch with them; 0: there was none.
  TuningOrigin origin = TuningOrigin::Measured;
  int64_t time = 0; ///< Unix seconds.
  /// cpu: the pick's kernel and its ELF shared object; empty elsewhere.
  std::string symbol;
  std::string code;

  friend bool operator==(const TuningEntry &, const TuningEntry &) = default;
};

using KeptTuning = std::pair<TuningKey, TuningEntry>;

/// The first field, by its name in exported files, that a store does not take.
struct TuningProblem {
  absl::string_view field;
  std::string expected;
  std::string got;
};

/// Stores take keys that are not empty, texts of at most 4096 bytes, code of at
/// most 64 MiB, `seconds` and `firstSeconds` over 0 and other numbers of at
/// least 0, all finite. None: a store takes this.
std::optional<TuningProblem> findProblem(const TuningKey &key,
                                         const TuningEntry &entry);

/// For one thread at a time; a child process opens its own.
class TuningStore {
public:
  using Warn = std::function<void(absl::string_view)>;

  /// For tuning: opens the database at `path`, made with its folder if it is
  /// not there. One that is damaged, has other tables or is no database at all
  /// is put aside with a warning (renamed to `path`.damaged, in the place of an
  /// older one) and begun anew. Where the place cannot be written to, or others
  /// hold their locks for longer than `patience`, that is a warning too, and
  /// the store holds nothing and keeps nothing. Never null.
  static std::unique_ptr<TuningStore>
  open(const std::string &path, Warn warn,
       std::chrono::milliseconds patience = std::chrono::seconds(5));

  /// For a run, which only reads: null when there is no database or, after a
  /// warning, when the one there cannot be read. Checks no more than it has to
  /// and leaves what is damaged to the next open().
  static std::unique_ptr<TuningStore>
  openExisting(const std::string &path, Warn warn,
               std::chrono::milliseconds patience = std::chrono::seconds(1));

  TuningStore(const TuningStore &) = delete;
  TuningStore &operator=(const TuningStore &) = delete;

  /// The entry of `key`. One whose checksum is wrong is a warning and none.
  std::optional<TuningEntry> find(const TuningKey &key);

  /// All entries, or those of `device`, by device, generator and kernel.
  std::vector<KeptTuning>
  entries(const std::optional<std::string> &device = std::nullopt);

  /// Keeps `entry` in the place of the one of `key`. When this returns true,
  /// the process may be killed and it stays; false follows a warning that says
  /// why.
  bool keep(const TuningKey &key, const TuningEntry &entry);

  /// What `device` was measured to do, as JSON text.
  std::optional<std::string> findProbe(const std::string &device);
  bool keepProbe(const std::string &device, absl::string_view json);

  /// Writes all entries to a file for other machines, without their code
  /// (runtime/tune/TuningExchange.h has its format).
  absl::Status exportTo(const std::string &file);

  /// Takes the entries of such a file, all or, after an error, none, and gives
  /// how many were taken. What was measured elsewhere becomes Imported; what
  /// the store has is replaced only by what is to be trusted as far, so never a
  /// Measured entry. A bad-file error names the file, the place, what was
  /// expected and what it has.
  absl::StatusOr<int> importFrom(const std::string &file);

private:
  TuningStore(std::string path, Warn warn, std::chrono::milliseconds patience,
              bool writes);

  void reopen();
  SqliteResult openForWriting(std::string &problem);
  bool openForReading();
  SqliteResult checkTables(bool &isEmpty, std::string &problem);
  SqliteResult checkPages(std::string &problem);
  SqliteResult chooseJournal();
  SqliteResult makeTables();
  bool putAside();

  absl::Status attempt(absl::string_view task,
                       absl::FunctionRef<SqliteResult()> statements);
  std::string problemOf(SqliteResult result) const;
  void warnOf(absl::string_view what) const;
  bool warnIfFailed(const absl::Status &status) const;

  std::optional<KeptTuning> readRow(SqliteStatement &row) const;
  absl::Status readAll(const std::optional<std::string> &device,
                       std::vector<KeptTuning> &all);
  SqliteResult insert(absl::string_view condition, const TuningKey &key,
                      const TuningEntry &entry);

  std::string path;
  Warn warn;
  std::chrono::milliseconds patience;
  bool writes;
  std::unique_ptr<SqliteDatabase> database; ///< Null: nothing is held or kept.
};

/// Where a user's store is: tuning.db in a folder of the user's cache folder,
/// which is made when it is not there. Errors are those of cacheFolder().
absl::StatusOr<std::string> tuningStorePath();

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_TUNINGSTORE_H
