//===- OpDevice.h - What runs kernel ops ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_OPDEVICE_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_OPDEVICE_H

#include "tests/conformance/ops/Program.h"

#include "absl/status/statusor.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llamac::conformance {

/// How exact a device is. Errors are shares of the value, at most; what they
/// are by dtype and why stands with each row of opDevices().
struct Numerics {
  /// Error of a weight of this type as the kernels for steps of `rows` rows
  /// have it.
  double (*weightError)(DataType type, int64_t rows);
  /// Error of an activation that is multiplied by such weights.
  double (*activationError)(DataType type, int64_t rows);
  /// Whether activations are rounded to 8 bits in blocks of 32 instead.
  bool (*roundsToInt8)(DataType type);
  /// Error of a key or value in the cache.
  double (*cacheError)(const Model &model);
  /// Elements of a head's key or value that the cache rounds together instead,
  /// to steps of the largest over 127, which is rounded to bf16, or to E4M3 of
  /// the largest over 448; 0 for none.
  int64_t (*cacheBlock)(const Model &model);
  double (*blockError)(const Model &model); ///< Error of a number of a block.
  /// Error of an element of a query in attention, relative to the largest of
  /// its head.
  double (*queryError)(const Model &model);
  /// Error of a query, and of a softmax weight, in steps of attention.
  double (*softmaxError)(const Model &model);
  /// The smallest softmax weight that still counts, as a share of the largest.
  double (*softmaxFloor)(const Model &model);
  /// Whether the rows of one sequence in a step are taken together, so that a
  /// value that is not finite, of a later row, may show in the earlier ones.
  bool joinsRows;
};

/// The programs of one model, ready to run.
class LoadedPrograms {
public:
  virtual ~LoadedPrograms();

  /// Forgets all sequences.
  virtual absl::Status reset() = 0;

  /// Runs a step of `program` and gives %out: as many rows as the step has, or
  /// wants. Rows past those that the device wrote all the same are an error.
  virtual absl::StatusOr<std::vector<float>> run(const Program &program,
                                                 const Step &step) = 0;
};

/// A program and the row counts of the steps it is run for.
struct ProgramUse {
  std::shared_ptr<const Program> program;
  std::vector<int64_t> rows;
};

struct OpDeviceRow {
  std::string name; ///< Letters, digits and underscores.
  Numerics numerics;
  /// Compiles `programs`, all of `model`, and loads them.
  std::function<absl::StatusOr<std::unique_ptr<LoadedPrograms>>(
      const Model &model, const std::vector<ProgramUse> &programs)>
      load;
  /// Models that the device does not take, by their names, and a part of what
  /// it says then.
  std::map<std::string, std::string> refusals;
  /// Whether the device is slow and there for what it sees of accesses to
  /// memory: cases that differ from others in values alone are left out.
  bool seesAccesses = false;
};

/// Every device that runs kernel ops. A new one is a row here.
std::vector<OpDeviceRow> opDevices();

/// The reference interpreter.
absl::StatusOr<std::unique_ptr<LoadedPrograms>>
loadOnReference(const Model &model, const std::vector<ProgramUse> &programs);

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_OPDEVICE_H
