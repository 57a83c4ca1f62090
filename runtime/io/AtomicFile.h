//===- AtomicFile.h - A file written whole or not at all ------ -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes go to a temporary file beside the final one, which commit() syncs and
// renames: readers see the old file or the new one, whatever happens in
// between. A tool that is interrupted removes the temporary file; one that was
// killed leaves it to the next writer of the same file.
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
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace llamac {

/// The system calls that can fail while a file is written; tests replace them.
struct FileCalls {
  std::function<ssize_t(int, const void *, size_t, off_t)> write;
  std::function<int(int)> sync;
  std::function<int(const char *, const char *)> rename;

  /// pwrite, fsync and rename.
  static FileCalls system();
};

/// Usage error where the file `output`, named by `flag`, is `input`, which is
/// read: it would be lost. `what` says which file that is.
absl::Status checkNotInput(absl::string_view flag, const std::string &output,
                           const std::string &input,
                           absl::string_view what = "the one that is read");

class AtomicFile {
public:
  /// Starts the file that commit() will put at `path`. Usage error for a path
  /// that cannot be written or is that of a device, pipe or directory.
  /// Resources that do not suffice are an error of the memory kind, here and in
  /// all functions; a later error is otherwise a device error.
  static absl::StatusOr<std::unique_ptr<AtomicFile>>
  create(absl::string_view path, FileCalls calls = FileCalls::system());

  /// create(), but a device or pipe, such as /dev/stdout, is written to as it
  /// is; every error after this is then of the memory kind.
  static absl::StatusOr<std::unique_ptr<AtomicFile>>
  createOrOpen(absl::string_view path);

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

  /// Appends zeros up to a multiple of `alignment`.
  absl::Status alignTo(uint64_t alignment);

  /// Replaces bytes that were written before.
  absl::Status overwrite(uint64_t offset, absl::Span<const uint8_t> bytes);

  /// Bytes appended so far.
  uint64_t size() const { return flushed + buffer.size(); }

  /// Puts the file in place, for good: it is on the disk, and so is its name.
  absl::Status commit();

private:
  AtomicFile(absl::string_view path, FileCalls calls);
  absl::Status openTemporary();
  absl::Status flush();
  absl::Status writeAt(uint64_t offset, absl::Span<const uint8_t> bytes);
  absl::Status failure(absl::string_view what,
                       absl::Status (*otherwise)(absl::string_view)) const;
  absl::Status lost() const;

  std::string path;
  std::string folder;
  std::string temporary; ///< Empty for a device.
  FileCalls calls;
  int descriptor = -1;
  std::optional<FileGuard> guard; ///< Guards the temporary file.
  uint64_t flushed = 0;
  std::vector<uint8_t> buffer;
};

/// Writes `size` bytes to `descriptor`; 0, or the errno of what went wrong.
int writeAll(int descriptor, const void *bytes, size_t size);

/// Writes a small file in one piece, by createOrOpen().
absl::Status writeFileAtomically(absl::string_view path,
                                 absl::string_view text);

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_ATOMICFILE_H
