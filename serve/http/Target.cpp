//===- Target.cpp - Paths and queries of requests -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/http/Target.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include <utility>

namespace llamac::serve {

static std::string unescaped(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const absl::string_view digits = text.substr(i + 1, 2);
    if (text[i] == '%' && digits.size() == 2 &&
        absl::c_all_of(digits, absl::ascii_isxdigit)) {
      plain += absl::HexStringToBytes(digits);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

static std::string unescapedField(absl::string_view text) {
  return unescaped(absl::StrReplaceAll(text, {{"+", " "}}));
}

absl::string_view rawPathOf(absl::string_view target) {
  return target.substr(0, target.find('?'));
}

std::string pathOf(absl::string_view target) {
  return unescaped(rawPathOf(target));
}

absl::StatusOr<std::optional<std::string>> queryField(absl::string_view target,
                                                      absl::string_view name) {
  std::optional<std::string> found;
  const size_t query = target.find('?');
  if (query == absl::string_view::npos)
    return found;
  for (const absl::string_view field :
       absl::StrSplit(target.substr(query + 1), '&')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    if (unescapedField(parts.first) != name)
      continue;
    if (found)
      return fieldError(name, "expected once in the query, got more");
    found = unescapedField(parts.second);
  }
  return found;
}

} // namespace llamac::serve
