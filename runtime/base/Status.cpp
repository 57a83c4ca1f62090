//===- Status.cpp - Errors and exit codes ---------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "runtime/base/FieldError.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>

namespace llamac {

// One row per kind of error: the canonical code that carries it.
struct ErrorKind {
  absl::StatusCode code;
  ExitCode exit;
};
static constexpr ErrorKind errorKinds[] = {
    {absl::StatusCode::kOk, ExitCode::Ok},
    {absl::StatusCode::kInternal, ExitCode::Internal},
    {absl::StatusCode::kInvalidArgument, ExitCode::Usage},
    {absl::StatusCode::kDataLoss, ExitCode::BadFile},
    {absl::StatusCode::kUnimplemented, ExitCode::Unsupported},
    {absl::StatusCode::kFailedPrecondition, ExitCode::BadPlan},
    {absl::StatusCode::kResourceExhausted, ExitCode::Memory},
    {absl::StatusCode::kUnavailable, ExitCode::Device},
    {absl::StatusCode::kOutOfRange, ExitCode::Accuracy},
};

static absl::Status makeError(ExitCode exit, absl::string_view message) {
  for (const ErrorKind &kind : errorKinds)
    if (kind.exit == exit)
      return absl::Status(kind.code, message);
  return absl::InternalError(message);
}

absl::Status internalError(absl::string_view message) {
  return makeError(ExitCode::Internal, message);
}
absl::Status usageError(absl::string_view message) {
  return makeError(ExitCode::Usage, message);
}
absl::Status badFileError(absl::string_view message) {
  return makeError(ExitCode::BadFile, message);
}
absl::Status unsupportedError(absl::string_view message) {
  return makeError(ExitCode::Unsupported, message);
}
absl::Status badPlanError(absl::string_view message) {
  return makeError(ExitCode::BadPlan, message);
}
absl::Status memoryError(absl::string_view message) {
  return makeError(ExitCode::Memory, message);
}
absl::Status deviceError(absl::string_view message) {
  return makeError(ExitCode::Device, message);
}
absl::Status accuracyError(absl::string_view message) {
  return makeError(ExitCode::Accuracy, message);
}

absl::Status badFileAt(absl::string_view file, uint64_t offset,
                       absl::string_view message) {
  return badFileError(absl::StrCat(file, ":", offset, ": ", message));
}

static constexpr int resourceErrors[] = {EDQUOT, EFBIG,  EMFILE,
                                         ENFILE, ENOMEM, ENOSPC};

bool isOutOfResources(int error) {
  return absl::c_linear_search(resourceErrors, error);
}

bool saysOutOfResources(absl::string_view text) {
  return absl::c_any_of(resourceErrors, [&](int error) {
    return absl::StrContains(text, std::strerror(error));
  });
}

absl::Status systemError(int error, absl::string_view message,
                         absl::Status (*otherwise)(absl::string_view)) {
  const std::string whole = absl::StrCat(message, ": ", std::strerror(error));
  return isOutOfResources(error) ? memoryError(whole) : otherwise(whole);
}

ExitCode exitCode(const absl::Status &status) {
  for (const ErrorKind &kind : errorKinds)
    if (kind.code == status.code())
      return kind.exit;
  return ExitCode::Internal;
}

absl::Status withContext(const absl::Status &status, absl::string_view prefix) {
  return status.ok() ? status
                     : remade(status, status.code(),
                              absl::StrCat(prefix, ": ", status.message()));
}

} // namespace llamac
