//===- Sources.h - CUDA source that tests compile ------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_SOURCES_H
#define LLAMAC_TESTS_CONFORMANCE_SOURCES_H

#include "runtime/plan/SourceBundle.h"

namespace llamac::conformance {

/// Wrappers.cu, the micro-kernels.
const SourceFile &wrappersSource();

/// Bandwidth.cu.
const SourceFile &bandwidthSource();

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_SOURCES_H
