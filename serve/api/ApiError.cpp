//===- ApiError.cpp - Errors of OpenAI's interface ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/ApiError.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/io/JsonText.h"

#include <algorithm>
#include <string>
#include <utility>

namespace llamac::serve {

using nlohmann::ordered_json;

namespace {
/// The type and code of an error with a status.
struct ErrorKind {
  unsigned status;
  const char *type, *code; ///< No code: null.
};
} // namespace

static constexpr ErrorKind kinds[] = {
    {401, "authentication_error", "invalid_api_key"},
    {403, "permission_error", nullptr},
    {404, "not_found_error", nullptr},
    {503, "server_error", "overloaded"},
    {500, "server_error", nullptr},
    {400, "invalid_request_error", nullptr}, // And all others.
};

static const ErrorKind &kindOf(unsigned status) {
  const auto found = std::ranges::find(kinds, status, &ErrorKind::status);
  return found == std::end(kinds) ? std::end(kinds)[-1] : *found;
}

static HttpAnswer answerOf(unsigned status, absl::string_view message,
                           const std::string &field,
                           const std::string &reason) {
  const ErrorKind &kind = kindOf(status);
  const auto orNull = [](const std::string &text) {
    return text.empty() ? ordered_json() : ordered_json(text);
  };
  ordered_json error = {
      {"message", std::string(message)},
      {"type", kind.type},
      {"param", orNull(field)},
      {"code", orNull(reason.empty() && kind.code ? kind.code : reason)}};
  HttpAnswer answer{status,
                    jsonText(ordered_json{{"error", std::move(error)}})};
  answer.error = std::string(message);
  if (status == 401)
    answer.fields = {{"WWW-Authenticate", "Bearer"}};
  if (status == 503)
    answer.fields = {{"Retry-After", "1"}};
  return answer;
}

HttpAnswer errorAnswer(unsigned status, absl::string_view message) {
  return answerOf(status, message, "", "");
}

static unsigned httpStatus(const absl::Status &status) {
  if (absl::IsNotFound(status))
    return 404;
  switch (exitCode(status)) {
  case ExitCode::Usage:
  case ExitCode::BadFile:
  case ExitCode::Unsupported:
    return 400;
  case ExitCode::Memory:
    return 503;
  default:
    return 500;
  }
}

HttpAnswer errorAnswer(const absl::Status &error) {
  return answerOf(httpStatus(error), error.message(), fieldOf(error),
                  reasonOf(error));
}

} // namespace llamac::serve
