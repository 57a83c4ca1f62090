//===- CodeBooks.h - Values that four bits stand for ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables of the formats whose elements are places in one. Compiled into a
// plan's kernels too, so without any other header.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_CODEBOOKS_H
#define LLAMAC_RUNTIME_BASE_CODEBOOKS_H

namespace llamac {

/// GGUF's IQ4_NL and IQ4_XS.
constexpr signed char iq4Values[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// Twice the values of E2M1, the elements of MXFP4: a sign, two bits of
/// exponent, one of fraction.
constexpr signed char mxfp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                         0, -1, -2, -3, -4, -6, -8, -12};

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_CODEBOOKS_H
