//===- Suggestion.cpp - The name that a wrong one may mean ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Suggestion.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace llamac {

/// How many letters must be added, removed or changed, or neighbours swapped,
/// to make `b` of `a`: the optimal string alignment distance.
static size_t editDistance(absl::string_view a, absl::string_view b) {
  // Distances of beginnings of `a`, two letters ago, one ago and now, to those
  // of `b`.
  std::vector<size_t> before, above, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] =
          std::min({above[j] + (a[i] != b[j]), above[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

std::string suggestion(absl::string_view given,
                       const std::vector<std::string> &names) {
  // Dashes tell nothing apart, and a third wrong letter makes another word.
  const size_t marks = std::min(given.find_first_not_of("-/"), given.size());
  size_t least = std::min<size_t>((given.size() - marks) / 3 + 1, 3);
  std::string best;
  for (const std::string &name : names) {
    const size_t shared = std::min(given.size(), name.size());
    const bool isPrefix = shared > 4 &&
                          given.substr(0, shared) == name.substr(0, shared) &&
                          2 * (shared - marks) >= given.size() - marks;
    if (const size_t distance = isPrefix ? 1 : editDistance(given, name);
        distance < least) {
      least = distance;
      best = name;
    }
  }
  return best.empty() ? "" : absl::StrCat("; did you mean ", best, "?");
}

} // namespace llamac
