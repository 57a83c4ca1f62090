//===- TuningStore.h - What tuning found, kept ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A JSON file of the fastest configs, by device, generator and kernel. Any
// number of processes may read and write it at once, and any may be killed at
// any moment. Nothing in it is executed: a config names a variant of a plan.
//
// The file is an object with "format", "llamac-tuning"; "version", 2; and
// "entries", objects with the members of TuningEntry in snake_case. Exports for
// other machines are such files, too.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNED_TUNINGSTORE_H
#define LLAMAC_RUNTIME_TUNED_TUNINGSTORE_H

#include "runtime/io/AtomicFile.h"

#include <string>
#include <vector>

namespace llamac {

struct TuningEntry {
  // The key; none of these is empty.
  std::string device = {};    ///< Name, cores, instruction set, ...
  std::string generator = {}; ///< Hash of the code generator.
  std::string kernel = {};    ///< Op, shapes, types, rows; or a program.

  std::string config = {};    ///< The fastest; empty: the default.
  double seconds = 0;         ///< Seconds of a launch, or step, with it.
  double defaultSeconds = 0;  ///< With the default config, in the same rounds.
  std::string runnerUp = {};  ///< The second best config.
  double runnerUpSeconds = 0; ///< With it; 0: there was none.
  bool imported = false;      ///< Measured on another machine.

  friend bool operator==(const TuningEntry &, const TuningEntry &) = default;
};

class TuningStore {
public:
  /// The file at `path`, which need not be there, in a folder that is.
  explicit TuningStore(std::string path, FileCalls calls = FileCalls::system())
      : path(std::move(path)), calls(std::move(calls)) {}

  /// All entries, in the order of their keys; none when there is no file.
  /// Errors: those of importTuning().
  absl::StatusOr<std::vector<TuningEntry>> entries() const;

  /// Keeps `entries`, in place of older ones for the same, and gives how many
  /// were taken. An imported entry replaces only imported ones. They stay if
  /// the process is killed after this returns. A file that cannot be understood
  /// is renamed to `path`.damaged, or .damaged-1 and so on, with a warning, and
  /// begun anew. After an error, of the memory kind and with the path, the file
  /// is as it was: it cannot be written, or others lock it for long.
  absl::StatusOr<int> keep(absl::Span<const TuningEntry> entries) const;

private:
  absl::Status putAside(const absl::Status &why) const;

  std::string path;
  FileCalls calls;
};

/// tuning.json in the user's cache folder, which is made when it is missing.
/// Errors are those of cacheFolder().
absl::StatusOr<std::string> tuningStorePath();

/// Writes `entries` to a file for other machines.
absl::Status exportTuning(absl::Span<const TuningEntry> entries,
                          const std::string &file);

/// The entries of such a file, of at most 64 MiB. Errors: badFile with file,
/// place, expected and got; unsupported for another version.
absl::StatusOr<std::vector<TuningEntry>> importTuning(const std::string &file);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNED_TUNINGSTORE_H
