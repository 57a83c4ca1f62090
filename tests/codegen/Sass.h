//===- Sass.h - Machine code of a kernel ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The output of nvdisasm for a cubin, as instructions and natural loops:
// branches back to an instruction that every path to them passes, and the
// instructions between.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_SASS_H
#define LLAMAC_TESTS_CODEGEN_SASS_H

#include "absl/status/statusor.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

struct SassInstruction {
  std::string opcode; ///< With its modifiers: "MEMBAR.ALL.GPU".
  bool isPredicated = false;
  std::optional<size_t> target; ///< The number of the instruction that a branch
                                ///< goes to.

  /// Whether it is `name`, with any modifiers.
  bool is(const std::string &name) const {
    return opcode == name || opcode.rfind(name + ".", 0) == 0;
  }
};

/// Numbers of the instructions of a loop, in ascending order.
using SassLoop = std::vector<size_t>;

struct Sass {
  std::vector<SassInstruction> instructions;
  std::vector<SassLoop> loops;

  /// How many instructions are `name`: in all, and in a loop.
  size_t count(const std::string &name) const;
  size_t count(const std::string &name, const SassLoop &loop) const;

  /// The least loop with nine tenths of the most that any loop has of `name`;
  /// null where no loop has one.
  const SassLoop *loopOf(const std::string &name) const;

  /// The instructions that run before one that is `name`, whatever way is
  /// taken; all that are reached where none is.
  std::vector<const SassInstruction *> before(const std::string &name) const;

  /// The instructions that may come after instruction `i`.
  std::vector<size_t> successors(size_t i) const;
};

/// Reads the text of `nvdisasm -c`, of one kernel.
Sass parseSass(const std::string &text);

/// The output of nvdisasm, $LLAMAC_NVDISASM or the one of the PATH, for a
/// cubin.
absl::StatusOr<std::string> disassemble(const std::string &cubin);

} // namespace llamac

#endif // LLAMAC_TESTS_CODEGEN_SASS_H
