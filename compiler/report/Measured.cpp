//===- Measured.cpp - Reads what llamac bench measured --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/Report.h"
#include "runtime/base/Status.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <array>
#include <cmath>

namespace llamac {

/// The members `texts` and `numbers` of `object`; null when one is missing, of
/// another type, or a number that is negative or not finite.
static Json membersOf(const Json &object,
                      std::initializer_list<const char *> texts,
                      std::initializer_list<const char *> numbers) {
  if (!object.is_object())
    return {};
  Json members = Json::object();
  for (const char *name : texts) {
    if (!object.contains(name) || !object[name].is_string())
      return {};
    members[name] = object[name];
  }
  for (const char *name : numbers) {
    if (!object.contains(name) || !object[name].is_number())
      return {};
    const double number = object[name];
    if (!std::isfinite(number) || number < 0)
      return {};
    members[name] = number;
  }
  return members;
}

/// A line of llamac bench --kernels --json; null for any other.
static Json workOf(absl::string_view line) {
  const Json parsed = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  Json work = membersOf(parsed, {"work"}, {});
  if (work.is_null() || !parsed.contains("kernels") ||
      !parsed["kernels"].is_array())
    return {};
  if (parsed.contains("limits")) {
    work["limits"] = membersOf(parsed["limits"], {"bandwidth_of"},
                               {"bandwidth", "f32_operations"});
    if (work["limits"].is_null())
      return {};
  }
  work["kernels"] = Json::array();
  for (const Json &kernel : parsed["kernels"]) {
    work["kernels"].push_back(membersOf(
        kernel, {"kernel"}, {"launches", "seconds", "bytes", "operations"}));
    if (work["kernels"].back().is_null())
      return {};
  }
  return work;
}

absl::StatusOr<Json> readMeasured(const std::string &path) {
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                          MappedFile::open(path));
  Json works = Json::array();
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(file->text(), '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty())
      continue;
    works.push_back(workOf(line));
    if (works.back().is_null())
      return badFileError(absl::StrCat(
          path, ":", number,
          ": expected a line as llamac bench --kernels --json prints it"));
  }
  if (works.empty())
    return badFileError(absl::StrCat(
        path, ": expected lines of llamac bench --kernels --json, got none"));
  return works;
}

} // namespace llamac
