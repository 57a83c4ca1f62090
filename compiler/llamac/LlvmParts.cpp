//===- LlvmParts.cpp - The parts of LLVM that llamac leaves out -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// lld registers every target that LLVM has, for link-time optimisation, which
// llamac does not use. Functions that register nothing take the place of those
// in LLVM's archives, and the linker leaves out 60 MB. Only x86, the host's
// target, keeps its own. The same goes for Polly, which Debian adds to Clang.
//
//===----------------------------------------------------------------------===//

#include "llvm/Passes/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly", LLVM_VERSION_STRING,
          [](llvm::PassBuilder &) {}};
}

// These five names are x86's, whose functions below would be in the way.
#define LLVMInitializeX86TargetInfo llamacUnusedTargetInfo
#define LLVMInitializeX86Target llamacUnusedTarget
#define LLVMInitializeX86TargetMC llamacUnusedTargetMC
#define LLVMInitializeX86AsmPrinter llamacUnusedAsmPrinter
#define LLVMInitializeX86AsmParser llamacUnusedAsmParser

extern "C" {
#define LLVM_TARGET(NAME)                                                      \
  void LLVMInitialize##NAME##TargetInfo() {}                                   \
  void LLVMInitialize##NAME##Target() {}                                       \
  void LLVMInitialize##NAME##TargetMC() {}
#include "llvm/Config/Targets.def"
#define LLVM_ASM_PRINTER(NAME)                                                 \
  void LLVMInitialize##NAME##AsmPrinter() {}
#include "llvm/Config/AsmPrinters.def"
#define LLVM_ASM_PARSER(NAME)                                                  \
  void LLVMInitialize##NAME##AsmParser() {}
#include "llvm/Config/AsmParsers.def"
}
