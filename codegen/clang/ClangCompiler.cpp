//===- ClangCompiler.cpp - Clang and lld, in process ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A unit is compiled from memory to memory: its text and the headers
// are files of a virtual file system, and the object goes to a string. Only
// the linker wants files on disk, in a folder of its own that is removed.
//
//===----------------------------------------------------------------------===//

#include "codegen/clang/ClangCompiler.h"

#include "runtime/base/ParallelFor.h"
#include "runtime/base/Status.h"
#include "runtime/io/CacheFolder.h"
#include "runtime/io/KeptFiles.h"

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
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/TargetParser/Host.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

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

/// Compiles one unit to an ELF relocatable object.
static absl::StatusOr<std::string> compileObject(const ClangJob &job,
                                                 const ClangUnit &unit) {
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  const std::string path = "/kernels/" + unit.source.name;
  std::vector<const char *> args = {"-triple",
                                    triple.c_str(),
                                    "-emit-obj",
                                    "-x",
                                    "c++",
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
                                    "-main-file-name",
                                    unit.source.name.c_str(),
                                    "-o",
                                    "-"};
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

/// Where objects are kept; none where they cannot be, or shall not.
static std::optional<std::string> objectFolder() {
  if (const char *named = std::getenv("LLAMAC_OBJECT_CACHE")) {
    if (!*named || llvm::sys::fs::create_directories(named))
      return std::nullopt;
    return named;
  }
  absl::StatusOr<std::string> folder = cacheFolder("objects");
  if (!folder.ok())
    return std::nullopt;
  return *std::move(folder);
}

static std::optional<KeptFiles> objectFiles() {
  std::optional<std::string> folder = objectFolder();
  if (!folder)
    return std::nullopt;
  return KeptFiles(*std::move(folder), ".o");
}

/// Of all that decides the object of `unit`.
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

/// The object of `unit`, compiled now or before.
static absl::StatusOr<std::string>
objectOf(const ClangJob &job, const ClangUnit &unit,
         const std::optional<KeptFiles> &files) {
  if (!files)
    return compileObject(job, unit);
  const std::string key = objectKey(job, unit);
  if (std::optional<std::string> known = files->find(key))
    return *std::move(known);
  LLAMAC_ASSIGN_OR_RETURN(std::string object, compileObject(job, unit));
  // What is not kept is compiled again.
  const absl::Status ignored = files->keep(key, object);
  (void)ignored;
  return object;
}

static absl::Status writeFile(const std::string &path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (!error) {
    file << bytes;
    file.close();
    error = file.error();
    file.clear_error();
  }
  if (error)
    return memoryError(
        absl::StrCat(path, ": cannot be written: ", error.message()));
  return absl::OkStatus();
}

/// Links objects to a shared object.
static absl::StatusOr<std::string>
linkObjects(const ClangJob &job, const std::vector<std::string> &objects) {
  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("llamac-link", folder))
    return memoryError(
        absl::StrCat("no temporary folder for the linker: ", error.message()));
  auto removeFolder = llvm::make_scope_exit([&] {
    // What stays behind in the temporary folder does no harm.
    const std::error_code ignored = llvm::sys::fs::remove_directories(folder);
    (void)ignored;
  });

  const std::string output = (folder + "/kernels.so").str();
  std::vector<std::string> paths;
  for (size_t i = 0; i < objects.size(); ++i) {
    paths.push_back((folder + "/" + llvm::Twine(i) + ".o").str());
    LLAMAC_RETURN_IF_ERROR(writeFile(paths.back(), objects[i]));
  }
  std::vector<const char *> args = {
      "ld.lld",       "-shared",       "-o",
      output.c_str(), "--gc-sections", "--hash-style=gnu",
      "-z",           "noexecstack",   "--threads=1"};
  for (const std::string &arg : job.linkArgs)
    args.push_back(arg.c_str());
  for (const std::string &path : paths)
    args.push_back(path.c_str());

  // lld keeps its state in globals: one link at a time.
  static std::mutex linkerMutex;
  std::lock_guard<std::mutex> lock(linkerMutex);
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const bool linked = lld::elf::link(args, stream, stream, /*exitEarly=*/false,
                                     /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  if (!linked)
    return saysOutOfResources(messages)
               ? memoryError(
                     absl::StrCat(job.what, " is not linked: ", messages))
               : internalError(
                     absl::StrCat(job.what, " does not link: ", messages));
  auto buffer = llvm::MemoryBuffer::getFile(output);
  if (!buffer)
    return systemError(buffer.getError().value(),
                       "the linker's output cannot be read", internalError);
  return (*buffer)->getBuffer().str();
}

absl::StatusOr<std::string> compileSharedObject(const ClangJob &job) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  std::vector<absl::StatusOr<std::string>> results(
      job.units.size(), internalError("not compiled"));
  const std::optional<KeptFiles> files = objectFiles();
  const int threads =
      static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  parallelFor(threads, job.units.size(), [&](size_t i) {
    results[i] = objectOf(job, job.units[i], files);
  });
  std::vector<std::string> objects;
  for (absl::StatusOr<std::string> &result : results) {
    LLAMAC_RETURN_IF_ERROR(result.status());
    objects.push_back(*std::move(result));
  }
  return linkObjects(job, objects);
}

} // namespace llamac
