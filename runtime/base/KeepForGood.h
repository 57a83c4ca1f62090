//===- KeepForGood.h - Objects that a forked child leaves -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_KEEPFORGOOD_H
#define LLAMAC_RUNTIME_BASE_KEEPFORGOOD_H

#include <memory>
#include <utility>

namespace llamac {

/// Sees to it that `object` is never destroyed. For a forked child: its
/// parent's threads may be waiting for a condition variable of the object,
/// which cannot be destroyed before they have woken, and in the child they
/// never do.
template <typename T> void keepForGood(std::shared_ptr<T> object) {
  static_cast<void>(new std::shared_ptr<T>(std::move(object)));
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_KEEPFORGOOD_H
