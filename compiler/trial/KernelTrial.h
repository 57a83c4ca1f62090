//===- KernelTrial.h - A kernel alone, on random operands -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A trial runs a plan's kernel by itself: random numbers for whatever it reads,
// the reference's results, and its run on the simulator. No checkpoint is
// needed, and no other launch runs, so that one kernel of a large model can be
// tried in seconds.
//
// Rows are tokens of two sequences that have some tokens already, whose pages
// lie in disorder; everything of the cache that no row sees is NaN.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_TRIAL_KERNELTRIAL_H
#define LLAMAC_COMPILER_TRIAL_KERNELTRIAL_H

#include "codegen/Backend.h"
#include "compiler/reference/Interpreter.h"
#include "simulator/SimTensorMap.h"
#include "simulator/Simulator.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// Memory of the simulated GPU, aligned as a GPU's allocations are.
class DeviceBytes {
public:
  explicit DeviceBytes(size_t size)
      : memory(static_cast<uint8_t *>(std::aligned_alloc(
                   alignment, std::max<size_t>(llvm::alignTo(size, alignment),
                                               alignment))),
               &std::free),
        bytes(size) {}

  uint8_t *data() const { return memory.get(); }
  size_t size() const { return bytes; }

private:
  static constexpr size_t alignment = 256;

  std::unique_ptr<uint8_t, decltype(&std::free)> memory;
  size_t bytes;
};

class KernelTrial {
public:
  /// A trial of `kernel`, whose parameters have the names `parameters`, with
  /// `rows` rows in a plan for `context` tokens. Unsupported for a kernel that
  /// reads what has no random form. Keeps references to `kernel` and `backend`.
  static absl::StatusOr<std::unique_ptr<KernelTrial>>
  create(plan::KernelOp kernel, llvm::ArrayRef<std::string> parameters,
         int64_t rows, int64_t context, const Backend &backend);

  /// Launches the kernel of `module`, with options.checked only some blocks,
  /// the first and the last among them, unless blocks work together. Accuracy
  /// error for a fault, and for counters that it leaves other than 0.
  absl::Status run(const SimModule &module, const SimOptions &options);

  /// Accuracy error where the last run's results differ from the reference's.
  absl::Status compare() const;

private:
  /// An operand, a result, workspace or counters.
  struct Buffer {
    std::string name;
    SimContents contents;
    std::vector<uint8_t> before; ///< Contents before the launch, of an operand
                                 ///< that changes.
    DeviceBytes bytes;
  };

  KernelTrial(plan::KernelOp kernel, int64_t rows, int64_t context,
              const Backend &backend);

  absl::StatusOr<reference::Value> makeOperand(mlir::BlockArgument argument,
                                               int64_t rank);
  reference::KvState makeCache(llama::KVType kv, bool withRows) const;
  absl::Status runReference();
  void bindArguments(llvm::ArrayRef<std::string> parameters);
  std::vector<uint8_t> memoryOf(mlir::Value operand,
                                const reference::Value &known) const;
  absl::StatusOr<SimLaunch> launch();
  std::vector<float> readCache(llama::KVType kv, const uint8_t *pool) const;

  /// Tokens of a sequence when the step is done.
  int64_t tokensOf(int32_t sequence) const {
    return before + llvm::count(sequences, sequence);
  }
  /// Where in the pool the page of a token begins.
  uint64_t pageOf(int32_t sequence, int64_t token) const {
    return layout.pageBytes * pages[sequence * layout.pagesPerSequence +
                                    token / layout.pageTokens];
  }

  plan::KernelOp kernel;
  int64_t rows;
  const Backend &backend;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::Operation *op;      ///< The kernel's, on the arguments of the function.
  schema::KvLayoutT layout; ///< Layout of a cache with the trial's heads.
  int64_t before = 0;       ///< Tokens that each sequence has already.
  std::vector<int32_t> positions; ///< Positions of the rows.
  std::vector<int32_t> sequences;
  std::vector<int32_t> pages; ///< [sequences][pagesPerSequence]; -1: unused.
  llvm::DenseMap<mlir::Value, reference::ValuePtr> values; ///< On rank 0.
  /// An operand's values on each rank.
  llvm::DenseMap<mlir::Value, std::vector<reference::ValuePtr>> valuesOfRanks;

  std::vector<Buffer> buffers;
  std::deque<SimTensorMap> maps;              ///< Tensor maps of all launches.
  llvm::DenseMap<mlir::Value, size_t> places; ///< In `buffers`.
  std::vector<size_t> arguments;              ///< The kernel's, in `buffers`.
  std::optional<size_t> counters;             ///< There, where it has some.
};

} // namespace llamac

#endif // LLAMAC_COMPILER_TRIAL_KERNELTRIAL_H
