//===- HostKernels.h - Kernels that a test has ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A test of the runtime alone stands in for the kernels of a plan: it sees how
// each is launched, and does on the host what it does.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_HOSTKERNELS_H
#define LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_HOSTKERNELS_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace llamac::fake {

struct HostLaunch {
  std::string kernel;
  unsigned blocks = 0, rowBlocks = 0; ///< Along x and y.
  unsigned threads = 0;
  unsigned sharedBytes = 0;
  bool isCooperative = false;
  bool overlaps = false; ///< Whether it may begin before the one ahead ends.
  bool isOfGraph = false;
  std::vector<void *> operands = {};
  int32_t last = 0; ///< The parameter behind them.
};

struct HostKernel {
  int operands = 0;
  bool isResident = false; ///< Its operands are one parameter, a structure.
  std::function<void(const HostLaunch &)> run;
};

/// A function of the fake driver, extern "C": makes `kernel` that of its name,
/// or forgets all for null. Plans then need no others.
using SetHostKernel = void(const char *name, const HostKernel *kernel);

} // namespace llamac::fake

#endif // LLAMAC_TESTS_RUNTIME_CUDA_FAKE_DRIVER_HOSTKERNELS_H
