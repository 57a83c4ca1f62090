//===- ByteCursor.cpp - Checked reading of binary fields ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/ByteCursor.h"

#include "absl/strings/escaping.h"

namespace llamac {

std::string quoteForMessage(absl::string_view text) {
  constexpr size_t limit = 80;
  if (text.size() <= limit)
    return absl::StrCat("\"", absl::CHexEscape(text), "\"");
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, limit)), "\"... (",
                      text.size(), " bytes)");
}

} // namespace llamac
