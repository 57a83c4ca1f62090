//===- FieldError.cpp - What programs read of an error --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/FieldError.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace llamac {

absl::Status remade(const absl::Status &status, absl::StatusCode code,
                    absl::string_view message) {
  absl::Status made(code, message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord &payload) {
    made.SetPayload(url, payload);
  });
  return made;
}

absl::Status asUsageError(const absl::Status &status) {
  return status.ok() ? status
                     : remade(status, absl::StatusCode::kInvalidArgument,
                              status.message());
}

static constexpr absl::string_view fieldUrl = "llamac/field",
                                   reasonUrl = "llamac/reason";

static std::string payloadOf(const absl::Status &status,
                             absl::string_view url) {
  return std::string(status.GetPayload(url).value_or(absl::Cord()));
}

absl::Status fieldError(absl::string_view field, absl::string_view message) {
  return withField(usageError(absl::StrCat(field, ": ", message)), field);
}

absl::Status withField(absl::Status status, absl::string_view field) {
  status.SetPayload(fieldUrl, absl::Cord(field)); // Only an error takes a
                                                  // payload.
  return status;
}

std::string fieldOf(const absl::Status &status) {
  return payloadOf(status, fieldUrl);
}

absl::Status withReason(absl::Status status, absl::string_view reason) {
  status.SetPayload(reasonUrl, absl::Cord(reason));
  return status;
}

absl::Status contextError(int64_t maxTokens, absl::string_view got,
                          absl::string_view what) {
  return withReason(
      usageError(absl::StrCat("request: expected at most ", maxTokens,
                              " tokens, ", what, ", got ", got)),
      contextExceeded);
}

std::string reasonOf(const absl::Status &status) {
  return payloadOf(status, reasonUrl);
}

} // namespace llamac
