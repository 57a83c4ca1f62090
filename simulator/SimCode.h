//===- SimCode.h - The sim target's code objects in a plan ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SimCompiler makes them, SimModule opens them: an ELF shared object, behind
// it what its code addresses stand for in the source, a line "ADDRESS PLACE"
// for each address (hexadecimal, rising) where the place changes, then the
// length of those lines as 8 bytes, least significant first, then simTrailer.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_SIMCODE_H
#define LLAMAC_SIMULATOR_SIMCODE_H

#include "absl/strings/string_view.h"

namespace llamac {

inline constexpr absl::string_view simTrailer = "llamacsm";

/// The flavours of code, which take the place of instruction-set levels: code
/// that runs as it is, code in which every access to memory is told to the
/// simulator, and code whose rounding is hostile (shim.h).
inline constexpr absl::string_view simFastCode = "fast";
inline constexpr absl::string_view simCheckedCode = "checked";
inline constexpr absl::string_view simHostileCode = "hostile-rounding";

} // namespace llamac

#endif // LLAMAC_SIMULATOR_SIMCODE_H
