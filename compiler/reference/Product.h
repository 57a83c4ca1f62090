//===- Product.h - Products of rows with rows -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_PRODUCT_H
#define LLAMAC_COMPILER_REFERENCE_PRODUCT_H

#include <cstdint>
#include <vector>

namespace llamac::reference {

/// `count` rows of `size` floats, `stride` floats apart.
struct RowsView {
  const float *data;
  int64_t count;
  int64_t stride;
};

/// out[n * outStride + m] = sum over k < size of x[n][k] * w[m][k].
///
/// Products are summed in fp32 over many partial sums of at most 64 terms, and
/// those in fp64. The order depends on `size` alone, so a row's result does not
/// depend on the rows computed with it. It does depend on the width of the
/// host's vectors.
void productOfRows(RowsView x, RowsView w, int64_t size, float *out,
                   int64_t outStride);

/// productOfRows for one width of vectors.
struct ProductVariant {
  const char *name;
  void (*compute)(RowsView x, RowsView w, int64_t size, float *out,
                  int64_t outStride);
};

/// The variants that this host can run, the fastest, which productOfRows takes,
/// first.
std::vector<ProductVariant> productVariants();

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_PRODUCT_H
