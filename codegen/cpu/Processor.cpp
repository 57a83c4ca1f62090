//===- Processor.cpp - Processors that plans are laid out for -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Processor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llamac {

static constexpr Processor all[] = {Processor::Generic, Processor::Zen3,
                                    Processor::Zen4};

absl::string_view processorName(Processor processor) {
  switch (processor) {
  case Processor::Generic:
    return "generic";
  case Processor::Zen3:
    return "znver3";
  case Processor::Zen4:
    return "znver4";
  }
  return "";
}

std::optional<Processor> parseProcessor(absl::string_view name) {
  for (Processor processor : all)
    if (processorName(processor) == name)
      return processor;
  return std::nullopt;
}

std::string processorNames() {
  return absl::StrJoin(all, ", ", [](std::string *text, Processor processor) {
    absl::StrAppend(text, processorName(processor));
  });
}

Processor hostProcessor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // Zen 4 is the first of AMD's with AVX-512.
  if (__builtin_cpu_is("amd"))
    return __builtin_cpu_supports("avx512f") ? Processor::Zen4
                                             : Processor::Zen3;
#endif
  return Processor::Generic;
}

} // namespace llamac
