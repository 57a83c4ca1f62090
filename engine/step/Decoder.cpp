//===- Decoder.cpp - A sequence that generates text -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/step/Decoder.h"

#include "runtime/base/Status.h"

namespace llamac {

Decoder::~Decoder() = default;

absl::Status Decoder::decode(int32_t token, int64_t steps, Sampler &sampler,
                             DecodeCallback callback) {
  for (int64_t step = 0; step < steps; ++step) {
    LLAMAC_ASSIGN_OR_RETURN(token, next({&token, 1}, sampler));
    LLAMAC_ASSIGN_OR_RETURN(const bool goesOn, callback(token));
    if (!goesOn)
      break;
  }
  return absl::OkStatus();
}

namespace {

class EngineDecoder final : public Decoder {
public:
  EngineDecoder(Engine &engine, Sequence sequence)
      : engine(engine), sequence(std::move(sequence)) {}

  const Tokenizer *tokenizer() const override {
    return engine.model().tokenizer();
  }
  absl::Span<const int32_t> stopIds() const override {
    return engine.model().stopIds();
  }
  int64_t vocabSize() const override {
    return engine.model().config().vocabSize;
  }
  int64_t context() const override { return engine.model().context(); }
  int64_t length() const override { return sequence.length(); }

  absl::StatusOr<int32_t> next(absl::Span<const int32_t> tokens,
                               Sampler &sampler) override {
    LLAMAC_ASSIGN_OR_RETURN(auto chosen,
                            engine.sample({{&sequence, tokens, &sampler}}));
    return std::move(chosen[0]);
  }

  absl::Status decode(int32_t token, int64_t steps, Sampler &sampler,
                      DecodeCallback callback) override {
    return engine.decode(
        {{&sequence, token, &sampler}}, steps,
        [&](absl::Span<const int32_t> tokens) { return callback(tokens[0]); });
  }

private:
  Engine &engine;
  Sequence sequence;
};

} // namespace

absl::StatusOr<std::unique_ptr<Decoder>> newDecoder(Engine &engine) {
  LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine.newSequence());
  return std::make_unique<EngineDecoder>(engine, std::move(sequence));
}

} // namespace llamac
