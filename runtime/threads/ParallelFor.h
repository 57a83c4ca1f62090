//===- ParallelFor.h - A loop shared by threads -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_THREADS_PARALLELFOR_H
#define LLAMAC_RUNTIME_THREADS_PARALLELFOR_H

#include "absl/functional/function_ref.h"

#include <cstddef>

namespace llamac {

/// Calls work(0) to work(count - 1), begun in this order, by at most `threads`
/// threads, of which the caller's is one; by fewer where the system gives no
/// more. For work of milliseconds and more:
/// the threads are started here and end here.
void parallelFor(int threads, size_t count,
                 absl::FunctionRef<void(size_t)> work);

} // namespace llamac

#endif // LLAMAC_RUNTIME_THREADS_PARALLELFOR_H
