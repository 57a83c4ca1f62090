//===- SmallModel.h - A draft model of its own ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SPECULATION_SMALLMODEL_H
#define LLAMAC_ENGINE_SPECULATION_SMALLMODEL_H

#include "engine/speculation/DraftModel.h"

namespace llamac {

/// Reads the tokens of an answer and nothing else.
class SmallModel final : public DraftModel {
public:
  explicit SmallModel(std::unique_ptr<Engine> engine)
      : DraftModel(std::move(engine)) {}

private:
  absl::StatusOr<absl::Span<const int32_t>>
  catchUp(const DraftWanted &wanted) override;
  absl::StatusOr<std::vector<absl::StatusOr<int32_t>>>
  run(absl::Span<const NextTokens> batch) override;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SPECULATION_SMALLMODEL_H
