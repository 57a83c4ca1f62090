//===- qkv.h - Query, key and value of a layer in one launch ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three products of one input; their epilogues apply RoPE and append while the
// results are in registers.
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
};

/// Calls body(product...) with the three products of `args`.
template <QkvConfig config, class Body>
LLAMAC_INLINE void withQkvProducts(const QkvArgs &args, const Body &body) {
  using Queries = RotatedRows<config.kv.headSize, config.query.outputs>;
  body(Product<config.query, Queries>{{args.query}, {args.to.cosSin, args.out}},
       Product<config.key, AppendKeys<config.kv>>{{args.key}, {args.to}},
       Product<config.value, AppendValues<config.kv>>{{args.value}, {args.to}});
}

template <QkvConfig config, class Rows>
LLAMAC_INLINE void qkvGemm(const CpuLaunch &launch, const Rows &rows,
                           const QkvArgs &args) {
  withQkvProducts<config>(args, [&](const auto &...products) {
    gemmProducts<gemmShape(config)>(launch, rows, products...);
  });
}

/// At most config.query.maxRows rows.
template <QkvConfig config, class Rows>
LLAMAC_INLINE void qkvGemv(const CpuLaunch &launch, const Rows &rows,
                           const QkvArgs &args) {
  withQkvProducts<config>(args, [&](const auto &...products) {
    gemvProducts<config.query.maxRows>(launch, rows, products...);
  });
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_QKV_H
