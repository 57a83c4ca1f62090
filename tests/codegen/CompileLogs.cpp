//===- CompileLogs.cpp - What NVRTC says of kernels, cached ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/codegen/CompileLogs.h"

#include "runtime/base/Status.h"
#include "runtime/io/DiskCache.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llamac {

absl::StatusOr<CompileLogs> CompileLogs::open() {
  LLAMAC_ASSIGN_OR_RETURN(Nvrtc nvrtc, Nvrtc::open());
  return CompileLogs(std::move(nvrtc));
}

absl::StatusOr<CompileLog>
CompileLogs::compile(const CudaSource &source, const std::string &architecture,
                     const std::vector<std::string> &options) const {
  const DiskCache cache(CacheKind::Objects);
  const std::string made =
      absl::StrCat(nvrtc.version(), " ", absl::StrJoin(options, " "));
  const std::string key = keyOf({"log", cubinKey(source, architecture, made)});
  if (const auto known = cache.find(key))
    return parseCompileLog(*known);
  LLAMAC_ASSIGN_OR_RETURN(Cubin cubin,
                          nvrtc.compile(source, architecture, options));
  cache.keep(key, cubin.log.text);
  return std::move(cubin.log);
}

std::string complaintOf(const CompileLog &log) {
  std::string complaint = absl::StrJoin(log.warnings, "\n");
  for (const KernelResources &kernel : log.kernels)
    if (kernel.spillStoreBytes + kernel.spillLoadBytes + kernel.stackBytes != 0)
      absl::StrAppend(&complaint, kernel.name, " spills ",
                      kernel.spillStoreBytes, " bytes and keeps ",
                      kernel.stackBytes, " on the stack, with ",
                      kernel.registers, " registers\n");
  return complaint;
}

} // namespace llamac
