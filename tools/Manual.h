//===- Manual.h - Manual pages ----------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_MANUAL_H
#define LLAMAC_TOOLS_MANUAL_H

#include "tools/CommandTree.h"

#include <string>

namespace llamac {

/// The page of section 1 about `tool` and all its verbs, in the macros of
/// man(7). It has no date: the same build gives the same page.
std::string manualPage(const VerbEntry &tool);

} // namespace llamac

#endif // LLAMAC_TOOLS_MANUAL_H
