//===- AccessLog.h - A line for each request --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_API_ACCESSLOG_H
#define LLAMAC_SERVE_API_ACCESSLOG_H

#include "absl/status/statusor.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace llamac::serve {

/// Writes lines to a file by a thread of its own, so that a full disk or a pipe
/// that nobody reads holds up no request. Lines that cannot be written are
/// lost; the first of a series is a warning on stderr.
class AccessLog {
public:
  /// `path` is a file that is appended to, "-" for stderr, or empty for no
  /// log. Memory error or bad file where it cannot be opened.
  static absl::StatusOr<std::unique_ptr<AccessLog>>
  open(const std::string &path);
  ~AccessLog();

  /// Whether people read it as it is written.
  bool isTerminal() const { return terminal; }

  /// Queues a line, given without its line feed.
  void write(std::string line);

private:
  AccessLog(int descriptor, std::string path);
  void run();

  int descriptor;
  bool terminal;
  std::string path;
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<std::string> lines;
  bool isClosed = false;
  std::thread thread; ///< Last: it uses the others.
};

} // namespace llamac::serve

#endif // LLAMAC_SERVE_API_ACCESSLOG_H
