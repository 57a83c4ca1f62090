//===- CheckpointFormats.h - The checkpoint formats ----------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_CHECKPOINTFORMATS_H
#define LLAMAC_FRONTENDS_CHECKPOINTFORMATS_H

#include "frontends/Checkpoint.h"
#include "frontends/WeightTable.h"

#include "absl/strings/str_cat.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

class GgufMetadata;

/// Each reads a model into `checkpoint`: that of `directory`, whose params.json
/// or config.json is at `configPath`, or of the file at `path`. Without weights
/// they read the configuration and what is known of the tokenizer.
absl::Status readMetaCheckpoint(const std::string &directory,
                                const std::string &configPath,
                                const OpenOptions &options, bool withWeights,
                                Checkpoint &checkpoint);
absl::Status readHuggingFaceCheckpoint(const std::string &directory,
                                       const std::string &configPath,
                                       const OpenOptions &options,
                                       bool withWeights,
                                       Checkpoint &checkpoint);
absl::Status readGgufCheckpoint(const std::string &path, bool withWeights,
                                Checkpoint &checkpoint);

/// How GGUF stores the weights of `family`.
StoredForm ggufForm(const ModelFamily &family);

/// Adds the architecture and the configuration of `checkpoint`. Unsupported:
/// features that its architecture does not have in GGUF.
absl::Status addGgufConfig(const Checkpoint &checkpoint,
                           GgufMetadata &metadata);

/// The elements of rope_freqs.weight; none where addGgufConfig() says all.
std::vector<float> ggufRopeFactors(const ModelConfig &config);

/// The FFN size of Meta's reference model: two thirds of 4 `dim`, times
/// `multiplier` where there is one, rounded up to `multipleOf`; each step
/// truncated to an integer.
int64_t metaFfnSize(int64_t dim, std::optional<double> multiplier,
                    int64_t multipleOf);

/// The meaning of a params.json where it leaves keys out.
struct MetaDefaults {
  /// The factor of use_scaled_rope: 32 for the shapes of Llama 3.2 (16 layers
  /// of 2048, 28 of 3072), 8 for others.
  static double ropeFactor(int64_t dim, int64_t numLayers);
  /// Without max_seq_len: 131072 when RoPE is scaled; 8192 for Llama 3's theta
  /// of 500000 or more; 4096, Llama 2's, for others.
  static int64_t maxContext(double theta, bool scaled);
};

/// Reads a configuration, a JsonObject or a GgufReader, and keeps the first
/// error: afterwards members read as absent or default values.
template <class Source> class ConfigFields {
public:
  explicit ConfigFields(const Source &source) : source(source) {}

  const absl::Status &status() const { return error; }

  std::optional<int64_t> integer(absl::string_view key) {
    return take(source.optionalInt(key));
  }
  std::optional<double> number(absl::string_view key) {
    return take(source.optionalNumber(key));
  }
  std::optional<bool> flag(absl::string_view key) {
    return take(source.optionalBool(key));
  }
  auto text(absl::string_view key) { return take(source.optionalString(key)); }

  int64_t requiredInteger(absl::string_view key) {
    const std::optional<int64_t> value = integer(key);
    require(value.has_value(), key, "an integer", "no such key");
    return value.value_or(0);
  }

  /// Replaces `value` by the member `key`, which must be positive.
  void positive(absl::string_view key, double &value, bool isRequired) {
    const std::optional<double> given = number(key);
    require(given ? *given > 0 : !isRequired, key, "a positive number",
            given ? absl::StrCat(*given) : "none");
    value = given.value_or(value);
  }

  /// Sets the head size of `config` to the member `key`, else to the width,
  /// known as `dimKey`, over the number of heads, known as `headsKey`.
  void headSize(absl::string_view key, absl::string_view headsKey,
                absl::string_view dimKey, ModelConfig &config) {
    const std::optional<int64_t> given = integer(key);
    const bool divides =
        config.numHeads > 0 && (given || config.dim % config.numHeads == 0);
    require(divides, headsKey,
            absl::StrCat("a divisor of ", dimKey, " = ", config.dim),
            config.numHeads);
    if (divides)
      config.headSize = given.value_or(config.dim / config.numHeads);
  }

  /// Errors at `key` unless `holds`: a bad file, or what is not supported.
  void require(bool holds, absl::string_view key,
               const absl::AlphaNum &expected, const absl::AlphaNum &got) {
    if (!holds)
      error.Update(source.fail(key, expected.Piece(), got.Piece()));
  }
  void requireSupported(bool holds, absl::string_view key,
                        const absl::AlphaNum &expected,
                        const absl::AlphaNum &got) {
    if (!holds)
      error.Update(source.unsupported(key, expected.Piece(), got.Piece()));
  }

private:
  template <class T>
  std::optional<T> take(absl::StatusOr<std::optional<T>> value) {
    error.Update(value.status());
    return error.ok() ? *std::move(value) : std::nullopt;
  }

  const Source &source;
  absl::Status error;
};

} // namespace llamac

#endif // LLAMAC_FRONTENDS_CHECKPOINTFORMATS_H
