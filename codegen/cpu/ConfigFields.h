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

LLAMAC_CONFIG_FIELDS(MatmulConfig, "", "panels ahead rowBlock", format, outputs,
                     depth, weights, exact, leaves, panels, ahead, rowBlock)
LLAMAC_CONFIG_FIELDS(KvConfig, "pageTokens", "", kvHeads, headSize,
                     pagesPerSequence, pageTokens, format)
LLAMAC_CONFIG_FIELDS(AttentionConfig, "", "vectors", kv, heads, scale, window,
                     splitTokens, vectors, exp, topK)
LLAMAC_CONFIG_FIELDS(QkvConfig, "", "", query, key, value, kv, biased)
LLAMAC_CONFIG_FIELDS(RopeConfig, "", "", kv, heads, queryNorm, keyNorm)
LLAMAC_CONFIG_FIELDS(EmbedConfig, "", "", format, width, rows)

} // namespace llamac::cpu

#endif // LLAMAC_CODEGEN_CPU_CONFIGFIELDS_H
