//===- Processor.h - Processors that plans are laid out for -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cores differ in how they read memory fastest, beyond the instructions that
// they run. A plan for one processor runs on all others, but slower.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CPU_PROCESSOR_H
#define LLAMAC_CODEGEN_CPU_PROCESSOR_H

#include "absl/strings/string_view.h"

#include <optional>
#include <string>

namespace llamac {

/// Processors to tune for, which were measured (docs/performance.md).
enum class Processor {
  Generic, ///< Sapphire Rapids, and what was not measured.
  Zen3,    ///< And AMD's before it.
  Zen4,    ///< And AMD's after it.
};

/// The name that compilers use: "generic", "znver3", "znver4".
absl::string_view processorName(Processor processor);
std::optional<Processor> parseProcessor(absl::string_view name);

/// The names of all: "generic, znver3, znver4".
std::string processorNames();

/// The one that is most like this machine's.
Processor hostProcessor();

} // namespace llamac

#endif // LLAMAC_CODEGEN_CPU_PROCESSOR_H
