//===- Support.h - Loads and runs the kernels under test --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instruction-set levels that this host can run, and launches of their
// kernels in one or many ranges.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_CPU_KERNELS_SUPPORT_H
#define LLAMAC_TESTS_CODEGEN_CPU_KERNELS_SUPPORT_H

#include "llamac/cpu/config.h"
#include "runtime/cpu/KernelAbi.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace llamac::testing {

/// The level with a model of AMX in it: its unit has kernels of bytes, and a
/// few of attention.
inline constexpr const char *amxModel = "v4amxmodel";

/// The levels whose unit was built and that this host can run.
std::vector<std::string> hostLevels();

/// Memory aligned as the runtime aligns it, filled with a byte whose floats
/// are NaN, so that nothing can rely on it.
class AlignedBytes {
public:
  explicit AlignedBytes(int64_t bytes);

  uint8_t *data() const { return memory.get(); }

  template <class T> T *as() const { return reinterpret_cast<T *>(data()); }

private:
  std::unique_ptr<uint8_t, decltype(&std::free)> memory;
};

/// One level's unit.
class KernelUnit {
public:
  explicit KernelUnit(const std::string &level);

  /// Runs every work item of kernel `name`, `step` at a time, from the last
  /// range to the first when `backwards` (0: all in one range).
  void run(const std::string &name, cpu::LaunchShape shape, long rows,
           const std::vector<const void *> &args, long step = 0,
           bool backwards = false) const;

private:
  void *library;
};

} // namespace llamac::testing

#endif // LLAMAC_TESTS_CODEGEN_CPU_KERNELS_SUPPORT_H
