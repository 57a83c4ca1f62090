//===- KernelTrial.h - A kernel alone, with operands made up ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a plan's kernel computes, taken out of the plan: random numbers for
// whatever it reads, as the reference takes them and as the kernel does, and
// the reference's results. No checkpoint is needed, and no other launch runs,
// so that one kernel of a large model can be tried in seconds.
//
// Rows are tokens of two sequences that have some tokens already, whose pages
// lie in disorder; everything of the cache that no row sees is NaN.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_KERNELTRIAL_H
#define LLAMAC_COMPILER_DRIVER_KERNELTRIAL_H

#include "codegen/Backend.h"
#include "compiler/reference/Interpreter.h"

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

class KernelTrial {
public:
  /// Of `kernel`, with `rows` rows in a plan for `context` tokens. Unsupported
  /// for a kernel that reads what this cannot make up.
  static absl::StatusOr<std::unique_ptr<KernelTrial>>
  create(plan::KernelOp kernel, int64_t rows, int64_t context,
         const Backend &backend);

  /// The kernel's op, on the arguments of a function.
  mlir::Operation *op() const { return member; }

  /// What the reference has for an operand or a result.
  const reference::Value &value(mlir::Value value) const {
    return *values.at(value);
  }

  /// An operand that no op makes, as the target has it in memory.
  std::vector<uint8_t> memoryOf(mlir::Value operand) const;

  /// i32 [sequences][pagesPerSequence]; pages that nobody needs are -1.
  const std::vector<int32_t> &pageTable() const { return pages; }

  /// The keys and values that `pool` holds, in the order of cachedRows().
  std::vector<float> readCache(mlir::Value state,
                               const std::vector<uint8_t> &pool) const;

  /// Keys and values of both sequences in a state of the reference: for each
  /// sequence its keys, then its values, a row for each token.
  std::vector<float> cachedRows(mlir::Value state) const;

  /// "key of position 3 of sequence 1" for a row of these.
  std::string placeInCache(mlir::Value state, size_t row) const;

private:
  KernelTrial(int64_t rows, int64_t context, const Backend &backend);

  void isolate(plan::KernelOp kernel);
  absl::Status makeOperands();
  absl::StatusOr<reference::Value> makeOperand(mlir::BlockArgument argument);
  absl::Status runReference();
  reference::KvState makeCache(llama::KVType kv, bool withRows) const;
  int64_t tokensOf(int32_t sequence) const;

  int64_t rows;
  schema::KvLayoutT layout; ///< Of a cache with the trial's heads.
  const Backend &backend;
  std::vector<int32_t> positions; ///< Of the rows.
  std::vector<int32_t> sequences;
  std::vector<int32_t> pages;
  int64_t before = 0; ///< Tokens that each sequence has already.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::Operation *member = nullptr;
  llvm::DenseMap<mlir::Value, reference::ValuePtr> values;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_KERNELTRIAL_H
