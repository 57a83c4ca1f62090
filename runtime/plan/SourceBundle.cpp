//===- SourceBundle.cpp - Source files as one text ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/SourceBundle.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace llamac {

static constexpr absl::string_view fileMark = "//===-- FILE ";

std::string joinSources(absl::Span<const SourceFile> files) {
  if (files.size() == 1)
    return files.front().text;
  std::string text;
  for (const SourceFile &file : files)
    absl::StrAppend(&text, fileMark, file.name, "\n", file.text,
                    file.text.empty() || file.text.back() != '\n' ? "\n" : "");
  return text;
}

std::vector<SourceFile> unbundleSources(absl::string_view text) {
  std::vector<SourceFile> files;
  const std::string next = absl::StrCat("\n", fileMark);
  while (absl::ConsumePrefix(&text, fileMark)) {
    const size_t nameEnd = std::min(text.find('\n'), text.size());
    // The file ends with the newline before the next mark.
    const size_t mark = text.find(next, nameEnd);
    const size_t end = mark == absl::string_view::npos ? text.size() : mark + 1;
    const size_t begin = std::min(nameEnd + 1, end);
    files.push_back({std::string(text.substr(0, nameEnd)),
                     std::string(text.substr(begin, end - begin))});
    text.remove_prefix(end);
  }
  return files;
}

std::string withOverlap(const std::string &source, schema::Overlap overlap) {
  if (overlap == schema::Overlap::FromStart)
    return source;
  return absl::StrCat("#define LLAMAC_OVERLAP ", static_cast<int>(overlap),
                      "\n", source);
}

} // namespace llamac
