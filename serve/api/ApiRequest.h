//===- ApiRequest.h - Requests of OpenAI's interface ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fields are those of https://platform.openai.com/docs/api-reference, and
// of requestOptions() where that has none. One that is not supported is
// refused; docs/serve.md lists them.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_API_APIREQUEST_H
#define LLAMAC_SERVE_API_APIREQUEST_H

#include "runtime/io/JsonReader.h"
#include "serve/api/ServedModel.h"
#include "text/request/ChatTurn.h"
#include "text/request/Request.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac::serve {

/// A client's request for answers.
struct ApiRequest {
  const ServedModel *model = nullptr;
  bool isChat = false;
  bool streams = false;
  bool includesUsage = false; ///< A stream ends with it.
  bool countsUsage = false;   ///< Its events have it so far.
  /// Each has its own prompt and as many answers as it says. They have one
  /// grammar, which is still to be compiled, or none.
  std::vector<Request> requests = {};
  std::string grammarField = {}; ///< The field that asks for it.
  std::vector<std::string> echoes =
      {}; ///< Before the answers to each; or none.
  CallForm calls = {};

  const std::optional<GrammarSource> &grammar() const {
    return requests.front().grammar;
  }
  bool wantsLogprobs() const {
    return requests.front().options.sampling.logprobs >= 0;
  }
};

/// Parses the body of a request. Usage error where it is no JSON object.
absl::StatusOr<JsonDocument> readBody(absl::string_view text);

/// The model called `name`. NotFound for another name.
absl::StatusOr<const ServedModel *> findModel(const ServedModels &models,
                                              absl::string_view name);

/// The model that field `model` of `object` names; the only one where it is
/// absent. NotFound for another name.
absl::StatusOr<const ServedModel *> findModel(const ServedModels &models,
                                              const JsonObject &object);

/// The body of POST /v1/chat/completions or, without `isChat`, of
/// /v1/completions. Usage error, with the place; NotFound for the model.
absl::StatusOr<ApiRequest> readApiRequest(const ServedModels &models,
                                          bool isChat, absl::string_view text);

/// Gives `request` its grammar, `compiled`, or returns the error of that as one
/// of its field.
absl::Status
takeGrammar(ApiRequest &request,
            const absl::StatusOr<std::shared_ptr<const Grammar>> &compiled);

/// The ids of what `object` says to /tokenize: a prompt, or messages.
absl::StatusOr<std::vector<int32_t>>
readTokenizeRequest(const ServedModel &model, const JsonObject &object,
                    absl::string_view text);

/// The ids that `object` gives to /detokenize.
absl::StatusOr<std::vector<int32_t>>
readDetokenizeRequest(const ServedModel &model, const JsonObject &object);

} // namespace llamac::serve

#endif // LLAMAC_SERVE_API_APIREQUEST_H
