//===- Status.h - Errors and exit codes -------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that can go wrong because of an input, a file or the machine is
// an absl::Status made by one of the functions below; each kind of error has
// its own exit code. A message is one line: where, what was expected, what was
// found, and what to do next when that is known.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_STATUS_H
#define LLAMAC_RUNTIME_BASE_STATUS_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>

namespace llamac {

/// Exit codes of every tool.
enum class ExitCode : int {
  Ok = 0,
  Internal = 1,    ///< A bug in llamac.
  Usage = 2,       ///< A wrong flag, prompt or request.
  BadFile = 3,     ///< A missing, truncated or malformed model file.
  Unsupported = 4, ///< An architecture or format that is not supported.
  BadPlan = 5,     ///< A corrupt or stale plan.
  Memory = 6,      ///< Not enough memory, disk or open files.
  Device = 7,      ///< The device failed or is missing.
  Accuracy = 8,    ///< A result left its tolerance.
};

absl::Status internalError(absl::string_view message);
absl::Status usageError(absl::string_view message);
absl::Status badFileError(absl::string_view message);
absl::Status unsupportedError(absl::string_view message);
absl::Status badPlanError(absl::string_view message);
absl::Status memoryError(absl::string_view message);
absl::Status deviceError(absl::string_view message);
absl::Status accuracyError(absl::string_view message);

/// `file:offset: message`, an error at a byte of a model file.
absl::Status badFileAt(absl::string_view file, uint64_t offset,
                       absl::string_view message);

/// Whether `error`, an errno, says that memory, disk space or the number of
/// open files does not suffice.
bool isOutOfResources(int error);

/// Whether `text` quotes such an error of the system, where only words are to
/// be had.
bool saysOutOfResources(absl::string_view text);

/// `message: the system's words for error`, of the memory kind where resources
/// do not suffice, else as `otherwise` makes it.
absl::Status systemError(int error, absl::string_view message,
                         absl::Status (*otherwise)(absl::string_view));

/// The exit code that `status` stands for.
ExitCode exitCode(const absl::Status &status);

/// `status` with `prefix: ` before its message, of the same kind.
absl::Status withContext(const absl::Status &status, absl::string_view prefix);

} // namespace llamac

// The caller's argument is a declaration or expression as it stands.
// NOLINTBEGIN(bugprone-macro-parentheses)

/// Returns the status of `expr` from the enclosing function when it failed.
#define LLAMAC_RETURN_IF_ERROR(expr)                                           \
  do {                                                                         \
    if (absl::Status llamacStatus = (expr); !llamacStatus.ok())                \
      return llamacStatus;                                                     \
  } while (false)

#define LLAMAC_CONCAT_IMPL(a, b) a##b
#define LLAMAC_CONCAT(a, b) LLAMAC_CONCAT_IMPL(a, b)

/// `LLAMAC_ASSIGN_OR_RETURN(auto x, f())`: x is the value of f(), or the
/// enclosing function returns its error.
#define LLAMAC_ASSIGN_OR_RETURN(lhs, expr)                                     \
  LLAMAC_ASSIGN_OR_RETURN_IMPL(LLAMAC_CONCAT(llamacStatusOr, __LINE__), lhs,   \
                               expr)
#define LLAMAC_ASSIGN_OR_RETURN_IMPL(result, lhs, expr)                        \
  auto result = (expr);                                                        \
  if (!result.ok())                                                            \
    return result.status();                                                    \
  lhs = *std::move(result)

// NOLINTEND(bugprone-macro-parentheses)

#endif // LLAMAC_RUNTIME_BASE_STATUS_H
