//===- CodeObject.cpp - Kernels opened from memory ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/CodeObject.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace llamac {

namespace {

/// The file a shared object is opened through; it goes once that is done.
struct LoaderFile {
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

} // namespace

static bool writeAll(int descriptor, absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

static void *openThrough(LoaderFile &file, absl::Span<const uint8_t> elf) {
  if (file.descriptor < 0 || !writeAll(file.descriptor, elf))
    return nullptr;
  return dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

static void *openInMemory(absl::Span<const uint8_t> elf) {
  LoaderFile file;
  file.descriptor = memfd_create("llamac-kernels", MFD_CLOEXEC);
  file.path = absl::StrCat("/proc/self/fd/", file.descriptor);
  return openThrough(file, elf);
}

static void *openTemporary(absl::Span<const uint8_t> elf) {
  const char *folder = std::getenv("TMPDIR");
  LoaderFile file;
  file.path = absl::StrCat(folder && *folder ? folder : "/tmp",
                           "/llamac-kernels-XXXXXX");
  file.descriptor = mkostemp(file.path.data(), O_CLOEXEC);
  file.temporary = file.descriptor >= 0;
  return openThrough(file, elf);
}

absl::StatusOr<std::unique_ptr<CodeObject>>
CodeObject::open(absl::Span<const uint8_t> elf, absl::string_view name) {
  void *handle = openInMemory(elf);
  // Where /proc is missing or memory files may not be run.
  if (!handle)
    handle = openTemporary(elf);
  if (!handle) {
    const char *reason = dlerror();
    return badPlanError(absl::StrCat(
        name, ": expected a shared object that can be opened, got: ",
        reason ? reason : std::strerror(errno), "; compile it again"));
  }
  return std::unique_ptr<CodeObject>(new CodeObject(handle, std::string(name)));
}

CodeObject::~CodeObject() { dlclose(handle); }

absl::StatusOr<CpuKernel> CodeObject::kernel(const std::string &symbol) const {
  if (void *address = dlsym(handle, symbol.c_str()))
    return reinterpret_cast<CpuKernel>(address);
  return badPlanError(absl::StrCat(name, ": expected a kernel ", symbol,
                                   ", got none; compile it again"));
}

} // namespace llamac
