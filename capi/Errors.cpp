//===- Errors.cpp - From statuses to codes and texts ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "capi/Errors.h"

#include "absl/strings/str_cat.h"

#include <string>

namespace llamac {

#define LLAMAC_SAME_CODE(C, CXX)                                               \
  static_assert(LLAMAC_##C == static_cast<int>(ExitCode::CXX))
LLAMAC_SAME_CODE(OK, Ok);
LLAMAC_SAME_CODE(INTERNAL, Internal);
LLAMAC_SAME_CODE(USAGE, Usage);
LLAMAC_SAME_CODE(BAD_FILE, BadFile);
LLAMAC_SAME_CODE(UNSUPPORTED, Unsupported);
LLAMAC_SAME_CODE(BAD_PLAN, BadPlan);
LLAMAC_SAME_CODE(MEMORY, Memory);
LLAMAC_SAME_CODE(DEVICE, Device);
LLAMAC_SAME_CODE(ACCURACY, Accuracy);
#undef LLAMAC_SAME_CODE

namespace {

/// A thread's last error.
struct LastError {
  std::string text;
  /// Where there was no memory for it.
  const char *fallback = nullptr;
};

} // namespace

static LastError &lastError() {
  thread_local LastError error;
  return error;
}

llamac_code codeOf(const absl::Status &status) noexcept {
  if (status.ok())
    return LLAMAC_OK;
  LastError &error = lastError();
  try {
    error.text = std::string(status.message());
    error.fallback = nullptr;
  } catch (...) {
    error.fallback = "memory: the host has no more";
  }
  return static_cast<llamac_code>(exitCode(status));
}

absl::Status checkNotNull(const void *argument, const char *name) {
  return argument ? absl::OkStatus()
                  : usageError(absl::StrCat(name, ": expected a pointer, got "
                                                  "NULL"));
}

absl::Status checkArray(const void *array, size_t count, const char *name) {
  return count == 0 ? absl::OkStatus() : checkNotNull(array, name);
}

} // namespace llamac

using namespace llamac;

const char *llamac_last_error(void) {
  const LastError &error = lastError();
  return error.fallback ? error.fallback : error.text.c_str();
}

#define LLAMAC_STRING(X) #X
#define LLAMAC_VERSION_TEXT(MAJOR, MINOR, PATCH)                               \
  LLAMAC_STRING(MAJOR) "." LLAMAC_STRING(MINOR) "." LLAMAC_STRING(PATCH)

const char *llamac_version(void) {
  static constexpr absl::string_view header = LLAMAC_VERSION_TEXT(
      LLAMAC_VERSION_MAJOR, LLAMAC_VERSION_MINOR, LLAMAC_VERSION_PATCH);
  static_assert(header == LLAMAC_VERSION, "CMakeLists.txt has another");
  return header.data();
}
