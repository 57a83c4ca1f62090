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
// Units with the same arguments read the headers as Clang has parsed them once,
// which changes no byte of their objects.
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
#include "clang/Basic/Version.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "clang/Serialization/ASTWriter.h"
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
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace llamac {

namespace {

/// Parses a file and keeps what Clang knows then, as a precompiled header.
class Precompile final : public clang::ASTFrontendAction {
public:
  std::shared_ptr<clang::PCHBuffer> buffer =
      std::make_shared<clang::PCHBuffer>();

protected:
  bool BeginSourceFileAction(clang::CompilerInstance &compiler) override {
    compiler.getLangOpts().CompilingPCH = true;
    return true;
  }
  std::unique_ptr<clang::ASTConsumer>
  CreateASTConsumer(clang::CompilerInstance &compiler,
                    llvm::StringRef) override {
    return std::make_unique<clang::PCHGenerator>(
        compiler.getPreprocessor(), compiler.getModuleCache(),
        /*OutputFile=*/"", /*isysroot=*/"", buffer,
        /*Extensions=*/
        llvm::ArrayRef<std::shared_ptr<clang::ModuleFileExtension>>());
  }
  clang::TranslationUnitKind getTranslationUnitKind() override {
    return clang::TU_Prefix;
  }
  bool hasASTFileSupport() const override { return false; }
};

} // namespace

/// Where units see the precompiled headers.
static constexpr llvm::StringLiteral precompiledPath = "/kernels/headers.pch";

/// A file of all headers but lists, which are of no use alone.
static SourceFile allHeaders(const ClangJob &job) {
  SourceFile all{"headers.h", ""};
  for (const KernelHeader &header : job.headers)
    if (!header.name.ends_with(".def"))
      absl::StrAppend(&all.text, "#include \"", header.name.str(), "\"\n");
  return all;
}

/// Runs `action` on `source`, C++ or headers as `language` says, with cc1's
/// `unitArgs` after those of the job; `precompiled` are its headers, or empty.
static absl::Status run(clang::FrontendAction &action, const ClangJob &job,
                        const char *language, const SourceFile &source,
                        const std::vector<std::string> &unitArgs,
                        llvm::StringRef precompiled,
                        std::unique_ptr<llvm::raw_pwrite_stream> output = {}) {
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  auto addFile = [&](llvm::StringRef path, llvm::StringRef bytes) {
    files->addFile(path, 0, llvm::MemoryBuffer::getMemBuffer(bytes, path));
  };
  for (const KernelHeader &header : job.headers)
    addFile("/kernels/" + header.name.str(), header.text);
  const std::string path = "/kernels/" + source.name;
  addFile(path, source.text);
  std::vector<const char *> args = {"-emit-obj",
                                    "-x",
                                    language,
                                    "-std=c++20",
                                    "-fno-rtti",
                                    "-nostdsysteminc",
                                    "-nobuiltininc",
                                    "-pic-level",
                                    "2",
                                    "-mrelocation-model",
                                    "pic",
                                    "-fvisibility=default",
                                    "-I/kernels",
                                    "-o",
                                    "-",
                                    "-triple",
                                    triple.c_str(),
                                    "-main-file-name",
                                    source.name.c_str()};
  const SourceFile all = allHeaders(job);
  if (!precompiled.empty()) {
    addFile(precompiledPath, precompiled);
    // Clang wants what it was made of.
    addFile("/kernels/" + all.name, all.text);
    args.insert(args.end(), {"-include-pch", precompiledPath.data()});
  }
  for (const std::string &arg : job.args)
    args.push_back(arg.c_str());
  for (const std::string &arg : unitArgs)
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
  compiler.createFileManager(files);
  // Where "1 error generated." would go.
  compiler.setVerboseOutputStream(llvm::nulls());
  compiler.setOutputStream(std::move(output));
  if (!compiler.ExecuteAction(action) ||
      compiler.getDiagnostics().hasErrorOccurred())
    return internalError(
        absl::StrCat(job.what, " does not compile:\n", messages));
  return absl::OkStatus();
}

static absl::StatusOr<std::string> compileObject(const ClangJob &job,
                                                 const ClangUnit &unit,
                                                 llvm::StringRef precompiled) {
  llvm::SmallVector<char, 0> object;
  clang::EmitObjAction action;
  const absl::Status status =
      run(action, job, "c++", unit.source, unit.args, precompiled,
          std::make_unique<llvm::raw_svector_ostream>(object));
  // Whatever is wrong with the headers as they were parsed, the text counts.
  if (!status.ok() && !precompiled.empty())
    return compileObject(job, unit, {});
  LLAMAC_RETURN_IF_ERROR(status);
  return std::string(object.data(), object.size());
}

/// A hash of `parts` and of all that decides what is made of them for units
/// with `unitArgs`.
static std::string keyFor(const ClangJob &job,
                          const std::vector<std::string> &unitArgs,
                          std::vector<absl::string_view> parts) {
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  parts.insert(parts.end(), {triple, job.settings});
  parts.insert(parts.end(), job.args.begin(), job.args.end());
  parts.emplace_back("of the unit");
  parts.insert(parts.end(), unitArgs.begin(), unitArgs.end());
  for (const KernelHeader &header : job.headers) {
    parts.emplace_back(header.name.data(), header.name.size());
    parts.emplace_back(header.text.data(), header.text.size());
  }
  return keyOf(parts);
}

/// The cache key of the object of `unit`.
static std::string objectKey(const ClangJob &job, const ClangUnit &unit) {
  return keyFor(job, unit.args,
                {LLVM_VERSION_STRING, unit.source.name, unit.source.text});
}

/// All headers of the job, parsed for units with `unitArgs`; empty where they
/// are not in `cache` and `make` is false, or do not compile together.
static std::string precompiledHeaders(const ClangJob &job,
                                      const std::vector<std::string> &unitArgs,
                                      const DiskCache &cache, bool make) {
  // Clang reads only what the very same build of it has written.
  const std::string version = clang::getClangFullVersion();
  const std::string key =
      keyFor(job, unitArgs, {"precompiled headers", version});
  if (std::optional<std::string> known = cache.find(key))
    return *std::move(known);
  if (!make)
    return {};
  Precompile action;
  if (!run(action, job, "c++-header", allHeaders(job), unitArgs, {}).ok() ||
      !action.buffer->IsComplete)
    return {};
  std::string bytes(action.buffer->Data.data(), action.buffer->Data.size());
  cache.keep(key, bytes);
  return bytes;
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
static absl::StatusOr<std::string> compileAndLink(const ClangJob &job,
                                                  const DiskCache &cache,
                                                  bool takeCached,
                                                  bool &anyCached) {
  std::vector<std::string> keys(job.units.size()), objects(job.units.size());
  std::vector<size_t> missing;
  // The missing units by their arguments.
  std::map<std::vector<std::string>, size_t> counts;
  for (size_t i = 0; i < job.units.size(); ++i) {
    keys[i] = objectKey(job, job.units[i]);
    std::optional<std::string> known =
        takeCached ? cache.find(keys[i]) : std::nullopt;
    if (known) {
      anyCached = true;
      objects[i] = *std::move(known);
    } else {
      missing.push_back(i);
      ++counts[job.units[i].args];
    }
  }
  std::map<std::vector<std::string>, std::string> headers;
  for (const auto &[args, count] : counts)
    headers[args] = precompiledHeaders(job, args, cache, /*make=*/count > 2);
  const int threads =
      static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<absl::Status> results(missing.size());
  parallelFor(threads, missing.size(), [&](size_t n) {
    const size_t i = missing[n];
    const ClangUnit &unit = job.units[i];
    auto object = compileObject(job, unit, headers.at(unit.args));
    results[n] = object.status();
    if (!object.ok())
      return;
    cache.keep(keys[i], *object);
    objects[i] = *std::move(object);
  });
  for (const absl::Status &result : results)
    LLAMAC_RETURN_IF_ERROR(result);
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
  bool anyCached = false;
  auto linked = compileAndLink(job, cache, /*takeCached=*/true, anyCached);
  if (linked.ok() || !anyCached)
    return linked;
  // A cached object that does not link is no better than a damaged one.
  return compileAndLink(job, cache, /*takeCached=*/false, anyCached);
}

} // namespace llamac
