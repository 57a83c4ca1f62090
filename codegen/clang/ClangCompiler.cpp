//===- ClangCompiler.cpp - Clang and lld, in process ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A unit is compiled from memory to memory: its text and the headers are files
// of a virtual file system, and the object goes to a string. The linker reads
// memory files and writes to a pipe, so that a killed process leaves nothing.
//
//===----------------------------------------------------------------------===//

#include "codegen/clang/ClangCompiler.h"

#include "runtime/base/Status.h"
#include "runtime/io/DiskCache.h"
#include "runtime/threads/ParallelFor.h"

#include "absl/strings/str_cat.h"
#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "clang/Basic/DiagnosticOptions.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/TargetParser/Host.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <future>
#include <mutex>
#include <optional>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace llamac {

static llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>
sourceFiles(const ClangJob &job, const SourceFile &unit) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  for (const KernelHeader &header : job.headers)
    files->addFile("/kernels/" + header.name.str(), 0,
                   llvm::MemoryBuffer::getMemBuffer(header.text, header.name));
  files->addFile("/kernels/" + unit.name, 0,
                 llvm::MemoryBuffer::getMemBuffer(unit.text, unit.name));
  return files;
}

static absl::StatusOr<std::string> compileObject(const ClangJob &job,
                                                 const ClangUnit &unit) {
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  const std::string path = "/kernels/" + unit.source.name;
  std::vector<const char *> args = {
      "-emit-obj",          "-x",         "c++",
      "-std=c++20",         "-fno-rtti",  "-nostdsysteminc",
      "-nobuiltininc",      "-pic-level", "2",
      "-mrelocation-model", "pic",        "-fvisibility=default",
      "-I/kernels",         "-o",         "-"};
  args.insert(args.end(), {"-triple", triple.c_str(), "-main-file-name",
                           unit.source.name.c_str()});
  for (const std::string &arg : job.args)
    args.push_back(arg.c_str());
  for (const std::string &arg : unit.args)
    args.push_back(arg.c_str());
  args.push_back(path.c_str());

  std::string messages;
  llvm::raw_string_ostream messageStream(messages);
  auto options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::CompilerInstance compiler;
  compiler.createDiagnostics(
      new clang::TextDiagnosticPrinter(messageStream, options.get()));
  if (!clang::CompilerInvocation::CreateFromArgs(compiler.getInvocation(), args,
                                                 compiler.getDiagnostics()))
    return internalError(
        absl::StrCat("clang refused its arguments: ", messages));
  // The diagnostics were made before the arguments that choose warnings.
  clang::ProcessWarningOptions(compiler.getDiagnostics(),
                               compiler.getDiagnosticOpts());
  compiler.createFileManager(sourceFiles(job, unit.source));
  // Where "1 error generated." would go.
  compiler.setVerboseOutputStream(llvm::nulls());

  llvm::SmallVector<char, 0> object;
  compiler.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(object));
  clang::EmitObjAction action;
  if (!compiler.ExecuteAction(action) ||
      compiler.getDiagnostics().hasErrorOccurred())
    return internalError(
        absl::StrCat(job.what, " does not compile:\n", messages));
  return std::string(object.data(), object.size());
}

/// The cache key: a hash of all that decides the object of `unit`.
static std::string objectKey(const ClangJob &job, const ClangUnit &unit) {
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  std::vector<absl::string_view> parts = {LLVM_VERSION_STRING, triple,
                                          job.settings, unit.source.name,
                                          unit.source.text};
  parts.insert(parts.end(), job.args.begin(), job.args.end());
  parts.emplace_back("of the unit");
  parts.insert(parts.end(), unit.args.begin(), unit.args.end());
  for (const KernelHeader &header : job.headers) {
    parts.emplace_back(header.name.data(), header.name.size());
    parts.emplace_back(header.text.data(), header.text.size());
  }
  return keyOf(parts);
}

static std::string pathOf(int descriptor) {
  return absl::StrCat("/proc/self/fd/", descriptor);
}

static absl::Status linkerError(int error) {
  return memoryError(
      absl::StrCat("the linker's input and output: ", std::strerror(error)));
}

/// The descriptor of a new file in memory.
static absl::StatusOr<int> memoryFile(llvm::StringRef bytes) {
  const int file = memfd_create("llamac-object", MFD_CLOEXEC);
  if (file < 0)
    return linkerError(errno);
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/false);
  stream << bytes;
  stream.flush();
  const std::error_code error = stream.error();
  stream.clear_error();
  if (!error)
    return file;
  close(file);
  return linkerError(error.value());
}

/// All that comes out of a pipe until its other end is closed.
static std::string readAll(int pipe) {
  std::string text;
  std::array<char, 1 << 16> piece;
  for (ssize_t size; (size = read(pipe, piece.data(), piece.size())) != 0;) {
    if (size > 0)
      text.append(piece.data(), static_cast<size_t>(size));
    else if (errno != EINTR)
      break;
  }
  return text;
}

static absl::StatusOr<std::string>
linkObjects(const ClangJob &job, const std::vector<std::string> &objects) {
  std::vector<int> inputs;
  auto closeInputs =
      llvm::make_scope_exit([&] { llvm::for_each(inputs, close); });
  std::vector<std::string> paths;
  for (const std::string &object : objects) {
    LLAMAC_ASSIGN_OR_RETURN(inputs.emplace_back(), memoryFile(object));
    paths.push_back(pathOf(inputs.back()));
  }
  // Ends when the pipe is closed, and so outlives it.
  std::future<std::string> output;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return linkerError(errno);
  const auto [in, out] = ends;
  auto closeIn = llvm::make_scope_exit([in] { close(in); });
  auto closeOut = llvm::make_scope_exit([out] { close(out); });
  try {
    output = std::async(std::launch::async, readAll, in);
  } catch (const std::system_error &error) {
    // Without another thread the pipe must hold all of it: not more than the
    // objects.
    size_t bytes = 1 << 16;
    for (const std::string &object : objects)
      bytes += object.size();
    if (fcntl(out, F_SETPIPE_SZ, static_cast<int>(bytes)) <
        static_cast<int>(bytes))
      return linkerError(error.code().value());
    output = std::async(std::launch::deferred, readAll, in);
  }
  const std::string outputPath = pathOf(out);
  std::vector<const char *> args = {
      "ld.lld",        "-shared",          "-o", outputPath.c_str(),
      "--gc-sections", "--hash-style=gnu", "-z", "noexecstack",
      "--threads=1"};
  for (const std::string &arg : job.linkArgs)
    args.push_back(arg.c_str());
  for (const std::string &path : paths)
    args.push_back(path.c_str());

  // lld keeps its state in globals: one link at a time.
  static std::mutex linkerMutex;
  std::lock_guard<std::mutex> lock(linkerMutex);
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  // For some objects that it cannot read, lld ends the process.
  llvm::CrashRecoveryContext::Enable();
  bool linked = false;
  llvm::CrashRecoveryContext().RunSafely([&] {
    linked = lld::elf::link(args, stream, stream, /*exitEarly=*/false,
                            /*disableOutput=*/false);
  });
  llvm::CrashRecoveryContext::Disable();
  lld::CommonLinkerContext::destroy();
  close(out);
  closeOut.release();
  std::string linkedObject = output.get();
  if (!linked)
    return saysOutOfResources(messages)
               ? memoryError(
                     absl::StrCat(job.what, " is not linked: ", messages))
               : internalError(
                     absl::StrCat(job.what, " does not link: ", messages));
  return linkedObject;
}

/// Compiles the units, but for those that are in `cache` if `takeCached`, and
/// links them; `anyCached` says whether one was.
static absl::StatusOr<std::string>
compileAndLink(const ClangJob &job, const DiskCache &cache, bool takeCached,
               std::atomic<bool> &anyCached) {
  std::vector<absl::StatusOr<std::string>> results(
      job.units.size(), internalError("not compiled"));
  const int threads =
      static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  parallelFor(threads, job.units.size(), [&](size_t i) {
    const std::string key = objectKey(job, job.units[i]);
    if (takeCached)
      if (std::optional<std::string> known = cache.find(key)) {
        anyCached = true;
        results[i] = *std::move(known);
        return;
      }
    results[i] = compileObject(job, job.units[i]);
    if (results[i].ok())
      cache.keep(key, *results[i]);
  });
  std::vector<std::string> objects;
  for (absl::StatusOr<std::string> &result : results) {
    LLAMAC_RETURN_IF_ERROR(result.status());
    objects.push_back(*std::move(result));
  }
  return linkObjects(job, objects);
}

absl::StatusOr<std::string> compileSharedObject(const ClangJob &job) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  const DiskCache cache(CacheKind::Objects);
  std::atomic<bool> anyCached = false;
  auto linked = compileAndLink(job, cache, /*takeCached=*/true, anyCached);
  if (linked.ok() || !anyCached)
    return linked;
  // A cached object that does not link is no better than a damaged one.
  return compileAndLink(job, cache, /*takeCached=*/false, anyCached);
}

} // namespace llamac
