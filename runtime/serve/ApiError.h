//===- ApiError.h - Errors of OpenAI's interface ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_SERVE_APIERROR_H
#define LLAMAC_RUNTIME_SERVE_APIERROR_H

#include "runtime/serve/HttpConnection.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <string>

namespace llamac::serve {

/// {"error": {"message", "type", "param", "code"}} for `status`; `param` is the
/// field that the message begins with, if it does.
std::string errorBody(unsigned status, absl::string_view message);

/// The same as an answer. 401, 405 and 503 have the field that HTTP asks for.
HttpAnswer errorAnswer(unsigned status, absl::string_view message);

/// The HTTP status of an error: 400 for what the client did wrong, 404 for a
/// model that is not there, 503 for what may do later, 500 for all else.
unsigned httpStatus(const absl::Status &status);

} // namespace llamac::serve

#endif // LLAMAC_RUNTIME_SERVE_APIERROR_H
