//===- ConfigFields.h - The members of the cuda configs ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lists of codegen/ConfigFields.h for the structs of
// codegen/cuda/kernels/config.h.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_CONFIGFIELDS_H
#define LLAMAC_CODEGEN_CUDA_CONFIGFIELDS_H

#include "codegen/ConfigFields.h"
#include "codegen/cuda/kernels/resident_config.h"

namespace llamac::cuda {

/// A format has the name of the element type that is kept in it.
std::string enumeratorText(WeightFormat format);
std::string enumeratorText(KvFormat format);
std::string enumeratorText(RowFormat format);

template <FieldsOf<GemvConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[format, outputs, depth, weights, maxRows, warps, outputsPerWarp,
         unroll] = config;
  visit(FieldKind::Shape, "format", format);
  visit(FieldKind::Shape, "outputs", outputs);
  visit(FieldKind::Shape, "depth", depth);
  visit(FieldKind::Shape, "weights", weights);
  visit(FieldKind::Size, "maxRows", maxRows);
  visit(FieldKind::Tile, "warps", warps);
  visit(FieldKind::Tile, "outputsPerWarp", outputsPerWarp);
  visit(FieldKind::Tile, "unroll", unroll);
}

template <FieldsOf<StreamConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[product, parts, blocks, stageBytes] = config;
  visit(FieldKind::Shape, "product", product);
  visit(FieldKind::Shape, "parts", parts);
  visit(FieldKind::Tile, "blocks", blocks);
  visit(FieldKind::Tile, "stageBytes", stageBytes);
}

template <FieldsOf<GemmConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[format, outputs, depth, weights, input, tileRows, warpsAlongRows,
         warpsAlongOutputs, stages, minBlocks, splits] = config;
  visit(FieldKind::Shape, "format", format);
  visit(FieldKind::Shape, "outputs", outputs);
  visit(FieldKind::Shape, "depth", depth);
  visit(FieldKind::Shape, "weights", weights);
  visit(FieldKind::Shape, "input", input);
  visit(FieldKind::Tile, "tileRows", tileRows);
  visit(FieldKind::Tile, "warpsAlongRows", warpsAlongRows);
  visit(FieldKind::Tile, "warpsAlongOutputs", warpsAlongOutputs);
  visit(FieldKind::Size, "stages", stages);
  visit(FieldKind::Size, "minBlocks", minBlocks);
  visit(FieldKind::Tile, "splits", splits);
}

template <FieldsOf<WgmmaConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[format, parts, depth, weights, panels, panelOutputs, stages, cluster,
         blocks, batchRows, splits] = config;
  visit(FieldKind::Shape, "format", format);
  visit(FieldKind::Shape, "parts", parts);
  visit(FieldKind::Shape, "depth", depth);
  visit(FieldKind::Shape, "weights", weights);
  visit(FieldKind::Tile, "panels", panels);
  visit(FieldKind::Tile, "panelOutputs", panelOutputs);
  visit(FieldKind::Size, "stages", stages);
  visit(FieldKind::Tile, "cluster", cluster);
  visit(FieldKind::Size, "blocks", blocks);
  visit(FieldKind::Size, "batchRows", batchRows);
  visit(FieldKind::Tile, "splits", splits);
}

/// The tiles of query, key and value are listed with the product of each.
template <typename Product, typename Visit>
void visitFields(const QkvConfig<Product> &config, Visit visit) {
  auto &[query, key, value] = config;
  visit(FieldKind::Shape, "query", query);
  visit(FieldKind::Shape, "key", key);
  visit(FieldKind::Shape, "value", value);
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
  auto &[kv, heads, scale, window, splits, minSplitTokens, stages,
         sharedQueries, exp, result, maxRows] = config;
  visit(FieldKind::Shape, "kv", kv);
  visit(FieldKind::Shape, "heads", heads);
  visit(FieldKind::Shape, "scale", scale);
  visit(FieldKind::Shape, "window", window);
  visit(FieldKind::Tile, "splits", splits);
  visit(FieldKind::Tile, "minSplitTokens", minSplitTokens);
  visit(FieldKind::Tile, "stages", stages);
  visit(FieldKind::Size, "sharedQueries", sharedQueries);
  visit(FieldKind::Shape, "exp", exp);
  visit(FieldKind::Shape, "result", result);
  visit(FieldKind::Shape, "maxRows", maxRows);
}

template <FieldsOf<ResidentProduct> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[stream, matrices] = config;
  visit(FieldKind::Shape, "stream", stream);
  visit(FieldKind::Shape, "matrices", matrices);
}

template <FieldsOf<ResidentConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[products, count, layerEnd, layers, layerPointers, headSize, tables,
         wordsBefore, layerWords, partialWords, areaBytes, blocks, stageBytes,
         stages] = config;
  visit(FieldKind::Shape, "products",
        llvm::ArrayRef(products, static_cast<size_t>(count)));
  visit(FieldKind::Shape, "count", count);
  visit(FieldKind::Shape, "layerEnd", layerEnd);
  visit(FieldKind::Shape, "layers", layers);
  visit(FieldKind::Shape, "layerPointers", layerPointers);
  visit(FieldKind::Shape, "headSize", headSize);
  visit(FieldKind::Shape, "tables", tables);
  visit(FieldKind::Shape, "wordsBefore", wordsBefore);
  visit(FieldKind::Shape, "layerWords", layerWords);
  visit(FieldKind::Shape, "partialWords", partialWords);
  visit(FieldKind::Size, "areaBytes", areaBytes);
  visit(FieldKind::Size, "blocks", blocks);
  visit(FieldKind::Size, "stageBytes", stageBytes);
  visit(FieldKind::Size, "stages", stages);
}

template <FieldsOf<EmbedConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[format, tokens, width, isPart] = config;
  visit(FieldKind::Shape, "format", format);
  visit(FieldKind::Shape, "tokens", tokens);
  visit(FieldKind::Shape, "width", width);
  visit(FieldKind::Shape, "isPart", isPart);
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_CUDA_CONFIGFIELDS_H
