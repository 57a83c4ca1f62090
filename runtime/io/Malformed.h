//===- Malformed.h - The error of a field of a file -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_MALFORMED_H
#define LLAMAC_RUNTIME_IO_MALFORMED_H

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>

namespace llamac {

/// `file:offset: field: expected ..., got ...`; without the place where `file`
/// is empty, as is that of a text which nobody sees.
inline absl::Status malformed(absl::string_view file, uint64_t offset,
                              absl::string_view field,
                              const absl::AlphaNum &expected,
                              const absl::AlphaNum &got) {
  const std::string message =
      absl::StrCat(field, ": expected ", expected, ", got ", got);
  return file.empty() ? badFileError(message)
                      : badFileAt(file, offset, message);
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_MALFORMED_H
