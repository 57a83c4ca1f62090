//===- TuningStore.h - What tuning found, kept ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A SQLite database of the configs that were found fastest, by device,
// generator and kernel. Any number of processes may read and write it at once,
// and any may be killed at any moment. It holds nothing that is executed: a
// config names a variant that a plan has, or nothing.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_TUNINGSTORE_H
#define LLAMAC_RUNTIME_TUNE_TUNINGSTORE_H

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <memory>
#include <string>
#include <vector>

struct sqlite3;

namespace llamac {

struct TuningEntry {
  // What it is for; none of these is empty.
  std::string device = {};    ///< Name, cores, instruction set, ...
  std::string generator = {}; ///< Hash of the code generator.
  std::string kernel = {};    ///< Op, shapes, types, rows; or a program.

  std::string config = {};    ///< That is fastest; empty: the default.
  double seconds = 0;         ///< Of a launch, or step, with it.
  double defaultSeconds = 0;  ///< With the default config, in the same rounds.
  std::string runnerUp = {};  ///< The second best config.
  double runnerUpSeconds = 0; ///< With it; 0: there was none.
  bool imported = false;      ///< Measured on another machine.

  friend bool operator==(const TuningEntry &, const TuningEntry &) = default;
};

/// For one thread at a time; a child process opens its own. Errors are of the
/// memory kind and name the database in one line.
class TuningStore {
public:
  /// For tuning: opens the database at `path`, made with its folder if it is
  /// not there. One that is damaged, has other tables or is no database at all
  /// is put aside with a warning (renamed to `path`.damaged, in the place of an
  /// older one) and begun anew. An error where the place cannot be written to,
  /// or others hold their locks for more than five seconds.
  static absl::StatusOr<std::unique_ptr<TuningStore>>
  open(const std::string &path,
       absl::FunctionRef<void(absl::string_view)> warn);

  /// For reading: null when there is no database. An error when the one there
  /// cannot be read for a second; what is damaged is left to the next open().
  static absl::StatusOr<std::unique_ptr<TuningStore>>
  openExisting(const std::string &path);

  /// The entries of `device` and `generator`, or all of them, in their order.
  absl::StatusOr<std::vector<TuningEntry>>
  entries(const std::string &device = "", const std::string &generator = "");

  /// Keeps all of `entries` or, after an error, none, each in the place of one
  /// for the same. An imported entry takes the place of no other kind. Gives
  /// how many were taken. When this returns, the process may be killed and they
  /// stay.
  absl::StatusOr<int> keep(absl::Span<const TuningEntry> entries);

private:
  explicit TuningStore(std::string path) : path(std::move(path)) {}

  int openFile(int flags, int patience, bool &isEmpty);
  int openTables();
  absl::Status failure(absl::string_view task, int code) const;

  std::string path;
  std::shared_ptr<sqlite3> database;
};

/// Where a user's store is: tuning.db in a folder of the user's cache folder,
/// which is made when it is not there. Errors are those of cacheFolder().
absl::StatusOr<std::string> tuningStorePath();

/// Writes `entries` to a file for other machines: a JSON object with "format",
/// "llamac-tuning"; "version", 2; and "entries", an array of objects that have
/// the members of TuningEntry but the last, called as the database's columns.
absl::Status exportTuning(absl::Span<const TuningEntry> entries,
                          const std::string &file);

/// The entries of such a file, of at most 64 MiB, as imported ones. Errors:
/// badFile, naming the file, the place, what was expected and what it has;
/// unsupported for another version.
absl::StatusOr<std::vector<TuningEntry>> importTuning(const std::string &file);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_TUNINGSTORE_H
