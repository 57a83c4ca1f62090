//===- AtomicFile.cpp - A file written whole or not at all ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/AtomicFile.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llamac {

static constexpr size_t bufferBytes = size_t{1} << 20;

absl::Status AtomicFile::failure(absl::string_view what) const {
  return systemError(errno, absl::StrCat(finalPath, ": ", what), usageError);
}

absl::Status checkReplaceable(absl::string_view path) {
  struct stat info;
  if (stat(std::string(path).c_str(), &info) != 0 || S_ISREG(info.st_mode))
    return absl::OkStatus();
  return usageError(
      absl::StrCat(path, ": expected the name of a file, got a ",
                   S_ISDIR(info.st_mode) ? "directory" : "device or pipe"));
}

absl::StatusOr<std::unique_ptr<AtomicFile>>
AtomicFile::create(absl::string_view path) {
  LLAMAC_RETURN_IF_ERROR(checkReplaceable(path));
  std::unique_ptr<AtomicFile> file(new AtomicFile);
  file->finalPath = std::string(path);
  // Beside the final file: a rename works within one file system only. A hidden
  // name, and not the final suffix: nothing mistakes it for a model.
  const size_t slash = path.rfind('/');
  const size_t name = slash == absl::string_view::npos ? 0 : slash + 1;
  file->temporaryPath =
      absl::StrCat(path.substr(0, name), ".", path.substr(name), ".XXXXXX");
  {
    const EndDelay delay;
    file->descriptor = mkostemp(file->temporaryPath.data(), O_CLOEXEC);
    if (file->descriptor >= 0)
      file->guard.emplace(file->temporaryPath.c_str());
  }
  if (file->descriptor < 0)
    return file->failure("cannot be written");
  // mkostemp makes a private file; the final one is readable by all, as files
  // of a model are meant to be.
  if (fchmod(file->descriptor, 0644) != 0)
    return file->failure("cannot be written");
  return file;
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  unlink(temporaryPath.c_str());
}

absl::Status AtomicFile::writeAt(uint64_t offset,
                                 absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor, bytes.data(), bytes.size(),
                                   static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return failure("cannot be written");
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::flush() {
  LLAMAC_RETURN_IF_ERROR(writeAt(flushed, buffer));
  flushed += buffer.size();
  buffer.clear();
  return absl::OkStatus();
}

absl::Status AtomicFile::write(absl::Span<const uint8_t> bytes) {
  if (buffer.size() + bytes.size() > bufferBytes)
    LLAMAC_RETURN_IF_ERROR(flush());
  if (bytes.size() < bufferBytes) {
    buffer.insert(buffer.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }
  LLAMAC_RETURN_IF_ERROR(writeAt(flushed, bytes));
  flushed += bytes.size();
  return absl::OkStatus();
}

absl::Status AtomicFile::overwrite(uint64_t offset,
                                   absl::Span<const uint8_t> bytes) {
  LLAMAC_RETURN_IF_ERROR(flush());
  return writeAt(offset, bytes);
}

/// Brings the name of a new file at `path` to the disk, where the file system
/// can.
static void syncFolder(const std::string &path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const int descriptor = open(folder.empty() ? "." : folder.c_str(),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  fsync(descriptor);
  close(descriptor);
}

absl::Status AtomicFile::commit() {
  LLAMAC_RETURN_IF_ERROR(flush());
  if (fsync(descriptor) != 0)
    return failure("cannot be written");
  if (std::rename(temporaryPath.c_str(), finalPath.c_str()) != 0)
    return failure("cannot be put in place");
  guard.reset();
  close(descriptor);
  descriptor = -1;
  syncFolder(finalPath);
  return absl::OkStatus();
}

/// Writes `text` to the device or pipe at `path`.
static absl::Status writeThrough(const std::string &path,
                                 absl::string_view text) {
  std::FILE *file = std::fopen(path.c_str(), "w");
  bool whole = file;
  if (file) {
    whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    whole &= std::fclose(file) == 0;
  }
  return whole ? absl::OkStatus()
               : systemError(errno, absl::StrCat(path, ": cannot be written"),
                             usageError);
}

absl::Status writeFileAtomically(absl::string_view path,
                                 absl::string_view text) {
  struct stat info;
  const std::string name(path);
  if (stat(name.c_str(), &info) == 0 && !S_ISREG(info.st_mode) &&
      !S_ISDIR(info.st_mode))
    return writeThrough(name, text);
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::create(path));
  LLAMAC_RETURN_IF_ERROR(file->write(text));
  return file->commit();
}

} // namespace llamac
