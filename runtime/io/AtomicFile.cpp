//===- AtomicFile.cpp - A file written whole or not at all ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/AtomicFile.h"

#include "runtime/base/Status.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace llamac {

static constexpr size_t bufferBytes = size_t{1} << 20;

absl::Status checkNotInput(absl::string_view flag, const std::string &output,
                           const std::string &input, absl::string_view what) {
  std::error_code error;
  return std::filesystem::equivalent(output, input, error)
             ? usageError(absl::StrCat(flag, ": expected another file than ",
                                       what, ", got ", output))
             : absl::OkStatus();
}

FileCalls FileCalls::system() {
  return {
      [](int file, const void *data, size_t size, off_t offset) {
        return ::pwrite(file, data, size, offset);
      },
      [](int file) { return ::fsync(file); },
      [](const char *from, const char *to) { return std::rename(from, to); }};
}

/// Whether a rename to `path` would replace a device or pipe.
static bool isDevice(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) &&
         !S_ISDIR(info.st_mode);
}

AtomicFile::AtomicFile(absl::string_view path, FileCalls calls)
    : path(path), folder(path.substr(0, path.rfind('/') + 1)),
      calls(std::move(calls)) {
  if (folder.empty())
    folder = "./";
}

/// A writer locks its temporary file for as long as it lives: an unlocked one
/// was left by a killed writer.
static void removeAbandoned(const std::string &folder,
                            const std::string &prefix) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string &name = entry->path().native();
    if (!absl::StartsWith(entry->path().filename().native(), prefix))
      continue;
    const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
      continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
      unlink(name.c_str());
    close(file);
  }
}

/// Makes and locks a new file beside the final one: a rename works within one
/// file system only. A hidden name, and not the final suffix: nothing mistakes
/// it for a model.
absl::Status AtomicFile::openTemporary() {
  const std::string prefix =
      absl::StrCat(".", path.substr(path.rfind('/') + 1), ".tmp-");
  removeAbandoned(folder, prefix);
  for (int attempt = 0;; ++attempt) {
    temporary = absl::StrCat(folder, prefix, getpid(), "-", attempt);
    {
      const EndDelay delay;
      descriptor = ::open(temporary.c_str(),
                          O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor >= 0)
        guard.emplace(temporary.c_str());
    }
    if (descriptor < 0 && errno == EEXIST && attempt < 1000)
      continue;
    if (descriptor < 0)
      return failure("cannot be written", usageError);
    // Another writer may have taken it for abandoned before it was locked.
    struct stat info;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
        fstat(descriptor, &info) == 0 && info.st_nlink == 1)
      return absl::OkStatus();
    guard.reset();
    close(std::exchange(descriptor, -1));
  }
}

absl::StatusOr<std::unique_ptr<AtomicFile>>
AtomicFile::create(absl::string_view path, FileCalls calls) {
  std::unique_ptr<AtomicFile> file(new AtomicFile(path, std::move(calls)));
  if (struct stat info;
      stat(file->path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return usageError(
        absl::StrCat(path, ": expected the name of a file, got a ",
                     S_ISDIR(info.st_mode) ? "directory" : "device or pipe"));
  LLAMAC_RETURN_IF_ERROR(file->openTemporary());
  return file;
}

absl::StatusOr<std::unique_ptr<AtomicFile>>
AtomicFile::createOrOpen(absl::string_view path) {
  if (!isDevice(std::string(path)))
    return create(path);
  std::unique_ptr<AtomicFile> file(new AtomicFile(path, FileCalls::system()));
  file->calls.write = [](int device, const void *data, size_t size, off_t) {
    return ::write(device, data, size);
  };
  file->descriptor = ::open(file->path.c_str(),
                            O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file->descriptor < 0)
    return file->failure("cannot be written", usageError);
  return file;
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  if (!temporary.empty())
    unlink(temporary.c_str());
  close(descriptor);
}

absl::Status
AtomicFile::failure(absl::string_view what,
                    absl::Status (*otherwise)(absl::string_view)) const {
  return systemError(errno, absl::StrCat(path, ": ", what), otherwise);
}

/// The error where the contents are lost; it is of the memory kind for a
/// device.
absl::Status AtomicFile::lost() const {
  return failure(absl::StrCat("cannot be written after ", size(), " bytes"),
                 temporary.empty() ? memoryError : deviceError);
}

absl::Status AtomicFile::writeAt(uint64_t offset,
                                 absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = calls.write(descriptor, bytes.data(), bytes.size(),
                                        static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return lost();
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

absl::Status AtomicFile::alignTo(uint64_t alignment) {
  const uint64_t over = size() % alignment;
  if (over == 0)
    return absl::OkStatus();
  return write(std::vector<uint8_t>(alignment - over, 0));
}

absl::Status AtomicFile::overwrite(uint64_t offset,
                                   absl::Span<const uint8_t> bytes) {
  LLAMAC_RETURN_IF_ERROR(flush());
  return writeAt(offset, bytes);
}

absl::Status AtomicFile::commit() {
  LLAMAC_RETURN_IF_ERROR(flush());
  if (temporary.empty())
    return absl::OkStatus();
  if (calls.sync(descriptor) != 0)
    return lost();
  if (calls.rename(temporary.c_str(), path.c_str()) != 0)
    return failure("cannot be put in place", deviceError);
  guard.reset();
  close(std::exchange(descriptor, -1));
  // The name reaches the disk with its folder, where the file system can.
  const int parent = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent >= 0) {
    calls.sync(parent);
    close(parent);
  }
  return absl::OkStatus();
}

int writeAll(int descriptor, const void *bytes, size_t size) {
  const char *next = static_cast<const char *>(bytes);
  for (const char *const end = next + size; next != end;) {
    const ssize_t written = ::write(descriptor, next, end - next);
    if (written < 0 && errno != EINTR)
      return errno;
    next += std::max<ssize_t>(written, 0);
  }
  return 0;
}

absl::Status writeFileAtomically(absl::string_view path,
                                 absl::string_view text) {
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::createOrOpen(path));
  LLAMAC_RETURN_IF_ERROR(file->write(text));
  return file->commit();
}

} // namespace llamac
