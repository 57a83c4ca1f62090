//===- AccessLog.cpp - A line for each request ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/AccessLog.h"

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace llamac::serve {

/// Lines that may wait for the thread.
static constexpr size_t mostLines = size_t{1} << 14;

AccessLog::AccessLog(int descriptor, std::string path)
    : descriptor(descriptor), terminal(isatty(descriptor) == 1),
      path(std::move(path)) {
  if (descriptor >= 0)
    thread = std::thread([this] { run(); });
}

absl::StatusOr<std::unique_ptr<AccessLog>>
AccessLog::open(const std::string &path) {
  int descriptor = -1;
  if (path == "-")
    descriptor = dup(STDERR_FILENO);
  else if (!path.empty())
    descriptor =
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (descriptor < 0 && !path.empty())
    return systemError(errno, absl::StrCat(path, ": cannot be opened"),
                       usageError);
  return std::unique_ptr<AccessLog>(new AccessLog(descriptor, path));
}

AccessLog::~AccessLog() {
  if (descriptor < 0)
    return;
  {
    const std::lock_guard lock(mutex);
    isClosed = true;
  }
  arrived.notify_one();
  thread.join();
  close(descriptor);
}

void AccessLog::write(std::string line) {
  if (descriptor < 0)
    return;
  {
    const std::lock_guard lock(mutex);
    if (lines.size() >= mostLines)
      return;
    lines.push_back(std::move(line) + "\n");
  }
  arrived.notify_one();
}

void AccessLog::run() {
  bool hasFailed = false;
  std::unique_lock lock(mutex);
  while (true) {
    arrived.wait(lock, [&] { return isClosed || !lines.empty(); });
    if (lines.empty())
      return;
    const std::vector<std::string> taken = std::exchange(lines, {});
    lock.unlock();
    for (const std::string &line : taken) {
      const int error = writeAll(descriptor, line.data(), line.size());
      if (error && !hasFailed)
        printWarning(absl::StrCat(
            path, ": lines of the log are lost: ", std::strerror(error)));
      hasFailed = error != 0;
    }
    lock.lock();
  }
}

} // namespace llamac::serve
