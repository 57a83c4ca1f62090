//===- Fiber.h - Threads of execution that switch by hand -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_FIBER_H
#define LLAMAC_SIMULATOR_FIBER_H

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace llamac::sim {

/// The saved registers of a stack that does not run now. A switch takes a few
/// instructions.
class Fiber {
public:
  /// Sets the fiber up to run `entry`, which never returns, on a fresh stack
  /// of `size` bytes. What ran on it before is abandoned, not unwound.
  void start(std::byte *stack, size_t size, void (*entry)());

  /// Leaves this fiber, which is running, for `to`; returns when something
  /// switches back.
  void switchTo(Fiber &to);

private:
  void *stackPointer = nullptr;
};

/// Stacks with a page below each that stops an overflow, kept for reuse.
class StackPool {
public:
  static constexpr size_t stackBytes = size_t{64} << 10;

  /// The one that all simulators of the process share, as long as there is one:
  /// a process may map only so many stacks.
  static std::shared_ptr<StackPool> shared();

  StackPool() = default;
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;
  ~StackPool();

  /// `stackBytes` bytes, or null when the system has no more memory.
  std::byte *take();
  void giveBack(std::byte *stack);

private:
  std::mutex mutex;
  std::vector<std::byte *> unused;
};

} // namespace llamac::sim

#endif // LLAMAC_SIMULATOR_FIBER_H
