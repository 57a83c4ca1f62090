//===- Draft.h - Tokens that are likely to come next ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SPECULATION_DRAFT_H
#define LLAMAC_ENGINE_SPECULATION_DRAFT_H

#include <cstdint>
#include <vector>

namespace llamac {

/// Tokens that are likely to come next in a sequence.
struct Draft {
  std::vector<int32_t> tokens;
  /// The probability, for each, that it and all before it are right.
  std::vector<double> survival;

  /// Keeps the first `count` tokens.
  void cut(int64_t count) {
    tokens.resize(static_cast<size_t>(count));
    survival.resize(static_cast<size_t>(count));
  }
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SPECULATION_DRAFT_H
