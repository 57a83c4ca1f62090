//===- Clock.h - Seconds on a steady clock ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_CLOCK_H
#define LLAMAC_RUNTIME_BASE_CLOCK_H

#include <chrono>

namespace llamac {

/// Seconds on a clock that never goes back.
inline double steadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_CLOCK_H
