//===- Completion.h - Completion of command lines by shells -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_COMPLETION_H
#define LLAMAC_TOOLS_COMPLETION_H

#include "tools/CommandTree.h"

#include <string>

namespace llamac {

// Scripts that complete the verbs, options, values and files of `tool`. Each
// needs its shell alone.

/// For bash 4 or later; to be sourced, or put in a folder of completions under
/// the tool's name.
std::string bashCompletion(const VerbEntry &tool);

/// For zsh 5; to be sourced after compinit, or put in a folder of $fpath under
/// the tool's name and an underscore.
std::string zshCompletion(const VerbEntry &tool);

/// For fish 3; to be sourced, or put in a folder of completions as TOOL.fish.
std::string fishCompletion(const VerbEntry &tool);

} // namespace llamac

#endif // LLAMAC_TOOLS_COMPLETION_H
