//===- Decoder.h - A sequence that generates text ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_STEP_DECODER_H
#define LLAMAC_ENGINE_STEP_DECODER_H

#include "engine/sampling/Sampler.h"
#include "engine/step/Engine.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>

namespace llamac {

/// Takes the next token; returns whether to go on.
using DecodeCallback = absl::FunctionRef<absl::StatusOr<bool>(int32_t token)>;

/// One sequence of a model with its tokenizer, on the engine or the reference.
class Decoder {
public:
  virtual ~Decoder();

  /// Null when the model has none.
  virtual const Tokenizer *tokenizer() const = 0;

  /// The ids that end an answer.
  virtual absl::Span<const int32_t> stopIds() const = 0;

  /// Logits of a token.
  virtual int64_t vocabSize() const = 0;

  /// The most tokens of a sequence, and those seen so far.
  virtual int64_t context() const = 0;
  virtual int64_t length() const = 0;

  /// Appends `tokens`, at least one, and gives the token that `sampler` chooses
  /// next. Errors: those of Engine::step.
  virtual absl::StatusOr<int32_t> next(absl::Span<const int32_t> tokens,
                                       Sampler &sampler) = 0;

  /// next() of `token`, then of the token it gave, and so on, at most `steps`
  /// times, until `callback` ends it.
  virtual absl::Status decode(int32_t token, int64_t steps, Sampler &sampler,
                              DecodeCallback callback);
};

/// A new sequence of `engine`, which outlives the result.
absl::StatusOr<std::unique_ptr<Decoder>> newDecoder(Engine &engine);

} // namespace llamac

#endif // LLAMAC_ENGINE_STEP_DECODER_H
