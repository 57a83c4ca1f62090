//===- Errors.h - From statuses to codes and texts --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CAPI_ERRORS_H
#define LLAMAC_CAPI_ERRORS_H

#include "llamac/llamac.h"
#include "runtime/base/Exceptions.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <utility>

namespace llamac {

/// The code of `status`, whose text becomes the thread's last error unless it
/// is ok.
llamac_code codeOf(const absl::Status &status) noexcept;

/// Runs the body of a function of C, whose exceptions end here.
template <typename Body> llamac_code callFromC(Body body) noexcept {
  return codeOf(withoutExceptions(std::move(body)));
}

/// Usage error where `argument`, of this name, is NULL.
absl::Status checkNotNull(const void *argument, const char *name);

/// Usage error where `output`, of this name, is NULL; else gives it `value`,
/// which it has when the function fails.
template <typename T>
absl::Status clearOutput(T *output, const char *name, T value = {}) {
  absl::Status status = checkNotNull(output, name);
  if (status.ok())
    *output = value;
  return status;
}

/// Usage error where `array`, of this name, is NULL and `count` is not 0.
absl::Status checkArray(const void *array, size_t count, const char *name);

} // namespace llamac

#endif // LLAMAC_CAPI_ERRORS_H
