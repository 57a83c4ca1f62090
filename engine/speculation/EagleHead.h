//===- EagleHead.h - Drafts of a head on the answer's model -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An EAGLE-3 head (Li et al. 2025) predicts, of a token and the features that
// the answer's model made of the token before, the token that follows. Behind a
// token that it drafted itself it reads, in the place of features, what its own
// layer made.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SPECULATION_EAGLEHEAD_H
#define LLAMAC_ENGINE_SPECULATION_EAGLEHEAD_H

#include "engine/speculation/DraftModel.h"

#include <vector>

namespace llamac {

/// A head, whose keys and values are of its own: those of the tokens whose
/// features were read. It knows nothing of tokens that the answer's model had
/// from a cache of prefixes.
class EagleHead final : public DraftModel {
public:
  explicit EagleHead(std::unique_ptr<Engine> engine);

  absl::Status read(Drafter &drafter, absl::Span<const int32_t> tokens,
                    int64_t position,
                    absl::Span<const float> features) override;

private:
  absl::StatusOr<absl::Span<const int32_t>>
  catchUp(const DraftWanted &wanted) override;
  absl::StatusOr<std::vector<absl::StatusOr<int32_t>>>
  run(absl::Span<const NextTokens> batch) override;

  int64_t waitingRows(const Drafter &drafter) const;
  absl::Status openRows(Drafter &drafter);
  absl::StatusOr<int32_t> choose(absl::Span<const float> logits,
                                 Sampler &sampler);

  const DraftHead &head;
  /// Logits of the whole vocabulary; of tokens that the head does not draft so
  /// low that none is chosen.
  std::vector<float> logitsOfAll;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SPECULATION_EAGLEHEAD_H
