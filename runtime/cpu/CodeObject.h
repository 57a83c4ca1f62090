//===- CodeObject.h - Kernels opened from memory ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CPU_CODEOBJECT_H
#define LLAMAC_RUNTIME_CPU_CODEOBJECT_H

#include "runtime/cpu/KernelAbi.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <string>

namespace llamac {

/// An ELF shared object in memory, opened by the system's loader.
class CodeObject {
public:
  /// Opens `elf` through a file that exists in memory only, or a temporary
  /// one where the system has no such files. `name` is for messages. Errors:
  /// badPlan with the loader's reason.
  static absl::StatusOr<std::unique_ptr<CodeObject>>
  open(absl::Span<const uint8_t> elf, absl::string_view name);

  CodeObject(const CodeObject &) = delete;
  CodeObject &operator=(const CodeObject &) = delete;
  ~CodeObject();

  /// The function or object that `symbol` stands for. BadPlan when there is
  /// none.
  absl::StatusOr<void *> address(const std::string &symbol) const;

  /// The kernel `symbol`. BadPlan when there is none.
  absl::StatusOr<CpuKernel> kernel(const std::string &symbol) const;

private:
  struct LoaderFile;

  CodeObject(void *handle, std::unique_ptr<LoaderFile> file, std::string name);

  void *handle;
  std::unique_ptr<LoaderFile> file;
  std::string name;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_CPU_CODEOBJECT_H
