//===- Http.h - Files over HTTP ---------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_MODELS_HTTP_H
#define LLAMAC_COMPILER_MODELS_HTTP_H

#include "runtime/base/Interrupts.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace llamac {

/// The parts of a URL of http or https.
struct Url {
  std::string scheme, host, port, path, fragment;

  /// Usage error for anything else, and for a URL with a password.
  static absl::StatusOr<Url> parse(absl::string_view text);

  bool hasOriginOf(const Url &other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
  /// Whether nobody else can read what is sent there.
  bool isPrivate() const;
};

/// `path` as a URL has it: "a b/c" is "a%20b/c".
std::string escapePath(absl::string_view path);

struct HttpRequest {
  std::string url;
  /// Sent to the host of `url`, but to none that it redirects to; empty: none.
  std::string token = {};
  uint64_t from = 0; ///< The first byte that is asked for.
  /// The file's version that `from` is of; of another one all bytes come.
  std::string ifRange = {};
};

struct HttpAnswer {
  int64_t code = 0;             ///< 0 where there was no answer.
  uint64_t start = 0;           ///< Where in the file the bytes begin.
  std::optional<uint64_t> size; ///< The size of the whole file, if it is known.
  std::string etag;
};

/// A connection that is used again. Certificates are verified: against the
/// system's, or those of CURL_CA_BUNDLE or SSL_CERT_FILE.
class HttpClient {
public:
  /// Requests end when `interrupts` has a signal.
  explicit HttpClient(const Interrupts &interrupts);

  /// Gets a file: `answer` is complete before `take` is first called, which
  /// gets the bytes of answers with a code of 2xx. Bad file where no whole
  /// answer came; errors of `take`.
  absl::Status
  get(const HttpRequest &request, HttpAnswer &answer,
      absl::FunctionRef<absl::Status(absl::string_view bytes)> take);

private:
  const Interrupts &interrupts;
  std::shared_ptr<void> handle;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_MODELS_HTTP_H
