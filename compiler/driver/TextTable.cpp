//===- TextTable.cpp - Rows of texts in columns ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/TextTable.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cassert>

namespace llamac {

void TextTable::addRow(std::vector<std::string> cells) {
  assert(cells.size() == columns.size() && "a cell for each column");
  rows.push_back({std::move(cells)});
}

void TextTable::addNote(std::string text) {
  assert(!rows.empty() && "a note stands below a row");
  rows.back().notes.push_back(std::move(text));
}

std::string TextTable::text() const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    titles.push_back(columns[i].title);
    widths.push_back(columns[i].title.size());
    for (const Row &row : rows)
      widths[i] = std::max(widths[i], row.cells[i].size());
  }
  std::string text;
  const auto addLine = [&](const std::vector<std::string> &cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - cells[i].size(), ' ');
      if (columns[i].alignsRight)
        absl::StrAppend(&line, "  ", padding, cells[i]);
      else
        absl::StrAppend(&line, "  ", cells[i], padding);
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  };
  size_t lastColumn = 2;
  for (size_t i = 0; i + 1 < columns.size(); ++i)
    lastColumn += 2 + widths[i];
  addLine(titles);
  for (const Row &row : rows) {
    addLine(row.cells);
    for (const std::string &note : row.notes)
      absl::StrAppend(&text, std::string(lastColumn, ' '), note, "\n");
  }
  return text;
}

} // namespace llamac
