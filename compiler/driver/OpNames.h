//===- OpNames.h - Which weights and layer an op stands for -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_OPNAMES_H
#define LLAMAC_COMPILER_DRIVER_OPNAMES_H

#include "mlir/IR/Location.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// The names in `location`, each once; an op that a pass fused has several.
std::vector<std::string> namesOf(mlir::Location location);

/// 3 of "layers.3.attention.wq".
std::optional<int64_t> layerOf(const std::string &name);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_OPNAMES_H
