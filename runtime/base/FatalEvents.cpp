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

#include "runtime/base/DamagedFiles.h"
#include "runtime/base/Exceptions.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <initializer_list>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace llamac {

/// A file; `begin` and `end` are 0 for one that is temporary.
struct GuardedFile {
  std::atomic<bool> isTaken;
  std::atomic<const char *> path; ///< Null while the rest is not set.
  std::atomic<uintptr_t> begin, end;
  std::atomic<ExitCode> code;
  std::atomic<bool> isDamaged;
};

static GuardedFile files[1024];

/// The name of a file that was found truncated, which outlives its guard.
struct DamagedFile {
  std::atomic<bool> isSet;
  char path[PATH_MAX];
};

static DamagedFile damagedFiles[16];
static std::atomic<size_t> damagedCount;
static std::atomic<uintptr_t> pageSize; ///< 0: damaged files end the process.
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
  file->isDamaged = false;
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

void outliveDamagedFiles() {
  pageSize = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
}

bool isDamaged(absl::string_view path) {
  const size_t count = std::min<size_t>(damagedCount, std::size(damagedFiles));
  return std::any_of(
      damagedFiles, damagedFiles + count,
      [&](const DamagedFile &file) { return file.isSet && path == file.path; });
}

/// Makes zeros of `file` from the page of `at` on, and notes its `path`; false
/// where the process is to end.
static bool replaceByZeros(GuardedFile &file, const char *path, uintptr_t at) {
  const size_t size = strlen(path);
  if (pageSize == 0 || size >= PATH_MAX)
    return false;
  // Before the zeros are there for others to read.
  if (!file.isDamaged.exchange(true)) {
    const size_t number = damagedCount++;
    if (number >= std::size(damagedFiles))
      return false;
    std::memcpy(damagedFiles[number].path, path, size + 1);
    damagedFiles[number].isSet = true;
  }
  // Another thread may be about to note it.
  while (!isDamaged(path))
    ;
  // All behind it is gone, too, or of no more use.
  const uintptr_t page = at - at % pageSize;
  return mmap(reinterpret_cast<void *>(page), file.end - page, PROT_READ,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void onBusError(int signal, siginfo_t *info, void *) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (GuardedFile &file : files)
    if (const char *path = file.path;
        path && at >= file.begin && at < file.end) {
      if (replaceByZeros(file, path, at))
        return;
      end(file.code, {path, ": cannot be read: it was truncated while it was "
                            "in use, or its disk fails"});
    }
  endByDefault(signal);
}

static void onOutOfMemory() {
  if (MemoryThrows::isOn())
    throw std::bad_alloc();
  endOutOfMemory();
}

void installFatalHandlers(const char *tool) {
  toolName = tool;
  std::set_new_handler(onOutOfMemory);
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
