//===- QueueObject.h - News of many answers ---------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CAPI_QUEUEOBJECT_H
#define LLAMAC_CAPI_QUEUEOBJECT_H

#include "llamac/llamac.h"
#include "runtime/base/Status.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace llamac {

class QueueObject;

/// From an answer to the queue that it is in; what the engine's thread calls.
class Notifier : public std::enable_shared_from_this<Notifier> {
public:
  explicit Notifier(uint64_t answer) : answer(answer) {}

  /// Puts the answer in its queue, if it has one.
  void notify();

  /// Makes `queue` the answer's, and puts it in there.
  void setQueue(const std::shared_ptr<QueueObject> &queue);

private:
  friend class QueueObject;

  const uint64_t answer; ///< The number of its handle.
  std::mutex mutex;
  std::weak_ptr<QueueObject> queue;
  bool isQueued = false; ///< Under the queue's mutex.
};

/// Answers that have news, each once, and a descriptor that says so.
class QueueObject {
public:
  /// Memory error when there are too many open files.
  static absl::StatusOr<std::shared_ptr<QueueObject>> create();
  explicit QueueObject(int fd);
  QueueObject(const QueueObject &) = delete;
  QueueObject &operator=(const QueueObject &) = delete;
  ~QueueObject();

  int descriptor() const { return fd; }

  void put(std::shared_ptr<Notifier> notifier);
  void remove(Notifier &notifier);

  /// The number of the next answer; 0 when none came in `seconds`, which are
  /// without end where negative. Usage error when the queue was closed.
  absl::StatusOr<uint64_t> take(double seconds);

  /// Ends all waits.
  void close();

private:
  void clearWhenEmpty();

  const int fd;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Notifier>> ready;
  bool isClosed = false;
};

} // namespace llamac

#endif // LLAMAC_CAPI_QUEUEOBJECT_H
