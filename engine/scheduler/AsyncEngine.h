//===- AsyncEngine.h - A scheduler with a thread of its own -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any thread submits requests and takes their answers; one thread runs steps.
// Nobody waits for a step but those who ask for the next part of an answer, and
// a caller that takes no parts holds up nobody: they gather until it does.
//
// After a fork the child has no such thread: what it submits is refused, and
// its streams end with a device error. Nothing else may be called there.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SCHEDULER_ASYNCENGINE_H
#define LLAMAC_ENGINE_SCHEDULER_ASYNCENGINE_H

#include "engine/scheduler/Scheduler.h"
#include "runtime/base/Forks.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace llamac {

struct AsyncEngineOptions {
  SchedulerOptions scheduler = {};
  /// Answers that may wait at most, beside those that run; 0: any number.
  int64_t maxWaiting = 0;
  /// Told by the engine's thread, once, that the device can run nothing more;
  /// must neither block nor throw, nor call the engine.
  std::function<void(const absl::Status &error)> onDeviceLost = {};
};

/// The answers to one request, as one thread at a time takes them; may outlive
/// its engine. Destroying it cancels what has not ended.
class AnswerStream {
public:
  AnswerStream(const AnswerStream &) = delete;
  AnswerStream &operator=(const AnswerStream &) = delete;
  ~AnswerStream();

  /// The new part of one answer, since its last one. Waits at most `seconds`,
  /// or without end where they are negative; none when nothing came, or no more
  /// will.
  std::optional<AnswerPart> next(double seconds = -1);

  /// Whether the ends of all answers have been taken.
  bool done() const;

  /// Ends the answers with the next step; their ends still come.
  void cancel();

private:
  friend class AsyncEngine;
  struct Mailbox;
  class Line;

  AnswerStream(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<Line> line);

  std::shared_ptr<Mailbox> mailbox;
  std::shared_ptr<Line> line;
};

/// Runs requests of any thread.
class AsyncEngine {
public:
  static absl::StatusOr<std::unique_ptr<AsyncEngine>>
  create(std::shared_ptr<const Model> model,
         const AsyncEngineOptions &options = {});
  AsyncEngine(const AsyncEngine &) = delete;
  AsyncEngine &operator=(const AsyncEngine &) = delete;
  /// Ends all requests with an error that says so, and saves the prefix cache
  /// where it has a file; what goes wrong there is a warning.
  ~AsyncEngine();

  const Model &model() const { return *shared; }

  /// Queues `request`. `onPart` is called by the engine's thread after each
  /// part: it must neither block nor throw, nor call the engine. Errors: those
  /// of Scheduler::prepare(); memory when too many wait; device in a child.
  absl::StatusOr<std::unique_ptr<AnswerStream>>
  submit(Request request, AnswerCallback onPart = {});

  /// Answers that may run and wait at once; 0: any number.
  int64_t mostAnswers() const;

  /// Counts at the end of the last step or answer, with what was submitted
  /// since as waiting.
  SchedulerCounts counts() const;

  /// See Scheduler::kernelTimes().
  std::shared_ptr<const std::vector<KernelSum>> kernelTimes() const;

private:
  AsyncEngine(std::unique_ptr<Scheduler> scheduler,
              const AsyncEngineOptions &options);
  void run();

  std::shared_ptr<const Model> shared;
  /// The thread's; a fork leaves it as it was in the middle of a step.
  std::unique_ptr<Scheduler, DeleteWhereMade> scheduler;
  AsyncEngineOptions options;
  std::shared_ptr<AnswerStream::Line> line;
  /// Last: it uses the others.
  std::unique_ptr<std::thread, DeleteWhereMade> thread;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SCHEDULER_ASYNCENGINE_H
