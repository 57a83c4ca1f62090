//===- qkv.cuh - Query, key and value in one launch -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three products of one input, with an epilogue for each: QkvEpilogue applies
// RoPE and appends while the results are in registers, QkvRows stores them as
// they are. The blocks of the launch are those of the query, then the key's,
// then the value's.
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

/// Takes the query, key and value of a layer: f32 rows of their widths.
template <long query, long key, long value> struct QkvRows {
  QkvPart part;
  float *outs[3];

  LLAMAC_DEVICE void operator()(long row, long column, F32x2 acc) const {
    if (part == QkvPart::Query)
      storePair<query>(outs[0], row, column, acc);
    else if (part == QkvPart::Key)
      storePair<key>(outs[1], row, column, acc);
    else
      storePair<value>(outs[2], row, column, acc);
  }
};

/// The parts of a stream of all three are the query, the key and the value.
LLAMAC_DEVICE QkvPart qkvPart(int part) {
  return part == 0 ? QkvPart::Query : part == 1 ? QkvPart::Key : QkvPart::Value;
}
template <KvConfig kv, long width, bool biased>
LLAMAC_DEVICE QkvEpilogue<kv, width, biased>
epilogueOfPart(QkvEpilogue<kv, width, biased> epilogue, int part) {
  epilogue.part = qkvPart(part);
  return epilogue;
}
template <long query, long key, long value>
LLAMAC_DEVICE QkvRows<query, key, value>
epilogueOfPart(QkvRows<query, key, value> epilogue, int part) {
  epilogue.part = qkvPart(part);
  return epilogue;
}

/// The block of one of the three products, which is the same for any row, by
/// the packed weights of all three. A launch of launchShape(config).
template <QkvConfig config, class Rows, class Epilogue>
LLAMAC_DEVICE void qkv(int rows, const Rows &input,
                       const void *const (&weights)[3], Epilogue epilogue) {
  constexpr auto query = config.query, key = config.key, value = config.value;
  constexpr long queries = launchShape(query).gridSize;
  constexpr long keys = launchShape(key).gridSize;
  const long block = blockIdx.x;
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
                        {isValue ? weights[2]
                         : isKey ? weights[1]
                                 : weights[0]},
                        isValue ? value.outputs
                        : isKey ? key.outputs
                                : query.outputs,
                        epilogue);
  } else if (block < queries) {
    productBlock<query>(block, rows, input, {weights[0]}, query.outputs,
                        epilogue);
  } else if (block < queries + keys) {
    epilogue.part = QkvPart::Key;
    productBlock<key>(block - queries, rows, input, {weights[1]}, key.outputs,
                      epilogue);
  } else {
    epilogue.part = QkvPart::Value;
    productBlock<value>(block - queries - keys, rows, input, {weights[2]},
                        value.outputs, epilogue);
  }
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_QKV_CUH
