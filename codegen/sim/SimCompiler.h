//===- SimCompiler.h - CUDA source compiled for the simulator ---*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_SIM_SIMCOMPILER_H
#define LLAMAC_CODEGEN_SIM_SIMCOMPILER_H

#include "codegen/SourceFile.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace llamac {

/// Every header that a unit can include: the device headers.
llvm::ArrayRef<KernelHeader> simHeaders();

enum class SimFlavour {
  Fast,    ///< At most a few times slower than code of the host's own.
  Checked, ///< Every access to memory is told to the simulator.
  Hostile, ///< The last bit of what is rounded depends on where (shim.h).
};

/// The flavour of a plan's code by its name in SimCode.h; of "", Fast.
SimFlavour simFlavourOf(absl::string_view code);
absl::string_view simCodeName(SimFlavour flavour);

/// Compiles .cu `units` for the simulator and links them to one object, which
/// SimModule::open() takes: an ELF shared object, and the source places of its
/// code. Errors are internal and hold Clang's messages.
absl::StatusOr<std::string> compileForSim(llvm::ArrayRef<SourceFile> units,
                                          SimFlavour flavour);

} // namespace llamac

#endif // LLAMAC_CODEGEN_SIM_SIMCOMPILER_H
