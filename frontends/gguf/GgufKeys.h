//===- GgufKeys.h - Names in GGUF files ----------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reader and the writer of GGUF share these names. Keys of the model stand
// behind the name of its architecture: "llama.block_count".
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_GGUF_GGUFKEYS_H
#define LLAMAC_FRONTENDS_GGUF_GGUFKEYS_H

#include "absl/strings/string_view.h"

namespace llamac::ggufkeys {

inline constexpr absl::string_view general = "general.";
inline constexpr absl::string_view alignment = "general.alignment";
inline constexpr absl::string_view architecture = "general.architecture";
inline constexpr absl::string_view fileType = "general.file_type";
inline constexpr absl::string_view modelName = "general.name";
inline constexpr absl::string_view quantizationVersion =
    "general.quantization_version";

inline constexpr absl::string_view attentionScale = "attention.scale";
inline constexpr absl::string_view blockCount = "block_count";
inline constexpr absl::string_view contextLength = "context_length";
inline constexpr absl::string_view embeddingLength = "embedding_length";
inline constexpr absl::string_view embeddingScale = "embedding_scale";
inline constexpr absl::string_view feedForwardLength = "feed_forward_length";
inline constexpr absl::string_view headCount = "attention.head_count";
inline constexpr absl::string_view headCountKv = "attention.head_count_kv";
inline constexpr absl::string_view keyLength = "attention.key_length";
inline constexpr absl::string_view logitScale = "logit_scale";
inline constexpr absl::string_view normEpsilon =
    "attention.layer_norm_rms_epsilon";
inline constexpr absl::string_view residualScale = "residual_scale";
inline constexpr absl::string_view ropeDimensionCount = "rope.dimension_count";
inline constexpr absl::string_view ropeFinetuned = "rope.scaling.finetuned";
inline constexpr absl::string_view ropeFreqBase = "rope.freq_base";
inline constexpr absl::string_view ropeFreqBaseSwa = "rope.freq_base_swa";
inline constexpr absl::string_view ropeScalingFactor = "rope.scaling.factor";
inline constexpr absl::string_view ropeScalingType = "rope.scaling.type";
inline constexpr absl::string_view slidingWindow = "attention.sliding_window";
inline constexpr absl::string_view slidingWindowPattern =
    "attention.sliding_window_pattern";
inline constexpr absl::string_view valueLength = "attention.value_length";
inline constexpr absl::string_view vocabSize = "vocab_size";

inline constexpr absl::string_view tokenizer = "tokenizer.";
inline constexpr absl::string_view addBosToken = "tokenizer.ggml.add_bos_token";
inline constexpr absl::string_view addSpacePrefix =
    "tokenizer.ggml.add_space_prefix";
inline constexpr absl::string_view bosTokenId = "tokenizer.ggml.bos_token_id";
/// A template that is not the only one has its name behind this and a dot.
inline constexpr absl::string_view chatTemplate = "tokenizer.chat_template";
inline constexpr absl::string_view chatTemplates = "tokenizer.chat_templates";
inline constexpr absl::string_view eomTokenId = "tokenizer.ggml.eom_token_id";
inline constexpr absl::string_view eosTokenId = "tokenizer.ggml.eos_token_id";
inline constexpr absl::string_view eotTokenId = "tokenizer.ggml.eot_token_id";
inline constexpr absl::string_view merges = "tokenizer.ggml.merges";
inline constexpr absl::string_view preTokenizer = "tokenizer.ggml.pre";
inline constexpr absl::string_view scores = "tokenizer.ggml.scores";
inline constexpr absl::string_view tokenizerModel = "tokenizer.ggml.model";
inline constexpr absl::string_view tokens = "tokenizer.ggml.tokens";
inline constexpr absl::string_view tokenTypes = "tokenizer.ggml.token_type";
inline constexpr absl::string_view unknownTokenId =
    "tokenizer.ggml.unknown_token_id";

/// The tensor of what divides the rotary frequencies.
inline constexpr absl::string_view ropeFactors = "rope_freqs.weight";

} // namespace llamac::ggufkeys

#endif // LLAMAC_FRONTENDS_GGUF_GGUFKEYS_H
