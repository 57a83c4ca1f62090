//===- ServedModel.cpp - A model that a server answers by -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/ServedModel.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_format.h"

#include <ctime>
#include <utility>
#include <xxhash.h>

namespace llamac::serve {

absl::StatusOr<std::unique_ptr<ServedModel>>
ServedModel::create(std::string name, std::shared_ptr<const Model> model,
                    absl::StatusOr<std::unique_ptr<const ChatFormat>> format,
                    const AsyncEngineOptions &options) {
  std::unique_ptr<ServedModel> served(new ServedModel);
  served->calledName = std::move(name);
  served->format = std::move(format);
  const std::string identity = model->identity();
  served->identity = absl::StrFormat(
      "fp_%016x", XXH3_64bits(identity.data(), identity.size()));
  served->start = std::time(nullptr);
  LLAMAC_ASSIGN_OR_RETURN(served->engine,
                          AsyncEngine::create(std::move(model), options));
  return served;
}

absl::StatusOr<std::optional<DeviceLimits>> ServedModel::limits() const {
  const std::lock_guard lock(measuring);
  const SchedulerCounts counts = engine->counts();
  if (!measured && counts.running + counts.waiting == 0) {
    LLAMAC_ASSIGN_OR_RETURN(measured, model().loaded().measureLimits());
  }
  return measured;
}

} // namespace llamac::serve
