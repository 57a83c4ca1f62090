//===- Measured.cpp - Reads what llamac bench measured --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/Report.h"
#include "runtime/base/Status.h"
#include "runtime/io/JsonReader.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <initializer_list>

namespace llamac {

/// The members `texts` and `numbers` of `object`, all of which it must have.
static absl::StatusOr<Json>
membersOf(const JsonObject &object, std::initializer_list<const char *> texts,
          std::initializer_list<const char *> numbers) {
  Json members = Json::object();
  for (const char *name : texts) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                            object.optionalString(name));
    if (!text)
      return object.fail(name, "text", "nothing");
    members[name] = *text;
  }
  for (const char *name : numbers) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> number,
                            object.optionalNumber(name));
    if (!number || *number < 0)
      return object.fail(name, "a number of at least 0",
                         number ? absl::StrCat(*number) : "nothing");
    members[name] = *number;
  }
  return members;
}

/// A line of llamac bench --kernels --json, which is at `place`.
static absl::StatusOr<Json> workOf(const std::string &place,
                                   absl::string_view line) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          parseJson(place, line, {.isLine = true}));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  LLAMAC_ASSIGN_OR_RETURN(Json work, membersOf(root, {"work"}, {}));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> limits,
                          root.optionalObject("limits"));
  if (limits) {
    LLAMAC_ASSIGN_OR_RETURN(
        work["limits"],
        membersOf(*limits, {"bandwidth_of"},
                  {"bandwidth", "f32_operations", "int8_operations"}));
  }
  if (!root.has("kernels"))
    return root.fail("kernels", "those that bench --kernels measures",
                     "nothing");
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<JsonObject> kernels,
                          root.objects("kernels"));
  work["kernels"] = Json::array();
  for (const JsonObject &kernel : kernels) {
    LLAMAC_ASSIGN_OR_RETURN(Json sums,
                            membersOf(kernel, {"kernel"},
                                      {"launches", "seconds", "bytes",
                                       "operations", "int8_operations"}));
    work["kernels"].push_back(std::move(sums));
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
    LLAMAC_ASSIGN_OR_RETURN(Json work,
                            workOf(absl::StrCat(path, ":", number), line));
    works.push_back(std::move(work));
  }
  if (works.empty())
    return badFileError(absl::StrCat(
        path, ": expected lines of llamac bench --kernels --json, got none"));
  return works;
}

} // namespace llamac
