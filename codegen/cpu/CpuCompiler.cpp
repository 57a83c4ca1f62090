//===- CpuCompiler.cpp - Machine code of emitted cpu kernels --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuCompiler.h"

#include "codegen/clang/ClangCompiler.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

namespace llamac {

static constexpr KernelHeader headers[] = {
#include "KernelHeaders.inc"
};

llvm::ArrayRef<KernelHeader> kernelHeaders() { return headers; }

/// cc1's -target-cpu and -target-feature arguments of a level.
static std::vector<std::string> targetArgs(IsaLevel level) {
  auto argsOf = [](const char *processor,
                   std::initializer_list<const char *> features) {
    std::vector<std::string> args = {"-target-cpu", processor};
    for (const char *feature : features)
      args.insert(args.end(), {"-target-feature", feature});
    return args;
  };
#if defined(__x86_64__)
  // Without fast-dpwssd LLVM makes two instructions of each vpdpwssd.
  switch (level) {
  case IsaLevel::Portable:
    return argsOf("x86-64", {});
  case IsaLevel::X86V3:
    return argsOf("x86-64-v3", {});
  case IsaLevel::X86V4Vnni:
    return argsOf("x86-64-v4", {"+avx512vnni", "+fast-dpwssd"});
  case IsaLevel::X86V4Bf16:
    return argsOf("x86-64-v4", {"+avx512vnni", "+fast-dpwssd", "+avx512bf16"});
  case IsaLevel::X86V4Amx:
    return argsOf("x86-64-v4", {"+avx512vnni", "+fast-dpwssd", "+avx512bf16",
                                "+amx-tile", "+amx-int8"});
  }
  llvm_unreachable("no other level");
#else
  return argsOf("generic", {});
#endif
}

absl::StatusOr<std::string> compileForCpu(llvm::ArrayRef<std::string> units,
                                          IsaLevel level) {
  ClangJob job;
  job.what = absl::StrCat("an emitted cpu kernel for ", isaLevelName(level));
  job.headers = kernelHeaders().vec();
  job.args = targetArgs(level);
  job.args.insert(job.args.end(), {"-O3", "-vectorize-loops", "-vectorize-slp",
                                   "-ffreestanding", "-ffp-contract=fast",
                                   "-mprefer-vector-width=512"});
  for (const std::string &unit : units)
    job.units.push_back({{"kernels.cpp", unit}, {}});
  return compileSharedObject(job);
}

} // namespace llamac
