//===- OpNames.cpp - Which weights and layer an op stands for -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/llama/OpNames.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace llamac {

SmallVector<StringRef> namesOf(Location location) {
  SmallVector<StringRef> names;
  location->walk([&](Location part) {
    if (auto name = dyn_cast<NameLoc>(part))
      if (!llvm::is_contained(names, name.getName().getValue()))
        names.push_back(name.getName());
    return WalkResult::advance();
  });
  return names;
}

StringRef labelOf(Location location) {
  const SmallVector<StringRef> names = namesOf(location);
  return names.empty() ? StringRef() : names.front();
}

std::optional<int64_t> layerOf(StringRef name) {
  int64_t layer = 0;
  if (!name.consume_front("layers.") ||
      name.take_until([](char c) { return c == '.'; }).getAsInteger(10, layer))
    return std::nullopt;
  return layer;
}

} // namespace llamac
