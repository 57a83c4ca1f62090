//===- ServedModel.cpp - A model that a server answers by -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/ServedModel.h"

#include "runtime/base/Status.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <ctime>
#include <utility>
#include <xxhash.h>

namespace llamac::serve {

absl::StatusOr<std::unique_ptr<ServedModel>>
ServedModel::create(std::shared_ptr<const Model> model,
                    const ServedModelOptions &options) {
  if (!model->tokenizer())
    return usageError(absl::StrCat(
        model->path(), ": expected a model with a tokenizer, got one without"));
  std::unique_ptr<ServedModel> served(new ServedModel);
  served->options = options;
  if (!options.chatTemplate.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                            MappedFile::open(options.chatTemplate));
    LLAMAC_ASSIGN_OR_RETURN(
        served->format, ChatFormat::create(*model->tokenizer(), file->text(),
                                           options.chatTemplate));
  }
  const std::string identity = model->identity();
  served->identity = absl::StrFormat(
      "fp_%016x", XXH3_64bits(identity.data(), identity.size()));
  served->start = std::time(nullptr);
  LLAMAC_ASSIGN_OR_RETURN(
      served->engine, AsyncEngine::create(std::move(model), options.engine));
  if (const auto chat = served->chat(); chat.ok())
    for (const ToolCallSyntax &syntax : toolCallSyntaxes())
      if (!served->calls &&
          (*chat)->mentions(syntax.templateMark, /*withTools=*/true))
        served->calls = &syntax;
  return served;
}

absl::StatusOr<std::optional<DeviceLimits>> ServedModel::limits() const {
  const std::lock_guard lock(measuring);
  const SchedulerCounts counts = engine->counts();
  if (!measured && counts.running + counts.waiting == 0) {
    LLAMAC_ASSIGN_OR_RETURN(measured, model().device().measureLimits());
  }
  return measured;
}

} // namespace llamac::serve
