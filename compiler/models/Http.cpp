//===- Http.cpp - Files over HTTP -----------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/models/Http.h"

#include "runtime/base/Status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <array>
#include <cstdlib>
#include <curl/curl.h>
#include <unistd.h>

namespace llamac {

absl::StatusOr<Url> Url::parse(absl::string_view text) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(
      curl_url(), curl_url_cleanup);
  const auto part = [&](CURLUPart which) {
    char *value = nullptr;
    curl_url_get(url.get(), which, &value, CURLU_DEFAULT_PORT);
    std::string copy = value ? value : "";
    curl_free(value);
    return copy;
  };
  if (curl_url_set(url.get(), CURLUPART_URL, std::string(text).c_str(), 0) !=
          CURLUE_OK ||
      (part(CURLUPART_SCHEME) != "https" && part(CURLUPART_SCHEME) != "http"))
    return usageError(absl::StrCat(text, ": expected a URL of https or http"));
  if (!part(CURLUPART_USER).empty())
    return usageError(absl::StrCat(part(CURLUPART_HOST),
                                   ": expected a URL without a user's name"));
  return Url{part(CURLUPART_SCHEME), part(CURLUPART_HOST), part(CURLUPART_PORT),
             part(CURLUPART_PATH), part(CURLUPART_FRAGMENT)};
}

bool Url::isPrivate() const {
  return scheme == "https" || host == "localhost" || host == "[::1]" ||
         absl::StartsWith(host, "127.");
}

std::string escapePath(absl::string_view path) {
  std::string escaped;
  for (const char c : path)
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
        absl::StrContains("/-._~", c))
      escaped += c;
    else
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<unsigned char>(c));
  return escaped;
}

HttpClient::HttpClient(const Interrupts &interrupts) : interrupts(interrupts) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  handle = std::shared_ptr<void>(curl_easy_init(), curl_easy_cleanup);
}

/// The file of certificates to trust; null: what libcurl was built with.
static const char *trustedCertificates() {
  for (const char *name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char *file = std::getenv(name); file && *file)
      return file;
  // Debian's and Alpine's, Fedora's: the library may have been built elsewhere.
  for (const char *file :
       {"/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"})
    if (access(file, R_OK) == 0)
      return file;
  return nullptr;
}

namespace {

/// One request, as libcurl's callbacks see it.
struct Transfer {
  CURL *curl;
  HttpAnswer &answer;
  absl::FunctionRef<absl::Status(absl::string_view)> take;
  std::string range = {}; ///< Content-Range of the answer.
  absl::Status status = absl::OkStatus();

  void begin() {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.code);
    curl_off_t length = -1;
    curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (answer.code == 200 && length >= 0)
      answer.size = length;
    // "bytes 100-999/1000"
    absl::string_view text = range;
    uint64_t size = 0;
    if (answer.code == 206 && absl::ConsumePrefix(&text, "bytes ")) {
      const std::vector<absl::string_view> parts =
          absl::StrSplit(text, absl::ByAnyChar("-/"));
      if (!absl::SimpleAtoi(parts[0], &answer.start))
        answer.start = UINT64_MAX;
      if (absl::SimpleAtoi(parts.back(), &size))
        answer.size = size;
    }
  }

  static size_t onHeader(char *data, size_t, size_t size, void *self) {
    auto &transfer = *static_cast<Transfer *>(self);
    const absl::string_view line(data, size);
    if (absl::StartsWith(line, "HTTP/")) { // A redirect's are of no use.
      transfer.range.clear();
      transfer.answer.etag.clear();
    }
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::EqualsIgnoreCase(field.first, "content-range"))
      transfer.range = std::string(absl::StripAsciiWhitespace(field.second));
    if (absl::EqualsIgnoreCase(field.first, "etag"))
      transfer.answer.etag =
          std::string(absl::StripAsciiWhitespace(field.second));
    return size;
  }

  static size_t onBody(char *data, size_t, size_t size, void *self) {
    auto &transfer = *static_cast<Transfer *>(self);
    if (transfer.answer.code == 0)
      transfer.begin();
    if (transfer.answer.code / 100 == 2)
      transfer.status = transfer.take({data, size});
    return transfer.status.ok() ? size : 0;
  }

  static int onProgress(void *interrupts, curl_off_t, curl_off_t, curl_off_t,
                        curl_off_t) {
    return static_cast<const Interrupts *>(interrupts)->signal();
  }
};

} // namespace

absl::Status
HttpClient::get(const HttpRequest &request, HttpAnswer &answer,
                absl::FunctionRef<absl::Status(absl::string_view)> take) {
  CURL *const curl = handle.get();
  if (!curl)
    return memoryError("not enough memory for a connection");
  LLAMAC_ASSIGN_OR_RETURN(const Url url, Url::parse(request.url));
  answer = {};
  Transfer transfer{curl, answer, take};
  std::array<char, CURL_ERROR_SIZE> reason{};
  curl_easy_reset(curl);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "llamac/" LLAMAC_VERSION);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason.data());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
  // A transfer that began with https goes on with it.
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR,
                   url.scheme == "https" ? "https" : "https,http");
  if (const char *file = trustedCertificates())
    curl_easy_setopt(curl, CURLOPT_CAINFO, file);
  if (!request.token.empty()) { // Not sent on by redirects to other hosts.
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, request.token.c_str());
  }
  curl_slist *headers = nullptr;
  const std::string range = absl::StrCat(request.from, "-");
  if (request.from > 0) {
    curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
    if (!request.ifRange.empty())
      headers = curl_slist_append(
          headers, absl::StrCat("If-Range: ", request.ifRange).c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 60L);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, Transfer::onProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &interrupts);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, Transfer::onHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Transfer::onBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  const CURLcode result = curl_easy_perform(curl);
  curl_slist_free_all(headers);
  LLAMAC_RETURN_IF_ERROR(transfer.status);
  if (result == CURLE_OK) {
    if (answer.code == 0)
      transfer.begin();
    return absl::OkStatus();
  }
  const absl::string_view said =
      reason[0] ? reason.data() : curl_easy_strerror(result);
  char *reached = nullptr;
  curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &reached);
  const auto last = Url::parse(reached ? reached : request.url);
  const std::string &host = last.ok() ? last->host : url.host;
  if (result == CURLE_PEER_FAILED_VERIFICATION)
    return badFileError(absl::StrCat(
        host, ": expected a certificate that is trusted, got another: ", said,
        "; SSL_CERT_FILE names a file of others to trust"));
  if (result == CURLE_UNSUPPORTED_PROTOCOL)
    return badFileError(
        absl::StrCat(host,
                     ": expected https, got a redirect to another "
                     "protocol: ",
                     said));
  return badFileError(absl::StrCat(
      host,
      answer.code == 0 ? ": cannot be reached: " : ": the connection broke: ",
      said));
}

} // namespace llamac
