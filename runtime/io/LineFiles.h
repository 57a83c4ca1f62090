//===- LineFiles.h - Files of lines, read and appended to -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_LINEFILES_H
#define LLAMAC_RUNTIME_IO_LINEFILES_H

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace llamac {

/// Reads a file or pipe line by line, and holds a line and a block of it.
class LineReader {
public:
  enum class Outcome {
    Line,
    End,
    Pending, ///< Nothing can be read now.
  };

  /// Opens the file at `path`, "-": stdin. A line of more than `maxBytes` is
  /// given without its text. Errors name the path and the system's reason, and
  /// are of the bad-file or the memory kind.
  static absl::StatusOr<std::unique_ptr<LineReader>>
  open(absl::string_view path, uint64_t maxBytes);
  LineReader(const LineReader &) = delete;
  LineReader &operator=(const LineReader &) = delete;
  ~LineReader();

  /// Goes to the next line, whose end is "\n", "\r\n" or that of the file.
  /// Pending where a pipe has no line now and `waits` is false, or a signal
  /// came.
  absl::StatusOr<Outcome> next(bool waits);

  /// The line without its end; none where it is too long.
  std::optional<absl::string_view> line() const;

  int64_t number() const { return lines; } ///< Number of the line, from 1 on.
  uint64_t bytes() const { return taken; } ///< Up to the end of the line.
  /// Size of the file; 0 for a pipe.
  uint64_t size() const { return fileBytes; }
  const std::string &path() const { return name; }

private:
  LineReader() = default;

  std::string name;
  uint64_t maxBytes = 0;
  int descriptor = -1;
  uint64_t fileBytes = 0;
  std::string block; ///< Read; up to `used` it has been taken.
  size_t used = 0;
  bool atEnd = false;
  std::string current; ///< At most maxBytes and a byte more of the line.
  bool isWhole = true; ///< Whether the line has ended.
  int64_t lines = 0;
  uint64_t taken = 0;
};

/// Appends lines to a file, each by one write: what is killed leaves whole
/// lines and at most one that is not, which the next writer cuts off.
class LineAppender {
public:
  /// Opens the file at `path`, or makes it; other processes' appenders are kept
  /// out of it: a usage error. Other errors as LineReader's, but of the usage
  /// kind.
  static absl::StatusOr<std::unique_ptr<LineAppender>>
  open(absl::string_view path);
  LineAppender(const LineAppender &) = delete;
  LineAppender &operator=(const LineAppender &) = delete;
  ~LineAppender();

  /// Before the first append: gives `take` each line of the file, and `isOurs`
  /// what is behind the last one, which is then cut off. Nothing for a pipe or
  /// device. Errors: usage where `isOurs` is false; those of `take` and the
  /// system.
  absl::Status recover(
      absl::FunctionRef<absl::Status(absl::string_view line, int64_t number)>
          take,
      absl::FunctionRef<bool(absl::string_view torn)> isOurs);

  /// Appends `line` and a line feed. Memory error, with the file as it was,
  /// where the disk is full.
  absl::Status append(absl::string_view line);

  /// Removes all lines; nothing for a pipe or device.
  absl::Status clear();

  /// Puts the lines on the disk.
  absl::Status sync();

private:
  explicit LineAppender(absl::string_view path) : path(path) {}
  absl::Status failure(absl::string_view what) const;

  std::string path;
  int descriptor = -1;
  bool isRegular = false;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_LINEFILES_H
