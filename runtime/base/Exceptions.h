//===- Exceptions.h - Where exceptions of libraries end ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// llamac throws nothing; the standard library and others do. What is done for
// one request goes through here, so that a fault is that request's error.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_EXCEPTIONS_H
#define LLAMAC_RUNTIME_BASE_EXCEPTIONS_H

#include "runtime/base/Status.h"

#include <type_traits>

namespace llamac {

/// The exception that is being handled as an error: memory, or a bug.
absl::Status statusOfException();

/// While one lives, memory that its thread does not get is an exception, where
/// it would end a tool (FatalEvents.h).
class MemoryThrows {
public:
  MemoryThrows();
  MemoryThrows(const MemoryThrows &) = delete;
  MemoryThrows &operator=(const MemoryThrows &) = delete;
  ~MemoryThrows();

  /// Whether this thread has one.
  static bool isOn();
};

/// Calls `function`, which gives a status or a value or status. An exception of
/// it becomes an error.
template <typename Function>
std::invoke_result_t<Function> withoutExceptions(Function function) {
  const MemoryThrows throws;
  try {
    return function();
  } catch (...) {
    return statusOfException();
  }
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_EXCEPTIONS_H
