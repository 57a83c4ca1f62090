//===- Model.h - A plan, loaded and ready to run ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_STEP_MODEL_H
#define LLAMAC_ENGINE_STEP_MODEL_H

#include "engine/sampling/Sampler.h"
#include "runtime/base/ModelConfig.h"
#include "runtime/device/Device.h"
#include "runtime/load/LoadedPlan.h"
#include "text/grammar/Grammar.h"
#include "text/tokenizer/Tokenizer.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// Where the seconds of Model::load() went.
struct LoadTimes {
  double plan = 0;    ///< Reading the file and verifying its checksums.
  double device = 0;  ///< Starting it.
  double kernels = 0; ///< Compiling or reading them, and loading them.
  double memory = 0;  ///< Asking for all that the plan needs.
  double weights = 0; ///< Bringing weights and constants to the device.
  double tokenizer = 0;

  double all() const {
    return plan + device + kernels + memory + weights + tokenizer;
  }
};

/// How a plan advises to sample; greedy for null.
SamplingOptions advisedSampling(const schema::SamplingT *advised);

/// A plan with its device, kernels, weights and tokenizer. It does not change
/// while it runs: engines share one.
class Model {
public:
  /// Loads the plan at `path`. Errors: those of PlanReader::open, of
  /// openSourceFiles for a plan that refers to its weights, of the device, and
  /// memory; usage for a draft model of another vocabulary or a shorter
  /// context.
  static absl::StatusOr<std::shared_ptr<const Model>>
  load(absl::string_view path, const ModelOptions &options = {});

  const schema::PlanT &plan() const { return onDevices.manifest(); }
  const std::shared_ptr<const PlanReader> &planReader() const {
    return onDevices.reader();
  }
  /// The name by which messages call it.
  const std::string &name() const { return modelName; }
  const ModelConfig &config() const { return modelConfig; }

  /// Names all that decides the bits of its results, for people to read: equal
  /// texts mean equal bits.
  std::string identity() const;

  /// Numbers that a step can give of each token for a draft head (DraftHead);
  /// 0: none.
  int64_t featureDim() const {
    return std::ssize(plan().featureLayers) * modelConfig.dim;
  }

  /// The longest sequence, prompt and answer together, in tokens.
  int64_t context() const { return plan().context; }

  /// ModelOptions::sharesPages
  bool sharesPages() const { return onDevices.sharesPages(); }

  /// Whether a step of the plan chooses the tokens that follow it.
  bool samples() const { return plan().programs.front()->tokensOffset >= 0; }

  /// Plan error for a file of the model that was truncated while it was mapped:
  /// what was computed since is of no use (DamagedFiles.h).
  absl::Status checkFiles() const;

  /// Its plan on the devices of all ranks.
  const LoadedPlan &loaded() const { return onDevices; }

  /// The device of the first rank, and the code that is loaded on it.
  Device &device() const { return onDevices.device(); }
  LoadedCode &code() const { return onDevices.code(); }

  /// The kernels' source, as the compiler emitted it; empty when the plan has
  /// none.
  std::string source() const;

  /// The smaller model that drafts its answers; null: none.
  const std::shared_ptr<const Model> &draft() const { return draftModel; }

  /// Null when the plan has none.
  const Tokenizer *tokenizer() const { return text.get(); }

  /// The ids that end an answer.
  absl::Span<const int32_t> stopIds() const;

  /// Compiles grammars for the model's tokens; null without a tokenizer.
  GrammarCompiler *grammars() const { return grammarCompiler.get(); }

  /// The ids of `prompt`; with `addBos` the begin-of-sequence token goes first
  /// where the model is used to one. Usage error without a tokenizer.
  absl::StatusOr<std::vector<int32_t>>
  encode(absl::string_view prompt,
         EncodeOptions options = {.special = true, .addBos = true}) const;

  /// `ids` behind that token, where the model is used to one.
  std::vector<int32_t> withBos(std::vector<int32_t> ids) const;

  const LoadTimes &loadTimes() const { return times; }

  /// This model, its weights shared, with the kernels of `plan`, which is
  /// its own plan with other configs. Errors: those of the device.
  absl::StatusOr<std::shared_ptr<const Model>>
  withPlan(std::shared_ptr<const PlanReader> plan) const;

  /// This model as it was compiled: without tuned configs.
  absl::StatusOr<std::shared_ptr<const Model>> asCompiled() const {
    return withPlan(compiled);
  }

private:
  explicit Model(LoadedPlan onDevices) : onDevices(std::move(onDevices)) {}

  void loadTuned(const VariantCompiler *compiler);
  absl::Status leaveOutUnfit();
  absl::Status loadDraft(const ModelOptions &options);
  absl::Status checkHead(absl::string_view path) const;

  // Both without the programs that the device cannot run.
  LoadedPlan onDevices;
  std::shared_ptr<const PlanReader> compiled; ///< Without what was tuned.
  std::string modelName;
  ModelConfig modelConfig;
  std::optional<uint64_t> randomWeights; ///< Their seed.
  std::shared_ptr<const Model> draftModel;
  std::shared_ptr<const Tokenizer> text;
  /// Compiles for the tokens of `text`.
  std::shared_ptr<GrammarCompiler> grammarCompiler;
  LoadTimes times;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_STEP_MODEL_H
