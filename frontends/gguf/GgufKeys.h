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

using Key = absl::string_view;

inline constexpr Key general = "general.";
inline constexpr Key alignment = "general.alignment";
inline constexpr Key architecture = "general.architecture";
inline constexpr Key fileType = "general.file_type";
inline constexpr Key modelName = "general.name";
inline constexpr Key quantizationVersion = "general.quantization_version";

inline constexpr Key attentionScale = "attention.scale";
inline constexpr Key blockCount = "block_count";
inline constexpr Key contextLength = "context_length";
inline constexpr Key embeddingLength = "embedding_length";
inline constexpr Key embeddingScale = "embedding_scale";
inline constexpr Key feedForwardLength = "feed_forward_length";
inline constexpr Key headCount = "attention.head_count";
inline constexpr Key headCountKv = "attention.head_count_kv";
inline constexpr Key keyLength = "attention.key_length";
inline constexpr Key logitScale = "logit_scale";
inline constexpr Key normEpsilon = "attention.layer_norm_rms_epsilon";
inline constexpr Key residualScale = "residual_scale";
inline constexpr Key ropeDimensionCount = "rope.dimension_count";
inline constexpr Key ropeFinetuned = "rope.scaling.finetuned";
inline constexpr Key ropeFreqBase = "rope.freq_base";
inline constexpr Key ropeFreqBaseSwa = "rope.freq_base_swa";
inline constexpr Key ropeScalingFactor = "rope.scaling.factor";
inline constexpr Key ropeScalingType = "rope.scaling.type";
inline constexpr Key slidingWindow = "attention.sliding_window";
inline constexpr Key slidingWindowPattern = "attention.sliding_window_pattern";
inline constexpr Key valueLength = "attention.value_length";
inline constexpr Key vocabSize = "vocab_size";

inline constexpr Key tokenizer = "tokenizer.";
inline constexpr Key addBosToken = "tokenizer.ggml.add_bos_token";
inline constexpr Key addSpacePrefix = "tokenizer.ggml.add_space_prefix";
inline constexpr Key bosTokenId = "tokenizer.ggml.bos_token_id";
/// A template that is not the only one has its name behind this and a dot.
inline constexpr Key chatTemplate = "tokenizer.chat_template";
inline constexpr Key chatTemplates = "tokenizer.chat_templates";
inline constexpr Key eomTokenId = "tokenizer.ggml.eom_token_id";
inline constexpr Key eosTokenId = "tokenizer.ggml.eos_token_id";
inline constexpr Key eotTokenId = "tokenizer.ggml.eot_token_id";
inline constexpr Key merges = "tokenizer.ggml.merges";
inline constexpr Key preTokenizer = "tokenizer.ggml.pre";
inline constexpr Key scores = "tokenizer.ggml.scores";
inline constexpr Key tokenizerModel = "tokenizer.ggml.model";
inline constexpr Key tokens = "tokenizer.ggml.tokens";
inline constexpr Key tokenTypes = "tokenizer.ggml.token_type";
inline constexpr Key unknownTokenId = "tokenizer.ggml.unknown_token_id";

/// The tensor of what divides the rotary frequencies.
inline constexpr Key ropeFactors = "rope_freqs.weight";

} // namespace llamac::ggufkeys

#endif // LLAMAC_FRONTENDS_GGUF_GGUFKEYS_H
