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

LLAMAC_CONFIG_FIELDS(GemvConfig, "maxRows", "warps outputsPerWarp unroll",
                     format, outputs, depth, weights, maxRows, warps,
                     outputsPerWarp, unroll)
LLAMAC_CONFIG_FIELDS(StreamConfig, "", "blocks stageBytes", product, parts,
                     blocks, stageBytes)
LLAMAC_CONFIG_FIELDS(GemmConfig, "stages minBlocks",
                     "tileRows warpsAlongRows warpsAlongOutputs splits", format,
                     outputs, depth, weights, input, tileRows, warpsAlongRows,
                     warpsAlongOutputs, stages, minBlocks, splits)
LLAMAC_CONFIG_FIELDS(WgmmaConfig, "stages blocks batchRows",
                     "panels panelOutputs cluster splits", format, parts, depth,
                     weights, panels, panelOutputs, stages, cluster, blocks,
                     batchRows, splits)

/// The tiles of query, key and value are listed with the product of each.
template <typename Product, typename Visit>
void visitFields(const QkvConfig<Product> &config, Visit visit) {
  auto &[query, key, value] = config;
  visitNamed(visit, "", "", "query, key, value", query, key, value);
}

LLAMAC_CONFIG_FIELDS(KvConfig, "pageTokens", "", kvHeads, headSize,
                     pagesPerSequence, pageTokens, format)
LLAMAC_CONFIG_FIELDS(AttentionConfig, "sharedQueries",
                     "splits minSplitTokens stages", kv, heads, scale, window,
                     splits, minSplitTokens, stages, sharedQueries, exp, result,
                     maxRows)
LLAMAC_CONFIG_FIELDS(ResidentProduct, "", "", stream, matrices)

template <FieldsOf<ResidentConfig> Config, typename Visit>
void visitFields(Config &config, Visit visit) {
  auto &[all, count, layerEnd, layers, layerPointers, headSize, tables,
         wordsBefore, layerWords, partialWords, areaBytes, blocks, stageBytes,
         stages] = config;
  const llvm::ArrayRef products(all, static_cast<size_t>(count));
  visitNamed(visit, "areaBytes blocks stageBytes stages", "",
             "products, count, layerEnd, layers, layerPointers, headSize, "
             "tables, wordsBefore, layerWords, partialWords, areaBytes, "
             "blocks, stageBytes, stages",
             products, count, layerEnd, layers, layerPointers, headSize, tables,
             wordsBefore, layerWords, partialWords, areaBytes, blocks,
             stageBytes, stages);
}

LLAMAC_CONFIG_FIELDS(EmbedConfig, "", "", format, tokens, width, isPart)

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_CUDA_CONFIGFIELDS_H
