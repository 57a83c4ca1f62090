//===- Support.cpp - Loads and runs the kernels under test ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Units are opened one by one and privately, as the runtime opens a plan's.
//
//===----------------------------------------------------------------------===//

#include "Support.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <sstream>

namespace llamac::testing {

std::vector<std::string> hostLevels() {
  bool avx2 = false, vnni = false;
#if defined(__x86_64__)
  avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  vnni = __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
#endif
  std::vector<std::string> levels;
  std::istringstream built(LLAMAC_KERNEL_LEVELS);
  for (std::string level; built >> level;)
    if (level == "generic" || (level == "v3" ? avx2 : vnni))
      levels.push_back(level);
  return levels;
}

AlignedBytes::AlignedBytes(int64_t bytes)
    : memory(static_cast<uint8_t *>(
                 std::aligned_alloc(64, cpu::roundUp(bytes + 64, 64))),
             &std::free) {
  std::memset(memory.get(), 0xff, bytes);
}

KernelUnit::KernelUnit(const std::string &level) {
  std::string path =
      std::string(LLAMAC_KERNEL_UNITS) + "/kernels_" + level + ".so";
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    ADD_FAILURE() << dlerror();
}

void KernelUnit::run(const std::string &name, cpu::LaunchShape shape, long rows,
                     const std::vector<const void *> &args, long step,
                     bool backwards) const {
  auto kernel = library
                    ? reinterpret_cast<CpuKernel>(dlsym(library, name.c_str()))
                    : nullptr;
  if (!kernel) {
    ADD_FAILURE() << "no kernel " << name;
    return;
  }
  long items = shape.items;
  if (shape.rowBlock != 0)
    items *= (rows + shape.rowBlock - 1) / shape.rowBlock;
  std::vector<std::pair<long, long>> ranges;
  for (long begin = 0; begin < items; begin += step ? step : items)
    ranges.emplace_back(begin, step ? std::min(begin + step, items) : items);
  if (backwards)
    std::reverse(ranges.begin(), ranges.end());
  AlignedBytes scratch(shape.scratchBytes);
  uint8_t *end = scratch.data() + shape.scratchBytes;
  std::memset(end, 0x5a, 64);
  long lastBlock = -1;
  for (auto [begin, last] : ranges) {
    CpuLaunch launch = {const_cast<void *const *>(
                            reinterpret_cast<const void *const *>(args.data())),
                        rows,
                        begin,
                        last,
                        scratch.data(),
                        lastBlock};
    kernel(&launch);
    lastBlock = (last - 1) / shape.items;
  }
  EXPECT_TRUE(std::all_of(end, end + 64, [](uint8_t b) { return b == 0x5a; }))
      << name << " writes past its scratch memory";
}

} // namespace llamac::testing
