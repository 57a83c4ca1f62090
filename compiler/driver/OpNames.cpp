//===- OpNames.cpp - Which weights and layer an op stands for -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/OpNames.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace llamac {

std::vector<std::string> namesOf(Location location) {
  std::vector<std::string> names;
  location->walk([&](Location part) {
    if (auto name = dyn_cast<NameLoc>(part))
      if (!llvm::is_contained(names, name.getName().str()))
        names.push_back(name.getName().str());
    return WalkResult::advance();
  });
  return names;
}

std::optional<int64_t> layerOf(const std::string &name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '.');
  int64_t layer = 0;
  if (parts.size() < 2 || parts[0] != "layers" ||
      !absl::SimpleAtoi(parts[1], &layer))
    return std::nullopt;
  return layer;
}

} // namespace llamac
