//===- ExpKind.h - How attention takes exponentials -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the compiler and the kernels of all targets. The errors are those
// of #llama.approximation.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_EXPKIND_H
#define LLAMAC_CODEGEN_EXPKIND_H

namespace llamac {

/// In the order of llama::ExpKind.
enum class ExpKind : unsigned char { Exact, Poly3, Table256 };

/// 2^x of x in [0, 1] as 1 + x (a + x (b + x c)), largest relative error
/// 8.8e-5: the polynomial of FlashAttention 4.
constexpr float exp2PolyA = 0.695146f;
constexpr float exp2PolyB = 0.227564f;
constexpr float exp2PolyC = 0.0771191f;

} // namespace llamac

#endif // LLAMAC_CODEGEN_EXPKIND_H
