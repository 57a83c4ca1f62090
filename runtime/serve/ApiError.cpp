//===- ApiError.cpp - Errors of OpenAI's interface ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/ApiError.h"

#include "runtime/base/Status.h"
#include "runtime/engine/RequestOptions.h"
#include "runtime/io/JsonText.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include <algorithm>

namespace llamac::serve {

using nlohmann::ordered_json;

namespace {
/// What goes with a status.
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

/// The option of requests that messages call `words`, "top-p" or "logit bias of
/// token id 7"; empty where there is none.
static std::string optionOf(absl::string_view words) {
  const std::string name = absl::StrReplaceAll(
      words.substr(0, words.find(" of ")), {{" ", "_"}, {"-", "_"}});
  const auto options = requestOptions();
  return std::ranges::count(options, name, &NamedOption<Request>::name) > 0
             ? name
             : "";
}

/// The field that `message` begins with, "temperature: ..." or
/// "body:12: temperature: ...".
static std::string fieldOf(absl::string_view message) {
  if (absl::ConsumePrefix(&message, "body:"))
    message.remove_prefix(
        std::min(message.size(), message.find_first_not_of("0123456789: ")));
  const size_t end = message.find(": ");
  const absl::string_view field = message.substr(0, end);
  const bool isName =
      end != absl::string_view::npos && std::ranges::all_of(field, [](char c) {
        return absl::ascii_isalnum(c) || absl::StrContains("_.[]", c);
      });
  return isName ? std::string(field) : optionOf(field);
}

std::string errorBody(unsigned status, absl::string_view message) {
  const ErrorKind &kind = kindOf(status);
  const bool isModel = absl::StartsWith(message, "model: ");
  // The prompt and what is asked of the answer, of which either may change.
  const bool isTooLong =
      absl::StartsWith(message, "request: expected at most ");
  const std::string field =
      status == 400 || isModel ? isTooLong ? "" : fieldOf(message) : "";
  ordered_json error = {{"message", std::string(message)},
                        {"type", kind.type},
                        {"param", nullptr},
                        {"code", nullptr}};
  if (!field.empty())
    error["param"] = field;
  if (status == 404 && isModel)
    error["code"] = "model_not_found";
  else if (isTooLong)
    error["code"] = "context_length_exceeded";
  else if (kind.code)
    error["code"] = kind.code;
  return jsonText(ordered_json{{"error", std::move(error)}});
}

HttpAnswer errorAnswer(unsigned status, absl::string_view message) {
  HttpAnswer answer{status, errorBody(status, message)};
  answer.error = std::string(message);
  if (status == 401)
    answer.fields = {{"WWW-Authenticate", "Bearer"}};
  if (status == 503)
    answer.fields = {{"Retry-After", "1"}};
  return answer;
}

unsigned httpStatus(const absl::Status &status) {
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

} // namespace llamac::serve
