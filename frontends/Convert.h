//===- Convert.h - Writing a checkpoint in another format ----- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_CONVERT_H
#define LLAMAC_FRONTENDS_CONVERT_H

#include "frontends/Checkpoint.h"
#include "runtime/base/DataType.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace llamac {

struct ConvertOptions {
  /// The type that weights in block formats, and quantised ones of Hugging
  /// Face, are dequantised to: F32, F16 or BF16, which it is unless given.
  /// Plain floats keep their type. In GGUF the type of all matrices, which keep
  /// theirs unless it is given.
  std::optional<DataType> type;
  /// Writes the tokenizer's files into the directory; nothing when unset.
  std::function<absl::Status(const std::string &directory)> writeTokenizer;
  /// Called with the bytes of weights written so far.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

/// Writes params.json, consolidated.00.pth and, when anything is known for it,
/// generation_config.json into `directory`, which is created if needed. The
/// model reads back with an equal configuration, but for ropeFactors, which
/// become the scaling they were made from. Weights are streamed; each file is
/// replaced only once it is whole, and params.json comes last. Errors: usage,
/// for a directory that cannot be written or is not empty; unsupported, for a
/// configuration that params.json cannot express.
absl::Status convertToMeta(const Checkpoint &checkpoint,
                           absl::string_view directory,
                           const ConvertOptions &options = {});

/// Whether matrices can be brought to `type` in GGUF.
bool isGgufOutput(DataType type);

/// Writes a GGUF file to `path`, which is replaced at the end: configuration,
/// tokenizer and weights, vectors in f32. A tokenizer that GGUF cannot hold is
/// left out with a warning. Unsupported: a configuration that the family does
/// not have in GGUF.
absl::Status convertToGguf(const Checkpoint &checkpoint, absl::string_view path,
                           const ConvertOptions &options = {});

/// convertToMeta() for config.json and model.safetensors; rows of q_proj and
/// k_proj are put in the order of rotary halves.
absl::Status convertToHuggingFace(const Checkpoint &checkpoint,
                                  absl::string_view directory,
                                  const ConvertOptions &options = {});

} // namespace llamac

#endif // LLAMAC_FRONTENDS_CONVERT_H
