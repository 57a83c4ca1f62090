//===- TrialRun.h - A kernel alone, on the simulator ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_TRIALRUN_H
#define LLAMAC_COMPILER_DRIVER_TRIALRUN_H

#include "compiler/driver/KernelTrial.h"
#include "runtime/sim/Simulator.h"

#include "absl/status/status.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
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

/// Runs the kernels of a trial on the simulator and compares what they give.
class TrialRun {
public:
  /// `parameters` are the names of each kernel's, for messages. Keeps
  /// references to all but these.
  TrialRun(const KernelTrial &trial, llvm::ArrayRef<plan::KernelOp> kernels,
           llvm::ArrayRef<std::vector<std::string>> parameters,
           const Backend &backend, int64_t rows);

  /// Launches the kernels of `module`, with options.checked only some blocks,
  /// the first and the last among them. Accuracy error for a fault.
  absl::Status run(const SimModule &module, const SimOptions &options);

  /// Accuracy error where the last run's results differ from the reference's.
  absl::Status compare() const;

private:
  /// An operand or a result of the kernels.
  struct Buffer {
    std::string name;
    SimContents contents;
    std::vector<uint8_t> before; ///< Of an operand that changes.
    DeviceBytes bytes;
  };

  Buffer &bufferOf(mlir::Value value);
  Buffer &add(mlir::Value value, const std::string &name, size_t size,
              SimContents contents);
  void addOperand(mlir::Value value, const std::string &name,
                  std::vector<uint8_t> bytes, bool changes);
  SimLaunch launchOf(size_t number);

  const KernelTrial &trial;
  llvm::ArrayRef<plan::KernelOp> kernels;
  const Backend &backend;
  int64_t rows;
  std::vector<Buffer> buffers;
  llvm::DenseMap<mlir::Value, size_t> places; ///< In `buffers`.
};

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_TRIALRUN_H
