//===- FieldError.h - What programs read of an error ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An error carries which field of a request it is about, and a name for its
// reason, from where it is made to where it is told: nothing is read out of its
// words.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_FIELDERROR_H
#define LLAMAC_RUNTIME_BASE_FIELDERROR_H

#include "runtime/base/Status.h"

#include <string>

namespace llamac {

/// `status` of another kind or with another message.
absl::Status remade(const absl::Status &status, absl::StatusCode code,
                    absl::string_view message);

/// `status`, unless it is ok, as a usage error that is the same else.
absl::Status asUsageError(const absl::Status &status);

/// Usage error `field: message` about a field or option of a request.
absl::Status fieldError(absl::string_view field, absl::string_view message);

/// `status`, unless it is ok, about field `field` in place of another.
absl::Status withField(absl::Status status, absl::string_view field);

/// The field of a request that `status` is about; empty where it is none.
std::string fieldOf(const absl::Status &status);

/// `status`, unless it is ok, with a name for what clients tell from others of
/// its kind, such as OpenAI's "model_not_found".
absl::Status withReason(absl::Status status, absl::string_view reason);

/// The reason of a request of more tokens than there is room for, by OpenAI's
/// name.
inline constexpr absl::string_view contextExceeded = "context_length_exceeded";

/// Usage error of that reason: `maxTokens` are `what`, and the request has
/// `got`.
absl::Status contextError(int64_t maxTokens, absl::string_view got,
                          absl::string_view what = "the context of the plan");

/// The reason that withReason() gave `status`; empty where it has none.
std::string reasonOf(const absl::Status &status);

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_FIELDERROR_H
