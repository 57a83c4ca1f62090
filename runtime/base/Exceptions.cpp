//===- Exceptions.cpp - Where exceptions of libraries end -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Exceptions.h"

#include <exception>
#include <new>

namespace llamac {

absl::Status statusOfException() {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return memoryError("memory: the host has no more");
  } catch (const std::exception &error) {
    return internalError(error.what());
  } catch (...) {
    return internalError("an exception of an unknown type");
  }
}

static int &throwsOnThread() {
  thread_local int count = 0;
  return count;
}

MemoryThrows::MemoryThrows() { ++throwsOnThread(); }
MemoryThrows::~MemoryThrows() { --throwsOnThread(); }
bool MemoryThrows::isOn() { return throwsOnThread() > 0; }

} // namespace llamac
