//===- qkv.cuh - Query, key and value in one launch -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three products of one input; their epilogue applies RoPE and appends while
// the results are in registers. The blocks of the launch are those of the
// query, then the key's, then the value's.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_QKV_CUH
#define LLAMAC_CODEGEN_DEVICE_QKV_CUH

#include "llamac/gemm.cuh"
#include "llamac/gemv.cuh"
#include "llamac/gemv_mma.cuh"
#include "llamac/kvcache.cuh"
#include "llamac/stream.cuh"

namespace llamac::cuda {

struct QkvArgs {
  const void *query; ///< The packed weights.
  const void *key;
  const void *value;
  AppendArgs to;
  float *out; ///< The rotated query, f32 [rows][heads * headSize].
  const float *biases[3] = {}; ///< Of the three, where the config has them.
};

/// The parts of a stream of all three are the query, the key and the value.
template <KvConfig kv, long width, bool biased>
LLAMAC_DEVICE QkvEpilogue<kv, width, biased>
epilogueOfPart(QkvEpilogue<kv, width, biased> epilogue, int part) {
  epilogue.part = part == 0   ? QkvPart::Query
                  : part == 1 ? QkvPart::Key
                              : QkvPart::Value;
  return epilogue;
}

/// The block of one of the three products, which is the same for any row. A
/// launch of launchShape(config).
template <QkvConfig config, class Rows>
LLAMAC_DEVICE void qkv(int rows, const Rows &input, const QkvArgs &args) {
  constexpr auto query = config.query, key = config.key, value = config.value;
  constexpr long queries = launchShape(query).gridSize;
  constexpr long keys = launchShape(key).gridSize;
  const long block = blockIdx.x;
  QkvEpilogue<config.kv, query.outputs, config.biased> epilogue{
      QkvPart::Query,
      args.to,
      args.out,
      {args.biases[0], args.biases[1], args.biases[2]}};
  if constexpr (query.format == key.format && key.format == value.format) {
    const bool isKey = block >= queries && block < queries + keys;
    const bool isValue = block >= queries + keys;
    epilogue.part = isValue ? QkvPart::Value
                    : isKey ? QkvPart::Key
                            : QkvPart::Query;
    productBlock<query>(block - (isValue ? queries + keys
                                 : isKey ? queries
                                         : 0),
                        rows, input,
                        {isValue ? args.value
                         : isKey ? args.key
                                 : args.query},
                        isValue ? value.outputs
                        : isKey ? key.outputs
                                : query.outputs,
                        epilogue);
  } else if (block < queries) {
    productBlock<query>(block, rows, input, {args.query}, query.outputs,
                        epilogue);
  } else if (block < queries + keys) {
    epilogue.part = QkvPart::Key;
    productBlock<key>(block - queries, rows, input, {args.key}, key.outputs,
                      epilogue);
  } else {
    epilogue.part = QkvPart::Value;
    productBlock<value>(block - queries - keys, rows, input, {args.value},
                        value.outputs, epilogue);
  }
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_QKV_CUH
