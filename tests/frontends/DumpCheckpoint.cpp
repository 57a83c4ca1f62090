//===- DumpCheckpoint.cpp - Prints what a frontend read -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dump-checkpoint MODEL DIR: opens MODEL, prints its configuration and
// tokenizer as JSON on stdout and writes every weight as fp32, row-major, to
// DIR/NAME.f32, for tests that hold the values from elsewhere. Instead of DIR:
// --config reads the configuration alone; --to-meta=DIR and
// --to-huggingface=DIR convert.
//
//===----------------------------------------------------------------------===//

#include "frontends/Checkpoint.h"
#include "frontends/Convert.h"
#include "runtime/base/Status.h"

#include "absl/strings/strip.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>

using namespace llamac;

static nlohmann::json describe(const Checkpoint &checkpoint) {
  const ModelConfig &config = checkpoint.config;
  nlohmann::json out = {
      {"format", std::string(checkpointFormatName(checkpoint.format))},
      {"name", checkpoint.name},
      {"dim", config.dim},
      {"layers", config.numLayers},
      {"heads", config.numHeads},
      {"kv_heads", config.numKvHeads},
      {"head_size", config.headSize},
      {"ffn", config.ffnDim},
      {"vocab", config.vocabSize},
      {"context", config.maxContext},
      {"eps", config.normEps},
      {"theta", config.ropeTheta},
      {"rope_factors", config.ropeFactors},
      {"tied", config.tiedEmbeddings},
      {"tokenizer",
       std::string(tokenizerFormatName(checkpoint.tokenizer.kind))},
      {"tokenizer_paths", checkpoint.tokenizer.paths},
      {"stop_ids", checkpoint.tokenizer.stopIds},
      {"windows", nlohmann::json::array()},
  };
  for (const LayerAttention &layer : config.features.layers)
    out["windows"].push_back(layer.window);
  if (checkpoint.tokenizer.bos)
    out["bos"] = *checkpoint.tokenizer.bos;
  if (config.ropeScaling)
    out["scaling"] = {
        config.ropeScaling->factor, config.ropeScaling->lowFreqFactor,
        config.ropeScaling->highFreqFactor, config.ropeScaling->oldContext};
  const GenerationDefaults &generation = checkpoint.generation;
  if (generation.temperature)
    out["temperature"] = *generation.temperature;
  if (generation.topP)
    out["top_p"] = *generation.topP;
  if (generation.topK)
    out["top_k"] = *generation.topK;
  return out;
}

static absl::Status dump(const Checkpoint &checkpoint,
                         const std::string &directory) {
  for (const WeightSource &weight : checkpoint.weights.weights()) {
    std::vector<float> values(static_cast<size_t>(weight.rows * weight.cols));
    LLAMAC_RETURN_IF_ERROR(checkpoint.weights.readRowsAsF32(
        weight, 0, weight.rows, values.data()));
    std::ofstream out(directory + "/" + weight.name + ".f32", std::ios::binary);
    out.write(reinterpret_cast<const char *>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
    if (!out)
      return memoryError("cannot write " + directory);
  }
  return absl::OkStatus();
}

static absl::Status run(const std::string &model, const std::string &where) {
  if (where == "--config") {
    LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, openConfig(model));
    std::cout << describe(checkpoint).dump() << "\n";
    return absl::OkStatus();
  }
  LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, openCheckpoint(model));
  std::cout << describe(checkpoint).dump() << "\n";
  absl::string_view target = where;
  if (absl::ConsumePrefix(&target, "--to-meta="))
    return convertToMeta(checkpoint, target);
  if (absl::ConsumePrefix(&target, "--to-huggingface="))
    return convertToHuggingFace(checkpoint, target);
  return dump(checkpoint, where);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "usage: dump-checkpoint MODEL DIR|--config|--to-FORMAT=DIR\n";
    return static_cast<int>(ExitCode::Usage);
  }
  const absl::Status status = run(argv[1], argv[2]);
  if (!status.ok())
    std::cerr << status.message() << "\n";
  return static_cast<int>(exitCode(status));
}
