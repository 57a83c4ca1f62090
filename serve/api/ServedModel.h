//===- ServedModel.h - A model that a server answers by ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_API_SERVEDMODEL_H
#define LLAMAC_SERVE_API_SERVEDMODEL_H

#include "engine/scheduler/AsyncEngine.h"
#include "text/request/ChatFormat.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace llamac::serve {

/// A model that is ready for requests. Its functions may be called by any
/// thread.
class ServedModel {
public:
  /// `model` has a tokenizer. Conversations are written by `format`, or refused
  /// with its error. Errors: those of AsyncEngine::create().
  static absl::StatusOr<std::unique_ptr<ServedModel>>
  create(std::string name, std::shared_ptr<const Model> model,
         absl::StatusOr<std::unique_ptr<const ChatFormat>> format,
         const AsyncEngineOptions &options);

  const std::string &name() const { return calledName; }
  const Model &model() const { return engine->model(); }
  const Tokenizer &tokenizer() const { return *model().tokenizer(); }
  AsyncEngine &requests() const { return *engine; }

  /// How conversations are written. Errors: that of create()'s `format`.
  absl::StatusOr<const ChatFormat *> chat() const {
    if (!format.ok())
      return format.status();
    return format->get();
  }

  /// How fast the device is: measured when first asked for while nothing runs;
  /// none before, or where it cannot be measured. Errors: those of the device.
  absl::StatusOr<std::optional<DeviceLimits>> limits() const;

  /// A fingerprint of all that decides the bits of an answer.
  const std::string &fingerprint() const { return identity; }

  /// Since the epoch, in seconds.
  int64_t created() const { return start; }

private:
  ServedModel() = default;

  std::string calledName;
  std::unique_ptr<AsyncEngine> engine;
  absl::StatusOr<std::unique_ptr<const ChatFormat>> format;
  std::string identity;
  int64_t start = 0;
  mutable std::mutex measuring;
  mutable std::optional<DeviceLimits> measured;
};

using ServedModels = std::vector<std::unique_ptr<ServedModel>>;

} // namespace llamac::serve

#endif // LLAMAC_SERVE_API_SERVEDMODEL_H
