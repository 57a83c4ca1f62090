//===- MappedFile.h - A file mapped for reading --------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_MAPPEDFILE_H
#define LLAMAC_RUNTIME_IO_MAPPEDFILE_H

#include "runtime/base/FatalEvents.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace llamac {

/// A regular file, mapped read-only for as long as the object lives.
class MappedFile {
public:
  /// Maps the file at `path`. Errors name the path and the system's reason and
  /// are of the bad-file kind, or the memory kind where resources do not
  /// suffice; a pipe, device or directory is refused. A tool that finds the
  /// file truncated when it reads ends with `ifTruncated`.
  static absl::StatusOr<std::shared_ptr<MappedFile>>
  open(absl::string_view path, ExitCode ifTruncated = ExitCode::BadFile);

  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  const std::string &path() const { return filePath; }
  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return byteCount; }
  absl::Span<const uint8_t> span() const { return {bytes, byteCount}; }
  absl::string_view text() const {
    return {reinterpret_cast<const char *>(bytes), byteCount};
  }

  /// Bytes [offset, offset + size), which must lie in the file.
  absl::StatusOr<absl::Span<const uint8_t>> slice(uint64_t offset,
                                                  uint64_t size) const;

  /// Fails when the file was written to since it was mapped: what was read of
  /// it may be of two versions, and touching pages past the end of a shorter
  /// one would kill the process.
  absl::Status checkUnchanged() const;

  /// Time of the last change when the file was opened, in nanoseconds.
  int64_t modifiedNs() const { return modified; }

private:
  MappedFile() = default;

  std::string filePath;
  int descriptor = -1;
  const uint8_t *bytes = nullptr;
  uint64_t byteCount = 0;
  int64_t modified = 0;
  std::optional<FileGuard> guard; ///< Guards the mapped file.
};

/// 32 hexadecimal digits that change when any of `files` does: over the names
/// without directories, sizes and modification times, the first and last MiB
/// of each file, and blocks spread evenly between.
absl::StatusOr<std::string>
fingerprintFiles(absl::Span<const std::shared_ptr<MappedFile>> files);

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_MAPPEDFILE_H
