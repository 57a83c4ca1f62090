//===- IsaLevel.h - Levels of the host's instruction set --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler writes one code object for each level asked for; the runtime
// opens the best one that the machine runs. Both name the levels by this list.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CPU_ISALEVEL_H
#define LLAMAC_RUNTIME_CPU_ISALEVEL_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// In ascending order: a machine that runs a level runs those before it.
enum class IsaLevel {
  Portable,  ///< Instructions that every machine of the architecture runs.
  X86V3,     ///< AVX2, FMA, F16C, BMI2.
  X86V4Vnni, ///< AVX-512 F, BW, CD, DQ, VL and VNNI.
  X86V4Bf16, ///< X86V4Vnni and AVX-512 BF16.
  X86V4Amx,  ///< X86V4Bf16 and AMX TILE and INT8.
};

/// "portable", "x86-64-v3", "x86-64-v4-vnni", "x86-64-v4-bf16",
/// "x86-64-v4-amx".
absl::string_view isaLevelName(IsaLevel level);
std::optional<IsaLevel> parseIsaLevel(absl::string_view name);

/// All levels, ascending.
absl::Span<const IsaLevel> isaLevels();

/// "portable, x86-64-v3, ...", for messages.
std::string isaLevelNames();

/// The best level that this machine and its kernel run.
IsaLevel hostIsaLevel();

/// The level to use where the user says `name`: that one; for an empty name
/// the environment's LLAMAC_ISA, else the machine's best. Usage error for a
/// name of no level, or of one that the machine does not run.
absl::StatusOr<IsaLevel> usableIsaLevel(absl::string_view name = "");

/// The place in `names` of the best level that is no better than `limit`;
/// names that are no level are passed over. Device error, naming both sides,
/// when there is none.
absl::StatusOr<size_t> chooseIsaLevel(const std::vector<std::string> &names,
                                      IsaLevel limit);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CPU_ISALEVEL_H
