//===- ModelApi.cpp - llamac_model_ functions -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "capi/Errors.h"
#include "capi/Handles.h"
#include "capi/ModelObject.h"
#include "capi/Options.h"
#include "text/tokenizer/Tokenizer.h"

#include "absl/strings/str_cat.h"

#include <filesystem>
#include <utility>
#include <vector>

namespace llamac {

ModelObject::ModelObject(std::shared_ptr<const Model> model)
    : loaded(std::move(model)), device(loaded->loaded().describe()) {
  const schema::PlanT &plan = loaded->plan();
  described = {.path = loaded->planReader()->path().c_str(),
               .target = plan.target.c_str(),
               .device = device.c_str(),
               .context = loaded->context(),
               .sequences = plan.kv->maxSequences,
               .vocab_size = static_cast<int32_t>(loaded->config().vocabSize),
               .tokenizer_size =
                   loaded->tokenizer() ? loaded->tokenizer()->vocabSize() : 0,
               .bos_id = plan.tokenizer && plan.tokenizer->addBos
                             ? plan.tokenizer->bos
                             : -1,
               .stop_ids = loaded->stopIds().data(),
               .stop_id_count = loaded->stopIds().size()};
}

static absl::StatusOr<std::shared_ptr<ModelObject>>
loadModel(const char *path, const llamac_options *options) {
  LLAMAC_RETURN_IF_ERROR(checkNotNull(path, "path"));
  LLAMAC_ASSIGN_OR_RETURN(const auto given, optionalObjectOf(options));
  ModelOptions loading{.sharesPages = true, .quiet = true};
  if (given)
    LLAMAC_RETURN_IF_ERROR(given->apply(loading));
  if (std::error_code error; std::filesystem::is_directory(path, error))
    return badPlanError(absl::StrCat(path,
                                     ": expected a plan, got a folder; make a "
                                     "plan of a model: llamac compile ",
                                     path, " -o FILE.plan"));
  LLAMAC_ASSIGN_OR_RETURN(auto model, Model::load(path, loading));
  return std::make_shared<ModelObject>(std::move(model));
}

static absl::StatusOr<const Tokenizer *> tokenizerOf(const Model &model) {
  if (!model.tokenizer())
    return usageError(absl::StrCat(
        model.name(), ": the plan has no tokenizer; give and take tokens"));
  return model.tokenizer();
}

static absl::StatusOr<std::vector<int32_t>>
encode(const Model &model, absl::string_view text, unsigned flags) {
  const bool special = (flags & LLAMAC_SPECIAL) != 0;
  if ((flags & LLAMAC_CONTINUES) == 0)
    return model.encode(text, {.special = special, .addBos = true});
  LLAMAC_ASSIGN_OR_RETURN(const Tokenizer *tokenizer, tokenizerOf(model));
  return tokenizer->encode(text, {.special = special});
}

static absl::StatusOr<std::string>
decode(const Model &model, std::span<const int32_t> tokens, unsigned flags) {
  LLAMAC_ASSIGN_OR_RETURN(const Tokenizer *tokenizer, tokenizerOf(model));
  return tokenizer->decode(tokens,
                           {.special = (flags & LLAMAC_SPECIAL) != 0,
                            .startOfText = (flags & LLAMAC_CONTINUES) == 0});
}

static absl::Status checkFlags(unsigned flags) {
  if ((flags & ~(LLAMAC_SPECIAL | LLAMAC_CONTINUES)) != 0)
    return usageError(
        absl::StrCat("flags: expected LLAMAC_SPECIAL and LLAMAC_CONTINUES, "
                     "got ",
                     flags));
  return absl::OkStatus();
}

} // namespace llamac

using namespace llamac;

llamac_code llamac_model_load(const char *path, const llamac_options *options,
                              llamac_model **model) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(model, "model"));
    LLAMAC_ASSIGN_OR_RETURN(auto object, loadModel(path, options));
    *model = openHandle<llamac_model>(std::move(object));
    return absl::OkStatus();
  });
}

llamac_code llamac_model_free(llamac_model *model) {
  return callFromC([&] { return closeHandle(model).status(); });
}

llamac_code
llamac_model_describe(const llamac_model *model,
                      const llamac_model_description **description) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(description, "description"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(model));
    *description = &object->description();
    return absl::OkStatus();
  });
}

llamac_code llamac_model_encode(const llamac_model *model, const char *text,
                                size_t size, unsigned flags,
                                const int32_t **tokens, size_t *count) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(tokens, "tokens"));
    LLAMAC_RETURN_IF_ERROR(clearOutput(count, "count"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(model));
    LLAMAC_RETURN_IF_ERROR(checkFlags(flags));
    LLAMAC_RETURN_IF_ERROR(checkArray(text, size, "text"));
    thread_local std::vector<int32_t> ids;
    LLAMAC_ASSIGN_OR_RETURN(ids, encode(*object->model(), {text, size}, flags));
    *tokens = ids.data();
    *count = ids.size();
    return absl::OkStatus();
  });
}

llamac_code llamac_model_decode(const llamac_model *model,
                                const int32_t *tokens, size_t count,
                                unsigned flags, const char **text,
                                size_t *size) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(text, "text"));
    LLAMAC_RETURN_IF_ERROR(clearOutput(size, "size"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(model));
    LLAMAC_RETURN_IF_ERROR(checkFlags(flags));
    LLAMAC_RETURN_IF_ERROR(checkArray(tokens, count, "tokens"));
    thread_local std::string bytes;
    LLAMAC_ASSIGN_OR_RETURN(bytes,
                            decode(*object->model(), {tokens, count}, flags));
    *text = bytes.c_str();
    *size = bytes.size();
    return absl::OkStatus();
  });
}

llamac_code llamac_model_token(const llamac_model *model, int32_t token,
                               const char **text, size_t *size) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(text, "text"));
    LLAMAC_RETURN_IF_ERROR(clearOutput(size, "size"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(model));
    LLAMAC_ASSIGN_OR_RETURN(const Tokenizer *tokenizer,
                            tokenizerOf(*object->model()));
    LLAMAC_ASSIGN_OR_RETURN(const absl::string_view bytes,
                            tokenizer->tokenBytes(token));
    *text = bytes.data();
    *size = bytes.size();
    return absl::OkStatus();
  });
}
