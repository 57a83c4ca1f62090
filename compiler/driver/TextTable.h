//===- TextTable.h - Rows of texts in columns -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_TEXTTABLE_H
#define LLAMAC_COMPILER_DRIVER_TEXTTABLE_H

#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// A table for terminals: each column is as wide as its widest cell, and two
/// spaces stand before it. Cells are ASCII.
class TextTable {
public:
  struct Column {
    std::string title;
    bool alignsRight = false; ///< Numbers do.
  };

  explicit TextTable(std::vector<Column> columns)
      : columns(std::move(columns)) {}

  /// Adds a row: a cell for each column.
  void addRow(std::vector<std::string> cells);

  /// Adds `text` below the last row, where the last column starts.
  void addNote(std::string text);

  /// The titles and rows, a line each.
  std::string text() const;

private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> notes = {};
  };

  std::vector<Column> columns;
  std::vector<Row> rows;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_TEXTTABLE_H
