//===- Forks.h - What a forked child may use --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A forked child has none of its parent's threads: nobody runs the steps of an
// engine there, and locks are as other threads left them. So objects with
// threads remember where they were made; a child is refused where it enters the
// library, and leaves what it drops as it is.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_FORKS_H
#define LLAMAC_RUNTIME_BASE_FORKS_H

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <cstdint>

namespace llamac {

/// The process that an object was made in, counted in forks.
class ForkGeneration {
public:
  ForkGeneration() : made(current()) {}

  /// Whether this is that process, and no child of it.
  bool isHere() const { return made == current(); }

  /// Device error about `what` in a child.
  absl::Status check(absl::string_view what) const;

private:
  static uint64_t current();

  uint64_t made;
};

/// Deletes an object in the process that made it alone: in a child, threads of
/// its parent may be waiting for a condition variable of the object, which
/// cannot be destroyed before they have woken, and there they never do.
struct DeleteWhereMade {
  template <typename T> void operator()(T *object) const {
    if (generation.isHere())
      delete object;
  }

  ForkGeneration generation;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_FORKS_H
