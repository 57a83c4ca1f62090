//===- QueueApi.cpp - llamac_queue_ functions -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "capi/AnswerObject.h"
#include "capi/Errors.h"
#include "capi/Handles.h"
#include "capi/QueueObject.h"

#include "runtime/base/Clock.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace llamac {

// Locks are taken in the order notifier, queue.

void Notifier::notify() {
  // Nothing is sent after setQueue() returned to a queue of before.
  const std::lock_guard lock(mutex);
  if (const std::shared_ptr<QueueObject> to = queue.lock())
    to->put(shared_from_this());
}

void Notifier::setQueue(const std::shared_ptr<QueueObject> &to) {
  const std::lock_guard lock(mutex);
  if (const std::shared_ptr<QueueObject> from = queue.lock())
    from->remove(*this);
  queue = to;
  to->put(shared_from_this());
}

absl::StatusOr<std::shared_ptr<QueueObject>> QueueObject::create() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0)
    return systemError(errno, "queue", internalError);
  return std::make_shared<QueueObject>(fd);
}

QueueObject::QueueObject(int fd) : fd(fd) {}

QueueObject::~QueueObject() { ::close(fd); }

void QueueObject::put(std::shared_ptr<Notifier> notifier) {
  const std::lock_guard lock(mutex);
  if (std::exchange(notifier->isQueued, true))
    return;
  if (ready.empty())
    eventfd_write(fd, 1);
  ready.push_back(std::move(notifier));
  changed.notify_one();
}

void QueueObject::remove(Notifier &notifier) {
  const std::lock_guard lock(mutex);
  if (!std::exchange(notifier.isQueued, false))
    return;
  std::erase_if(ready,
                [&](const auto &held) { return held.get() == &notifier; });
  clearWhenEmpty();
}

void QueueObject::clearWhenEmpty() {
  eventfd_t ignored;
  if (ready.empty())
    eventfd_read(fd, &ignored);
}

absl::StatusOr<uint64_t> QueueObject::take(double seconds) {
  std::unique_lock lock(mutex);
  const auto isReady = [&] { return isClosed || !ready.empty(); };
  if (seconds < 0)
    changed.wait(lock, isReady);
  else
    changed.wait_for(
        lock, std::chrono::duration<double>(std::min(seconds, 1e6)), isReady);
  if (isClosed)
    return usageError("queue: was closed while a thread waited for it");
  if (ready.empty())
    return 0;
  const std::shared_ptr<Notifier> first = std::move(ready.front());
  ready.pop_front();
  first->isQueued = false;
  clearWhenEmpty();
  return first->answer;
}

void QueueObject::close() {
  {
    const std::lock_guard lock(mutex);
    isClosed = true;
  }
  changed.notify_all();
}

/// The next answer of `queue` whose handle is open; NULL when none came.
static absl::StatusOr<llamac_answer *> nextAnswer(QueueObject &queue,
                                                  double seconds) {
  const double end = steadySeconds() + seconds;
  while (true) {
    LLAMAC_ASSIGN_OR_RETURN(const uint64_t number, queue.take(seconds));
    auto *answer = handleOf<llamac_answer>(number);
    if (number == 0 || objectOf(answer).ok())
      return answer;
    if (seconds >= 0)
      seconds = std::max(0.0, end - steadySeconds());
  }
}

} // namespace llamac

using namespace llamac;

llamac_code llamac_queue_new(llamac_queue **queue) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(queue, "queue"));
    LLAMAC_ASSIGN_OR_RETURN(auto object, QueueObject::create());
    *queue = openHandle<llamac_queue>(std::move(object));
    return absl::OkStatus();
  });
}

llamac_code llamac_queue_free(llamac_queue *queue) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_ASSIGN_OR_RETURN(const auto object, closeHandle(queue));
    if (object)
      object->close();
    return absl::OkStatus();
  });
}

llamac_code llamac_queue_add(llamac_queue *queue, llamac_answer *answer) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(queue));
    LLAMAC_ASSIGN_OR_RETURN(const auto added, objectOf(answer));
    added->notifier().setQueue(object);
    return absl::OkStatus();
  });
}

llamac_code llamac_queue_next(llamac_queue *queue, double seconds,
                              llamac_answer **answer) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(answer, "answer"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(queue));
    LLAMAC_ASSIGN_OR_RETURN(*answer, nextAnswer(*object, seconds));
    return absl::OkStatus();
  });
}

llamac_code llamac_queue_fd(const llamac_queue *queue, int *fd) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(fd, "fd", -1));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(queue));
    *fd = object->descriptor();
    return absl::OkStatus();
  });
}
