//===- Page.cpp - The page at / -------------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/page/Page.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <openssl/sha.h>

#include <string>
#include <utility>

namespace llamac::serve {

/// The files of the folder page/, scripts in their order.
static constexpr std::pair<absl::string_view, absl::string_view> files[] = {
#include "ServePage.inc"
};

/// All files whose names end with `suffix`, one after the other.
static std::string joined(absl::string_view suffix) {
  std::string text;
  for (const auto &[name, part] : files)
    if (absl::EndsWith(name, suffix))
      absl::StrAppend(&text, part);
  return text;
}

/// The source by which a policy lets in this very text.
static std::string hashSource(const std::string &text) {
  std::string digest(SHA256_DIGEST_LENGTH, 0);
  SHA256(reinterpret_cast<const unsigned char *>(text.data()), text.size(),
         reinterpret_cast<unsigned char *>(digest.data()));
  return absl::StrCat("'sha256-", absl::Base64Escape(digest), "'");
}

static HttpAnswer makeAnswer() {
  const std::string style = joined(".css"), libraries = joined("libraries"),
                    script = joined(".js");
  HttpAnswer answer;
  answer.body = absl::StrReplaceAll(
      joined(".html"),
      {{"<!--style-->", absl::StrCat("<style>", style, "</style>")},
       {"<!--libraries-->", absl::StrCat("<script>", libraries, "</script>")},
       {"<!--script-->", absl::StrCat("<script>", script, "</script>")}});
  answer.type = "text/html; charset=utf-8";
  answer.fields = {
      {"Content-Security-Policy",
       absl::StrCat("default-src 'none'; style-src ", hashSource(style),
                    "; script-src ", hashSource(libraries), " ",
                    hashSource(script),
                    "; connect-src 'self'; img-src data:; base-uri 'none'; "
                    "form-action 'none'; frame-ancestors 'none'; "
                    "require-trusted-types-for 'script'; "
                    "trusted-types dompurify")},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cache-Control", "no-cache"}};
  return answer;
}

const HttpAnswer &pageAnswer() {
  static const HttpAnswer answer = makeAnswer();
  return answer;
}

} // namespace llamac::serve
