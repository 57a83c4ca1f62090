//===- IsaLevel.cpp - Levels of the host's instruction set ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/IsaLevel.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <cstdlib>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace llamac {

static constexpr IsaLevel levels[] = {IsaLevel::Portable, IsaLevel::X86V3,
                                      IsaLevel::X86V4Vnni, IsaLevel::X86V4Bf16,
                                      IsaLevel::X86V4Amx};

absl::string_view isaLevelName(IsaLevel level) {
  static constexpr absl::string_view names[] = {
      "portable", "x86-64-v3", "x86-64-v4-vnni", "x86-64-v4-bf16",
      "x86-64-v4-amx"};
  return names[static_cast<size_t>(level)];
}

std::optional<IsaLevel> parseIsaLevel(absl::string_view name) {
  for (IsaLevel level : levels)
    if (isaLevelName(level) == name)
      return level;
  return std::nullopt;
}

absl::Span<const IsaLevel> isaLevels() { return levels; }

std::string isaLevelNames() {
  return absl::StrJoin(levels, ", ", [](std::string *out, IsaLevel level) {
    absl::StrAppend(out, isaLevelName(level));
  });
}

#if defined(__x86_64__) && defined(__linux__)
// Linux gives a process the registers of the tiles when it asks; all threads
// have them then.
static bool hasAmx() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned tile = 1U << 24, int8 = 1U << 25;
  if (!__get_cpuid_count(/*leaf=*/7, /*subleaf=*/0, &eax, &ebx, &ecx, &edx) ||
      (edx & tile) == 0 || (edx & int8) == 0)
    return false;
  constexpr long requestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  constexpr long tileData = 18;              // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}
#elif defined(__x86_64__)
static bool hasAmx() { return false; }
#endif

IsaLevel hostIsaLevel() {
#if defined(__x86_64__)
  // The compiler's look-up also asks whether the kernel saves the registers.
  __builtin_cpu_init();
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2");
  if (!v3)
    return IsaLevel::Portable;
  const bool vnni = __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") &&
                    __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512vnni");
  if (!vnni)
    return IsaLevel::X86V3;
  if (!__builtin_cpu_supports("avx512bf16"))
    return IsaLevel::X86V4Vnni;
  return hasAmx() ? IsaLevel::X86V4Amx : IsaLevel::X86V4Bf16;
#else
  return IsaLevel::Portable;
#endif
}

absl::StatusOr<IsaLevel> usableIsaLevel(absl::string_view name) {
  if (const char *environment = std::getenv("LLAMAC_ISA");
      name.empty() && environment)
    name = environment;
  const IsaLevel host = hostIsaLevel();
  if (name.empty())
    return host;
  const std::optional<IsaLevel> level = parseIsaLevel(name);
  if (!level)
    return usageError(absl::StrCat("instruction set: expected one of ",
                                   isaLevelNames(), ", got ", name));
  if (*level > host)
    return usageError(absl::StrCat("instruction set: expected at most ",
                                   isaLevelName(host),
                                   ", the best of this machine, got ", name));
  return *level;
}

absl::StatusOr<size_t> chooseIsaLevel(const std::vector<std::string> &names,
                                      IsaLevel limit) {
  std::optional<size_t> best;
  IsaLevel bestLevel = IsaLevel::Portable;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::optional<IsaLevel> level = parseIsaLevel(names[i]);
    if (!level || *level > limit || (best && *level <= bestLevel))
      continue;
    best = i;
    bestLevel = *level;
  }
  if (best)
    return *best;
  return deviceError(absl::StrCat(
      "instruction set: expected code for ", isaLevelName(limit),
      " or less, got ", names.empty() ? "none" : absl::StrJoin(names, ", "),
      "; compile the plan for this machine"));
}

} // namespace llamac
