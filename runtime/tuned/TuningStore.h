//===- TuningStore.h - What tuning found, kept ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A SQLite database of the fastest configs, by device, generator and kernel.
// Any number of processes may read and write it at once, and any may be killed
// at any moment. Nothing in it is executed: a config names a variant of a plan.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNED_TUNINGSTORE_H
#define LLAMAC_RUNTIME_TUNED_TUNINGSTORE_H

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
  // The key; none of these is empty.
  std::string device = {};    ///< Name, cores, instruction set, ...
  std::string generator = {}; ///< Hash of the code generator.
  std::string kernel = {};    ///< Op, shapes, types, rows; or a program.

  std::string config = {};    ///< The fastest; empty: the default.
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
  /// missing. One that is damaged, or no such database, is renamed to
  /// `path`.damaged with a warning and begun anew. Error where the place cannot
  /// be written to, or others hold their locks for more than five seconds.
  static absl::StatusOr<std::unique_ptr<TuningStore>>
  open(const std::string &path,
       absl::FunctionRef<void(absl::string_view)> warn);

  /// For reading: null when there is no database. Error when it cannot be read
  /// for a second; damage is left to the next open().
  static absl::StatusOr<std::unique_ptr<TuningStore>>
  openExisting(const std::string &path);

  /// The entries of `device` and `generator`, or all of them, in their order.
  absl::StatusOr<std::vector<TuningEntry>>
  entries(const std::string &device = "", const std::string &generator = "");

  /// Keeps all of `entries`, in place of older ones for the same, and gives how
  /// many were taken; after an error, none. An imported entry replaces only
  /// imported ones. They stay if the process is killed after this returns.
  absl::StatusOr<int> keep(absl::Span<const TuningEntry> entries);

private:
  explicit TuningStore(std::string path) : path(std::move(path)) {}

  int openFile(int flags, int patience, bool &isEmpty);
  int openTables();
  absl::Status failure(absl::string_view task, int code) const;

  std::string path;
  std::shared_ptr<sqlite3> database;
};

/// tuning.db in the user's cache folder, which is made when it is missing.
/// Errors are those of cacheFolder().
absl::StatusOr<std::string> tuningStorePath();

/// Writes `entries` to a file for other machines: a JSON object with "format",
/// "llamac-tuning"; "version", 2; and "entries", objects with the members of
/// TuningEntry but the last in snake_case.
absl::Status exportTuning(absl::Span<const TuningEntry> entries,
                          const std::string &file);

/// The entries of such a file, of at most 64 MiB, as imported ones. Errors:
/// badFile with file, place, expected and got; unsupported for another version.
absl::StatusOr<std::vector<TuningEntry>> importTuning(const std::string &file);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNED_TUNINGSTORE_H
