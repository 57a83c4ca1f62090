//===- ModelObject.h - A model as C holds it --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CAPI_MODELOBJECT_H
#define LLAMAC_CAPI_MODELOBJECT_H

#include "engine/step/Engine.h"
#include "llamac/llamac.h"

#include <memory>
#include <mutex>
#include <string>

namespace llamac {

/// The engine of a model's sequences, whose steps take turns.
struct SequenceEngine {
  std::mutex mutex;
  std::unique_ptr<Engine> engine;
};

class ModelObject {
public:
  explicit ModelObject(std::shared_ptr<const Model> model);

  const std::shared_ptr<const Model> &model() const { return loaded; }
  const llamac_model_description &description() const { return described; }

  /// The engine that the open sequences share; a new one where there are none.
  absl::StatusOr<std::shared_ptr<SequenceEngine>> sequenceEngine();

private:
  const std::shared_ptr<const Model> loaded;
  const std::string device;
  llamac_model_description described;
  std::mutex mutex;
  std::weak_ptr<SequenceEngine> engine;
};

} // namespace llamac

#endif // LLAMAC_CAPI_MODELOBJECT_H
