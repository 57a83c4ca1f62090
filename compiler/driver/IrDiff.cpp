//===- IrDiff.cpp - What changed between two prints of IR -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR numbers values when it prints them, so one op less renames everything
// after it. Lines are therefore aligned without their values' names, by a
// longest common subsequence, and then a walk over the aligned lines learns
// which old name is which new one: a line whose operands do not follow that
// mapping has changed. What replaces a value that is gone is learned from its
// first reader, which has not changed by that: the lines that make both values
// are shown.
//
// The subsequence is found in linear memory by the divide and conquer of D. S.
// Hirschberg, "A linear space algorithm for computing maximal common
// subsequences" (1975).
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/IrDiff.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <vector>

namespace llamac {

using llvm::ArrayRef;
using llvm::StringRef;

namespace {

/// A value's name in a line.
struct NameUse {
  StringRef name;
  bool defines = false;
};

/// Line `before` of the old text is line `after` of the new.
struct Match {
  size_t before, after;
};

/// A line of the diff: ' ' kept, '-' only old, '+' only new.
struct DiffLine {
  char sign;
  StringRef text;
};

} // namespace

static bool isNameChar(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
}

/// The values named in `line`. Names before " = " and those with a type right
/// behind them, the arguments of blocks and functions, are definitions.
static std::vector<NameUse> namesIn(StringRef line) {
  std::vector<NameUse> names;
  const bool hasResults =
      line.drop_while([](char c) { return c == ' ' || c == hiddenLine; })
          .starts_with("%");
  const size_t equals = hasResults ? line.find(" = ") : StringRef::npos;
  for (size_t at = line.find('%'); at != StringRef::npos;
       at = line.find('%', at + 1)) {
    const StringRef name = line.substr(at + 1).take_while(isNameChar);
    const size_t end = at + 1 + name.size();
    const bool isResult = equals != StringRef::npos && at < equals;
    names.push_back({name, isResult || line.substr(end).starts_with(":")});
  }
  return names;
}

/// `line` without the names of values.
static std::string withoutNames(StringRef line) {
  std::string text;
  while (!line.empty()) {
    const size_t length = std::min(line.find('%'), line.size());
    text += line.take_front(length);
    line = line.drop_front(length);
    if (line.consume_front("%")) {
      text += '%';
      line = line.drop_while(isNameChar);
    }
  }
  return text;
}

/// For each length of a prefix of `b`, the longest subsequence that it shares
/// with `a`.
static std::vector<int> sharedLengths(ArrayRef<int> a, ArrayRef<int> b) {
  std::vector<int> row(b.size() + 1, 0);
  for (int key : a) {
    int diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const int above = row[j + 1];
      row[j + 1] = key == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row;
}

static std::vector<int> reversed(ArrayRef<int> keys) {
  return {keys.rbegin(), keys.rend()};
}

/// Appends the matches of a longest common subsequence of `a` and `b`, which
/// begin at the lines `at`.
static void align(ArrayRef<int> a, ArrayRef<int> b, Match at,
                  std::vector<Match> &matches) {
  while (!a.empty() && !b.empty() && a.front() == b.front()) {
    matches.push_back({at.before++, at.after++});
    a = a.drop_front();
    b = b.drop_front();
  }
  size_t suffix = 0;
  while (suffix < a.size() && suffix < b.size() &&
         a[a.size() - 1 - suffix] == b[b.size() - 1 - suffix])
    ++suffix;
  a = a.drop_back(suffix);
  b = b.drop_back(suffix);
  if (a.size() == 1) {
    const auto *it = llvm::find(b, a.front());
    if (it != b.end())
      matches.push_back(
          {at.before, at.after + static_cast<size_t>(it - b.begin())});
  } else if (!a.empty() && !b.empty()) {
    const size_t half = a.size() / 2;
    const std::vector<int> left = sharedLengths(a.take_front(half), b);
    const std::vector<int> right =
        sharedLengths(reversed(a.drop_front(half)), reversed(b));
    size_t cut = 0;
    for (size_t j = 1; j <= b.size(); ++j)
      if (left[j] + right[b.size() - j] > left[cut] + right[b.size() - cut])
        cut = j;
    align(a.take_front(half), b.take_front(cut), at, matches);
    align(a.drop_front(half), b.drop_front(cut),
          {at.before + half, at.after + cut}, matches);
  }
  for (size_t i = 0; i < suffix; ++i)
    matches.push_back({at.before + a.size() + i, at.after + b.size() + i});
}

/// True when the values of the aligned lines `before` and `after` are the same
/// under `renamed`, which learns what the lines define, and which of the values
/// in `added` stands for one that is gone: one without a new name.
static bool sameValues(StringRef before, StringRef after,
                       llvm::StringMap<StringRef> &renamed,
                       const llvm::StringSet<> &added) {
  bool same = true;
  for (const auto &[old, now] :
       llvm::zip_equal(namesIn(before), namesIn(after))) {
    if (old.defines) {
      renamed[old.name] = now.name;
      continue;
    }
    const auto it = renamed.find(old.name);
    if (it != renamed.end() && it->second.empty() && added.contains(now.name))
      it->second = now.name;
    same &= now.name == (it == renamed.end() ? old.name : it->second);
  }
  return same;
}

static std::vector<DiffLine> diffLines(ArrayRef<StringRef> before,
                                       ArrayRef<StringRef> after) {
  llvm::StringMap<int> numbers;
  auto keysOf = [&](ArrayRef<StringRef> lines) {
    std::vector<int> keys;
    for (StringRef line : lines) {
      const int next = static_cast<int>(numbers.size());
      keys.push_back(
          numbers.try_emplace(withoutNames(line), next).first->second);
    }
    return keys;
  };
  std::vector<Match> matches;
  const std::vector<int> oldKeys = keysOf(before), newKeys = keysOf(after);
  align(oldKeys, newKeys, {0, 0}, matches);
  matches.push_back({before.size(), after.size()});

  std::vector<DiffLine> lines;
  llvm::StringMap<StringRef> renamed;
  llvm::StringSet<> added;
  size_t i = 0, j = 0;
  for (const Match &match : matches) {
    for (; i < match.before; ++i) {
      // Values that a removed line defined have no successor.
      for (const NameUse &use : namesIn(before[i]))
        if (use.defines)
          renamed[use.name] = StringRef();
      lines.push_back({'-', before[i]});
    }
    for (; j < match.after; ++j) {
      for (const NameUse &use : namesIn(after[j]))
        if (use.defines)
          added.insert(use.name);
      lines.push_back({'+', after[j]});
    }
    if (i == before.size())
      break;
    if (sameValues(before[i], after[j], renamed, added) ||
        before[i] == after[j]) {
      lines.push_back({' ', after[j]});
    } else {
      lines.push_back({'-', before[i]});
      lines.push_back({'+', after[j]});
    }
    ++i, ++j;
  }
  return lines;
}

static std::vector<DiffLine> diffLines(StringRef before, StringRef after) {
  llvm::SmallVector<StringRef> oldLines, newLines;
  before.rtrim('\n').split(oldLines, '\n');
  after.rtrim('\n').split(newLines, '\n');
  return diffLines(ArrayRef(oldLines), ArrayRef(newLines));
}

std::string diffSigns(StringRef before, StringRef after) {
  std::string signs;
  for (const DiffLine &line : diffLines(before, after))
    signs += line.sign;
  return signs;
}

std::string diffIr(StringRef before, StringRef after) {
  constexpr size_t context = 3;
  std::vector<DiffLine> lines = diffLines(before, after);
  std::erase_if(lines, [](const DiffLine &line) {
    return line.text.starts_with(hiddenLine);
  });

  std::string text;
  llvm::raw_string_ostream os(text);
  // Numbers, from 1, of the lines of old and new text at `begin`.
  size_t oldLine = 1, newLine = 1;
  for (size_t begin = 0; begin < lines.size();) {
    auto isChange = [](const DiffLine &line) { return line.sign != ' '; };
    const size_t first =
        std::find_if(lines.begin() + static_cast<ptrdiff_t>(begin), lines.end(),
                     isChange) -
        lines.begin();
    if (first == lines.size())
      break;
    const size_t start = std::max(begin, first - std::min(first, context));
    oldLine += start - begin;
    newLine += start - begin;
    // A hunk goes on while changes are at most two contexts apart.
    size_t end = first + 1;
    for (size_t i = end; i < lines.size() && i <= end + 2 * context; ++i)
      if (isChange(lines[i]))
        end = i + 1;
    end = std::min(end + context, lines.size());
    const ArrayRef<DiffLine> hunk = ArrayRef(lines).slice(start, end - start);
    const size_t oldCount = llvm::count_if(
        hunk, [](const DiffLine &line) { return line.sign != '+'; });
    const size_t newCount = llvm::count_if(
        hunk, [](const DiffLine &line) { return line.sign != '-'; });
    os << "@@ -" << oldLine << "," << oldCount << " +" << newLine << ","
       << newCount << " @@\n";
    for (const DiffLine &line : hunk)
      os << line.sign << line.text << "\n";
    oldLine += oldCount;
    newLine += newCount;
    begin = end;
  }
  return text;
}

} // namespace llamac
