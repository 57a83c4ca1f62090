//===- LineFiles.cpp - Files of lines, read and appended to ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/LineFiles.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llamac {

static constexpr size_t blockBytes = 1 << 18;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

absl::StatusOr<std::unique_ptr<LineReader>>
LineReader::open(absl::string_view path, uint64_t maxBytes) {
  std::unique_ptr<LineReader> reader(new LineReader);
  const bool isStdin = path == "-";
  reader->name = isStdin ? "stdin" : std::string(path);
  reader->maxBytes = maxBytes;
  reader->descriptor = isStdin
                           ? STDIN_FILENO
                           : ::open(reader->name.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (reader->descriptor < 0 || fstat(reader->descriptor, &info) != 0)
    return systemError(errno, absl::StrCat(reader->name, ": cannot be read"),
                       badFileError);
  if (S_ISREG(info.st_mode))
    reader->fileBytes = static_cast<uint64_t>(info.st_size);
  return reader;
}

LineReader::~LineReader() {
  if (descriptor > STDERR_FILENO)
    close(descriptor);
}

absl::StatusOr<LineReader::Outcome> LineReader::next(bool waits) {
  if (isWhole) {
    current.clear();
    isWhole = false;
  }
  while (true) {
    const size_t feed = block.find('\n', used);
    const size_t end = feed == std::string::npos ? block.size() : feed;
    // A byte more says that the line is too long, and one more may be a "\r".
    if (current.size() < maxBytes + 2)
      current.append(
          block, used,
          std::min<uint64_t>(end - used, maxBytes + 2 - current.size()));
    taken += end - used;
    used = end;
    if (feed != std::string::npos) {
      ++used;
      ++taken;
      if (absl::EndsWith(current, "\r"))
        current.pop_back();
    } else if (!atEnd) {
      pollfd ready = {descriptor, POLLIN, 0};
      if (!waits && poll(&ready, 1, 0) == 0)
        return Outcome::Pending;
      block.resize(blockBytes);
      const ssize_t got = read(descriptor, block.data(), block.size());
      const int error = errno;
      block.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
      used = 0;
      if (got < 0 && error == EINTR)
        return Outcome::Pending;
      if (got < 0)
        return systemError(error, absl::StrCat(name, ": cannot be read"),
                           badFileError);
      atEnd = got == 0;
      continue;
    } else if (current.empty()) {
      return Outcome::End;
    }
    isWhole = true;
    ++lines;
    return Outcome::Line;
  }
}

std::optional<absl::string_view> LineReader::line() const {
  return current.size() > maxBytes ? std::nullopt
                                   : std::optional<absl::string_view>(current);
}

//===----------------------------------------------------------------------===//
// Appending
//===----------------------------------------------------------------------===//

absl::Status LineAppender::failure(absl::string_view what) const {
  return systemError(errno, absl::StrCat(path, ": ", what), usageError);
}

absl::StatusOr<std::unique_ptr<LineAppender>>
LineAppender::open(absl::string_view path) {
  std::unique_ptr<LineAppender> appender(new LineAppender(path));
  // A pipe or device may not be readable.
  for (const int access : {O_RDWR, O_WRONLY})
    if (appender->descriptor < 0)
      appender->descriptor =
          ::open(appender->path.c_str(),
                 access | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  struct stat info{};
  if (appender->descriptor < 0 || fstat(appender->descriptor, &info) != 0)
    return appender->failure("cannot be written");
  appender->isRegular = S_ISREG(info.st_mode);
  if (appender->isRegular &&
      flock(appender->descriptor, LOCK_EX | LOCK_NB) != 0 &&
      errno == EWOULDBLOCK)
    return usageError(absl::StrCat(path, ": another process appends to it; "
                                         "wait for it or name another file"));
  return appender;
}

LineAppender::~LineAppender() {
  if (descriptor >= 0)
    close(descriptor);
}

absl::Status LineAppender::recover(
    absl::FunctionRef<absl::Status(absl::string_view line, int64_t number)>
        take,
    absl::FunctionRef<bool(absl::string_view torn)> isOurs) {
  if (!isRegular)
    return absl::OkStatus();
  std::string pending; // The beginning of a line.
  off_t read = 0;
  int64_t lines = 0;
  while (true) {
    const size_t old = pending.size();
    pending.resize(old + blockBytes);
    const ssize_t got = pread(descriptor, &pending[old], blockBytes, read);
    pending.resize(old + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return failure("cannot be read, to go on with it");
    read += got;
    size_t start = 0;
    for (size_t end; (end = pending.find('\n', start)) != std::string::npos;
         start = end + 1)
      LLAMAC_RETURN_IF_ERROR(
          take(absl::string_view(pending).substr(start, end - start), ++lines));
    pending.erase(0, start);
    if (!pending.empty() && !isOurs(pending))
      return usageError(absl::StrCat(path, ":", lines + 1,
                                     ": expected a file that was begun before, "
                                     "got another; name a new one"));
    if (got == 0)
      break;
  }
  if (pending.empty())
    return absl::OkStatus();
  if (ftruncate(descriptor, read - static_cast<off_t>(pending.size())) != 0)
    return failure("its last line cannot be cut off");
  return absl::OkStatus();
}

absl::Status LineAppender::append(absl::string_view line) {
  struct stat info{};
  fstat(descriptor, &info);
  const std::string whole = absl::StrCat(line, "\n");
  const int error = writeAll(descriptor, whole.data(), whole.size());
  if (error == 0)
    return absl::OkStatus();
  // A line that stays torn is cut off by the next writer.
  const int cut = isRegular ? ftruncate(descriptor, info.st_size) : 0;
  (void)cut;
  return systemError(error, absl::StrCat(path, ": cannot be written"),
                     memoryError);
}

absl::Status LineAppender::clear() {
  return isRegular && ftruncate(descriptor, 0) != 0
             ? failure("cannot be begun anew")
             : absl::OkStatus();
}

absl::Status LineAppender::sync() {
  return isRegular && fsync(descriptor) != 0
             ? systemError(errno, absl::StrCat(path, ": cannot be written"),
                           memoryError)
             : absl::OkStatus();
}

} // namespace llamac
