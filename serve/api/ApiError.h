//===- ApiError.h - Errors of OpenAI's interface ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_API_APIERROR_H
#define LLAMAC_SERVE_API_APIERROR_H

#include "serve/http/HttpConnection.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llamac::serve {

/// {"error": {"message", "type", "param", "code"}} as an answer, with the field
/// that HTTP asks for beside 401 and 503. No field of a request is to blame.
HttpAnswer errorAnswer(unsigned status, absl::string_view message);

/// The answer to an error: 400 for the client's faults, 404 for a model that is
/// not there, 503 for requests that may succeed later, 500 for all else.
/// `param` is its field, `code` its reason.
HttpAnswer errorAnswer(const absl::Status &error);

} // namespace llamac::serve

#endif // LLAMAC_SERVE_API_APIERROR_H
