//===- SimModule.h - Kernels compiled for the simulator ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_SIMMODULE_H
#define LLAMAC_SIMULATOR_SIMMODULE_H

#include "runtime/cpu/CodeObject.h"
#include "simulator/SimCalls.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

/// An object of codegen/sim's making (simulator/SimCode.h), opened.
class SimModule {
public:
  /// BadPlan when `object` is no such object. `name` is for messages.
  static absl::StatusOr<std::unique_ptr<SimModule>>
  open(absl::Span<const uint8_t> object, absl::string_view name);

  /// Opens the file at `path`.
  static absl::StatusOr<std::unique_ptr<SimModule>>
  load(const std::string &path);

  /// The address of kernel `name`. BadPlan when there is none.
  absl::StatusOr<const void *> kernel(const std::string &name) const;

  /// "file:line" of an address in the code, "unknown place" if that is not
  /// known.
  std::string place(const void *site) const;

  /// Whether `address` is in the object itself: its constants.
  bool contains(const void *address) const;

private:
  struct Row {
    uint64_t address;
    std::string place;
  };

  SimModule() = default;

  std::unique_ptr<CodeObject> code;
  uintptr_t base = 0;
  uintptr_t end = 0;
  std::vector<Row> rows;
};

} // namespace llamac

#endif // LLAMAC_SIMULATOR_SIMMODULE_H
