//===- ConvertCommon.cpp - What all converters do -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/ConvertCommon.h"

#include "frontends/Files.h"
#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/str_cat.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>

namespace llamac {

absl::Status prepareDirectory(const std::string &directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return usageError(
        absl::StrCat(directory, ": cannot be made: ", error.message()));
  const std::filesystem::directory_iterator first(directory, error);
  if (!error && first == std::filesystem::directory_iterator())
    return absl::OkStatus();
  return usageError(absl::StrCat(
      directory, ": expected an empty directory, got ",
      error ? error.message() : "one with " + first->path().filename().string(),
      "; choose a new directory"));
}

absl::StatusOr<std::optional<RopeScaling>>
ropeScalingOf(const ModelConfig &config) {
  const std::vector<float> &factors = config.ropeFactors;
  if (factors.empty())
    return config.ropeScaling;
  const auto agrees = [&](const ModelConfig &candidate) {
    ModelConfig plain = candidate;
    plain.ropeScaling.reset();
    const std::vector<double> unscaled = ropeFrequencies(plain);
    const std::vector<double> scaled = ropeFrequencies(candidate);
    for (size_t i = 0; i < factors.size(); ++i)
      if (std::fabs(unscaled[i] / scaled[i] / factors[i] - 1) > 1e-4)
        return false;
    return true;
  };
  ModelConfig candidate = config;
  candidate.ropeFactors.clear();
  if (agrees(candidate))
    return std::nullopt;
  // The slowest frequency has the whole factor, unless none is slow enough.
  const double largest = *std::max_element(factors.begin(), factors.end());
  for (double factor : {std::round(largest), largest, 8.0, 32.0}) {
    candidate.ropeScaling = RopeScaling{.factor = factor};
    if (agrees(candidate))
      return candidate.ropeScaling;
  }
  return unsupportedError(absl::StrCat(
      "rope_freqs.weight: expected factors of Llama 3.1's rule, got others (up "
      "to ",
      largest, "), which only a GGUF file can hold"));
}

// Bytes of rows that are read and written at a time.
static constexpr int64_t chunkBytes = int64_t{4} << 20;

namespace {

// What the streams share.
struct StreamState {
  const Checkpoint *checkpoint;
  const ConvertOptions *options;
  uint64_t done = 0;
  uint64_t total = 0;
};

} // namespace

// Reorders the rows of whole heads from pairs (2i, 2i + 1) to (i, i + h/2).
static void toHalves(std::vector<uint8_t> &rows, int64_t rowBytes,
                     int64_t headSize) {
  const std::vector<uint8_t> pairs = rows;
  const int64_t count = static_cast<int64_t>(rows.size()) / rowBytes;
  for (int64_t row = 0; row < count; ++row) {
    const int64_t inHead = row % headSize;
    const int64_t to = row - inHead + inHead / 2 + (inHead % 2) * headSize / 2;
    std::memcpy(rows.data() + to * rowBytes, pairs.data() + row * rowBytes,
                static_cast<size_t>(rowBytes));
  }
}

static absl::Status produceWeight(StreamState &state,
                                  const WeightSource &weight, DataType type,
                                  bool halves, const ByteSink &sink) {
  const auto rowBytes = static_cast<int64_t>(
      dataTypeBytes(type, static_cast<uint64_t>(weight.cols)));
  const int64_t head = state.checkpoint->config.headSize;
  int64_t step = std::max<int64_t>(1, chunkBytes / rowBytes);
  if (halves)
    step = std::max<int64_t>(1, step / head) * head;
  std::vector<uint8_t> rows;
  for (int64_t first = 0; first < weight.rows; first += step) {
    const int64_t count = std::min(step, weight.rows - first);
    rows.resize(static_cast<size_t>(count * rowBytes));
    LLAMAC_RETURN_IF_ERROR(state.checkpoint->weights.readRowsAs(
        weight, type, first, count, rows.data()));
    if (halves)
      toHalves(rows, rowBytes, head);
    LLAMAC_RETURN_IF_ERROR(sink(rows));
    state.done += rows.size();
    if (state.options->progress)
      state.options->progress(state.done, state.total);
  }
  return absl::OkStatus();
}

std::vector<TensorStream> streamWeights(const Checkpoint &checkpoint,
                                        const ConvertOptions &options,
                                        std::string ExpectedWeight::*name,
                                        bool halves) {
  auto state = std::make_shared<StreamState>();
  state->checkpoint = &checkpoint;
  state->options = &options;
  std::vector<TensorStream> streams;
  for (const ExpectedWeight &expected : expectedWeights(checkpoint.config)) {
    const WeightSource *weight = checkpoint.weights.find(expected.name);
    if (!weight)
      continue; // "output" of tied embeddings.
    TensorStream stream;
    stream.name = expected.*name;
    stream.type =
        isBlockFormat(weight->type) ? options.blockType : weight->type;
    if (!expected.isVector)
      stream.shape.push_back(static_cast<uint64_t>(weight->rows));
    stream.shape.push_back(static_cast<uint64_t>(weight->cols));
    stream.produce = [state, weight, type = stream.type,
                      reorder =
                          halves && expected.isRotary](const ByteSink &sink) {
      return produceWeight(*state, *weight, type, reorder, sink);
    };
    state->total += stream.bytes();
    streams.push_back(std::move(stream));
  }
  return streams;
}

absl::Status writeGenerationConfig(const Checkpoint &checkpoint,
                                   const std::string &directory) {
  nlohmann::ordered_json json;
  const TokenizerSource &tokenizer = checkpoint.tokenizer;
  const GenerationDefaults &generation = checkpoint.generation;
  if (tokenizer.bos)
    json["bos_token_id"] = *tokenizer.bos;
  if (tokenizer.stopIds.size() == 1)
    json["eos_token_id"] = tokenizer.stopIds[0];
  else if (!tokenizer.stopIds.empty())
    json["eos_token_id"] = tokenizer.stopIds;
  if (generation.temperature == 0.0) {
    json["do_sample"] = false;
  } else if (generation.temperature) {
    json["do_sample"] = true;
    json["temperature"] = *generation.temperature;
  }
  if (generation.topP)
    json["top_p"] = *generation.topP;
  if (generation.topK)
    json["top_k"] = *generation.topK;
  if (json.empty())
    return absl::OkStatus();
  return writeFileAtomically(joinPath(directory, "generation_config.json"),
                             json.dump(2) + "\n");
}

} // namespace llamac
