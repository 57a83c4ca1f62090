//===- Sources.cpp - CUDA source that tests compile -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Sources.h"

namespace llamac::conformance {

static const SourceFile &file(size_t number) {
  static const SourceFile files[] = {
#include "Sources.inc"
  };
  return files[number];
}

const SourceFile &wrappersSource() { return file(0); }
const SourceFile &bandwidthSource() { return file(1); }

} // namespace llamac::conformance
