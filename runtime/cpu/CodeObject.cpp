//===- CodeObject.cpp - Kernels opened from memory ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/CodeObject.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace llamac {

/// The file a shared object is opened through. It stays open as long as the
/// object: the loader tells objects apart by their paths, and a descriptor's
/// number, which is the path of a memory file, is soon used again.
struct CodeObject::LoaderFile {
  int descriptor = -1;
  std::string path;
  bool temporary = false;

  ~LoaderFile() {
    if (temporary)
      unlink(path.c_str());
    if (descriptor >= 0)
      close(descriptor);
  }
};

static void *openThrough(int descriptor, const std::string &path,
                         absl::Span<const uint8_t> elf) {
  if (descriptor < 0 || writeAll(descriptor, elf.data(), elf.size()) != 0)
    return nullptr;
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

absl::StatusOr<std::unique_ptr<CodeObject>>
CodeObject::open(absl::Span<const uint8_t> elf, absl::string_view name) {
  auto file = std::make_unique<LoaderFile>();
  file->descriptor = memfd_create("llamac-kernels", MFD_CLOEXEC);
  file->path = absl::StrCat("/proc/self/fd/", file->descriptor);
  void *handle = openThrough(file->descriptor, file->path, elf);
  if (!handle) {
    // Where /proc is missing or memory files may not be run.
    const char *folder = std::getenv("TMPDIR");
    file = std::make_unique<LoaderFile>();
    file->path = absl::StrCat(folder && *folder ? folder : "/tmp",
                              "/llamac-kernels-XXXXXX");
    file->descriptor = mkostemp(file->path.data(), O_CLOEXEC);
    file->temporary = file->descriptor >= 0;
    handle = openThrough(file->descriptor, file->path, elf);
  }
  if (!handle) {
    const char *reason = dlerror();
    const std::string message = absl::StrCat(
        name, ": expected a shared object that can be opened, got: ",
        reason ? reason : std::strerror(errno));
    return saysOutOfResources(message)
               ? memoryError(message)
               : badPlanError(absl::StrCat(message, "; compile it again"));
  }
  return std::unique_ptr<CodeObject>(
      new CodeObject(handle, std::move(file), std::string(name)));
}

CodeObject::CodeObject(void *handle, std::unique_ptr<LoaderFile> file,
                       std::string name)
    : handle(handle), file(std::move(file)), name(std::move(name)) {}

CodeObject::~CodeObject() { dlclose(handle); }

absl::StatusOr<void *> CodeObject::address(const std::string &symbol) const {
  if (void *address = dlsym(handle, symbol.c_str()))
    return address;
  return badPlanError(absl::StrCat(name, ": expected a kernel ", symbol,
                                   ", got none; compile it again"));
}

absl::StatusOr<CpuKernel> CodeObject::kernel(const std::string &symbol) const {
  LLAMAC_ASSIGN_OR_RETURN(void *code, address(symbol));
  return reinterpret_cast<CpuKernel>(code);
}

} // namespace llamac
