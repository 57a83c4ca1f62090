//===- TrialRun.h - A kernel alone, on the simulator ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_TRIALRUN_H
#define LLAMAC_COMPILER_DRIVER_TRIALRUN_H

#include "codegen/sim/SimTensorMap.h"
#include "codegen/sim/Simulator.h"
#include "compiler/driver/KernelTrial.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
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

/// Runs the kernel of a trial on the simulator and compares what it gives.
class TrialRun {
public:
  /// `parameters` are the names of the kernel's, for messages. Keeps
  /// references to `trial` and `backend`.
  TrialRun(const KernelTrial &trial, plan::KernelOp kernel,
           const std::vector<std::string> &parameters, const Backend &backend,
           int64_t rows);

  /// Launches the kernel of `module`, with options.checked only some blocks,
  /// the first and the last among them, unless blocks work together. Accuracy
  /// error for a fault, and for counters that it leaves other than 0.
  absl::Status run(const SimModule &module, const SimOptions &options);

  /// Accuracy error where the last run's results differ from the reference's.
  absl::Status compare() const;

private:
  /// An operand, a result, or what the kernel's blocks work together by.
  struct Buffer {
    std::string name;
    SimContents contents;
    std::vector<uint8_t> before; ///< Of an operand that changes.
    DeviceBytes bytes;
  };

  Buffer &add(mlir::Value value, const std::string &name, size_t size,
              SimContents contents);
  void addOperand(mlir::Value value, const std::string &name,
                  std::vector<uint8_t> bytes, bool changes);
  absl::StatusOr<SimLaunch> launch();

  const KernelTrial &trial;
  std::string symbol; ///< The kernel's.
  kernel::LaunchGeometry geometry;
  const Backend &backend;
  int64_t rows;
  std::vector<Buffer> buffers;
  std::deque<SimTensorMap> maps;              ///< Of all launches.
  llvm::DenseMap<mlir::Value, size_t> places; ///< In `buffers`.
  std::vector<size_t> arguments;              ///< The kernel's, in `buffers`.
  std::optional<size_t> counters;             ///< There, where it has some.
};

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_TRIALRUN_H
