//===- norm_rope.cuh - Norms of heads, RoPE and the append ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Here is ropeAppend() of kvcache.cuh after RMSNorm of the query and the key,
// whose parts have a block each.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_NORM_ROPE_CUH
#define LLAMAC_CODEGEN_DEVICE_NORM_ROPE_CUH

#include "llamac/kvcache.cuh"
#include "llamac/rowwise.cuh"

namespace llamac::cuda {

struct NormRopeArgs {
  const float *query; ///< [rows][width].
  const float *key;   ///< [rows][kvHeads * headSize], and so is value.
  const float *value;
  const float *queryGain; ///< [querySize].
  const float *keyGain;   ///< [keySize].
  float eps;
  AppendArgs to;
  float *out; ///< The rotated query.
};

/// Normalises the parts of `querySize` of the query and those of `keySize` of
/// the key, rotates both and appends. A launch of normRopeShape().
template <KvConfig kv, long width, long querySize, long keySize>
LLAMAC_DEVICE void normRopeAppend(const NormRopeArgs &args) {
  constexpr long kvWidth = kv.kvHeads * kv.headSize;
  constexpr long queries = width / querySize, keys = kvWidth / keySize;
  const long row = blockIdx.y, block = blockIdx.x;
  QkvEpilogue<kv, width> epilogue{QkvPart::Query, args.to, args.out};
  if (block < queries) {
    normalizePart(NormRows<querySize>{args.query, args.queryGain, args.eps},
                  row, queries, block, epilogue);
  } else if (block < queries + keys) {
    epilogue.part = QkvPart::Key;
    normalizePart(NormRows<keySize>{args.key, args.keyGain, args.eps}, row,
                  keys, block - queries, epilogue);
  } else {
    epilogue.part = QkvPart::Value;
    const long first = (block - queries - keys) * keySize;
    for (long column = first + 2 * threadIdx.x; column < first + keySize;
         column += 2 * rowThreads)
      epilogue(row, column, load2(args.value + row * kvWidth + column));
  }
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_NORM_ROPE_CUH
