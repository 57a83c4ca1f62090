//===- Reproducer.h - Files that show a wrong pass or kernel ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_CHECK_REPRODUCER_H
#define LLAMAC_COMPILER_CHECK_REPRODUCER_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llamac {

/// Writes files STEM.ENDING to a folder and remembers them.
class Reproducer {
public:
  /// Makes `folder` when it is not there; usage error when it cannot be.
  static absl::StatusOr<Reproducer> create(const std::string &folder,
                                           const std::string &stem);

  /// STEM.mlir: `module` with its locations.
  absl::Status writeModule(mlir::ModuleOp module);

  absl::Status writeText(const std::string &ending, const std::string &text);

  /// STEM.`name`.npy: float32 `values` as a matrix of `rows` rows. Nothing is
  /// written where there are none.
  absl::Status writeNpy(const std::string &name, int64_t rows,
                        absl::Span<const float> values);

  std::vector<std::string> takeFiles() { return std::move(files); }

private:
  explicit Reproducer(std::string stem) : stem(std::move(stem)) {}

  std::string stem;
  std::vector<std::string> files;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_CHECK_REPRODUCER_H
