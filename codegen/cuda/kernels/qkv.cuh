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

/// The block of one of the three products, by the packed weights of all three.
/// A launch of launchShape(config).
template <QkvConfig config, class Rows, class Epilogue, class Norm = NoNorm>
LLAMAC_DEVICE void qkv(int rows, const Rows &input,
                       const void *const (&weights)[3], Epilogue epilogue,
                       const ProductSplits &splits = {},
                       const Norm &norm = {}) {
  constexpr auto query = config.query, key = config.key, value = config.value;
  constexpr LaunchShape of[] = {launchShape(query), launchShape(key),
                                launchShape(value)};
  // The tiles of a product have a counter each, where they have some.
  constexpr int tiles[] = {static_cast<int>(of[0].counters),
                           static_cast<int>(of[1].counters),
                           static_cast<int>(of[2].counters)};
  constexpr long all = query.outputs + key.outputs + value.outputs;
  constexpr int allTiles = tiles[0] + tiles[1] + tiles[2];
  constexpr long keyBlock = of[0].gridSize,
                 valueBlock = keyBlock + of[1].gridSize;

  ProductPlace place = placeOfBlock<query>();
  const bool isKey = place.block >= keyBlock && place.block < valueBlock;
  const bool isValue = place.block >= valueBlock;
  auto choose = [&](const auto &ofQuery, const auto &ofKey,
                    const auto &ofValue) {
    return isValue ? ofValue : isKey ? ofKey : ofQuery;
  };
  epilogue.part = choose(QkvPart::Query, QkvPart::Key, QkvPart::Value);
  place.block -= choose(0l, keyBlock, valueBlock);
  auto make = [&]<auto product>(long outputs, long before, int tilesBefore,
                                const void *weight) {
    productBlock<product>({outputs, all, before, allTiles, tilesBefore}, place,
                          rows, input, {weight}, epilogue, splits, norm);
  };
  if constexpr (query.format == key.format && key.format == value.format)
    make.template operator()<query>(
        choose(query.outputs, key.outputs, value.outputs),
        choose(0l, query.outputs, query.outputs + key.outputs),
        choose(0, tiles[0], tiles[0] + tiles[1]),
        choose(weights[0], weights[1], weights[2]));
  else if (isValue)
    make.template operator()<value>(value.outputs, query.outputs + key.outputs,
                                    tiles[0] + tiles[1], weights[2]);
  else if (isKey)
    make.template operator()<key>(key.outputs, query.outputs, tiles[0],
                                  weights[1]);
  else
    make.template operator()<query>(query.outputs, 0, 0, weights[0]);
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_QKV_CUH
