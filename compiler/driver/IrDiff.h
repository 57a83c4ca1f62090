//===- IrDiff.h - What changed between two prints of IR ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_IRDIFF_H
#define LLAMAC_COMPILER_DRIVER_IRDIFF_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace llamac {

/// Begins a line of IR that a diff follows values through, and neither shows
/// nor counts.
inline constexpr char hiddenLine = '\1';

/// The lines that turn the printed IR `before` into `after`, as a unified diff
/// with three lines of context and no file names; empty when there are none.
/// Renumbered values are not a change: a line counts as kept when it is the
/// same up to names and its operands are the kept values.
std::string diffIr(llvm::StringRef before, llvm::StringRef after);

/// The diff with all lines as context, as the sign of each: ' ' for one of both
/// texts, '-' and '+' for one of the old or of the new text only.
std::string diffSigns(llvm::StringRef before, llvm::StringRef after);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_IRDIFF_H
