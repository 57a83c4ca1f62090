//===- TsanSuppressions.cpp - What TSan cannot see ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Statuses that threads share count their owners in Abseil's library, which is
// not instrumented: TSan does not see that the last owner comes after others.
extern "C" const char *__tsan_default_suppressions();
const char *__tsan_default_suppressions() {
  return "race:absl::*::Status::Unref\n";
}
