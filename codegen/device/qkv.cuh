//===- qkv.cuh - Query, key and value in one launch -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three products of one input; their sink turns and appends while the results
// are in registers. The blocks of the launch are those of the query, then the
// key's, then the value's.
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
  float *out; ///< The turned query, f32 [rows][heads * headSize].
};

/// Calls run.operator()<product>(block, weight, outputs, sink) for the product
/// that this block is of. `queries` and `keys` are blocks of the launch.
template <auto config, class Run>
LLAMAC_DEVICE void runProduct(long queries, long keys, const QkvArgs &args,
                              const Run &run) {
  constexpr auto query = config.query, key = config.key, value = config.value;
  const long block = blockIdx.x;
  QkvSink<config.kv, query.outputs> sink{QkvPart::Query, args.to, args.out};
  if constexpr (query.format == key.format && key.format == value.format) {
    const bool isKey = block >= queries && block < queries + keys;
    const bool isValue = block >= queries + keys;
    sink.part = isValue ? QkvPart::Value
                : isKey ? QkvPart::Key
                        : QkvPart::Query;
    run.template operator()<query>(block - (isValue ? queries + keys
                                            : isKey ? queries
                                                    : 0),
                                   isValue ? args.value
                                   : isKey ? args.key
                                           : args.query,
                                   isValue ? value.outputs
                                   : isKey ? key.outputs
                                           : query.outputs,
                                   sink);
  } else if (block < queries) {
    run.template operator()<query>(block, args.query, query.outputs, sink);
  } else if (block < queries + keys) {
    sink.part = QkvPart::Key;
    run.template operator()<key>(block - queries, args.key, key.outputs, sink);
  } else {
    sink.part = QkvPart::Value;
    run.template operator()<value>(block - queries - keys, args.value,
                                   value.outputs, sink);
  }
}

/// What a stream of all three gives to (stream.cuh): its parts are the query,
/// the key and the value.
template <KvConfig kv, long width>
LLAMAC_DEVICE QkvSink<kv, width> sinkOfPart(QkvSink<kv, width> sink, int part) {
  sink.part = part == 0   ? QkvPart::Query
              : part == 1 ? QkvPart::Key
                          : QkvPart::Value;
  return sink;
}

/// A launch of gemvShape(config).
template <QkvConfig<GemvConfig> config, class Rows>
LLAMAC_DEVICE void qkvGemv(int rows, const Rows &input, const QkvArgs &args) {
  constexpr long queries = gemvShape(config.query).items;
  constexpr long keys = gemvShape(config.key).items;
  runProduct<config>(queries, keys, args,
                     [&]<GemvConfig product>(long block, const void *weight,
                                             long outputs, const auto &sink) {
                       gemvBlock<product>(block, rows, input, {weight}, outputs,
                                          sink);
                     });
}

/// A launch of gemvMmaShape(config).
template <QkvConfig<GemvMmaConfig> config, class Rows>
LLAMAC_DEVICE void qkvGemvMma(int rows, const Rows &input,
                              const QkvArgs &args) {
  constexpr long queries = gemvMmaShape(config.query).items;
  constexpr long keys = gemvMmaShape(config.key).items;
  runProduct<config>(
      queries, keys, args,
      [&]<GemvMmaConfig product>(long block, const void *weight, long outputs,
                                 const auto &sink) {
        gemvMmaBlock<product>(block, rows, input, {weight}, outputs, sink);
      });
}

/// A launch of gemmShape(config).
template <QkvConfig<GemmConfig> config, class Rows>
LLAMAC_DEVICE void qkvGemm(int rows, const Rows &input, const QkvArgs &args) {
  constexpr long queries = gemmShape(config.query).items;
  constexpr long keys = gemmShape(config.key).items;
  runProduct<config>(queries, keys, args,
                     [&]<GemmConfig product>(long block, const void *weight,
                                             long outputs, const auto &sink) {
                       gemmBlock<product>(block, rows, input, {weight}, outputs,
                                          sink);
                     });
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_QKV_CUH
