//===- qkv.h - Query, key and value of a layer in one launch ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three products of one input; their epilogues apply RoPE and append while the
// results are in registers, or store them as they are.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_QKV_H
#define LLAMAC_CPU_QKV_H

#include "llamac/cpu/matmul.h"
#include "llamac/cpu/rope.h"

namespace llamac::cpu {

struct QkvArgs {
  const void *query; ///< Packed weights.
  const void *key;
  const void *value;
  AppendArgs to;
  float *out; ///< The rotated query, [rows][config.query.outputs].
  const float *biases[3] = {}; ///< Biases of the three, where the config has
                               ///< them.
};

/// Gives `epilogue` the results with `bias` added.
template <class Epilogue> struct WithBias {
  const float *bias;
  Epilogue epilogue;

  LLAMAC_INLINE void operator()(long row, long column, F32x16 y,
                                int lanes) const {
    epilogue(row, column, y + load16(bias + column, lanes), lanes);
  }
};

template <bool biased, class Epilogue>
LLAMAC_INLINE auto withBias(const float *bias, const Epilogue &epilogue) {
  if constexpr (biased)
    return WithBias<Epilogue>{bias, epilogue};
  else
    return epilogue;
}

/// Calls body(product...) with the three products of `args`.
template <QkvConfig config, class Body>
LLAMAC_INLINE void withQkvProducts(const QkvArgs &args, const Body &body) {
  using Queries = RotatedRows<config.kv.headSize, config.query.outputs>;
  auto queries = withBias<config.biased>(args.biases[0],
                                         Queries{args.to.cosSin, args.out});
  auto keys =
      withBias<config.biased>(args.biases[1], AppendKeys<config.kv>{args.to});
  auto values =
      withBias<config.biased>(args.biases[2], AppendValues<config.kv>{args.to});
  body(Product<config.query, decltype(queries)>{{args.query}, queries},
       Product<config.key, decltype(keys)>{{args.key}, keys},
       Product<config.value, decltype(values)>{{args.value}, values});
}

/// Arguments for a layer whose query, key and value go to memory.
struct QkvProductsArgs {
  const void *query; ///< Packed weights.
  const void *key;
  const void *value;
  float *outs[3]; ///< [rows][outputs] of each.
};

template <QkvConfig config, class Body>
LLAMAC_INLINE void withQkvProducts(const QkvProductsArgs &args,
                                   const Body &body) {
  using Queries = StoreRows<config.query.outputs>;
  using Keys = StoreRows<config.key.outputs>;
  using Values = StoreRows<config.value.outputs>;
  body(Product<config.query, Queries>{{args.query}, {args.outs[0]}},
       Product<config.key, Keys>{{args.key}, {args.outs[1]}},
       Product<config.value, Values>{{args.value}, {args.outs[2]}});
}

/// `Args` is QkvArgs or QkvProductsArgs.
template <QkvConfig config, class Rows, class Args>
LLAMAC_INLINE void qkvGemm(const CpuLaunch &launch, const Rows &rows,
                           const Args &args) {
  withQkvProducts<config>(args, [&](const auto &...products) {
    gemmProducts<gemmShape(config)>(launch, rows, products...);
  });
}

template <QkvConfig config, class Rows, class Args>
LLAMAC_INLINE void qkvGemv(const CpuLaunch &launch, const Rows &rows,
                           const Args &args) {
  withQkvProducts<config>(args, [&](const auto &...products) {
    gemvProducts(launch, rows, products...);
  });
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_QKV_H
