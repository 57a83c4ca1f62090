//===- Checkpoint.h - Opening a model directory or file ------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every checkpoint format gives the same three things: hyperparameters, weights
// and a description of its tokenizer. Opening one reads headers only;
// weights are read on demand.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_CHECKPOINT_H
#define LLAMAC_FRONTENDS_CHECKPOINT_H

#include "frontends/gguf/GgufReader.h"
#include "runtime/base/ModelConfig.h"
#include "runtime/io/MappedFile.h"
#include "runtime/io/WeightMap.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

struct ModelFamily;

enum class CheckpointFormat { Meta, HuggingFace, Gguf };

/// "meta", "huggingface" or "gguf".
absl::string_view checkpointFormatName(CheckpointFormat format);

enum class TokenizerFormat { None, Tiktoken, HuggingFace, Gguf, SentencePiece };

/// "none", "tiktoken", "huggingface", "gguf" or "sentencepiece".
absl::string_view tokenizerFormatName(TokenizerFormat kind);

/// Where the tokenizer of a checkpoint is, and what its configuration files say
/// about it. Anything else is in the tokenizer itself.
struct TokenizerSource {
  TokenizerFormat kind = TokenizerFormat::None;
  /// The tokenizer's file first: tokenizer.model or tokenizer.json; then, where
  /// there are such, tokenizer_config.json and the files of chat templates. For
  /// GGUF, the .gguf file.
  std::vector<std::string> paths;
  std::shared_ptr<const GgufReader> gguf; ///< For TokenizerFormat::Gguf.
  std::optional<int64_t> bos;
  std::optional<bool> addBos;
  std::vector<int64_t> stopIds; ///< Ids that end a text; may be empty.
};

/// Sampling defaults that the checkpoint recommends.
struct GenerationDefaults {
  std::optional<double> temperature; ///< 0 when it asks for no sampling.
  std::optional<double> topP;
  std::optional<int64_t> topK;
};

struct Checkpoint {
  CheckpointFormat format = CheckpointFormat::Meta;
  /// The family that the files name, for those who write files.
  const ModelFamily *family = nullptr;
  std::string name; ///< For people: the directory, file or GGUF name.
  std::string path; ///< The path that the user gave, or that of the name.
  ModelConfig config;
  /// Weights by their canonical names. "output" is missing when the embeddings
  /// are tied. Empty after openConfig.
  WeightMap weights;
  TokenizerSource tokenizer;
  GenerationDefaults generation;
  /// The configuration files that were read, which are not in `weights`.
  std::vector<std::shared_ptr<MappedFile>> configFiles;

  /// fingerprintFiles of the configuration, weight and tokenizer files: equal
  /// fingerprints mean the same model.
  absl::StatusOr<std::string> fingerprint() const;
};

struct OpenOptions {
  /// Factor of Llama 3.1's rotary scaling, for a params.json that only says
  /// use_scaled_rope. Without it: what params.json says, else 32 for the shapes
  /// of Llama 3.2 and 8 for others.
  std::optional<double> ropeFactor = {};
  /// The model that an EAGLE-3 head drafts for; empty: a head is refused.
  std::string headOf = {};
};

/// Whether `path` is the directory of an EAGLE-3 head or its config.json.
/// Errors: those of modelPath() and of a config.json that cannot be read.
absl::StatusOr<bool> isDraftHead(absl::string_view path);

/// Opens the model at `path`, as modelPath() has it: a .gguf file or a
/// directory with one; a directory with params.json and consolidated.NN.pth
/// (Meta); or one with config.json and
/// *.safetensors (Hugging Face). Every tensor a Llama model needs is there and
/// has the shape the configuration says. Such a directory may also be that of
/// an EAGLE-3 head, with `headOf` of the options. Errors: a missing or
/// malformed file; an architecture or feature that is not supported, by its
/// name.
absl::StatusOr<Checkpoint> openCheckpoint(absl::string_view path,
                                          const OpenOptions &options = {});

/// Opens the configuration alone: `path` is a params.json or config.json, a
/// directory that has one, or a .gguf file. The result has no weights.
absl::StatusOr<Checkpoint> openConfig(absl::string_view path,
                                      const OpenOptions &options = {});

} // namespace llamac

#endif // LLAMAC_FRONTENDS_CHECKPOINT_H
