//===- Families.h - Members of Llama's family -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One list for Hugging Face and GGUF: what each family is called, how its files
// differ from Llama's, and what it adds to the mathematics. Only readers
// and writers of files ask for a family; all else asks for the features.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_FAMILIES_H
#define LLAMAC_FRONTENDS_FAMILIES_H

#include "runtime/base/ModelConfig.h"

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llamac {

enum class WindowRule : uint8_t {
  None,      ///< No layer.
  All,       ///< Every layer.
  From,      ///< Layers from one on.
  AllButNth, ///< Every layer but each n-th.
};

/// The names of a family's files, how they differ from Llama's, and what the
/// family adds.
struct ModelFamily {
  absl::string_view modelType;    ///< model_type of config.json.
  absl::string_view architecture; ///< architectures of config.json.
  /// general.architecture, and the prefix of its keys; empty where GGUF has the
  /// family as "llama".
  absl::string_view gguf = {};
  /// GGUF keeps the rows of wq and wk in Hugging Face's order.
  bool ggufHalves = false;
  /// wq, wk and wv are one tensor, and so are w1 and w3.
  bool fusedTensors = false;
  /// Hugging Face stores gains of norms less 1.
  bool shiftedNorms = false;
  // The defaults of Hugging Face's configuration.
  bool tied = false;
  int64_t headSize = 0; ///< 0: width / heads.
  int64_t window = 0;   ///< 0: none.
  bool usesWindow = true;
  int64_t maxContext = 2048;
  double normEps = 1e-6;
  double theta = 10000;

  bool hasScales = false;          ///< The configuration has scales.
  bool embeddingBySqrtDim = false; ///< sqrt(d) is the scale of the embedding.
  /// Layers with a window have a theta of their own.
  bool hasLocalTheta = false;
  /// Which layers have a window, if there is one.
  WindowRule windows = WindowRule::None;
  /// Each of this number has none of what the rule is about: a window, or, with
  /// WindowRule::None, a rotation; 0: all layers are alike.
  int64_t interval = 0;
  ModelFeatures features = {};

  /// The attention of each layer, with windows of `window` tokens (0: of all)
  /// and `interval` in the place of the family's. With WindowRule::From
  /// `interval` is the first layer that has one.
  std::vector<LayerAttention> layersOf(int64_t numLayers, int64_t window,
                                       int64_t interval) const;
};

absl::Span<const ModelFamily> modelFamilies();

/// The family with `name` as its `field`, a member of ModelFamily; null when
/// there is none.
const ModelFamily *findFamily(absl::string_view ModelFamily::*field,
                              absl::string_view name);

/// The family as which GGUF has the models of `family`.
const ModelFamily &familyInGguf(const ModelFamily &family);

/// The names that families have as their `field`, for messages: "a, b or c".
std::string familyNames(absl::string_view ModelFamily::*field);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_FAMILIES_H
