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
#include "tests/codegen/Sass.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cstdio>
#include <cstdlib>

namespace llamac {

absl::StatusOr<CompileLogs> CompileLogs::open() {
  LLAMAC_ASSIGN_OR_RETURN(Nvrtc nvrtc, Nvrtc::open());
  return CompileLogs(std::move(nvrtc));
}

absl::StatusOr<CompileLog>
CompileLogs::compile(const CudaSource &source, const std::string &architecture,
                     const std::vector<std::string> &options,
                     WantsSass wantsSass) const {
  const DiskCache cache(CacheKind::Objects);
  const std::string made =
      absl::StrCat(nvrtc.version(), " ", absl::StrJoin(options, " "));
  const std::string key = cubinKey(source, architecture, made);
  const std::string logKey = keyOf({"log", key});
  const std::string sassKey = keyOf({"sass", key});
  const auto knownLog = cache.find(logKey);
  const std::optional<std::string> knownSass =
      wantsSass == WantsSass::Yes ? cache.find(sassKey) : std::string();
  if (knownLog && knownSass) {
    CompileLog log = parseCompileLog(*knownLog);
    log.sass = *knownSass;
    return log;
  }
  LLAMAC_ASSIGN_OR_RETURN(Cubin cubin,
                          nvrtc.compile(source, architecture, options));
  CompileLog log = parseCompileLog(cubin.log);
  cache.keep(logKey, cubin.log);
  if (wantsSass == WantsSass::Yes) {
    LLAMAC_ASSIGN_OR_RETURN(log.sass, disassemble(cubin.image));
    cache.keep(sassKey, log.sass);
  }
  return log;
}

CompileLog parseCompileLog(absl::string_view text) {
  CompileLog log;
  log.text = std::string(text);
  for (const std::string &line :
       std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (absl::StrContains(line, "warning ") ||
        absl::StrContains(line, "warning:") || absl::StrContains(line, "(C7"))
      log.warnings.push_back(line);
    char name[1024];
    if (std::sscanf(line.c_str(),
                    "ptxas info : Compiling entry function '%1023[^']'",
                    name) == 1) {
      log.kernels.push_back({.name = name});
      continue;
    }
    if (log.kernels.empty())
      continue;
    KernelResources &kernel = log.kernels.back();
    int stack = 0, stores = 0, loads = 0;
    if (std::sscanf(
            line.c_str(),
            "ptxas . %d bytes stack frame, %d bytes spill stores, %d bytes "
            "spill loads",
            &stack, &stores, &loads) == 3) {
      // Functions that were not inlined report after their kernel.
      kernel.stackBytes += stack;
      kernel.spillStoreBytes += stores;
      kernel.spillLoadBytes += loads;
    }
    if (std::sscanf(line.c_str(), "ptxas info : Used %d registers",
                    &kernel.registers) == 1)
      for (absl::string_view part : absl::StrSplit(line, ", "))
        if (absl::EndsWith(part, " bytes smem"))
          kernel.sharedBytes = std::atoi(std::string(part).c_str());
  }
  return log;
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
