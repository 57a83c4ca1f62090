//===- ConfigFields.h - The members of the cpu configs ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lists of codegen/ConfigFields.h for the structs of
// codegen/cpu/kernels/config.h.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CPU_CONFIGFIELDS_H
#define LLAMAC_CODEGEN_CPU_CONFIGFIELDS_H

#include "codegen/ConfigFields.h"
#include "codegen/cpu/kernels/config.h"

namespace llamac {

/// PanelFormat has this namespace, in which calls look for it.
std::string enumeratorText(PanelFormat format);

} // namespace llamac

namespace llamac::cpu {

std::string enumeratorText(KvFormat format);

template <FieldsOf<MatmulConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[format, outputs, depth, weights, exact, leaves, panels, ahead,
         rowBlock] = config;
  visit(FieldKind::Shape, "format", format);
  visit(FieldKind::Shape, "outputs", outputs);
  visit(FieldKind::Shape, "depth", depth);
  visit(FieldKind::Shape, "weights", weights);
  visit(FieldKind::Shape, "exact", exact);
  visit(FieldKind::Shape, "leaves", leaves);
  visit(FieldKind::Tile, "panels", panels);
  visit(FieldKind::Tile, "ahead", ahead);
  visit(FieldKind::Tile, "rowBlock", rowBlock);
}

template <FieldsOf<KvConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[kvHeads, headSize, pagesPerSequence, pageTokens, format] = config;
  visit(FieldKind::Shape, "kvHeads", kvHeads);
  visit(FieldKind::Shape, "headSize", headSize);
  visit(FieldKind::Shape, "pagesPerSequence", pagesPerSequence);
  visit(FieldKind::Size, "pageTokens", pageTokens);
  visit(FieldKind::Shape, "format", format);
}

template <FieldsOf<AttentionConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[kv, heads, scale, window, splitTokens, vectors, exp, topK] = config;
  visit(FieldKind::Shape, "kv", kv);
  visit(FieldKind::Shape, "heads", heads);
  visit(FieldKind::Shape, "scale", scale);
  visit(FieldKind::Shape, "window", window);
  visit(FieldKind::Shape, "splitTokens", splitTokens);
  visit(FieldKind::Tile, "vectors", vectors);
  visit(FieldKind::Shape, "exp", exp);
  visit(FieldKind::Shape, "topK", topK);
}

template <FieldsOf<QkvConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[query, key, value, kv, biased] = config;
  visit(FieldKind::Shape, "query", query);
  visit(FieldKind::Shape, "key", key);
  visit(FieldKind::Shape, "value", value);
  visit(FieldKind::Shape, "kv", kv);
  visit(FieldKind::Shape, "biased", biased);
}

template <FieldsOf<RopeConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[kv, heads, queryNorm, keyNorm] = config;
  visit(FieldKind::Shape, "kv", kv);
  visit(FieldKind::Shape, "heads", heads);
  visit(FieldKind::Shape, "queryNorm", queryNorm);
  visit(FieldKind::Shape, "keyNorm", keyNorm);
}

template <FieldsOf<EmbedConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[format, width, rows] = config;
  visit(FieldKind::Shape, "format", format);
  visit(FieldKind::Shape, "width", width);
  visit(FieldKind::Shape, "rows", rows);
}

} // namespace llamac::cpu

#endif // LLAMAC_CODEGEN_CPU_CONFIGFIELDS_H
