//===- FatalEvents.cpp - What ends a tool at once -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Handlers of signals may neither lock nor allocate: files are in a table of
// atomics, and lines are built on the stack.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/FatalEvents.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <new>
#include <unistd.h>

namespace llamac {

/// A file; `begin` and `end` are 0 for one that is temporary.
struct GuardedFile {
  std::atomic<bool> isTaken;
  std::atomic<const char *> path; ///< Null while the rest is not set.
  std::atomic<uintptr_t> begin, end;
  std::atomic<ExitCode> code;
};

static GuardedFile files[1024];
static const char *toolName = "llamac";

/// Set once a thread ends the process: the others stand still.
static std::atomic<bool> isEnding;
static std::atomic<int> delays;

[[noreturn]] static void standStill() {
  for (;;)
    pause();
}

static sigset_t blockSignals() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  return before;
}

EndDelay::EndDelay() : signals(blockSignals()) {
  ++delays;
  if (!isEnding)
    return;
  --delays;
  standStill();
}

EndDelay::~EndDelay() {
  --delays;
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
}

FileGuard::FileGuard(const char *path, absl::Span<const uint8_t> bytes,
                     ExitCode code)
    : file(std::find_if(
          std::begin(files), std::end(files), [](GuardedFile &free) {
            return !free.isTaken.load() && !free.isTaken.exchange(true);
          })) {
  if (file == std::end(files))
    return;
  file->begin = reinterpret_cast<uintptr_t>(bytes.data());
  file->end = file->begin + bytes.size();
  file->code = code;
  file->path = path;
}

FileGuard::~FileGuard() {
  if (file == std::end(files))
    return;
  file->path = nullptr;
  // A handler may have seen the path before, and needs it.
  if (isEnding)
    standStill();
  file->isTaken = false;
}

/// Makes the calling thread the one that ends the process, and removes the
/// temporary files.
static void beginEnd() {
  blockSignals();
  if (isEnding.exchange(true))
    standStill();
  while (delays != 0)
    ;
  for (const GuardedFile &file : files)
    if (const char *path = file.path; path && file.end == 0)
      unlink(path);
}

[[noreturn]] static void end(ExitCode code,
                             std::initializer_list<const char *> words) {
  beginEnd();
  char line[8192];
  size_t size = 0;
  auto add = [&](const char *text) {
    for (; *text && size + 1 < sizeof line; ++text) {
      const auto byte = static_cast<unsigned char>(*text);
      line[size++] = byte < ' ' || byte == 0x7f ? ' ' : *text;
    }
  };
  for (const char *text : {toolName, ": error: "})
    add(text);
  for (const char *text : words)
    add(text);
  line[size++] = '\n';
  const ssize_t ignored = write(STDERR_FILENO, line, size);
  (void)ignored;
  _exit(static_cast<int>(code));
}

void endProcess(ExitCode code, const char *message) { end(code, {message}); }

void endProcess(ExitCode code) {
  beginEnd();
  _exit(static_cast<int>(code));
}

void endOutOfMemory() {
  end(ExitCode::Memory, {"not enough memory; free some or raise the limit"});
}

/// Ends the process by the default action of `signal`.
static void endByDefault(int signal) {
  beginEnd();
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  raise(signal);
}

static void onBusError(int signal, siginfo_t *info, void *) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const GuardedFile &file : files)
    if (const char *path = file.path; path && at >= file.begin && at < file.end)
      end(file.code, {path, ": cannot be read: it was truncated while it was "
                            "in use, or its disk fails"});
  endByDefault(signal);
}

void installFatalHandlers(const char *tool) {
  toolName = tool;
  std::set_new_handler(endOutOfMemory);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
  action = {};
  action.sa_handler = endByDefault;
  for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM}) {
    struct sigaction old;
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_DFL)
      sigaction(signal, &action, nullptr);
  }
}

} // namespace llamac
