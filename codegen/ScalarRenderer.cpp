//===- ScalarRenderer.cpp - Scalar regions as C++ -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/ScalarRenderer.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace llamac {

namespace {

/// How a scalar op reads on vectors; {0}, {1} are its operands.
struct ScalarRow {
  StringRef op;
  const char *pattern;
  StringRef result; ///< What the value is called.
};

} // namespace

static constexpr ScalarRow scalarRows[] = {
    {"arith.addf", "{0} + {1}", "sum"},
    {"arith.divf", "{0} / {1}", "quotient"},
    {"arith.mulf", "{0} * {1}", "product"},
    {"arith.subf", "{0} - {1}", "difference"},
    {"kernel.silu", "silu({0})", "activated"},
};

static const ScalarRow *findRow(Operation &op) {
  for (const ScalarRow &row : scalarRows)
    if (row.op == op.getName().getStringRef())
      return &row;
  return nullptr;
}

bool canRenderScalars(Region &region, Operation *&unknown) {
  for (Operation &op : region.front().without_terminator())
    if (!findRow(op)) {
      unknown = &op;
      return false;
    }
  return true;
}

std::string renderScalars(Region &region, StringRef type,
                          ArrayRef<std::string> arguments,
                          llvm::raw_ostream &os) {
  Block &block = region.front();
  llvm::DenseMap<Value, std::string> names;
  for (auto [argument, name] : llvm::zip(block.getArguments(), arguments))
    names[argument] = name;
  llvm::StringMap<int> taken;
  for (Operation &op : block.without_terminator()) {
    const ScalarRow *row = findRow(op);
    assert(row && "checked by canRenderScalars");
    std::string name = row->result.str();
    if (const int count = ++taken[row->result]; count > 1)
      name += std::to_string(count);
    os << "const " << type << " " << name << " = ";
    if (op.getNumOperands() == 2)
      os << llvm::formatv(row->pattern, names[op.getOperand(0)],
                          names[op.getOperand(1)]);
    else
      os << llvm::formatv(row->pattern, names[op.getOperand(0)]);
    os << ";\n";
    names[op.getResult(0)] = name;
  }
  return names[block.getTerminator()->getOperand(0)];
}

} // namespace llamac
