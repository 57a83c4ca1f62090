//===- Target.h - Paths and queries of requests -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_HTTP_TARGET_H
#define LLAMAC_SERVE_HTTP_TARGET_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <optional>
#include <string>

namespace llamac::serve {

/// `target` without its query, as it was sent.
absl::string_view rawPathOf(absl::string_view target);

/// rawPathOf() without escapes (RFC 3986, 2.1): /v1/%6Dodels is /v1/models.
std::string pathOf(absl::string_view target);

/// Field `name` of the query, as forms write them: a=1&b=2, + for a space.
/// Nothing where there is none; usage error for more than one.
absl::StatusOr<std::optional<std::string>> queryField(absl::string_view target,
                                                      absl::string_view name);

} // namespace llamac::serve

#endif // LLAMAC_SERVE_HTTP_TARGET_H
