//===- AtomicFile.h - A file written whole or not at all ------ -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes go to a temporary file beside the final one, which commit() syncs and
// renames: whoever looks sees the old file or the new one, whatever happens in
// between. A tool that is interrupted removes the temporary file.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_ATOMICFILE_H
#define LLAMAC_RUNTIME_IO_ATOMICFILE_H

#include "runtime/base/FatalEvents.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// Succeeds for a path that a new file may be put at: of a regular file, or of
/// none. A rename would put an end to a device, so that is a usage error.
absl::Status checkReplaceable(absl::string_view path);

class AtomicFile {
public:
  /// Starts the file that commit() will put at `path`. Resources that do not
  /// suffice are an error of the memory kind, here and in all functions; others
  /// are usage errors, since the path was given by the user.
  static absl::StatusOr<std::unique_ptr<AtomicFile>>
  create(absl::string_view path);

  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;
  /// Without commit(), removes the temporary file.
  ~AtomicFile();

  /// Appends; small pieces are gathered.
  absl::Status write(absl::Span<const uint8_t> bytes);
  absl::Status write(absl::string_view text) {
    return write(absl::Span<const uint8_t>(
        reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  }

  /// Replaces bytes that were written before.
  absl::Status overwrite(uint64_t offset, absl::Span<const uint8_t> bytes);

  /// Bytes appended so far.
  uint64_t size() const { return flushed + buffer.size(); }

  /// Puts the file in place, for good: it is on the disk, and so is its name.
  absl::Status commit();

private:
  AtomicFile() = default;
  absl::Status flush();
  absl::Status writeAt(uint64_t offset, absl::Span<const uint8_t> bytes);
  absl::Status failure(absl::string_view what) const;

  std::string finalPath;
  std::string temporaryPath;
  int descriptor = -1;
  std::optional<FileGuard> guard; ///< Of the temporary file.
  uint64_t flushed = 0;
  std::vector<uint8_t> buffer;
};

/// Writes a small file in one piece; what is no regular file, such as
/// /dev/stdout, is written to as it is.
absl::Status writeFileAtomically(absl::string_view path,
                                 absl::string_view text);

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_ATOMICFILE_H
