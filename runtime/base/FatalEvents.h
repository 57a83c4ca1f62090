//===- FatalEvents.h - What ends a tool at once -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some failures cannot be returned as a Status. A tool then ends where it
// stands, with one line and an exit code, and leaves no temporary file behind:
//
//   SIGBUS                  a mapped file was truncated: the file is named
//   no memory               operator new, or LLVM, did not get it
//   SIGINT, SIGTERM, ...    the default action, once temporary files are gone
//
// SIGXFSZ is ignored, so that a write past the limit of a file's size is an
// error like that of a full disk. Only main() installs the handlers: a library
// leaves signals to its host. A server outlives a truncated file, to finish the
// answers of other models (DamagedFiles.h).
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_FATALEVENTS_H
#define LLAMAC_RUNTIME_BASE_FATALEVENTS_H

#include "runtime/base/Status.h"

#include "absl/types/span.h"

#include <csignal>

namespace llamac {

struct GuardedFile;

/// A file that the handlers know of for as long as the object lives. Beyond
/// 1,024 at a time they do not. `path` outlives the object.
class FileGuard {
public:
  /// A temporary file: removed when the process ends.
  explicit FileGuard(const char *path) : FileGuard(path, {}, ExitCode::Ok) {}

  /// A file mapped at `bytes`: a tool that finds it truncated ends with `code`.
  FileGuard(const char *path, absl::Span<const uint8_t> bytes, ExitCode code);

  FileGuard(const FileGuard &) = delete;
  FileGuard &operator=(const FileGuard &) = delete;
  ~FileGuard();

private:
  GuardedFile *file;
};

/// While it lives, no thread ends the process: from the creation of a temporary
/// file to its guard. Short, and without memory that is allocated.
class EndDelay {
public:
  EndDelay();
  EndDelay(const EndDelay &) = delete;
  EndDelay &operator=(const EndDelay &) = delete;
  ~EndDelay();

private:
  sigset_t signals; ///< Signals that were blocked before.
};

/// For main(): installs all of the above for the tool of this name, which
/// outlives the process. Signals that are ignored stay so.
void installFatalHandlers(const char *tool);

/// Ends the process with `tool: error: message` and `code`.
[[noreturn]] void endProcess(ExitCode code, const char *message);

/// Ends the process with `code`; another has said why.
[[noreturn]] void endProcess(ExitCode code);

/// endProcess() for want of memory.
[[noreturn]] void endOutOfMemory();

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_FATALEVENTS_H
