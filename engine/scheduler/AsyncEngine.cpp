//===- AsyncEngine.cpp - A scheduler with a thread of its own -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/scheduler/AsyncEngine.h"

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

namespace llamac {

/// Parts on their way from the engine's thread to a caller.
struct AnswerStream::Mailbox {
  explicit Mailbox(int answers) : left(answers) {}

  /// Adds `part`, to one of the same answer that was not taken if there is one.
  void put(const AnswerPart &part);

  /// Ends all `answers` with `status`.
  void fail(int answers, const absl::Status &status) {
    for (int answer = 0; answer < answers; ++answer)
      put({.answer = answer, .end = AnswerEnd{.status = status}});
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<AnswerPart> parts;
  int left; ///< Answers whose ends were not taken.
  AnswerCallback onPart;
  /// The engine's thread alone.
  std::optional<Scheduler::RequestId> id;
};

void AnswerStream::Mailbox::put(const AnswerPart &part) {
  {
    const std::lock_guard lock(mutex);
    const auto same =
        std::ranges::find(parts, part.answer, &AnswerPart::answer);
    if (same == parts.end())
      parts.push_back(part);
    else
      append(*same, part);
  }
  changed.notify_all();
  if (onPart)
    onPart(part);
}

/// Messages from callers to the engine's thread.
class AnswerStream::Line {
public:
  struct Message {
    std::shared_ptr<Mailbox> mailbox;
    std::optional<Request> request; ///< None: cancels.
  };

  /// Memory error for a request that makes more than `mostAnswers` run or wait;
  /// 0: any number may.
  absl::Status send(Message message, int64_t mostAnswers = 0) {
    {
      const std::lock_guard lock(mutex);
      if (message.request) {
        const int64_t known = counts.running + counts.waiting;
        if (mostAnswers > 0 && known + message.request->answers > mostAnswers)
          return memoryError(absl::StrCat(
              "queue: expected at most ", mostAnswers,
              " answers that run or wait, ", known, " do; try again later"));
        counts.waiting += message.request->answers;
      }
      messages.push_back(std::move(message));
    }
    arrived.notify_one();
    return absl::OkStatus();
  }

  /// The first message, or none.
  std::optional<Message> take() {
    const std::lock_guard lock(mutex);
    if (messages.empty())
      return std::nullopt;
    Message message = std::move(messages.front());
    messages.pop_front();
    return message;
  }

  /// Shows what `scheduler` counts, with what it has not got yet as waiting.
  void publish(const Scheduler &scheduler) {
    const std::lock_guard lock(mutex);
    counts = scheduler.counts();
    kernelTimes = scheduler.kernelTimes();
    for (const Message &message : messages)
      if (message.request)
        counts.waiting += message.request->answers;
  }

  const ForkGeneration generation;
  mutable std::mutex mutex;
  std::condition_variable arrived;
  std::deque<Message> messages;
  bool isClosed = false;
  SchedulerCounts counts;
  std::shared_ptr<const std::vector<KernelSum>> kernelTimes;
};

AnswerStream::AnswerStream(std::shared_ptr<Mailbox> mailbox,
                           std::shared_ptr<Line> line)
    : mailbox(std::move(mailbox)), line(std::move(line)) {}

AnswerStream::~AnswerStream() {
  if (!done())
    cancel();
}

std::optional<AnswerPart> AnswerStream::next(double seconds) {
  if (!line->generation.isHere()) {
    // Locks may be as another thread left them.
    if (mailbox->left == 0)
      return std::nullopt;
    AnswerPart part;
    part.answer = --mailbox->left;
    part.end.emplace().status = line->generation.check("engine");
    return part;
  }
  std::unique_lock lock(mailbox->mutex);
  const auto isReady = [&] {
    return !mailbox->parts.empty() || mailbox->left == 0;
  };
  if (seconds < 0)
    mailbox->changed.wait(lock, isReady);
  else
    mailbox->changed.wait_for(
        lock, std::chrono::duration<double>(std::min(seconds, 1e6)), isReady);
  if (mailbox->parts.empty())
    return std::nullopt;
  AnswerPart part = std::move(mailbox->parts.front());
  mailbox->parts.pop_front();
  mailbox->left -= part.end.has_value();
  return part;
}

bool AnswerStream::done() const {
  if (!line->generation.isHere())
    return mailbox->left == 0;
  const std::lock_guard lock(mailbox->mutex);
  return mailbox->left == 0;
}

void AnswerStream::cancel() {
  if (line->generation.isHere())
    line->send({mailbox, std::nullopt}).IgnoreError();
}

AsyncEngine::AsyncEngine(std::unique_ptr<Scheduler> scheduler,
                         const AsyncEngineOptions &options)
    : shared(scheduler->sharedModel()), scheduler(scheduler.release()),
      options(options), line(new AnswerStream::Line, DeleteWhereMade()),
      thread(new std::thread([this] { run(); })) {}

absl::StatusOr<std::unique_ptr<AsyncEngine>>
AsyncEngine::create(std::shared_ptr<const Model> model,
                    const AsyncEngineOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(
      std::unique_ptr<Scheduler> scheduler,
      Scheduler::create(std::move(model), options.scheduler));
  return std::unique_ptr<AsyncEngine>(
      new AsyncEngine(std::move(scheduler), options));
}

AsyncEngine::~AsyncEngine() {
  if (!line->generation.isHere())
    return;
  {
    const std::lock_guard lock(line->mutex);
    line->isClosed = true;
  }
  line->arrived.notify_one();
  thread->join();
}

absl::StatusOr<std::unique_ptr<AnswerStream>>
AsyncEngine::submit(Request request, AnswerCallback onPart) {
  LLAMAC_RETURN_IF_ERROR(line->generation.check("engine"));
  LLAMAC_RETURN_IF_ERROR(scheduler->prepare(request));
  const std::shared_ptr<AnswerStream::Mailbox> mailbox(
      new AnswerStream::Mailbox(request.answers), DeleteWhereMade());
  mailbox->onPart = std::move(onPart);
  LLAMAC_RETURN_IF_ERROR(
      line->send({mailbox, std::move(request)}, mostAnswers()));
  return std::unique_ptr<AnswerStream>(new AnswerStream(mailbox, line));
}

int64_t AsyncEngine::mostAnswers() const {
  return options.maxWaiting == 0
             ? 0
             : options.maxWaiting + model().plan().kv->maxSequences;
}

SchedulerCounts AsyncEngine::counts() const {
  const std::lock_guard lock(line->mutex);
  return line->counts;
}

std::shared_ptr<const std::vector<KernelSum>> AsyncEngine::kernelTimes() const {
  const std::lock_guard lock(line->mutex);
  return line->kernelTimes;
}

/// The engine's thread runs this until the engine goes.
void AsyncEngine::run() {
  const auto isInterrupted = [&] {
    const std::lock_guard lock(line->mutex);
    return line->isClosed || !line->messages.empty();
  };
  while (true) {
    {
      std::unique_lock lock(line->mutex);
      line->arrived.wait(lock, [&] {
        return line->isClosed || !line->messages.empty() ||
               !scheduler->isIdle();
      });
      if (line->isClosed)
        break;
    }
    while (auto message = line->take()) {
      auto &[mailbox, request] = *message;
      if (!request) {
        if (mailbox->id)
          scheduler->cancel(*mailbox->id);
        continue;
      }
      const AnswerCallback tell = [this, mailbox](const AnswerPart &part) {
        // Who is told of an end finds its place free.
        if (part.end)
          line->publish(*scheduler);
        mailbox->put(part);
      };
      const int answers = request->answers;
      auto id = scheduler->submit(*std::move(request), tell);
      if (id.ok())
        mailbox->id = *id;
      else
        mailbox->fail(answers, id.status());
    }
    scheduler->step(isInterrupted);
    if (!scheduler->deviceStatus().ok() && options.onDeviceLost)
      std::exchange(options.onDeviceLost, {})(scheduler->deviceStatus());
    line->publish(*scheduler);
  }
  const absl::Status closed =
      usageError("engine: was destroyed before the answer ended");
  while (auto message = line->take())
    if (message->request)
      message->mailbox->fail(message->request->answers, closed);
  scheduler->failAll(closed);
  if (absl::Status status = scheduler->savePrefixes(); !status.ok())
    printWarning(absl::StrCat("prefix cache: ", status.message()));
}

} // namespace llamac
